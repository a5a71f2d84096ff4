//! Gate 3, record: nothing is written on somebody's word unless the word is kept.

use super::{Clearance, Cleared, Permitted, Refusal};
use crate::model::{RunState, Verdict};

/// Whether the event of the decision is part of the claim's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recording {
    /// It is.
    Kept,
    /// It could not be written. The failure has been logged.
    Failed,
}

impl Permitted {
    /// Clears the turn. A read-only turn or a denial goes on even where it could not be recorded.
    ///
    /// # Errors
    /// [`Refusal::NotAuditable`]: the approval of a write was not recorded.
    pub fn record(self, recording: Recording) -> Result<(Cleared, RunState), Refusal> {
        let verdict = self.bound.decision.verdict;
        if recording == Recording::Failed && verdict == Verdict::Approve && self.writes {
            return Err(Refusal::NotAuditable);
        }
        let clearance = match verdict {
            Verdict::Approve => Clearance::Approved {
                by: self.bound.decision.actor,
            },
            Verdict::Deny => Clearance::Denied {
                by: self.bound.decision.actor,
                comment: self.bound.decision.comment,
            },
        };
        Ok((
            Cleared::new(self.bound.run.id, self.bound.turn, clearance),
            self.bound.state,
        ))
    }
}
