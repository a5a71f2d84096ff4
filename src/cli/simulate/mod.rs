//! `countersign simulate`: what would become of a call, before anything happens. It asks the gate's simulator with what
//! the actor is right now, and writes nothing.

mod matrix;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::{Globals, actor};
use super::exit::{Exit, Fault};
use super::layout::{Cell, Table};
use super::paint::{Paint, Style};
use super::session::Session;
use crate::catalogue::Configuration;
use crate::gate::{Catalogued, Foreseen, NOT_COVERED, Outcome, Simulation, simulate};
use crate::model::{Actor, ToolName, visible};

/// What `simulate` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "--as is for operators who already hold the database's credentials: it is believed, not checked."
)]
pub struct SimulateArguments {
    /// In which configuration.
    #[arg(long, value_name = "NAME")]
    configuration: String,
    /// Which tool is called.
    #[arg(long, value_name = "NAME", required_unless_present = "matrix")]
    tool: Option<String>,
    /// Who owns the run: a user or a service account.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor, required_unless_present = "matrix")]
    actor: Option<Actor>,
    /// Every tool of the catalogue for every enabled person, as one table.
    #[arg(long, conflicts_with_all = ["tool", "actor"])]
    matrix: bool,
    /// The table as comma-separated values.
    #[arg(long, requires = "matrix", conflicts_with = "json")]
    csv: bool,
}

pub(super) async fn run(globals: &Globals, arguments: &SimulateArguments) -> anyhow::Result<Exit> {
    let session = Session::open(globals).await?;
    let at = in_force(&session).await?;
    let configuration = named(&at, &arguments.configuration)?;
    let (Some(tool), Some(actor)) = (&arguments.tool, &arguments.actor) else {
        return matrix::run(&session, &at, configuration, matrix::Form::of(arguments.csv)).await;
    };
    let tool = ToolName::from(tool.as_str());
    let principal = session.resolve(actor).await?;
    let simulation = simulate(&at.catalogue, configuration, &tool, principal.as_ref());
    let asked = Asked {
        configuration: &configuration.name,
        tool: &tool,
        actor,
        resolved: principal.is_some(),
        version: at.version,
    };
    session.screen.answer(
        || as_json(&asked, &simulation),
        |paint| as_text(&asked, &simulation, paint),
    )?;
    Ok(Exit::Done)
}

/// The catalogue that is in force.
async fn in_force(session: &Session) -> anyhow::Result<Catalogued> {
    session.current_catalogue().await?.ok_or_else(|| {
        Fault::new(Exit::NotFound, "no catalogue was ever applied")
            .help("apply one with `countersign catalogue apply FILE`")
            .into()
    })
}

fn named<'c>(at: &'c Catalogued, name: &str) -> anyhow::Result<&'c Configuration> {
    at.catalogue.configurations.get(name).ok_or_else(|| {
        let known: Vec<&str> = at.catalogue.configurations.keys().map(String::as_str).collect();
        Fault::new(
            Exit::NotFound,
            format!(
                "there is no configuration `{}` in catalogue version {}",
                visible(name),
                at.version
            ),
        )
        .help(format!("there are {}", known.join(", ")))
        .into()
    })
}

/// What was asked.
struct Asked<'a> {
    configuration: &'a str,
    tool: &'a ToolName,
    actor: &'a Actor,
    resolved: bool,
    version: i64,
}

fn as_json(asked: &Asked<'_>, simulation: &Simulation) -> Value {
    let rows: Vec<_> = simulation
        .rows
        .iter()
        .map(|row| {
            json!({
                "axis": row.axis.as_str(), "outcome": row.outcome.as_str(), "reason": row.reason,
                "detail": row.detail, "scope": row.axis.scope(), "fix": row.fix,
            })
        })
        .collect();
    json!({
        "verdict": simulation.verdict.as_str(),
        "configuration": asked.configuration,
        "tool": asked.tool,
        "actor": asked.actor,
        "asked_as": if asked.resolved { "actor" } else { "nobody" },
        "catalogue": asked.version,
        "rows": rows,
        "not_covered": NOT_COVERED,
    })
}

fn as_text(asked: &Asked<'_>, simulation: &Simulation, paint: Paint) -> String {
    let verdict = paint.apply(style_of(simulation.verdict), simulation.verdict.as_str());
    let mut text = format!(
        "{verdict}  a call of `{}` in `{}` for {}, by catalogue version {}\n",
        visible(asked.tool.as_str()),
        visible(asked.configuration),
        asked.actor,
        asked.version
    );
    if !asked.resolved {
        text.push_str(&format!(
            "{} is unknown, disabled or deleted: asked as nobody\n",
            asked.actor
        ));
    }
    text.push('\n');
    let mut table = Table::with_headings(["AXIS", "OUTCOME", "HOLDS FOR", "WHY"]);
    for row in &simulation.rows {
        let style = match row.outcome {
            Outcome::Allowed => Style::Green,
            Outcome::ApprovalNeeded | Outcome::Observed => Style::Yellow,
            Outcome::Refused => Style::Red,
        };
        table.row([
            row.axis.as_str().into(),
            Cell::new(style, row.outcome.as_str()),
            row.axis.scope().into(),
            visible(&row.detail).to_string().into(),
        ]);
    }
    text.push_str(&table.render(paint));
    let standing = simulation.rows.iter().filter(|row| !row.fix.is_empty());
    for (place, row) in standing.enumerate() {
        if place == 0 {
            text.push_str("\nWhere to change it:\n");
        }
        let keys = row.fix.join(" or ");
        text.push_str(&format!("  {}: {}\n", row.axis.as_str(), visible(&keys)));
    }
    text.push_str(&paint.dim(&format!("\nNot covered: {}.\n", NOT_COVERED.join("; "))));
    text
}

fn style_of(verdict: Foreseen) -> Style {
    match verdict {
        Foreseen::Allow => Style::Green,
        Foreseen::AllowWithApproval => Style::Yellow,
        Foreseen::Block => Style::Red,
    }
}
