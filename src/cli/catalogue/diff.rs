//! `countersign catalogue diff`: what differs between two catalogues, each a file or a version.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::check::refused;
use super::current_number;
use crate::catalogue::{Catalogue, Change, diff};
use crate::cli::exit::Exit;
use crate::cli::input;
use crate::cli::paint::{Paint, Style};
use crate::cli::session::{Session, parse_stored};
use crate::model::visible;

/// What `catalogue diff` takes.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// A file, or a version's number.
    #[arg(value_name = "FILE|N")]
    from: Option<String>,
    /// A file, or a version's number.
    #[arg(value_name = "FILE|N")]
    to: Option<String>,
}

pub(super) async fn run(session: &Session, arguments: &DiffArguments) -> anyhow::Result<Exit> {
    let (from, to) = match (&arguments.from, &arguments.to) {
        (Some(from), Some(to)) => (Side::named(from), Side::named(to)),
        (Some(word), None) => match (Side::named(word), Side::Version(current_number(session).await?)) {
            (file @ Side::File(_), current) => (current, file),
            (version, current) => (version, current),
        },
        (None, _) => {
            let current = current_number(session).await?;
            (Side::Version(current - 1), Side::Version(current))
        }
    };
    let (old, new) = (from.read(session).await?, to.read(session).await?);
    let changes = diff(&old, &new);
    session.screen.answer(
        || json!({ "from": from.to_string(), "to": to.to_string(), "changes": form_of_changes(&changes) }),
        |paint| {
            let mut text = paint.dim(&format!("from {from} to {to}"));
            text.push('\n');
            text.push_str(&lines(&changes, paint));
            if changes.is_empty() {
                text.push_str("They mean the same.\n");
            }
            text
        },
    )?;
    Ok(Exit::Done)
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Side {
    Version(i64),
    File(PathBuf),
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => write!(f, "version {version}"),
            Self::File(path) => visible(&path.display().to_string()).fmt(f),
        }
    }
}

impl Side {
    fn named(word: &str) -> Self {
        word.parse()
            .map_or_else(|_| Self::File(word.into()), Self::Version)
    }

    async fn read(&self, session: &Session) -> anyhow::Result<Catalogue> {
        match self {
            // Before the first version nothing was declared.
            Self::Version(0) => parse_stored(0, ""),
            Self::Version(version) => parse_stored(*version, &session.version(*version).await?.source),
            Self::File(path) => {
                Catalogue::parse(&input::read(path)?).map_err(|problems| refused(path, &problems))
            }
        }
    }
}

/// Each change, on a line of its own.
pub(super) fn lines(changes: &[Change], paint: Paint) -> String {
    let line = |change: &Change| {
        let style = match change {
            Change::Added { .. } => Style::Green,
            Change::Removed { .. } => Style::Red,
            Change::Changed { .. } => Style::Yellow,
        };
        format!("{}\n", paint.apply(style, &change.to_string()))
    };
    changes.iter().map(line).collect()
}

/// The changes for machines.
pub(super) fn form_of_changes(changes: &[Change]) -> Value {
    let form = |change: &Change| match change {
        Change::Added { path, new } => json!({ "change": "added", "path": path, "old": null, "new": new }),
        Change::Removed { path, old } => {
            json!({ "change": "removed", "path": path, "old": old, "new": null })
        }
        Change::Changed { path, old, new } => {
            json!({ "change": "changed", "path": path, "old": old, "new": new })
        }
    };
    changes.iter().map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_version_and_anything_else_a_file() {
        assert_eq!(Side::named("3"), Side::Version(3));
        assert_eq!(Side::named("./3"), Side::File("./3".into()));
        assert_eq!(Side::named("catalogue.toml"), Side::File("catalogue.toml".into()));
    }
}
