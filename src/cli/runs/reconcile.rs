//! `countersign runs reconcile` and `runs unknown`: the desk for writes whose outcome nobody knows. What an admin
//! states becomes the call's result, and the run goes on with it. Nothing here makes a call, or makes one again.

use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::arguments::actor;
use crate::cli::exit::{Exit, Fault};
use crate::cli::layout::{Cell, Table};
use crate::cli::moment::relative;
use crate::cli::paint::{Paint, Style};
use crate::cli::session::{Session, no_such_run};
use crate::cli::{forms, input};
use crate::model::{Actor, ActualOutcome, CallId, CallRecord, EventKind, Run, RunId, reconcile, visible};
use crate::policy;
use crate::store::Guarded;

/// What `runs reconcile` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Find out what really happened before you state it: the idempotency key that `runs unknown` shows went \
    along with the call.\n\n--as is for operators who already hold the database's credentials: it is believed, not checked."
)]
pub struct ReconcileArguments {
    /// The run.
    run: RunId,
    /// The call whose outcome is unknown, as `runs unknown` names it.
    #[arg(long, value_name = "CALL")]
    call: String,
    /// What really happened. With `not-done` the model is told that the call took no effect; it is not made again.
    #[arg(long, value_enum)]
    outcome: Outcome,
    /// The tool's answer, where it is known: a JSON text, which the model is given; `-` reads it from standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    result: Option<String>,
    /// Who states it: an admin.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    actor: Actor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    /// The call took effect.
    Done,
    /// The call took no effect.
    NotDone,
}

/// What `runs unknown` takes.
#[derive(Debug, Args)]
pub struct UnknownArguments {
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only runs that were created before this one, for the next page.
    #[arg(long, value_name = "RUN")]
    before: Option<RunId>,
}

pub(super) async fn run(
    session: &Session,
    arguments: &ReconcileArguments,
    result_bytes: usize,
) -> anyhow::Result<Exit> {
    let actual = stated(arguments, result_bytes)?;
    let ReconcileArguments {
        run: id, call, actor, ..
    } = arguments;
    let run = session.store.run(*id).await?.ok_or_else(|| no_such_run(*id))?;
    let principal = session.somebody(actor).await?;
    if !policy::may_reconcile(&principal) {
        let message = format!("{actor} may not state what a call really did");
        return Err(Fault::new(Exit::Refused, message)
            .help("an admin may; see who is one with `countersign directory show`")
            .into());
    }
    let journal = session.store.calls(*id, Some(run.turn)).await?;
    let call = CallId::from(call.as_str());
    let settled = reconcile(&run, &journal, &call, &actual, actor, session.now()).map_err(|not| {
        Fault::new(Exit::TooLate, not.to_string())
            .help("`countersign runs unknown` lists the calls whose outcome is unknown")
    })?;
    if session
        .store
        .reconcile(&settled, &told(session, &settled, &actual, actor))
        .await?
        == Guarded::Lost
    {
        return Err(Fault::new(Exit::TooLate, "somebody else has stated it meanwhile")
            .help(format!("see what with `countersign runs show {id}`"))
            .into());
    }
    session.screen.answer(
        || json!({ "run_id": id, "call": forms::call(&settled), "outcome": actual.as_str() }),
        |paint| {
            format!(
                "Stated by {actor}: call {} was {}. Run {id} is queued and goes on with it.\n{} {}\n",
                visible(settled.call.as_str()),
                match actual {
                    ActualOutcome::Done(_) => "done",
                    ActualOutcome::NotDone => "not done",
                },
                paint.dim("follow it:"),
                session.program.with(&format!("events follow {id}"))
            )
        },
    )?;
    Ok(Exit::Done)
}

fn stated(arguments: &ReconcileArguments, limit: usize) -> anyhow::Result<ActualOutcome> {
    let result = match arguments.result.as_deref() {
        Some("-") => Some(input::read(Path::new("-"))?.trim().to_owned()),
        given => given.map(str::to_owned),
    };
    let Some(result) = result else {
        return Ok(match arguments.outcome {
            Outcome::Done => ActualOutcome::Done(None),
            Outcome::NotDone => ActualOutcome::NotDone,
        });
    };
    let usage = |message: String, help: &str| Err(Fault::new(Exit::Usage, message).help(help).into());
    if arguments.outcome == Outcome::NotDone {
        return usage(
            "a call that was not done has no result".to_owned(),
            "leave --result out, or state --outcome done",
        );
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&result) {
        return usage(
            format!(
                "--result is no JSON (line {}, column {})",
                error.line(),
                error.column()
            ),
            "give the tool's answer as one JSON value, such as '{\"refund\":\"R-1\"}'",
        );
    }
    if result.len() > limit {
        return usage(
            format!("--result has {} bytes; at most {limit} are kept", result.len()),
            "shorten it, or raise `limits.result_bytes`",
        );
    }
    Ok(ActualOutcome::Done(Some(result)))
}

/// What is told: who stated what of which call, and that the run waits for a worker. Never the result.
fn told(
    session: &Session,
    call: &CallRecord,
    actual: &ActualOutcome,
    by: &Actor,
) -> [crate::model::NewEvent; 2] {
    let stated = json!({
        "turn": call.turn, "call": call.call, "tool": call.tool, "outcome": actual.as_str(),
        "idempotency_key": call.idempotency_key(),
    });
    [
        session.event(Some(call.run), EventKind::CallReconciled, Some(by), stated),
        session.event(
            Some(call.run),
            EventKind::RunQueued,
            Some(by),
            json!({ "reconciled": true }),
        ),
    ]
}

pub(super) async fn list(session: &Session, arguments: &UnknownArguments) -> anyhow::Result<Exit> {
    let UnknownArguments { limit, before } = arguments;
    let open = session.store.unknown_outcomes(*before, *limit).await?;
    let next = open
        .last()
        .filter(|_| open.len() == *limit as usize)
        .map(|(run, _)| run.id);
    let form = |(run, call): &(Run, CallRecord)| json!({ "run": forms::run(run), "call": forms::call(call), "idempotency_key": call.idempotency_key() });
    session.screen.answer(
        || json!({ "unknown": open.iter().map(form).collect::<Vec<Value>>(), "next_before": next }),
        |paint| text(session, &open, next, paint),
    )?;
    Ok(Exit::Done)
}

fn text(session: &Session, open: &[(Run, CallRecord)], next: Option<RunId>, paint: Paint) -> String {
    if open.is_empty() {
        return "No call has an unknown outcome.\n".to_owned();
    }
    let now = session.now();
    let mut table = Table::with_headings(["RUN", "OWNER", "CALL", "TOOL", "BEGUN", "IDEMPOTENCY KEY"]);
    for (run, call) in open {
        table.row([
            run.id.to_string().into(),
            run.owner.to_string().into(),
            visible(call.call.as_str()).to_string().into(),
            visible(call.tool.as_str()).to_string().into(),
            Cell::new(
                Style::Dim,
                call.started_at.map(|at| relative(at, now)).unwrap_or_default(),
            ),
            call.idempotency_key().into(),
        ]);
    }
    let mut text = table.render(paint);
    let reconcile = session
        .program
        .with("runs reconcile RUN --call CALL --outcome done|not-done --as ACTOR");
    text.push_str(&format!("{} {reconcile}\n", paint.dim("state what happened:")));
    if let Some(next) = next {
        text.push_str(&paint.dim(&format!("there may be more: --before {next}")));
        text.push('\n');
    }
    text
}
