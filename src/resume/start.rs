//! Start: a queued run, for the first time or again after its worker was lost. No decision is taken here; a turn
//! that is found pending runs only if the journal shows that it was cleared.

use super::claim::{Leased, certain};
use super::{Disposition, Path, Stop, Taken, run, settle};
use crate::engine::{Next, Segment};
use crate::gate::Cleared;
use crate::identity::resolve;
use crate::model::{CallRecord, Failure, FailureCode, RunId, RunState, RunStatus, SegmentKind, Turn};
use crate::policy;
use crate::store::{ClaimRequest, ClaimScope, Guarded};

/// The journey of a start job.
pub(super) async fn start(path: &Path, run: RunId, taken: &dyn Taken) -> Disposition {
    let journey = async {
        if path.store.run(run).await?.is_none() {
            return Err(Stop::Unprocessable(format!(
                "no_such_run: run {run} does not exist"
            )));
        }
        let mut scope = claim(path, run).await?;
        let segment = match prepare(path, &mut *scope).await? {
            Ok(segment) => segment,
            Err(failure) => return settle::fail(path, scope, None, &failure).await,
        };
        let lease = scope.claimed().lease.clone();
        let committed = scope.commit(None, &[]).await;
        if certain(path, committed, run, &lease).await? == Guarded::Lost {
            return Err(Stop::Done("another worker was first"));
        }
        taken.acknowledge().await;
        let ended = run::run(path, Leased { segment, lease }).await?;
        settle::settle(path, ended).await
    };
    Disposition::of(journey.await)
}

/// Claims a queued run.
pub(super) async fn claim(path: &Path, run: RunId) -> Result<Box<dyn ClaimScope>, Stop> {
    let request = ClaimRequest {
        run,
        from: RunStatus::Queued,
        worker: path.worker.holding_for(SegmentKind::Start),
        ttl: path.lease_ttl,
    };
    path.store
        .claim(&request)
        .await?
        .ok_or(Stop::Done("the run is not queued any more"))
}

/// What the segment begins with, judged by what holds at the claim.
async fn prepare(
    path: &Path,
    scope: &mut (dyn ClaimScope + 'static),
) -> Result<Result<Segment, Failure>, Stop> {
    let claimed = scope.claimed().clone();
    let at = path.catalogues.at_claim(scope).await?;
    let owner = resolve(scope, &claimed.run.owner).await?;
    let journal = scope.calls().await?;
    let run = claimed.run;
    let state = match RunState::open(&claimed.state, run.id, &run.owner, run.turn) {
        Ok(state) => state,
        Err(corrupt) => return Ok(Err(Failure::new(FailureCode::CorruptState, corrupt.to_string()))),
    };
    let configuration = match at.configuration(&run.configuration) {
        Ok(configuration) => configuration,
        Err(gone) => {
            return Ok(Err(Failure::new(
                FailureCode::ConfigurationGone,
                gone.to_string(),
            )));
        }
    };
    if !policy::may_start(configuration, owner.as_ref()) {
        let detail = format!(
            "{} may not use the configuration `{}`",
            run.owner, configuration.name
        );
        return Ok(Err(Failure::new(FailureCode::AccessDenied, detail)));
    }
    let next = match state.pending_turn() {
        Ok(turn) => first(run.id, turn, journal),
        Err(corrupt) => return Ok(Err(Failure::new(FailureCode::CorruptState, corrupt.to_string()))),
    };
    Ok(Ok(Segment { at, run, state, next }))
}

fn first(run: RunId, turn: Option<Turn>, journal: Vec<CallRecord>) -> Next {
    let Some(turn) = turn else { return Next::Model };
    match Cleared::continued(run, turn.clone(), &journal) {
        Some(cleared) => Next::Turn(cleared, journal),
        None => Next::Undecided(turn),
    }
}
