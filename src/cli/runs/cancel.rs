//! `countersign runs cancel`: ends a run that waits, and asks the worker of a running one to end it.

use clap::Args;
use serde_json::json;

use crate::cli::arguments::actor;
use crate::cli::exit::{Exit, Fault};
use crate::cli::session::{Session, no_such_run};
use crate::model::{Actor, EventKind, RunId};
use crate::policy;
use crate::store::Cancelled;

/// What `runs cancel` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "--as is for operators who already hold the database's credentials: it is believed, not checked."
)]
pub struct CancelArguments {
    /// The run.
    run: RunId,
    /// Who cancels: somebody who may decide the run.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    actor: Actor,
}

pub(super) async fn run(session: &Session, arguments: &CancelArguments) -> anyhow::Result<Exit> {
    let CancelArguments { run: id, actor } = arguments;
    let run = session.store.run(*id).await?.ok_or_else(|| no_such_run(*id))?;
    let principal = session.somebody(actor).await?;
    if !policy::may_decide(&principal, &run.owner) {
        return Err(Fault::new(
            Exit::Refused,
            format!("{actor} may not cancel a run of {}", run.owner),
        )
        .help("its owner may, and whoever may decide it: an admin, or somebody with `agent_approve`")
        .into());
    }
    let event = session.event(
        Some(*id),
        EventKind::RunCancelled,
        Some(actor),
        json!({ "from": run.status.as_str() }),
    );
    let (outcome, said) = match session.store.cancel(*id, actor, &event).await? {
        Cancelled::Now => ("cancelled", format!("Run {id} is cancelled.\n")),
        Cancelled::Requested => (
            "requested",
            format!("Run {id} is running; its worker cancels it at the next step.\n"),
        ),
        Cancelled::TooLate(status) => {
            return Err(Fault::new(Exit::TooLate, format!("run {id} has ended already: {status}")).into());
        }
        Cancelled::NoSuchRun => return Err(no_such_run(*id).into()),
    };
    session
        .screen
        .answer(|| json!({ "run_id": id, "outcome": outcome }), |_| said)?;
    Ok(Exit::Done)
}
