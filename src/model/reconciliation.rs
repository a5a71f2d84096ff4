//! What an operator states about a write whose outcome nobody knows, and what that makes of the call.
//!
//! A run that failed as `write_outcome_unknown` has exactly one such call: calls of a turn are made one after the
//! other, and the run ended with it. No machine may guess here, and none may make the call again.

use time::OffsetDateTime;

use super::{Actor, CallId, CallRecord, CallStatus, Effect, FailureCode, Run, RunStatus};

/// What really happened, as somebody has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActualOutcome {
    /// The call took effect; with the tool's answer, if that is known: a JSON text.
    Done(Option<String>),
    /// The call took no effect.
    NotDone,
}

impl ActualOutcome {
    /// The word in commands, events and pages.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::NotDone => "not-done",
        }
    }
}

/// The statement cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReconcilable {
    /// Nothing of the run has an unknown outcome.
    #[error("no call of the run has an unknown outcome: the run is {0}")]
    NothingUnknown(String),
    /// Another call is the one.
    #[error("the outcome of call `{asked}` is not unknown; that of `{open}` is")]
    OtherCall {
        /// The call that was named.
        asked: CallId,
        /// The call whose outcome is unknown.
        open: CallId,
    },
}

/// The write that is under way, or was when its worker was lost: begun, not finished, and not to be repeated.
#[must_use]
pub fn write_under_way(journal: &[CallRecord]) -> Option<&CallRecord> {
    journal
        .iter()
        .find(|call| call.status == CallStatus::Started && call.effect == Effect::NonIdempotentWrite)
}

/// The call whose outcome nobody knows, where the run has failed for that.
#[must_use]
pub fn unknown_outcome<'j>(run: &Run, journal: &'j [CallRecord]) -> Option<&'j CallRecord> {
    let failed_so = run.status == RunStatus::Failed
        && run
            .failure
            .as_ref()
            .is_some_and(|failure| failure.code == FailureCode::WriteOutcomeUnknown);
    write_under_way(journal).filter(|_| failed_so)
}

/// The row of the call as the statement makes it: finished, with a text for the model that says who stated what.
/// `journal` is that of the run's newest turn.
///
/// # Errors
/// No call, or another one, has an unknown outcome.
pub fn reconcile(
    run: &Run,
    journal: &[CallRecord],
    call: &CallId,
    actual: &ActualOutcome,
    by: &Actor,
    at: OffsetDateTime,
) -> Result<CallRecord, NotReconcilable> {
    let Some(open) = unknown_outcome(run, journal) else {
        let is = match &run.failure {
            Some(failure) => format!("{} ({})", run.status, failure.code.as_str()),
            None => run.status.to_string(),
        };
        return Err(NotReconcilable::NothingUnknown(is));
    };
    if open.call != *call {
        return Err(NotReconcilable::OtherCall {
            asked: call.clone(),
            open: open.call.clone(),
        });
    }
    let (status, content) = match actual {
        ActualOutcome::Done(Some(result)) => (CallStatus::Succeeded, result.clone()),
        ActualOutcome::Done(None) => (
            CallStatus::Succeeded,
            format!(
                "DONE: the call took effect, as {by} has found out. The tool's answer was lost. Do not make it again."
            ),
        ),
        ActualOutcome::NotDone => (
            CallStatus::Failed,
            format!(
                "NOT EXECUTED: the worker was lost, and {by} has found out that the call took no effect."
            ),
        ),
    };
    Ok(CallRecord {
        status,
        result: Some(content),
        finished_at: Some(at),
        ..open.clone()
    })
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::model::{Failure, PendingCall, RunId, TurnOrdinal, WorkerName};

    const AT: OffsetDateTime = datetime!(2026-12-01 05:10:03 UTC);

    fn ada() -> Actor {
        Actor::User("ada".to_owned())
    }

    fn run(failure: FailureCode) -> Run {
        Run {
            id: RunId::from(uuid::Uuid::from_u128(2)),
            owner: Actor::User("olga".to_owned()),
            configuration: "support".to_owned(),
            status: RunStatus::Failed,
            turn: TurnOrdinal(1),
            failure: Some(Failure::new(failure, "x")),
            claimed_by: None::<WorkerName>,
            epoch: 1,
            requeues: 0,
            created_at: AT,
            updated_at: AT,
            deadline: None,
        }
    }

    fn journal(run: &Run) -> Vec<CallRecord> {
        let row = |position: u32, id: &str, effect, status| CallRecord {
            status,
            ..CallRecord::pending(
                run.id,
                run.turn,
                position,
                &PendingCall {
                    id: id.into(),
                    tool: "refund".into(),
                    arguments: "{}".into(),
                },
                effect,
            )
        };
        vec![
            row(0, "c0", Effect::ReadOnly, CallStatus::Started),
            row(1, "c1", Effect::NonIdempotentWrite, CallStatus::Started),
            row(2, "c2", Effect::NonIdempotentWrite, CallStatus::Pending),
        ]
    }

    fn stated(actual: &ActualOutcome) -> CallRecord {
        let run = run(FailureCode::WriteOutcomeUnknown);
        reconcile(&run, &journal(&run), &"c1".into(), actual, &ada(), AT).unwrap()
    }

    #[test]
    fn what_was_done_is_a_result_and_what_was_not_is_an_error() {
        let known = stated(&ActualOutcome::Done(Some("{\"ok\":true}".to_owned())));
        assert_eq!(known.status, CallStatus::Succeeded);
        assert_eq!(known.result.as_deref(), Some("{\"ok\":true}"));
        assert_eq!(known.finished_at, Some(AT));
        let lost = stated(&ActualOutcome::Done(None));
        assert_eq!(lost.status, CallStatus::Succeeded);
        assert!(lost.result.unwrap().starts_with("DONE: "));
        let not = stated(&ActualOutcome::NotDone);
        assert_eq!(not.status, CallStatus::Failed);
        assert!(not.result.unwrap().starts_with("NOT EXECUTED: "));
    }

    #[test]
    fn only_the_call_that_is_unknown_is_reconciled() {
        let run = run(FailureCode::WriteOutcomeUnknown);
        let other = reconcile(
            &run,
            &journal(&run),
            &"c2".into(),
            &ActualOutcome::NotDone,
            &ada(),
            AT,
        );
        assert_eq!(
            other.unwrap_err().to_string(),
            "the outcome of call `c2` is not unknown; that of `c1` is"
        );
    }

    #[test]
    fn only_a_run_that_failed_for_it_is_reconciled() {
        for code in FailureCode::ALL {
            let run = run(*code);
            let journal = journal(&run);
            let open = unknown_outcome(&run, &journal);
            assert_eq!(open.is_some(), *code == FailureCode::WriteOutcomeUnknown);
        }
        let running = Run {
            status: RunStatus::Running,
            failure: None,
            ..run(FailureCode::WriteOutcomeUnknown)
        };
        let refused = reconcile(
            &running,
            &journal(&running),
            &"c1".into(),
            &ActualOutcome::NotDone,
            &ada(),
            AT,
        );
        assert_eq!(
            refused.unwrap_err().to_string(),
            "no call of the run has an unknown outcome: the run is running"
        );
    }
}
