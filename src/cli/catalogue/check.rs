//! `countersign catalogue check`: says everything that is wrong or doubtful about a file, and how a person and a
//! machine are told of it.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::catalogue::{Catalogue, Problem, Problems, Severity};
use crate::cli::exit::{Exit, Fault};
use crate::cli::input;
use crate::cli::layout::count;
use crate::cli::paint::{Paint, Style};
use crate::cli::screen::Screen;

/// What `catalogue check` takes.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The file; `-` reads standard input.
    file: PathBuf,
}

pub(super) fn run(screen: &Screen, arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let (catalogue, problems) = Catalogue::check(&input::read(&arguments.file)?);
    let form = || {
        let problems = problems.iter().map(form_of_problem).collect::<Vec<Value>>();
        json!({ "valid": catalogue.is_some(), "problems": problems })
    };
    let Some(catalogue) = &catalogue else {
        if screen.is_json() {
            screen.answer(form, |_| String::new())?;
            return Ok(Exit::Failed);
        }
        return Err(refused(&arguments.file, &problems));
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

/// The fault of a file that is no catalogue.
pub(super) fn refused(file: &Path, problems: &Problems) -> anyhow::Error {
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

/// Each problem, on a line of its own.
pub(super) fn told(problems: &Problems, paint: Paint) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
