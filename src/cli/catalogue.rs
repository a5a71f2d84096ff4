//! `countersign catalogue …`: what is declared. `check` needs no database; `apply` stores the next version, which
//! workers act on from their next claim; a version is never changed.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::arguments::{Globals, actor};
use super::exit::{Exit, Fault};
use super::input;
use super::layout::count;
use super::moment::{relative, rfc3339};
use super::paint::{Paint, Style};
use super::screen::{self, Screen};
use super::session::{Session, parse_stored};
use crate::catalogue::{Catalogue, Change, Problem, Problems, Severity, diff};
use crate::model::{Actor, EventKind, visible};

/// What can be done with the catalogue.
#[derive(Debug, Subcommand)]
pub enum CatalogueCommand {
    /// Check a file. Needs no database.
    Check(CheckArguments),
    /// Check a file and make it the current catalogue.
    Apply(ApplyArguments),
    /// Print a version, as it was applied.
    Show(ShowArguments),
    /// Say what differs. Of one FILE or version N: to the current catalogue, of two: from the first to the second,
    /// of none: what the current version changed.
    Diff(DiffArguments),
}

/// What `catalogue check` takes.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The file; `-` reads standard input.
    file: PathBuf,
}

/// What `catalogue apply` takes.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    /// The file; `-` reads standard input.
    file: PathBuf,
    /// Who does it, for the record.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    by: Option<Actor>,
}

/// What `catalogue show` takes.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Which version; the current one unless set.
    #[arg(long = "version", value_name = "N")]
    number: Option<i64>,
}

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

pub(super) async fn run(globals: &Globals, command: &CatalogueCommand) -> anyhow::Result<Exit> {
    match command {
        CatalogueCommand::Check(arguments) => check(&globals.screen(), &arguments.file),
        CatalogueCommand::Apply(arguments) => apply(globals, arguments).await,
        CatalogueCommand::Show(arguments) => show(&Session::open(globals).await?, arguments).await,
        CatalogueCommand::Diff(arguments) => compare(&Session::open(globals).await?, arguments).await,
    }
}

fn check(screen: &Screen, file: &Path) -> anyhow::Result<Exit> {
    let (catalogue, problems) = Catalogue::check(&input::read(file)?);
    let form = || {
        let problems = problems.iter().map(form_of_problem).collect::<Vec<Value>>();
        json!({ "valid": catalogue.is_some(), "problems": problems })
    };
    let Some(catalogue) = &catalogue else {
        if screen.is_json() {
            screen.answer(form, |_| String::new())?;
            return Ok(Exit::Failed);
        }
        return Err(refused(file, &problems));
    };
    screen.answer(form, |paint| {
        let counts = [
            count(catalogue.configurations.len(), "configuration"),
            count(catalogue.models.len(), "model"),
            count(catalogue.tools.len(), "tool"),
        ];
        format!(
            "{}{}: {}\n",
            told(&problems, paint),
            paint.apply(Style::Green, "valid"),
            counts.join(", ")
        )
    })?;
    Ok(Exit::Done)
}

fn refused(file: &Path, problems: &Problems) -> anyhow::Error {
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    let message = format!(
        "{} is no valid catalogue: {}",
        file.display(),
        count(errors, "error")
    );
    Fault::new(Exit::Failed, message)
        .details(problems)
        .help("mend what is named above; nothing was applied")
        .into()
}

fn told(problems: &Problems, paint: Paint) -> String {
    let line = |problem: &Problem| {
        let style = match problem.severity {
            Severity::Error => Style::Red,
            Severity::Warning => Style::Yellow,
        };
        let text = problem.to_string();
        let word = problem.severity.as_str();
        format!(
            "{}{}\n",
            paint.apply(style, word),
            text.strip_prefix(word).unwrap_or(&text)
        )
    };
    problems.iter().map(line).collect()
}

fn form_of_problem(problem: &Problem) -> Value {
    json!({
        "severity": problem.severity.as_str(),
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "suggestion": problem.suggestion,
    })
}

async fn apply(globals: &Globals, arguments: &ApplyArguments) -> anyhow::Result<Exit> {
    let source = input::read(&arguments.file)?;
    let (catalogue, problems) = Catalogue::check(&source);
    let Some(catalogue) = catalogue else {
        return Err(refused(&arguments.file, &problems));
    };
    if !globals.json {
        eprint!("{}", told(&problems, globals.error_paint()));
    }
    let session = Session::open(globals).await?;
    let current = match session.store.current_version().await? {
        Some(version) => Some(session.version(version).await?),
        None => None,
    };
    if let Some(current) = current.as_ref().filter(|current| current.source == source) {
        let version = current.version;
        session.screen.answer(
            || json!({ "version": version, "applied": false, "changes": [] }),
            |_| format!("Version {version} is this very text; nothing to apply.\n"),
        )?;
        return Ok(Exit::Done);
    }
    // A current version that this build cannot read is no reason to refuse one that it can.
    let old = current.and_then(|current| Catalogue::parse(&current.source).ok());
    let changes = old.map(|old| diff(&old, &catalogue));
    let event = session.event(
        None,
        EventKind::CatalogueApplied,
        arguments.by.as_ref(),
        json!({}),
    );
    let version = session
        .store
        .apply_catalogue(&source, arguments.by.as_ref(), &event)
        .await?;
    session.screen.answer(
        || json!({ "version": version, "applied": true, "changes": changes.as_deref().map(form_of_changes) }),
        |paint| {
            let mut text = changes
                .as_deref()
                .map(|changes| lines(changes, paint))
                .unwrap_or_default();
            text.push_str(&format!(
                "Version {version} is the catalogue from the next claim on.\n"
            ));
            text
        },
    )?;
    Ok(Exit::Done)
}

async fn show(session: &Session, arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let number = match arguments.number {
        Some(number) => number,
        None => current_number(session).await?,
    };
    let version = session.version(number).await?;
    if session.screen.is_json() {
        session.screen.answer(
            || {
                json!({
                    "version": version.version,
                    "applied_by": version.applied_by,
                    "applied_at": rfc3339(version.applied_at),
                    "source": version.source,
                })
            },
            |_| String::new(),
        )?;
        return Ok(Exit::Done);
    }
    let by = version
        .applied_by
        .as_ref()
        .map(|by| format!(" by {by}"))
        .unwrap_or_default();
    let when = relative(version.applied_at, session.now());
    // Apart from the text, so that the text can be sent into a file.
    eprintln!("version {}, applied {when}{by}", version.version);
    screen::write(&session.screen.document(&version.source))?;
    Ok(Exit::Done)
}

async fn current_number(session: &Session) -> anyhow::Result<i64> {
    let current = session.store.current_version().await?;
    Ok(current.ok_or_else(|| {
        Fault::new(Exit::NotFound, "no catalogue has been applied")
            .help("apply one with `countersign catalogue apply FILE`")
    })?)
}

async fn compare(session: &Session, arguments: &DiffArguments) -> anyhow::Result<Exit> {
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

fn lines(changes: &[Change], paint: Paint) -> String {
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

fn form_of_changes(changes: &[Change]) -> Value {
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

    #[test]
    fn case_c8_a_misspelt_key_is_told_in_one_line() {
        let (catalogue, problems) = Catalogue::check("[tools.x]\nkind = \"http\"\nrequires_aproval = true\n");
        assert!(catalogue.is_none());
        let text = told(&problems, Paint::PLAIN);
        let line = text
            .lines()
            .find(|line| line.contains("requires_aproval"))
            .unwrap();
        assert!(
            line.starts_with("error: ") && line.contains("line 3") && line.contains("`requires_approval`"),
            "{line}"
        );
    }
}
