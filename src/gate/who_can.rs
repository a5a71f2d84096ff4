//! Who could release the turn that waits? Each actor is put through the look and the gates with an approval of that
//! very turn, made up for the question; nothing is claimed, recorded or run.

use time::OffsetDateTime;

use super::bind::bind;
use super::{Catalogued, Facts, NotBound, Refusal, Seen, look};
use crate::model::{
    Actor, CorruptState, Decision, DecisionId, DecisionStatus, Principal, Run, RunState, SealedState, Verdict,
};

/// A run that waits, as it was read, and by what it is judged.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'w> {
    /// The run.
    pub run: &'w Run,
    /// Its state.
    pub state: &'w SealedState,
    /// The catalogue of the moment.
    pub at: &'w Catalogued,
    /// A secret of the configuration that is not there, by kind and name.
    pub missing_secret: Option<&'w str>,
    /// The time, for the run's deadline.
    pub now: OffsetDateTime,
}

/// Whether an approval by that actor, who is the principal right now, would stand.
///
/// # Errors
/// The refusal that the approval would meet, its look and its gates asked in their order. Whether it can be recorded
/// is seen only when it is.
pub fn could_release(
    waiting: Waiting<'_>,
    actor: &Actor,
    principal: Option<&Principal>,
) -> Result<(), Refusal> {
    let Waiting {
        run, state: sealed, ..
    } = waiting;
    let state = RunState::open(sealed, run.id, &run.owner, run.turn);
    let turn = state
        .as_ref()
        .ok()
        .and_then(|state| state.pending_turn().ok().flatten());
    let decision = Decision {
        // It is never stored, so it needs no id of its own.
        id: DecisionId::from(run.id.uuid()),
        run: run.id,
        turn: turn.as_ref().map(|turn| turn.ordinal),
        digest: turn.as_ref().map(crate::model::Turn::digest),
        verdict: Verdict::Approve,
        actor: actor.clone(),
        comment: None,
        status: DecisionStatus::Pending,
        decided_at: waiting.now,
    };
    let facts = Facts {
        decision: &decision,
        run,
        state: state.as_ref(),
        stands: None,
        principal,
        at: waiting.at,
        missing_secret: waiting.missing_secret,
        now: waiting.now,
    };
    match look(facts) {
        Seen::Claimable => {}
        Seen::Refused(refusal) => return Err(refusal),
        Seen::Concluded => unreachable!("a decision that is pending has no outcome"),
    }
    let bound = match bind(run.clone(), sealed, decision) {
        Ok(bound) => bound,
        Err(NotBound::Refused(refusal)) => return Err(refusal),
        Err(NotBound::Unreadable(CorruptState(detail))) => return Err(Refusal::CorruptState { detail }),
    };
    bound.permit(waiting.at, principal).map(|_permitted| ())
}
