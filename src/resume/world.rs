//! The world of a running segment: the owner's principal, durable progress, and the lease, which a task of its own
//! renews, so that a call or a model may take longer than it lasts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::disposition::chain;
use super::{EventMint, Path};
use crate::clock::Clock;
use crate::engine::{Halt, Progress, World};
use crate::identity::resolve;
use crate::model::{Actor, Lease, Principal, RunId};
use crate::retry::Pauses;
use crate::store::{Guarded, Renewed, SharedStore, Step, Store, StoreError};

/// What the keeper of the lease has learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Held,
    CancelRequested(Actor),
    Lost,
}

/// The world of one segment.
pub(super) struct LeasedWorld {
    store: SharedStore,
    clock: Arc<dyn Clock>,
    run: RunId,
    owner: Actor,
    lease: Lease,
    kept: watch::Receiver<Kept>,
    stopping: CancellationToken,
    _keeper: AbortOnDropHandle<()>,
}

impl LeasedWorld {
    /// Begins to keep the lease.
    pub(super) fn enter(path: &Path, run: RunId, owner: Actor, lease: Lease) -> Self {
        let (tell, kept) = watch::channel(Kept::Held);
        let keeper = keep(
            path.store.clone(),
            run,
            lease.clone(),
            path.lease_ttl,
            path.renew_every,
            tell,
        );
        Self {
            store: path.store.clone(),
            clock: path.clock.clone(),
            run,
            owner,
            lease,
            kept,
            stopping: path.stopping.clone(),
            _keeper: AbortOnDropHandle::new(tokio::spawn(keeper)),
        }
    }

    /// Makes a step durable, however long the database is away: the guard tells whether the lease was lost meanwhile.
    pub(super) async fn write(&mut self, step: &Step) -> Result<(), Halt> {
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            match self.store.step(self.run, &self.lease, step).await {
                Ok(Guarded::Done) => return Ok(()),
                Ok(Guarded::Lost) => return Err(Halt::LeaseLost),
                Err(error) => self.hold(&error, &mut pauses).await?,
            }
        }
    }

    /// Waits for a database that is away, unless this process must stop.
    async fn hold(&self, error: &StoreError, pauses: &mut Pauses) -> Result<(), Halt> {
        if !error.is_transient() {
            tracing::error!(run = %self.run, error = %chain(error), "progress cannot be made durable");
            return Err(Halt::NotDurable(error.to_string()));
        }
        tracing::warn!(run = %self.run, error = %chain(error), "the database is away; what has happened is held");
        tokio::select! {
            () = tokio::time::sleep(pauses.next_pause()) => Ok(()),
            () = self.stopping.cancelled() => Err(Halt::Stopping),
        }
    }

    pub(super) fn mint(&self) -> EventMint {
        EventMint(self.clock.clone())
    }

    /// Progress as the store takes it.
    pub(super) fn step_of(&self, progress: Progress) -> Step {
        let mint = self.mint();
        let event = |news: crate::engine::News| mint.by(Some(&self.owner), self.run, news.kind, news.data);
        Step {
            state: progress.state.map(|state| (state.turn, state.seal())),
            calls: progress.calls,
            end: None,
            events: progress.news.into_iter().map(event).collect(),
        }
    }
}

#[async_trait]
impl World for LeasedWorld {
    async fn owner(&mut self) -> Result<Option<Principal>, Halt> {
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            let mut directory: &dyn Store = &*self.store;
            match resolve(&mut directory, &self.owner).await {
                Ok(principal) => return Ok(principal),
                Err(error) => self.hold(&error, &mut pauses).await?,
            }
        }
    }

    async fn save(&mut self, progress: Progress) -> Result<(), Halt> {
        let step = self.step_of(progress);
        self.write(&step).await
    }

    async fn check(&mut self) -> Result<(), Halt> {
        let kept = self.kept.borrow().clone();
        match kept {
            Kept::Held if self.stopping.is_cancelled() => Err(Halt::Stopping),
            Kept::Held => Ok(()),
            Kept::CancelRequested(by) => Err(Halt::Cancelled(by)),
            Kept::Lost => Err(Halt::LeaseLost),
        }
    }

    async fn abandoned(&mut self) -> Halt {
        tokio::select! {
            lost = self.kept.wait_for(|kept| *kept == Kept::Lost) => match lost {
                Ok(_) => Halt::LeaseLost,
                // The keeper ends only after it has told that the lease is lost.
                Err(_) => Halt::LeaseLost,
            },
            () = self.stopping.cancelled() => Halt::Stopping,
        }
    }

    fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }
}

/// Renews the lease until it is lost. A renewal that cannot be asked for is asked for again; while none has succeeded
/// for as long as the lease lasts, it counts as lost: another worker may have taken the run.
async fn keep(
    store: SharedStore,
    run: RunId,
    lease: Lease,
    ttl: Duration,
    every: Duration,
    tell: watch::Sender<Kept>,
) {
    let mut renewed_at = tokio::time::Instant::now();
    let mut pause = every;
    loop {
        tokio::time::sleep(pause).await;
        let asked_at = tokio::time::Instant::now();
        match tokio::time::timeout(ttl, store.renew(run, &lease, ttl)).await {
            Ok(Ok(Renewed::Held)) => (renewed_at, pause) = (asked_at, every),
            Ok(Ok(Renewed::CancelRequested(by))) => {
                (renewed_at, pause) = (asked_at, every);
                tell.send_replace(Kept::CancelRequested(by));
            }
            Ok(Ok(Renewed::Lost)) => {
                tracing::warn!(%run, holder = %lease.holder, epoch = lease.epoch, "the lease is lost; nothing more is done");
                metrics::counter!("countersign_leases_lost_total").increment(1);
                tell.send_replace(Kept::Lost);
                return;
            }
            Ok(Err(_)) | Err(_) => {
                pause = every / 4;
                if renewed_at.elapsed() >= ttl {
                    tracing::warn!(%run, holder = %lease.holder, "the lease could not be renewed in time");
                    tell.send_replace(Kept::Lost);
                    return;
                }
            }
        }
    }
}
