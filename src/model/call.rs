//! The journal's row of one call: what a segment reads after a crash instead of running the call again.

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use super::{CallId, Effect, PendingCall, RunId, ToolName, TurnOrdinal};

/// How far a call has come. `Started` on a write is the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallStatus {
    /// Cleared, not begun.
    Pending,
    /// Begun; whether it took effect is unknown until it is finished.
    Started,
    /// Done, with its result.
    Succeeded,
    /// Done, and the result says that it failed.
    Failed,
    /// Not executed: the owner's policy refused it, or its arguments cannot be read.
    Refused,
    /// Not executed: a decision denied it.
    Denied,
}

impl CallStatus {
    /// Every status there is.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Started,
        Self::Succeeded,
        Self::Failed,
        Self::Refused,
        Self::Denied,
    ];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Started => "started",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Denied => "denied",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the call has its result and is never run again.
    #[must_use]
    pub fn is_finished(self) -> bool {
        !matches!(self, Self::Pending | Self::Started)
    }
}

/// What became of a call: the status, and the text that the model is given as its tool message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// One of the finished statuses.
    pub status: CallStatus,
    /// The tool message's content.
    pub content: String,
}

/// One row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The run.
    pub run: RunId,
    /// The turn.
    pub turn: TurnOrdinal,
    /// Place in the turn, from 0.
    pub position: u32,
    /// The model's id of the call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The effect that the catalogue declared when the turn was cleared.
    pub effect: Effect,
    /// How far it has come.
    pub status: CallStatus,
    /// The content of its tool message, once finished.
    pub result: Option<String>,
    /// When it began.
    pub started_at: Option<OffsetDateTime>,
    /// When it was finished.
    pub finished_at: Option<OffsetDateTime>,
}

impl CallRecord {
    /// The row of a call that is cleared and not begun.
    #[must_use]
    pub fn pending(run: RunId, turn: TurnOrdinal, position: u32, call: &PendingCall, effect: Effect) -> Self {
        Self {
            run,
            turn,
            position,
            call: call.id.clone(),
            tool: call.tool.clone(),
            effect,
            status: CallStatus::Pending,
            result: None,
            started_at: None,
            finished_at: None,
        }
    }

    /// The key under which the call is made: the same on each attempt, another for every other call.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"countersign-call-v1");
        hash.update(self.run.uuid().as_bytes());
        hash.update(self.turn.0.to_be_bytes());
        hash.update(self.call.as_str().as_bytes());
        format!("cs-{}", hex::encode(&hash.finalize()[..16]))
    }

    /// Its outcome, if it is finished.
    #[must_use]
    pub fn outcome(&self) -> Option<CallOutcome> {
        let content = self.result.clone().filter(|_| self.status.is_finished())?;
        Some(CallOutcome {
            status: self.status,
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_stable_and_its_own() {
        let run = RunId::from(uuid::Uuid::from_u128(7));
        let call = PendingCall {
            id: "c1".into(),
            tool: "refund".into(),
            arguments: "{}".into(),
        };
        let record = |run, turn| {
            CallRecord::pending(run, TurnOrdinal(turn), 0, &call, Effect::ReadOnly).idempotency_key()
        };
        assert_eq!(record(run, 1), record(run, 1));
        assert_ne!(record(run, 1), record(run, 2));
        assert_ne!(record(run, 1), record(RunId::from(uuid::Uuid::from_u128(8)), 1));
    }
}
