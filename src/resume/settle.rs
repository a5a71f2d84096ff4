//! Settle or hand back: the end of a segment, or of a claim whose decision did not stand. Either is one commit, so
//! that a run is never left running with nobody.

use serde_json::json;
use time::OffsetDateTime;

use super::claim::Stopped;
use super::deliver::Delivered;
use super::run::Finished;
use super::{EventMint, Path, Stop, look, tell};
use crate::engine::{End, Ended};
use crate::gate::{Catalogued, Refusal};
use crate::model::{EventKind, Failure, FailureCode, Run, RunState, RunStatus, Turn, visible};
use crate::store::{self, ClaimScope, Guarded};

/// Gives a claimed run back to waiting, its state untouched; or fails it where nobody could read it again.
pub(super) async fn hand_back(
    path: &Path,
    scope: Box<dyn ClaimScope>,
    job: &Delivered,
    stopped: Stopped,
) -> Result<(), Stop> {
    match stopped {
        Stopped::Store(error) => Err(error.into()),
        Stopped::Unreadable(corrupt) => {
            let failure = Failure::new(FailureCode::CorruptState, corrupt.to_string());
            fail(path, scope, Some(job), &failure).await
        }
        Stopped::Refused(refusal, at) => {
            let claimed = scope.claimed();
            let state = RunState::open(
                &claimed.state,
                claimed.run.id,
                &claimed.run.owner,
                claimed.run.turn,
            )
            .ok();
            let waiting = Run {
                status: RunStatus::WaitingForApproval,
                ..claimed.run.clone()
            };
            let events = look::events_of(path, &job.decision, &waiting, state.as_ref(), &refusal, &at);
            match scope.hand_back(job.decision.id, refusal.code(), &events).await? {
                Guarded::Lost => Err(Stop::Lost),
                Guarded::Done => refused(job, refusal),
            }
        }
    }
}

fn refused(job: &Delivered, refusal: Refusal) -> Result<(), Stop> {
    tell::log_refusal(&job.decision, &refusal);
    Err(Stop::Refused(refusal))
}

/// A claimed run that cannot go on has failed.
pub(super) async fn fail(
    path: &Path,
    scope: Box<dyn ClaimScope>,
    job: Option<&Delivered>,
    failure: &Failure,
) -> Result<(), Stop> {
    let Run {
        id: run,
        owner,
        configuration,
        ..
    } = &scope.claimed().run;
    let (run, mint) = (*run, EventMint(path.clock.clone()));
    let denied = (failure.code == FailureCode::AccessDenied).then(|| {
        let data = json!({ "owner": owner, "configuration": configuration });
        mint.by(None, run, EventKind::AccessDenied, data)
    });
    let failed = mint.by(None, run, EventKind::RunFailed, tell::failed(failure));
    let events: Vec<_> = denied.into_iter().chain([failed]).collect();
    scope
        .fail(job.map(|job| job.decision.id), failure, &events)
        .await?;
    tracing::error!(%run, code = failure.code.as_str(), "the run failed: {}", failure.detail);
    Ok(())
}

/// Makes the end of a segment durable.
pub(super) async fn settle(path: &Path, finished: Finished) -> Result<(), Stop> {
    let Finished {
        mut world,
        run,
        at,
        ended: Ended { how, rest },
    } = finished;
    let (end, by, kind, data) = match how {
        End::Completed => (store::End::Complete, None, EventKind::RunCompleted, json!({})),
        End::Suspended(turn) => {
            let deadline = deadline(path, &at, &run);
            let data = announced(&turn, &at, deadline);
            (
                store::End::Suspend { deadline },
                None,
                EventKind::RunWaiting,
                data,
            )
        }
        End::Failed(failure) => {
            let data = tell::failed(&failure);
            (store::End::Fail(failure), None, EventKind::RunFailed, data)
        }
        End::Cancelled(by) => (store::End::Cancel, Some(by), EventKind::RunCancelled, json!({})),
        End::Released => (
            store::End::Release,
            None,
            EventKind::RunQueued,
            json!({ "released": true }),
        ),
    };
    tracing::info!(run = %run.id, event = kind.as_str(), code = data["code"].as_str(), "the segment ended");
    let mut step = world.step_of(rest);
    step.end = Some(end);
    step.events.push(world.mint().by(by.as_ref(), run.id, kind, data));
    world.write(&step).await.map_err(Stop::LetGo)
}

fn deadline(path: &Path, at: &Catalogued, run: &Run) -> OffsetDateTime {
    let ttl = at
        .configuration(&run.configuration)
        .map(|configuration| configuration.approval_ttl)
        .ok();
    path.clock.now() + ttl.unwrap_or(DEFAULT_APPROVAL_TTL)
}

/// Seven days, as where the configuration says nothing.
const DEFAULT_APPROVAL_TTL: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 60 * 60);

fn announced(turn: &Turn, at: &Catalogued, deadline: OffsetDateTime) -> serde_json::Value {
    let mut data = tell::waiting(turn, at);
    let deadline = deadline
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default();
    data["deadline"] = json!(deadline);
    data["suspicious"] = json!(
        turn.calls
            .iter()
            .any(|call| visible(&call.arguments).is_suspicious()
                || visible(call.tool.as_str()).is_suspicious())
    );
    data
}
