//! `simulate --matrix`: every tool of the catalogue for every enabled person, in one configuration.

use serde_json::{Value, json};

use super::style_of;
use crate::catalogue::Configuration;
use crate::cli::exit::Exit;
use crate::cli::layout::width_of;
use crate::cli::paint::Paint;
use crate::cli::screen;
use crate::cli::session::Session;
use crate::gate::{Catalogued, Foreseen, simulate};
use crate::identity::principal_of;
use crate::model::{Actor, visible};
use crate::store::{Directory, DirectoryEntry};

/// How the table is written where it is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Columns that stand under each other.
    Columns,
    /// Comma-separated values (RFC 4180).
    Csv,
}

impl Form {
    /// As the option `--csv` says.
    pub(super) fn of(csv: bool) -> Self {
        if csv { Self::Csv } else { Self::Columns }
    }
}

/// A row for each tool, a column for each person.
struct Matrix {
    people: Vec<Actor>,
    rows: Vec<(String, Vec<Foreseen>)>,
}

pub(super) async fn run(
    session: &Session,
    at: &Catalogued,
    configuration: &Configuration,
    form: Form,
) -> anyhow::Result<Exit> {
    let matrix = matrix(at, configuration, session.store.directory().await?);
    if form == Form::Csv {
        screen::write(&csv(&matrix))?;
        return Ok(Exit::Done);
    }
    session.screen.answer(
        || as_json(at, configuration, &matrix),
        |paint| columns(&matrix, paint),
    )?;
    Ok(Exit::Done)
}

fn matrix(at: &Catalogued, configuration: &Configuration, directory: Directory) -> Matrix {
    // The grants of a person's groups say who may decide; no rule that is asked here looks at them.
    let entries = directory
        .people
        .into_iter()
        .map(|person| DirectoryEntry::Person(person, Default::default()));
    let principals: Vec<_> = entries.filter_map(principal_of).collect();
    let rows = at.catalogue.tools.keys().map(|tool| {
        let foreseen = principals
            .iter()
            .map(|principal| simulate(&at.catalogue, configuration, tool, Some(principal)).verdict);
        (tool.as_str().to_owned(), foreseen.collect())
    });
    Matrix {
        rows: rows.collect(),
        people: principals.iter().map(|principal| principal.actor()).collect(),
    }
}

fn as_json(at: &Catalogued, configuration: &Configuration, matrix: &Matrix) -> Value {
    let rows = matrix.rows.iter().map(|(tool, cells)| {
        let cells = matrix.people.iter().zip(cells);
        let verdicts: serde_json::Map<String, Value> = cells
            .map(|(person, verdict)| (person.to_string(), verdict.as_str().into()))
            .collect();
        json!({ "tool": tool, "verdicts": verdicts })
    });
    json!({
        "configuration": configuration.name,
        "catalogue": at.version,
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// One letter a cell, so that many people fit on a line; the legend stands below.
fn columns(matrix: &Matrix, paint: Paint) -> String {
    let tools = matrix.rows.iter().map(|(tool, _)| visible(tool).to_string());
    let names: Vec<String> = tools.collect();
    let width = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (place, person) in matrix.people.iter().enumerate() {
        text.push_str(&format!(
            "{}{} {person}\n",
            " ".repeat(width + 2),
            "│ ".repeat(place)
        ));
    }
    for (name, (_, cells)) in names.iter().zip(&matrix.rows) {
        text.push_str(name);
        text.push_str(&" ".repeat(width - width_of(name) + 2));
        for verdict in cells {
            text.push_str(&paint.apply(style_of(*verdict), letter(*verdict)));
            text.push(' ');
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text.push_str(&paint.dim("\n+ allow   ? allow with approval   - block\n"));
    text
}

fn letter(verdict: Foreseen) -> &'static str {
    match verdict {
        Foreseen::Allow => "+",
        Foreseen::AllowWithApproval => "?",
        Foreseen::Block => "-",
    }
}

fn csv(matrix: &Matrix) -> String {
    let people = matrix.people.iter().map(Actor::to_string);
    let mut text = line(std::iter::once("tool".to_owned()).chain(people));
    for (tool, cells) in &matrix.rows {
        let cells = cells.iter().map(|verdict| verdict.as_str().to_owned());
        text.push_str(&line(std::iter::once(tool.clone()).chain(cells)));
    }
    text
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let quoted = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Matrix {
        Matrix {
            people: vec![Actor::User("ada".to_owned()), Actor::User("olga".to_owned())],
            rows: vec![
                ("look".to_owned(), vec![Foreseen::Allow, Foreseen::Allow]),
                (
                    "pay, back".to_owned(),
                    vec![Foreseen::AllowWithApproval, Foreseen::Block],
                ),
            ],
        }
    }

    #[test]
    fn a_table_of_letters() {
        assert_eq!(
            columns(&two(), Paint::PLAIN),
            "            user:ada\n           │  user:olga\nlook       + +\npay, back  ? -\n\n\
             + allow   ? allow with approval   - block\n"
        );
    }

    #[test]
    fn a_field_with_a_comma_is_quoted() {
        assert_eq!(
            csv(&two()),
            "tool,user:ada,user:olga\r\nlook,allow,allow\r\n\"pay, back\",allow_with_approval,block\r\n"
        );
    }
}
