//! A clearance, and the ways to have one: a decision that passed the gates, a turn that needs no decision,
//! or a turn that was cleared before its worker was lost.

use super::Catalogued;
use crate::model::{Actor, CallRecord, DeniedCall, PendingCall, RunId, Turn};
use crate::policy::{self, Approval};

/// A turn that may be executed, or answered as denied. Only the gates make one.
#[must_use = "a cleared turn is to be run"]
#[derive(Debug)]
pub struct Cleared {
    run: RunId,
    turn: Turn,
    clearance: Clearance,
}

/// On whose word a turn is cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// Somebody approved it.
    Approved {
        /// Who.
        by: Actor,
    },
    /// Somebody denied it: nothing executes, every call is answered.
    Denied {
        /// Who.
        by: Actor,
        /// What they had to say.
        comment: Option<String>,
    },
    /// Every call of it was denied before in this run: nothing executes, every call is answered.
    DeniedBefore,
    /// No call of it needs a decision.
    Unattended,
    /// It was cleared, and its worker was lost: the journal holds what was cleared.
    Continued,
}

/// What becomes of a turn that the model has just asked for.
#[derive(Debug)]
pub enum Screened {
    /// No call of it needs a decision.
    Unattended(Cleared),
    /// Every call of it was denied before, byte for byte: it is answered as denied without a new card.
    DeniedBefore(Cleared),
    /// It must wait for one.
    NeedsApproval(Turn),
}

impl Cleared {
    pub(super) fn new(run: RunId, turn: Turn, clearance: Clearance) -> Self {
        Self { run, turn, clearance }
    }

    /// Takes a clearance up again that was committed before: every call of the turn has its row in the
    /// journal, and a row is written only in the commit that clears its turn.
    #[must_use]
    pub fn continued(run: RunId, turn: Turn, journal: &[CallRecord]) -> Option<Self> {
        let journalled = turn.calls.iter().enumerate().all(|(position, call)| {
            journal.iter().any(|row| {
                (row.run, row.turn) == (run, turn.ordinal)
                    && row.position as usize == position
                    && (&row.call, &row.tool) == (&call.id, &call.tool)
            })
        });
        (journalled && !turn.calls.is_empty()).then(|| Self::new(run, turn, Clearance::Continued))
    }

    /// The run that the turn belongs to.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The turn.
    #[must_use]
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// On whose word.
    #[must_use]
    pub fn clearance(&self) -> &Clearance {
        &self.clearance
    }
}

/// What becomes of a turn that the model has just asked for.
#[must_use]
pub fn screen(at: &Catalogued, run: RunId, turn: Turn, denied: &[DeniedCall]) -> Screened {
    let was_denied = |call: &PendingCall| {
        denied
            .iter()
            .any(|before| (&before.tool, &before.arguments) == (&call.tool, &call.arguments))
    };
    if turn.calls.iter().all(was_denied) {
        return Screened::DeniedBefore(Cleared::new(run, turn, Clearance::DeniedBefore));
    }
    let needs_approval = turn
        .calls
        .iter()
        .any(|call| policy::approval_of(&at.catalogue, &call.tool) == Approval::Needed);
    if needs_approval {
        Screened::NeedsApproval(turn)
    } else {
        Screened::Unattended(Cleared::new(run, turn, Clearance::Unattended))
    }
}
