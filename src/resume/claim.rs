//! Claim and the three gates: one transaction, from the guarded update to the commit after which the run is this
//! worker's, the approval is recorded, and the first write is fenced.

use std::time::Duration;

use super::deliver::Delivered;
use super::{EventMint, Path, Stop, tell};
use crate::engine::{self, Next, Segment, call_started};
use crate::gate::{Catalogued, Claim, Clearance, Cleared, NotBound, Recording, Refusal};
use crate::identity::resolve;
use crate::model::{
    CallRecord, CallStatus, CorruptState, Lease, Principal, RunId, RunState, RunStatus, SegmentKind,
};
use crate::retry::Pauses;
use crate::store::{ClaimRequest, ClaimScope, Guarded, StoreError};

/// A segment and the right to run it.
pub(super) struct Leased {
    pub(super) segment: Segment,
    pub(super) lease: Lease,
}

/// Why a claimed run does not go on.
pub(super) enum Stopped {
    /// The decision did not stand: hand back.
    Refused(Refusal, Catalogued),
    /// The state cannot be read, so it cannot be handed back: fail.
    Unreadable(CorruptState),
    /// The store could not do its part: nothing has happened.
    Store(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Claims the run for this decision. Losing is normal.
pub(super) async fn claim(path: &Path, job: &Delivered) -> Result<(Claim, Box<dyn ClaimScope>), Stop> {
    let request = ClaimRequest {
        run: job.run.id,
        from: RunStatus::WaitingForApproval,
        worker: path.worker.holding_for(SegmentKind::Resume),
        ttl: path.lease_ttl,
    };
    let scope = path.store.claim(&request).await?.ok_or(Stop::Lost)?;
    tracing::debug!(run = %job.run.id, owner = %job.run.owner, worker = %path.worker, "claimed, acting for the owner");
    Ok((Claim::won(scope.claimed().clone(), job.decision.clone()), scope))
}

/// What the gates judge by: read at the claim, through the claim.
pub(super) struct Gates<'g> {
    path: &'g Path,
    at: Catalogued,
    approver: Option<Principal>,
}

impl<'g> Gates<'g> {
    /// Reads the catalogue and the approver as they are at the claim.
    pub(super) async fn enter(
        path: &'g Path,
        scope: &mut (dyn ClaimScope + 'static),
        job: &Delivered,
    ) -> Result<Self, Stop> {
        let at = path.catalogues.at_claim(scope).await?;
        let approver = resolve(scope, &job.decision.actor).await?;
        Ok(Self { path, at, approver })
    }

    /// Gates 1 to 3.
    pub(super) async fn bind_permit_record(
        &self,
        claim: Claim,
        scope: &mut (dyn ClaimScope + 'static),
    ) -> Result<(Cleared, RunState, Catalogued), Stopped> {
        let refused = |refusal| Stopped::Refused(refusal, self.at.clone());
        let bound = claim.bind().map_err(|not_bound| match not_bound {
            NotBound::Refused(refusal) => refused(refusal),
            NotBound::Unreadable(corrupt) => Stopped::Unreadable(corrupt),
        })?;
        let permitted = bound.permit(&self.at, self.approver.as_ref()).map_err(refused)?;
        let decision = permitted.decision();
        let event = EventMint(self.path.clock.clone()).by(
            Some(&decision.actor),
            decision.run,
            tell::kind_of(decision.verdict),
            tell::decided(decision, permitted.turn(), &self.at),
        );
        let recording = match scope.record(&event).await {
            Ok(()) => Recording::Kept,
            Err(StoreError::Failed(error)) => {
                tell::log_unrecorded(decision.run, event.kind, &error);
                Recording::Failed
            }
            Err(error) => return Err(error.into()),
        };
        let (cleared, state) = permitted.record(recording).map_err(refused)?;
        Ok((cleared, state, self.at.clone()))
    }
}

/// Commits the claim: the decision stands, the turn's journal is written, the first write is fenced.
pub(super) async fn commit(
    path: &Path,
    mut scope: Box<dyn ClaimScope>,
    job: &Delivered,
    (cleared, state, at): (Cleared, RunState, Catalogued),
) -> Result<Leased, Stop> {
    let claimed = scope.claimed().clone();
    let mut journal: Vec<CallRecord> = (0..)
        .zip(&cleared.turn().calls)
        .map(|(position, call)| {
            CallRecord::pending(
                claimed.run.id,
                cleared.turn().ordinal,
                position,
                call,
                at.catalogue.effect_of(&call.tool),
            )
        })
        .collect();
    match cleared.clearance() {
        Clearance::Approved { .. } => fence_first_write(path, &mut *scope, &mut journal).await?,
        // A denial is final with its claim: whoever goes on after a crash finds every call answered.
        Clearance::Denied { by, comment } => {
            for record in &mut journal {
                let denied = engine::denied(by, comment.as_deref());
                record.status = denied.status;
                record.result = Some(denied.content);
                record.finished_at = Some(path.clock.now());
            }
        }
        Clearance::DeniedBefore | Clearance::Unattended | Clearance::Continued => {}
    }
    let committed = scope.commit(Some(job.decision.id), &journal).await;
    match certain(path, committed, claimed.run.id, &claimed.lease).await? {
        Guarded::Lost => Err(Stop::Lost),
        Guarded::Done => Ok(Leased {
            segment: Segment {
                at,
                run: claimed.run,
                state,
                next: Next::Turn(cleared, journal),
            },
            lease: claimed.lease,
        }),
    }
}

/// A commit whose answer was lost may have happened, and the run would then wait for its lease to run out with nothing under
/// way. So the database is asked, for as long as it takes, whether the run is this worker's.
pub(super) async fn certain(
    path: &Path,
    committed: Result<Guarded, StoreError>,
    run: RunId,
    lease: &Lease,
) -> Result<Guarded, StoreError> {
    let mut error = match committed {
        Err(error) if error.is_transient() => error,
        known => return known,
    };
    let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(5));
    while !path.stopping.is_cancelled() {
        match path.store.run(run).await {
            Ok(Some(run)) if run.epoch == lease.epoch && run.claimed_by.as_ref() == Some(&lease.holder) => {
                return Ok(Guarded::Done);
            }
            // It did not happen, or it did and somebody else has the run by now.
            Ok(_) => return Err(error),
            Err(again) if again.is_transient() => error = again,
            Err(again) => return Err(again),
        }
        tokio::time::sleep(pauses.next_pause()).await;
    }
    Err(error)
}

/// An approved turn that begins with a write has its fence set with the claim.
async fn fence_first_write(
    path: &Path,
    scope: &mut (dyn ClaimScope + 'static),
    journal: &mut [CallRecord],
) -> Result<(), StoreError> {
    let Some(first) = journal.first_mut().filter(|first| first.effect.is_write()) else {
        return Ok(());
    };
    first.status = CallStatus::Started;
    first.started_at = Some(path.clock.now());
    let news = call_started(first);
    let owner = scope.claimed().run.owner.clone();
    let event = EventMint(path.clock.clone()).by(Some(&owner), first.run, news.kind, news.data);
    match scope.record(&event).await {
        // The approval was recorded a moment ago, and the row of the journal tells the same.
        Err(StoreError::Failed(error)) => {
            tell::log_unrecorded(first.run, event.kind, &error);
            Ok(())
        }
        other => other,
    }
}
