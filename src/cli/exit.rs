//! How the program ends: the exit codes, and what a person is told when a command could not do what was asked.
//!
//! An error is one line that says what is wrong and one that says what to do next. Nothing here may show a
//! `Debug` form, a password, or a character that cannot be seen.

use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::paint::{Paint, Style};
use crate::declaration::Problems;
use crate::model::visible;
use crate::store::{ConnectError, StoreError};

/// The exit codes; `docs/cli.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// What was asked is done.
    Done = 0,
    /// Something failed: a file, the settings, the database.
    Failed = 1,
    /// The command line, or a document given to it, cannot be read.
    Usage = 2,
    /// It was understood and refused: by a gate, the policy, or the directory.
    Refused = 3,
    /// A run, decision, actor, configuration or version of that name does not exist.
    NotFound = 4,
    /// The decision is recorded, and nobody has taken it within the time waited.
    StillPending = 5,
    /// It can no longer be done: the run has ended, the decision has been used, no outcome is unknown.
    TooLate = 6,
    /// A second signal ended the process at once.
    Interrupted = 130,
}

impl Exit {
    /// Every code there is.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Refused,
        Self::NotFound,
        Self::StillPending,
        Self::TooLate,
        Self::Interrupted,
    ];

    /// The stable name, as `--json` shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Refused => "refused",
            Self::NotFound => "not_found",
            Self::StillPending => "still_pending",
            Self::TooLate => "too_late",
            Self::Interrupted => "interrupted",
        }
    }

    /// The code for the system.
    #[must_use]
    pub fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// A command could not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// How the program ends.
    pub exit: Exit,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
    /// Each single thing that is wrong, where a document has many; shown before the message.
    pub details: Vec<String>,
}

impl Fault {
    /// A fault that ends the program so.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            help: None,
            details: Vec::new(),
        }
    }

    /// With what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With each problem of a document, which must be safe to show.
    #[must_use]
    pub fn details(mut self, problems: &Problems) -> Self {
        self.details = problems.iter().map(ToString::to_string).collect();
        self
    }
}

/// What is told of an error, whatever it came from.
#[must_use]
pub fn explain(error: &anyhow::Error) -> Fault {
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return fault.clone();
    }
    let told = Fault::new(Exit::Failed, format!("{error:#}"));
    if let Some(error) = error.downcast_ref::<ConnectError>() {
        return told.help(match error {
            ConnectError::Misconfigured(_) => {
                "the database is named by `database.url` in the settings file, or by COUNTERSIGN_DATABASE_URL"
            }
            ConnectError::Unreachable { .. } => {
                "start the database, or name another one in `database.url`; wait longer with --connect-timeout"
            }
        });
    }
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::Unavailable(_)) => {
            told.help("try again; what was asked may or may not have happened")
        }
        Some(StoreError::CorruptRow { .. }) => {
            told.help("the row was left as it is; restore it from a backup, or mend it by hand")
        }
        Some(StoreError::Failed(_)) | None => told,
    }
}

/// Whether the reader of our output has gone, as in `countersign runs list | head`. That is no failure.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<io::Error>().map(io::Error::kind);
    error
        .chain()
        .any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}

/// The two lines for people.
#[must_use]
pub fn as_text(fault: &Fault, paint: Paint) -> String {
    let mut text: String = fault.details.iter().map(|detail| format!("{detail}\n")).collect();
    text.push_str(&format!(
        "{}: {}\n",
        paint.apply(Style::Red, "error"),
        visible(&fault.message)
    ));
    if let Some(help) = &fault.help {
        text.push_str(&format!(
            "{}: {}\n",
            paint.apply(Style::Cyan, "help"),
            visible(help)
        ));
    }
    text
}

/// The same for machines.
#[must_use]
pub fn as_json(fault: &Fault) -> Value {
    let Fault {
        exit,
        message,
        help,
        details,
    } = fault;
    json!({ "error": { "code": exit.as_str(), "message": message, "help": help, "details": details } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_what_to_do_next() {
        let fault = Fault::new(Exit::NotFound, "there is no run\nx\u{202e}").help("list them");
        assert_eq!(
            as_text(&fault, Paint::PLAIN),
            "error: there is no run\\nx\\u{202e}\nhelp: list them\n"
        );
        assert_eq!(as_json(&fault)["error"]["code"], "not_found");
    }

    #[test]
    fn an_error_from_elsewhere_keeps_its_causes() {
        let error = anyhow::Error::new(io::Error::other("disk full")).context("cannot read `x`");
        assert_eq!(explain(&error).message, "cannot read `x`: disk full");
        assert_eq!(explain(&error).exit, Exit::Failed);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let gone = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("cannot write");
        assert!(is_broken_pipe(&gone));
        assert!(!is_broken_pipe(&anyhow::anyhow!("something else")));
    }

    #[test]
    fn every_code_is_its_own_and_documented() {
        let codes: std::collections::HashSet<_> = Exit::ALL.into_iter().map(|exit| exit as u8).collect();
        assert_eq!(codes.len(), Exit::ALL.len());
        for exit in Exit::ALL {
            let row = format!("| {} | `{}` |", exit as u8, exit.as_str());
            assert!(
                include_str!("../../docs/cli.md").contains(&row),
                "docs/cli.md lacks {row}"
            );
        }
    }
}
