//! The events of the path: what is told, in which words. Ids, names and codes; never arguments or results.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::gate::{Catalogued, Refusal};
use crate::model::{Actor, Decision, EventKind, Failure, NewEvent, RunId, Turn, Verdict};
use crate::policy;
use crate::store::Mint;

/// Makes events with the clock's time and ids.
#[derive(Clone)]
pub struct EventMint(pub Arc<dyn Clock>);

impl EventMint {
    /// An event of a run by an actor.
    #[must_use]
    pub fn by(&self, actor: Option<&Actor>, run: RunId, kind: EventKind, data: Value) -> NewEvent {
        NewEvent {
            id: self.0.new_id().into(),
            run: Some(run),
            kind,
            actor: actor.cloned(),
            at: self.0.now(),
            data,
        }
    }
}

impl Mint for EventMint {
    fn event(&self, run: RunId, kind: EventKind, data: Value) -> NewEvent {
        self.by(None, run, kind, data)
    }
}

/// What waits: the turn, its digest, and each call with what it would do.
pub(super) fn waiting(turn: &Turn, at: &Catalogued) -> Value {
    let calls: Vec<_> = turn
        .calls
        .iter()
        .map(|call| {
            let approval = policy::approval_of(&at.catalogue, &call.tool) == policy::Approval::Needed;
            json!({
                "id": call.id, "tool": call.tool, "effect": at.catalogue.effect_of(&call.tool),
                "needs_approval": approval,
            })
        })
        .collect();
    json!({ "turn": turn.ordinal, "digest": turn.digest(), "calls": calls, "catalogue": at.version })
}

/// A decision that stood.
pub(super) fn decided(decision: &Decision, turn: &Turn, at: &Catalogued) -> Value {
    json!({
        "decision_id": decision.id, "turn": turn.ordinal, "digest": turn.digest(),
        "tools": turn.calls.iter().map(|call| &call.tool).collect::<Vec<_>>(), "catalogue": at.version,
    })
}

/// The kind of the event of a decision that stood.
pub(super) fn kind_of(verdict: Verdict) -> EventKind {
    match verdict {
        Verdict::Approve => EventKind::RunApproved,
        Verdict::Deny => EventKind::RunDenied,
    }
}

/// A decision that did not stand.
pub(super) fn refused(decision: &Decision, refusal: &Refusal, version: i64) -> Value {
    let mut data = refusal.to_json();
    data["decision_id"] = json!(decision.id);
    data["verdict"] = json!(decision.verdict.as_str());
    data["turn"] = json!(decision.turn);
    data["catalogue"] = json!(version);
    data
}

/// A run that failed.
pub(super) fn failed(failure: &Failure) -> Value {
    json!({ "code": failure.code.as_str(), "message": failure.detail })
}

/// An event that could not be written, in the log.
pub(super) fn log_unrecorded(run: RunId, kind: EventKind, error: &(dyn std::error::Error + 'static)) {
    tracing::error!(%run, event = kind.as_str(), error, "an event could not be recorded");
    metrics::counter!("countersign_events_not_recorded_total").increment(1);
}

/// A refusal in the log: run, actor, tool, reason. That a verdict stands already is no fault.
pub(super) fn log_refusal(decision: &Decision, refusal: &Refusal) {
    if refusal.is_no_fault() {
        return;
    }
    tracing::warn!(
        run = %decision.run,
        decision = %decision.id,
        actor = %decision.actor,
        verdict = %decision.verdict,
        tool = refusal.tool().map(tracing::field::display),
        reason = refusal.code(),
        "a decision was refused: {refusal}"
    );
    metrics::counter!("countersign_refusals_total", "reason" => refusal.code()).increment(1);
}
