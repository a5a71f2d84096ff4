//! What to do about a refusal: for each code, who can act and how. The gate says why; this says what next.

use crate::gate::WhoCanAct;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    /// Who can do something about it.
    pub who: WhoCanAct,
    /// What they can do.
    pub text: &'static str,
}

/// What to do about a refusal of that code. A code of a younger build has none.
pub(super) fn advice(code: &str) -> Option<Advice> {
    use WhoCanAct::{AnotherApprover, Nobody, Operator, SameActor};
    let (who, text) = match code {
        "not_waiting" => (
            Nobody,
            "nothing waits for a decision any more; `countersign runs show` says what became of the run",
        ),
        "already_decided" => (
            Nobody,
            "the first decision stands; what came of it is in `countersign runs show`",
        ),
        "revoked" => (SameActor, "decide again if you changed your mind"),
        "access_denied" => (
            AnotherApprover,
            "ask an admin, somebody with the grant `agent_approve`, or the run's owner",
        ),
        "configuration_gone" => (
            Operator,
            "an operator has to restore what is missing; the turn can then be decided again",
        ),
        "quarantined" => (
            Operator,
            "an operator has to find out what ends the workers; then decide again",
        ),
        "corrupt_state" => (
            Operator,
            "an operator has to restore the run's row; it was left as it is",
        ),
        "self_approval" => (
            AnotherApprover,
            "ask somebody other than the owner; you may still deny it",
        ),
        "stale_turn" => (SameActor, "look at the turn that waits now and decide that one"),
        "service_account_write" => (AnotherApprover, "ask a person who could run the write themselves"),
        "approver_unresolved" => (
            AnotherApprover,
            "ask somebody whom the directory knows, or have it mended",
        ),
        "approver_not_permitted" => (
            AnotherApprover,
            "ask somebody who could run this tool themselves; you may still deny it",
        ),
        "not_auditable" => (
            Operator,
            "an operator has to make the events table writable; then approve again",
        ),
        _ => return None,
    };
    Some(Advice { who, text })
}

/// As `--json` names who can act.
pub(super) fn name_of(who: WhoCanAct) -> &'static str {
    match who {
        WhoCanAct::Nobody => "nobody",
        WhoCanAct::SameActor => "same_actor",
        WhoCanAct::AnotherApprover => "another_approver",
        WhoCanAct::Operator => "operator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Refusal;
    use crate::model::{RunStatus, TurnOrdinal, Verdict};
    use crate::policy::DenyReason;

    #[test]
    fn the_advice_is_for_whom_the_gate_says() {
        let verdict = Verdict::Approve;
        let refusals = [
            Refusal::NotWaiting {
                status: RunStatus::Running,
            },
            Refusal::AlreadyDecided {
                stands: verdict,
                late: verdict,
            },
            Refusal::Revoked,
            Refusal::AccessDenied,
            Refusal::ConfigurationGone {
                missing: String::new(),
            },
            Refusal::CorruptState {
                detail: String::new(),
            },
            Refusal::SelfApproval,
            Refusal::StaleTurn {
                waiting: TurnOrdinal(1),
                decided: None,
            },
            Refusal::ServiceAccountWrite { tool: "t".into() },
            Refusal::ApproverUnresolved,
            Refusal::ApproverNotPermitted {
                tool: "t".into(),
                reason: DenyReason::ToolDisabled,
            },
            Refusal::NotAuditable,
            Refusal::Quarantined { attempts: 3 },
        ];
        assert_eq!(refusals.each_ref().map(Refusal::code), Refusal::CODES);
        for refusal in refusals {
            assert_eq!(
                advice(refusal.code()).unwrap().who,
                refusal.who_can_act(),
                "{}",
                refusal.code()
            );
        }
        assert_eq!(advice("something_new"), None);
    }
}
