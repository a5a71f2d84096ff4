//! Commands that a person may copy into a shell. Each word is quoted where a shell would not take it as it is.

use std::path::{Path, PathBuf};

use crate::model::{RunId, TurnDigest, TurnOrdinal, Verdict};

/// How this program is called: its name or path, and the settings file if one was named.
#[derive(Clone, Debug)]
pub struct Program {
    words: String,
}

impl Program {
    /// Called as this process was: by its path if a path was typed, else by its plain name.
    #[must_use]
    pub fn as_called(config: Option<&Path>) -> Self {
        let typed = std::env::args_os()
            .next()
            .map(PathBuf::from)
            .filter(|path| path.components().count() > 1);
        Self::at(typed.as_deref().unwrap_or(Path::new("countersign")), config)
    }

    /// Called by this path.
    #[must_use]
    pub fn at(path: &Path, config: Option<&Path>) -> Self {
        let mut words = quoted(&path.display().to_string());
        if let Some(config) = config {
            words.push_str(&format!(" --config {}", quoted(&config.display().to_string())));
        }
        Self { words }
    }

    /// The program with these words, which need no quoting.
    #[must_use]
    pub fn with(&self, words: &str) -> String {
        format!("{} {words}", self.words)
    }

    /// The command that decides a turn as that actor.
    #[must_use]
    pub fn decide(
        &self,
        verdict: Verdict,
        run: RunId,
        turn: TurnOrdinal,
        digest: &TurnDigest,
        actor: &str,
    ) -> String {
        self.with(&format!(
            "decide {verdict} {run} --turn {turn} --digest {digest} --as {}",
            quoted(actor)
        ))
    }
}

/// The word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+:@%=,".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_each_word_back() {
        assert_eq!(quoted("/usr/bin/x-1"), "/usr/bin/x-1");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("user:<you>"), "'user:<you>'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn the_settings_file_goes_along() {
        let program = Program::at(Path::new("/tmp/c"), Some(Path::new("/tmp/a b.toml")));
        assert_eq!(
            program.with("runs list"),
            "/tmp/c --config '/tmp/a b.toml' runs list"
        );
    }
}
