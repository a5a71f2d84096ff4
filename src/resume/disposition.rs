//! What becomes of the message: the closed set of ends of a job.

use std::time::Duration;

use async_trait::async_trait;

use crate::engine::Halt;
use crate::gate::Refusal;
use crate::store::StoreError;

/// What is to become of the message.
#[must_use = "the message must be settled"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The outcome is durable.
    Acknowledge,
    /// Nothing is durable yet: keep the message and try again after a pause.
    RequeueAfter(Duration),
    /// It cannot be processed; the text says why.
    DeadLetter(String),
}

/// What a job knows of its message, and how it is acknowledged before it is finished.
#[async_trait]
pub trait Taken: Send + Sync {
    /// Whether the message came before, so that the job may have been begun by somebody who is gone. Said once for each
    /// delivery.
    fn came_before(&self) -> bool;

    /// The claim is durable: the message is not needed any more.
    async fn acknowledge(&self);
}

/// Why a job goes no further.
#[derive(Debug)]
pub enum Stop {
    /// There is nothing to do, or somebody else does it.
    Done(&'static str),
    /// Another decision, a cancellation or the deadline was first with the run.
    Lost,
    /// The decision did not stand, and that is durable.
    Refused(Refusal),
    /// The run was let go; its lease or somebody else takes care of it.
    LetGo(Halt),
    /// The message can never be processed.
    Unprocessable(String),
    /// The store could not do its part.
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The pause before a job that found no database is tried again.
const HOLD: Duration = Duration::from_secs(1);

impl Disposition {
    /// The end of a journey.
    pub(super) fn of(journey: Result<(), Stop>) -> Self {
        match journey {
            Ok(()) => Self::Acknowledge,
            Err(Stop::Done(why)) => {
                tracing::debug!(why, "nothing to do");
                Self::Acknowledge
            }
            Err(Stop::Lost) => Self::RequeueAfter(HOLD),
            Err(Stop::Refused(_)) => Self::Acknowledge,
            Err(Stop::LetGo(halt)) => {
                tracing::warn!(?halt, "the run was let go");
                Self::Acknowledge
            }
            Err(Stop::Unprocessable(why)) => Self::DeadLetter(why),
            Err(Stop::Store(error)) if error.is_transient() => {
                tracing::warn!(error = %chain(&error), "the database is away; the job is held");
                Self::RequeueAfter(HOLD)
            }
            Err(Stop::Store(error)) => {
                tracing::error!(error = %chain(&error), "the job cannot be processed");
                Self::DeadLetter(format!("store_failed: {error}"))
            }
        }
    }
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_goes_to_the_dead_letters_and_a_refusal_does_not() {
        let corrupt = StoreError::CorruptRow {
            table: "runs",
            id: "1".to_owned(),
            column: "status",
            problem: "x".to_owned(),
        };
        assert!(matches!(
            Disposition::of(Err(corrupt.into())),
            Disposition::DeadLetter(_)
        ));
        assert_eq!(
            Disposition::of(Err(Stop::Refused(Refusal::Revoked))),
            Disposition::Acknowledge
        );
    }
}
