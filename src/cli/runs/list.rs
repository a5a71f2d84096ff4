//! `countersign runs list`: runs, newest first.

use clap::Args;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::style_of;
use crate::cli::arguments::actor;
use crate::cli::exit::Exit;
use crate::cli::forms;
use crate::cli::layout::{Cell, Table};
use crate::cli::moment::relative;
use crate::cli::paint::{Paint, Style};
use crate::cli::session::Session;
use crate::model::{Actor, Run, RunId, RunStatus, visible};
use crate::store::RunFilter;

/// What `runs list` takes.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Only runs in this status.
    #[arg(long, value_parser = status)]
    status: Option<RunStatus>,
    /// Only runs of this owner.
    #[arg(long, value_name = "ACTOR", value_parser = actor)]
    owner: Option<Actor>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only runs that were created before this one, for the next page.
    #[arg(long, value_name = "RUN")]
    before: Option<RunId>,
}

fn status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text)
        .ok_or_else(|| format!("one of {}", RunStatus::ALL.map(RunStatus::as_str).join(", ")))
}

pub(super) async fn run(session: &Session, arguments: &ListArguments) -> anyhow::Result<Exit> {
    let ListArguments {
        status,
        owner,
        limit,
        before,
    } = arguments;
    let filter = RunFilter {
        status: *status,
        owner: owner.clone(),
        before: *before,
        limit: *limit,
    };
    let runs = session.store.runs(&filter).await?;
    // A full page may have another behind it.
    let next = runs
        .last()
        .filter(|_| runs.len() == *limit as usize)
        .map(|run| run.id);
    session.screen.answer(
        || json!({ "runs": runs.iter().map(forms::run).collect::<Vec<Value>>(), "next_before": next }),
        |paint| text(&runs, next, session.now(), paint),
    )?;
    Ok(Exit::Done)
}

fn text(runs: &[Run], next: Option<RunId>, now: OffsetDateTime, paint: Paint) -> String {
    if runs.is_empty() {
        return "No runs.\n".to_owned();
    }
    let mut table = Table::with_headings(["RUN", "STATUS", "TURN", "OWNER", "CONFIGURATION", "CHANGED"]);
    for run in runs {
        let status = match &run.failure {
            Some(failure) => format!("{} ({})", run.status, failure.code.as_str()),
            None => run.status.to_string(),
        };
        table.row([
            run.id.to_string().into(),
            Cell::new(style_of(run.status), status),
            run.turn.to_string().into(),
            run.owner.to_string().into(),
            visible(&run.configuration).to_string().into(),
            Cell::new(Style::Dim, relative(run.updated_at, now)),
        ]);
    }
    let mut text = table.render(paint);
    if let Some(next) = next {
        text.push_str(&paint.dim(&format!("there may be more: --before {next}")));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Failure, FailureCode, TurnOrdinal};
    use time::macros::datetime;

    #[test]
    fn a_run_is_a_row() {
        let now = datetime!(2026-12-01 05:10:03 UTC);
        let run = Run {
            id: RunId::from(uuid::Uuid::from_u128(2)),
            owner: Actor::User("olga".to_owned()),
            configuration: "sup\u{200b}port".to_owned(),
            status: RunStatus::Failed,
            turn: TurnOrdinal(3),
            failure: Some(Failure::new(FailureCode::ModelFailed, "x")),
            claimed_by: None,
            epoch: 1,
            requeues: 0,
            created_at: now,
            updated_at: now - time::Duration::minutes(3),
            deadline: None,
        };
        let shown = text(std::slice::from_ref(&run), Some(run.id), now, Paint::PLAIN);
        assert_eq!(
            shown,
            "RUN                                   STATUS                 TURN  OWNER      CONFIGURATION    CHANGED\n\
             00000000-0000-0000-0000-000000000002  failed (model_failed)  3     user:olga  sup\\u{200b}port  3 min ago\n\
             there may be more: --before 00000000-0000-0000-0000-000000000002\n"
        );
        assert_eq!(text(&[], None, now, Paint::PLAIN), "No runs.\n");
    }
}
