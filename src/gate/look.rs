//! The look before the claim: refuses what can be refused without touching anything.

use time::OffsetDateTime;

use super::{Catalogued, Refusal};
use crate::model::{
    Actor, CorruptState, Decision, DecisionStatus, Principal, Run, RunState, RunStatus, Verdict,
};
use crate::policy;

/// What is known before the claim.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The decision that the job names.
    pub decision: &'f Decision,
    /// Its run.
    pub run: &'f Run,
    /// The run's state, if it can be read.
    pub state: Result<&'f RunState, &'f CorruptState>,
    /// The verdict that stands for the turn the decision names, if another decision stands.
    pub stands: Option<Verdict>,
    /// What the actor is right now.
    pub principal: Option<&'f Principal>,
    /// The catalogue of the moment.
    pub at: &'f Catalogued,
    /// A secret of the configuration that is not there, by kind and name.
    pub missing_secret: Option<&'f str>,
    /// The time, for the run's deadline.
    pub now: OffsetDateTime,
}

/// What the look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The run can be claimed with this decision.
    Claimable,
    /// The decision does not stand.
    Refused(Refusal),
    /// The decision has had its outcome already and this is a redelivery: nothing is left to be done.
    Concluded,
}

/// Looks at a decision before its run is claimed.
#[must_use]
pub fn look(facts: Facts<'_>) -> Seen {
    match &facts.decision.status {
        DecisionStatus::Refused(_) => Seen::Concluded,
        DecisionStatus::Revoked => Seen::Refused(Refusal::Revoked),
        DecisionStatus::Standing if facts.run.status != RunStatus::WaitingForApproval => {
            // The old job of a decision that has been used.
            let verdict = facts.decision.verdict;
            Seen::Refused(Refusal::AlreadyDecided {
                stands: verdict,
                late: verdict,
            })
        }
        DecisionStatus::Standing => Seen::Refused(stale(facts)),
        DecisionStatus::Pending => match look_at_pending(facts) {
            Ok(()) => Seen::Claimable,
            Err(refusal) => Seen::Refused(refusal),
        },
    }
}

fn stale(facts: Facts<'_>) -> Refusal {
    Refusal::StaleTurn {
        waiting: facts.run.turn,
        decided: facts.decision.turn,
    }
}

fn look_at_pending(facts: Facts<'_>) -> Result<(), Refusal> {
    if let Some(stands) = facts.stands {
        return Err(Refusal::AlreadyDecided {
            stands,
            late: facts.decision.verdict,
        });
    }
    if facts.run.status != RunStatus::WaitingForApproval {
        return Err(Refusal::NotWaiting {
            status: facts.run.status,
        });
    }
    if facts.run.deadline.is_some_and(|deadline| deadline <= facts.now) {
        return Err(Refusal::NotWaiting {
            status: RunStatus::Expired,
        });
    }
    admit(facts.at, facts.run, facts.decision, facts.principal)?;
    if let Some(missing) = facts.missing_secret {
        return Err(Refusal::ConfigurationGone {
            missing: missing.to_owned(),
        });
    }
    match facts.state {
        Ok(_) => Ok(()),
        Err(corrupt) => Err(Refusal::CorruptState {
            detail: corrupt.to_string(),
        }),
    }
}

/// Whether this actor may decide this run at all. Asked at the look, and for an approval once more at the
/// claim, since what holds then is what counts.
pub(super) fn admit(
    at: &Catalogued,
    run: &Run,
    decision: &Decision,
    principal: Option<&Principal>,
) -> Result<(), Refusal> {
    match (principal, decision.verdict) {
        (None, Verdict::Approve) => return Err(Refusal::ApproverUnresolved),
        (None, Verdict::Deny) => return Err(Refusal::AccessDenied),
        (Some(principal), _) if !policy::may_decide(principal, &run.owner) => {
            return Err(Refusal::AccessDenied);
        }
        (Some(_), _) => {}
    }
    let configuration = at.configuration(&run.configuration)?;
    let own = matches!(&decision.actor, Actor::User(_)) && decision.actor == run.owner;
    if configuration.require_second_approver && own && decision.verdict == Verdict::Approve {
        return Err(Refusal::SelfApproval);
    }
    Ok(())
}
