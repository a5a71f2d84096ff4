//! Reads a secret where the catalogue says it is, each time it is used, so that a changed one is taken up
//! without a restart. A secret is never printed and never part of an error: an error names the place only.

use std::fmt;

use reqwest::header::HeaderValue;

use crate::catalogue::CredentialSource;

/// A secret that has been read. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A declared secret cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {fault}", place(.wanted))]
pub struct MissingCredential {
    /// Where it should have been.
    pub wanted: CredentialSource,
    /// What is wrong there.
    pub fault: CredentialFault,
}

/// What is wrong with the place of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// There is no such variable.
    #[error("is not set")]
    Unset,
    /// There is nothing in it.
    #[error("is empty")]
    Empty,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::ErrorKind),
    /// What is there is not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// It holds a line break or another character that no header may carry.
    #[error("holds a character that cannot be sent in a header")]
    NotSendable,
}

fn place(source: &CredentialSource) -> String {
    match source {
        CredentialSource::Environment(name) => format!("environment variable `{name}`"),
        CredentialSource::File(path) => format!("file `{path}`"),
    }
}

/// Reads the secret now.
///
/// # Errors
/// It is not there, or empty; the error says where, and nothing of its content.
pub fn read_credential(source: &CredentialSource) -> Result<Secret, MissingCredential> {
    let missing = |fault| MissingCredential {
        wanted: source.clone(),
        fault,
    };
    let mut text = match source {
        CredentialSource::Environment(name) => variable(name),
        CredentialSource::File(path) => file(path),
    }
    .map_err(missing)?;
    if text.ends_with('\n') {
        text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
    }
    if text.is_empty() {
        return Err(missing(CredentialFault::Empty));
    }
    Ok(Secret(text))
}

/// The `Authorization` header with that secret, marked so that no log shows it.
pub(in crate::engine) fn bearer(source: &CredentialSource) -> Result<HeaderValue, MissingCredential> {
    header(source, |secret| format!("Bearer {secret}"))
}

/// The secret alone as the value of a header, marked so that no log shows it.
pub(in crate::engine) fn api_key(source: &CredentialSource) -> Result<HeaderValue, MissingCredential> {
    header(source, str::to_owned)
}

fn header(
    source: &CredentialSource,
    value: impl FnOnce(&str) -> String,
) -> Result<HeaderValue, MissingCredential> {
    let secret = read_credential(source)?;
    let mut header = HeaderValue::from_str(&value(secret.expose())).map_err(|_| MissingCredential {
        wanted: source.clone(),
        fault: CredentialFault::NotSendable,
    })?;
    header.set_sensitive(true);
    Ok(header)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the catalogue names the variable, and it is read at each use"
)]
fn variable(name: &str) -> Result<String, CredentialFault> {
    std::env::var(name).map_err(|error| match error {
        std::env::VarError::NotPresent => CredentialFault::Unset,
        std::env::VarError::NotUnicode(_) => CredentialFault::NotText,
    })
}

fn file(path: &str) -> Result<String, CredentialFault> {
    let bytes = std::fs::read(path).map_err(|error| CredentialFault::Unreadable(error.kind()))?;
    String::from_utf8(bytes).map_err(|_| CredentialFault::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content: &[u8]) -> (tempfile::TempDir, CredentialSource) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, content).unwrap();
        (folder, CredentialSource::File(path.to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break_only() {
        for (content, secret) in [
            ("s3cret", "s3cret"),
            ("s3cret\n", "s3cret"),
            ("s3cret\r\n", "s3cret"),
            ("a \n\n", "a \n"),
        ] {
            let (_folder, source) = written(content.as_bytes());
            assert_eq!(read_credential(&source).unwrap().expose(), secret);
        }
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_there_is_not_shown() {
        let unset = CredentialSource::Environment("COUNTERSIGN_TEST_NEVER_SET".into());
        let error = read_credential(&unset).unwrap_err().to_string();
        assert_eq!(
            error,
            "environment variable `COUNTERSIGN_TEST_NEVER_SET` is not set"
        );
        let gone = CredentialSource::File("/nowhere/key".into());
        let error = read_credential(&gone).unwrap_err().to_string();
        assert_eq!(error, "file `/nowhere/key` cannot be read: entity not found");
        for (content, fault) in [
            (&b"\n"[..], CredentialFault::Empty),
            (b"s3\xff", CredentialFault::NotText),
        ] {
            let (_folder, source) = written(content);
            assert_eq!(read_credential(&source).unwrap_err().fault, fault);
        }
        let (_folder, source) = written(b"s3cret\nmore");
        let error = bearer(&source).unwrap_err();
        assert_eq!(error.fault, CredentialFault::NotSendable);
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }

    #[test]
    fn no_debug_output_shows_it() {
        let (_folder, source) = written(b"s3cret");
        assert_eq!(format!("{:?}", read_credential(&source).unwrap()), "Secret(…)");
        assert!(!format!("{:?}", bearer(&source).unwrap()).contains("s3cret"));
    }
}
