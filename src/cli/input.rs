//! What a command is given to read: a file or standard input, in full, bounded, and as UTF-8.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use super::exit::{Exit, Fault};

/// The largest document that is read, in bytes: that of the largest transcript.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a document: standard input where the path is `-`.
///
/// # Errors
/// It cannot be read, is too large, or is no UTF-8.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        return read_all(io::stdin().lock(), "standard input");
    }
    let name = format!("`{}`", path.display());
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    read_all(file, &name)
}

fn read_all(from: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Fault::new(
            Exit::Usage,
            format!("{name} is larger than {} MiB", MAX_BYTES >> 20),
        )
        .into());
    }
    String::from_utf8(bytes).map_err(|error| {
        Fault::new(
            Exit::Usage,
            format!("{name} is not UTF-8 text: {}", error.utf8_error()),
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_whole_or_not_at_all() {
        assert_eq!(read_all(&b"text\n"[..], "x").unwrap(), "text\n");
        assert!(
            read_all(&b"\xff"[..], "x")
                .unwrap_err()
                .to_string()
                .contains("not UTF-8")
        );
        let large = io::repeat(b'x').take(MAX_BYTES + 1);
        assert!(
            read_all(large, "x")
                .unwrap_err()
                .to_string()
                .contains("larger than 16 MiB")
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = format!("{:#}", read(Path::new("no/such/file")).unwrap_err());
        assert!(error.contains("no/such/file"), "{error}");
    }
}
