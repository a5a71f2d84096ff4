//! A run and its life. `next` is the whole state machine: every status change in the product is one of its
//! arms, and `docs/lifecycle.md` is checked against it.

use std::fmt;

use time::OffsetDateTime;

use super::{Actor, RunId, TurnOrdinal, WorkerName};

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunStatus {
    /// Waits for a worker.
    Queued,
    /// A worker holds it under a lease.
    Running,
    /// Its turn waits for a decision.
    WaitingForApproval,
    /// The model gave its answer.
    Completed,
    /// It ended without an answer; the failure says why.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// Nobody decided in time.
    Expired,
}

impl RunStatus {
    /// Every status there is.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::WaitingForApproval,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing happens to the run any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        Transition::ALL
            .into_iter()
            .all(|transition| next(self, transition).is_err())
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What may happen to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// A worker takes it: a queued run to begin or go on, a waiting one with a decision.
    Claim,
    /// Its model asked for something that needs a decision.
    Suspend,
    /// The decision did not stand.
    HandBack,
    /// Its worker is gone; another is to go on.
    Requeue,
    /// The model gave its answer.
    Complete,
    /// It cannot go on.
    Fail,
    /// Somebody cancelled it.
    Cancel,
    /// Its deadline passed.
    Expire,
    /// An operator stated what an unknown write really did.
    Reconcile,
}

impl Transition {
    /// Every transition there is.
    pub const ALL: [Self; 9] = [
        Self::Claim,
        Self::Suspend,
        Self::HandBack,
        Self::Requeue,
        Self::Complete,
        Self::Fail,
        Self::Cancel,
        Self::Expire,
        Self::Reconcile,
    ];

    /// Its name in the diagram.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Suspend => "suspend",
            Self::HandBack => "hand back",
            Self::Requeue => "requeue",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
            Self::Reconcile => "reconcile",
        }
    }
}

/// The run is not in a status in which this can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {from} cannot {}", transition.as_str())]
pub struct IllegalTransition {
    /// Where the run is.
    pub from: RunStatus,
    /// What was asked.
    pub transition: Transition,
}

/// The whole state machine.
///
/// # Errors
/// The transition is not legal in that status.
pub fn next(from: RunStatus, transition: Transition) -> Result<RunStatus, IllegalTransition> {
    use RunStatus::{Cancelled, Completed, Expired, Failed, Queued, Running, WaitingForApproval};
    match (from, transition) {
        (Queued | WaitingForApproval, Transition::Claim) => Ok(Running),
        (Running, Transition::Suspend | Transition::HandBack) => Ok(WaitingForApproval),
        (Running, Transition::Requeue) => Ok(Queued),
        (Running, Transition::Complete) => Ok(Completed),
        (Running, Transition::Fail) => Ok(Failed),
        (Queued | Running | WaitingForApproval, Transition::Cancel) => Ok(Cancelled),
        (WaitingForApproval, Transition::Expire) => Ok(Expired),
        (Failed, Transition::Reconcile) => Ok(Queued),
        _ => Err(IllegalTransition { from, transition }),
    }
}

macro_rules! failure_codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal,)*) => {
        /// Why a run failed: a stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FailureCode {
            $($(#[$doc])* $code,)*
        }

        impl FailureCode {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// The stored code.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }
        }
    };
}

failure_codes! {
    /// Two calls of one turn have the same id.
    AmbiguousTurn = "ambiguous_turn",
    /// A limit was passed; the detail names it.
    LimitExceeded = "limit_exceeded",
    /// The model asked for tools more often than `max_iterations` allows.
    MaxIterations = "max_iterations",
    /// The model could not be reached, or answered what cannot be read.
    ModelFailed = "model_failed",
    /// The configuration, its model or a secret it needs is missing.
    ConfigurationGone = "configuration_gone",
    /// What it would have been given is too secret for the zone that its model can reach.
    ContextBlocked = "context_blocked",
    /// The owner may not use the configuration.
    AccessDenied = "access_denied",
    /// The stored state cannot be read.
    CorruptState = "corrupt_state",
    /// The worker was lost while a non-idempotent write was under way.
    WriteOutcomeUnknown = "write_outcome_unknown",
    /// Workers were lost too often.
    RetriesExhausted = "retries_exhausted",
    /// The model kept asking for a call that was denied.
    DeniedCallRepeated = "denied_call_repeated",
    /// Nobody decided in time.
    ApprovalExpired = "approval_expired",
}

impl FailureCode {
    /// The code of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The stable code.
    pub code: FailureCode,
    /// For people: names, numbers and limits; never arguments or results.
    pub detail: String,
}

impl Failure {
    /// A failure with its detail.
    pub fn new(code: FailureCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

/// One run, without its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// As whom everything executes.
    pub owner: Actor,
    /// The configuration it runs under, by name.
    pub configuration: String,
    /// Where it is in its life.
    pub status: RunStatus,
    /// The newest turn; 0 before the first.
    pub turn: TurnOrdinal,
    /// Why it failed or expired.
    pub failure: Option<Failure>,
    /// Who holds it.
    pub claimed_by: Option<WorkerName>,
    /// Counts its claims.
    pub epoch: i64,
    /// How often it was taken from a lost worker.
    pub requeues: u32,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When its status last changed.
    pub updated_at: OffsetDateTime,
    /// Until when its turn may be decided, while it waits.
    pub deadline: Option<OffsetDateTime>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_ends() {
        let ends: Vec<_> = RunStatus::ALL
            .into_iter()
            .filter(|status| status.is_final())
            .collect();
        assert_eq!(
            ends,
            [RunStatus::Completed, RunStatus::Cancelled, RunStatus::Expired]
        );
    }

    #[test]
    fn only_a_running_run_suspends_completes_or_fails() {
        for from in RunStatus::ALL {
            for transition in [
                Transition::Suspend,
                Transition::HandBack,
                Transition::Complete,
                Transition::Fail,
            ] {
                assert_eq!(next(from, transition).is_ok(), from == RunStatus::Running);
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        }
        for code in FailureCode::ALL {
            assert_eq!(FailureCode::parse(code.as_str()), Some(*code));
        }
    }
}
