//! `countersign runs …`: start, list, look at, cancel and reconcile runs.

mod cancel;
mod list;
mod reconcile;
mod show;
mod start;

use clap::Subcommand;

use super::arguments::Globals;
use super::exit::Exit;
use super::paint::Style;
use super::session::{Session, settings};
use crate::model::RunStatus;

pub(super) use show::{View, calls, view};

/// What can be done with runs.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Start a run; a worker takes it from the queue.
    Start(start::StartArguments),
    /// List runs, newest first.
    List(list::ListArguments),
    /// Show a run: the turn that waits, its decisions, what happened.
    Show(show::ShowArguments),
    /// Cancel a run.
    Cancel(cancel::CancelArguments),
    /// List the writes whose outcome is unknown, because a worker was lost while they were under way.
    Unknown(reconcile::UnknownArguments),
    /// State what a write with an unknown outcome really did; its run goes on with that.
    Reconcile(reconcile::ReconcileArguments),
}

pub(super) async fn run(globals: &Globals, command: &RunsCommand) -> anyhow::Result<Exit> {
    let session = Session::open(globals).await?;
    match command {
        RunsCommand::Start(arguments) => start::run(&session, arguments).await,
        RunsCommand::List(arguments) => list::run(&session, arguments).await,
        RunsCommand::Show(arguments) => show::run(&session, arguments).await,
        RunsCommand::Cancel(arguments) => cancel::run(&session, arguments).await,
        RunsCommand::Unknown(arguments) => reconcile::list(&session, arguments).await,
        RunsCommand::Reconcile(arguments) => {
            let limits = settings(globals)?.limits;
            reconcile::run(&session, arguments, limits.result_bytes).await
        }
    }
}

/// How a status is painted.
pub(super) fn style_of(status: RunStatus) -> Style {
    match status {
        RunStatus::WaitingForApproval => Style::Yellow,
        RunStatus::Queued | RunStatus::Running => Style::Cyan,
        RunStatus::Completed => Style::Green,
        RunStatus::Failed => Style::Red,
        RunStatus::Cancelled | RunStatus::Expired => Style::Dim,
    }
}
