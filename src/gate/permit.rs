//! Gate 2, permit: an approver may only release a write they could run themselves, and a service account
//! none. A denial passes: it releases nothing.

use super::look::admit;
use super::{Bound, Catalogued, Refusal};
use crate::model::{Decision, Principal, RunState, Turn, Verdict};
use crate::policy;

/// A bound decision whose actor may decide so.
#[must_use = "a claimed run must be cleared, handed back or settled"]
#[derive(Debug)]
pub struct Permitted {
    pub(super) bound: Bound,
    pub(super) writes: bool,
}

impl Bound {
    /// Puts every pending write to the policy, with what the approver is right now. Reads are not checked.
    ///
    /// # Errors
    /// The first reason why the approver may not release the turn.
    pub fn permit(self, at: &Catalogued, approver: Option<&Principal>) -> Result<Permitted, Refusal> {
        let mut writes = self
            .turn
            .calls
            .iter()
            .filter(|call| at.catalogue.effect_of(&call.tool).is_write());
        let first_write = writes.next();
        if self.decision.verdict == Verdict::Approve {
            admit(at, &self.run, &self.decision, approver)?;
            let approver = approver.ok_or(Refusal::ApproverUnresolved)?;
            let configuration = at.configuration(&self.run.configuration)?;
            if let (Principal::Service { .. }, Some(call)) = (approver, first_write) {
                return Err(Refusal::ServiceAccountWrite {
                    tool: call.tool.clone(),
                });
            }
            for call in first_write.into_iter().chain(writes) {
                let decision = policy::decide(&at.catalogue, &call.tool, configuration, Some(approver));
                if let Some(reason) = decision.denied() {
                    return Err(Refusal::ApproverNotPermitted {
                        tool: call.tool.clone(),
                        reason,
                    });
                }
            }
        }
        let writes = first_write.is_some();
        Ok(Permitted { bound: self, writes })
    }
}

impl Permitted {
    /// The decision.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.bound.decision
    }

    /// The turn that was decided.
    #[must_use]
    pub fn turn(&self) -> &Turn {
        &self.bound.turn
    }

    /// The state that was read with the claim.
    #[must_use]
    pub fn state(&self) -> &RunState {
        &self.bound.state
    }
}
