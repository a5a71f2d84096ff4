//! Deliver: from ids in a message to the rows that an authenticated surface wrote.

use super::{Path, Stop};
use crate::model::{Decision, DecisionId, DecisionStatus, Run, RunId, SealedState, Verdict};

/// A resume job with the rows it names.
pub(super) struct Delivered {
    pub(super) decision: Decision,
    pub(super) run: Run,
    pub(super) state: SealedState,
    /// The verdict that stands for the turn, if another decision stands.
    pub(super) stands: Option<Verdict>,
}

/// Reads what the job names.
pub(super) async fn deliver(path: &Path, run: RunId, decision: DecisionId) -> Result<Delivered, Stop> {
    let unknown = || {
        Stop::Unprocessable(format!(
            "no_such_decision: decision {decision} of run {run} does not exist"
        ))
    };
    let decision = path
        .store
        .decision(decision)
        .await?
        .filter(|row| row.run == run)
        .ok_or_else(unknown)?;
    let (run, state) = path.store.run_with_state(run).await?.ok_or_else(unknown)?;
    let stands = match (&decision.status, decision.turn) {
        (DecisionStatus::Pending, Some(turn)) => path.store.standing(run.id, turn).await?,
        _ => None,
    };
    Ok(Delivered {
        decision,
        run,
        state,
        stands: stands.map(|decision| decision.verdict),
    })
}
