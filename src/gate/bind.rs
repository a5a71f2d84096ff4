//! Gate 1, bind: is this decision about the turn that waits? Judged only by the state that was read with
//! the claim, since another decision may have run the turn and suspended the run on a new one.

use super::Refusal;
use crate::model::{ClaimedRun, CorruptState, Decision, Run, RunState, SealedState, Turn};

/// A run that this worker has claimed with a decision.
#[must_use = "a claimed run must be cleared, handed back or settled"]
#[derive(Debug)]
pub struct Claim {
    claimed: ClaimedRun,
    decision: Decision,
}

/// A claim whose decision is about the turn that waits.
#[must_use = "a claimed run must be cleared, handed back or settled"]
#[derive(Debug)]
pub struct Bound {
    pub(super) run: Run,
    pub(super) state: RunState,
    pub(super) turn: Turn,
    pub(super) decision: Decision,
}

/// Why a claim could not be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotBound {
    /// The decision is about another turn: the run is handed back.
    Refused(Refusal),
    /// The state cannot be read, so it cannot be handed back either: the run fails.
    Unreadable(CorruptState),
}

impl Claim {
    /// The claim that the guarded update has won.
    pub fn won(claimed: ClaimedRun, decision: Decision) -> Self {
        Self { claimed, decision }
    }

    /// Binds the decision to the turn by its ordinal and digest, both.
    ///
    /// # Errors
    /// The turn is another one, or the state cannot be read.
    pub fn bind(self) -> Result<Bound, NotBound> {
        let Self {
            claimed: ClaimedRun { run, state, .. },
            decision,
        } = self;
        bind(run, &state, decision)
    }
}

/// Binds a decision to the turn that the run waits with.
pub(super) fn bind(run: Run, state: &SealedState, decision: Decision) -> Result<Bound, NotBound> {
    let state = RunState::open(state, run.id, &run.owner, run.turn).map_err(NotBound::Unreadable)?;
    let turn = state
        .pending_turn()
        .map_err(NotBound::Unreadable)?
        .ok_or_else(|| {
            NotBound::Unreadable(CorruptState("the run waits, but no call is pending".to_owned()))
        })?;
    let same = decision.run == run.id
        && decision.turn == Some(turn.ordinal)
        && decision.digest.as_ref() == Some(&turn.digest());
    if !same {
        return Err(NotBound::Refused(Refusal::StaleTurn {
            waiting: turn.ordinal,
            decided: decision.turn,
        }));
    }
    Ok(Bound {
        run,
        state,
        turn,
        decision,
    })
}
