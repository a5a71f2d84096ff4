//! `countersign decide approve` and `decide deny`.

use clap::Args;

use super::{ABOUT_AS, Waiting};
use crate::cli::arguments::{Globals, actor, digest};
use crate::cli::exit::{Exit, Fault};
use crate::cli::session::Session;
use crate::model::{Actor, DecisionRequest, RunId, TurnDigest, TurnOrdinal, Verdict};

/// What `decide approve` and `decide deny` take.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_AS)]
pub struct VerdictArguments {
    /// The run.
    run: RunId,
    /// The turn that is decided, as `runs show` numbers it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    turn: u32,
    /// The digest of its calls, as `runs show` prints it.
    #[arg(long, value_parser = digest)]
    digest: TurnDigest,
    /// Who decides: user:ID or service:ID.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    actor: Actor,
    /// Why; the model is given the comment of a denial.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    comment: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

pub(super) async fn run(
    globals: &Globals,
    verdict: Verdict,
    arguments: &VerdictArguments,
) -> anyhow::Result<Exit> {
    let VerdictArguments {
        run,
        turn,
        digest,
        actor,
        comment,
        waiting,
    } = arguments;
    let request = DecisionRequest::new(verdict, TurnOrdinal(*turn), digest.clone(), comment.clone())
        .map_err(|error| Fault::new(Exit::Usage, error.to_string()))?;
    let session = Session::open(globals).await?;
    super::decide(&session, *run, request, actor, waiting).await
}
