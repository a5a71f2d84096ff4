//! The JSON forms of the nouns, as `--json` shows them. Their member names are stable; `docs/cli.md` lists them.

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::card;
use super::moment::rfc3339;
use crate::catalogue::Catalogue;
use crate::model::{CallRecord, Decision, DecisionStatus, Event, Run, Turn};

fn time(at: Option<OffsetDateTime>) -> Value {
    at.map(rfc3339).into()
}

/// A run, without its state.
pub(super) fn run(run: &Run) -> Value {
    json!({
        "id": run.id,
        "owner": run.owner,
        "configuration": run.configuration,
        "status": run.status.as_str(),
        "turn": run.turn,
        "failure": run.failure.as_ref().map(|failure| {
            json!({ "code": failure.code.as_str(), "detail": failure.detail })
        }),
        "claimed_by": run.claimed_by.as_ref().map(|worker| worker.as_str()),
        "requeues": run.requeues,
        "created_at": rfc3339(run.created_at),
        "updated_at": rfc3339(run.updated_at),
        "deadline": time(run.deadline),
    })
}

/// A turn that waits. The arguments are the text that the model sent, byte for byte.
pub(super) fn waiting(turn: &Turn, deadline: Option<OffsetDateTime>, catalogue: Option<&Catalogue>) -> Value {
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .map(|call| {
            let tool = catalogue.and_then(|catalogue| catalogue.tool(&call.tool));
            json!({
                "id": call.id,
                "tool": call.tool,
                "declared": tool.is_some(),
                "effect": catalogue.map(|catalogue| catalogue.effect_of(&call.tool)),
                "data_class": tool.map(|tool| tool.data_class.as_str()),
                "arguments": call.arguments,
                "suspicious": card::hides_something(call),
            })
        })
        .collect();
    json!({ "turn": turn.ordinal, "digest": turn.digest(), "deadline": time(deadline), "calls": calls })
}

/// A decision.
pub(super) fn decision(decision: &Decision) -> Value {
    let refusal_code = match &decision.status {
        DecisionStatus::Refused(code) => Some(code),
        DecisionStatus::Pending | DecisionStatus::Standing | DecisionStatus::Revoked => None,
    };
    json!({
        "id": decision.id,
        "run_id": decision.run,
        "turn": decision.turn,
        "digest": decision.digest,
        "verdict": decision.verdict.as_str(),
        "actor": decision.actor,
        "comment": decision.comment,
        "status": decision.status.as_str(),
        "refusal_code": refusal_code,
        "decided_at": rfc3339(decision.decided_at),
    })
}

/// A row of the journal.
pub(super) fn call(record: &CallRecord) -> Value {
    json!({
        "turn": record.turn,
        "position": record.position,
        "call_id": record.call,
        "tool": record.tool,
        "effect": record.effect,
        "status": record.status.as_str(),
        "result": record.result,
        "started_at": time(record.started_at),
        "finished_at": time(record.finished_at),
    })
}

/// An event: what is published of it, and its position.
pub(super) fn event(event: &Event) -> Value {
    let mut form = event.event.to_json();
    form["position"] = event.position.into();
    form["published_at"] = time(event.published_at);
    form
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PendingCall, TurnOrdinal};

    #[test]
    fn case_e6_a_call_that_hides_something_is_flagged_and_kept() {
        let call = |arguments: &str| PendingCall {
            id: "c".into(),
            tool: "t".into(),
            arguments: arguments.to_owned(),
        };
        let turn = Turn {
            ordinal: TurnOrdinal(3),
            calls: vec![call("{\"to\":\"a\u{202e}b\"}"), call("{}")],
        };
        let form = waiting(&turn, None, None);
        assert_eq!(form["calls"][0]["suspicious"], true);
        assert_eq!(form["calls"][0]["arguments"], "{\"to\":\"a\u{202e}b\"}");
        assert_eq!(form["calls"][1]["suspicious"], false);
        assert_eq!(form["turn"], 3);
    }
}
