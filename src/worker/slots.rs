//! The slots: as many jobs at a time as there are slots, each in a task of its own, so that a panic ends one job and
//! not the worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Stopped, Works};
use crate::broker::{BrokerError, Delivery};
use crate::resume::{self, Disposition, Path, Taken};

/// What a job is handed to.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Takes one job from its message to its outcome.
    async fn handle(&self, body: &[u8], taken: &dyn Taken) -> Disposition;
}

#[async_trait]
impl Handler for Path {
    async fn handle(&self, body: &[u8], taken: &dyn Taken) -> Disposition {
        resume::handle(self, body, taken).await
    }
}

/// A delivery until it is settled, by whoever is first.
struct Held {
    delivery: Mutex<Option<Delivery>>,
    /// Whether it came before and nobody has been told yet.
    came_before: AtomicBool,
}

impl Held {
    fn new(delivery: Delivery) -> Self {
        Self {
            came_before: AtomicBool::new(delivery.came_before > 0),
            delivery: Mutex::new(Some(delivery)),
        }
    }

    fn take(&self) -> Option<Delivery> {
        self.delivery
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[async_trait]
impl Taken for Held {
    fn came_before(&self) -> bool {
        self.came_before.swap(false, Ordering::Relaxed)
    }

    async fn acknowledge(&self) {
        if let Some(delivery) = self.take() {
            delivery.acknowledge().await;
        }
    }
}

pub(super) async fn run(works: &Works, stop: CancellationToken) -> Result<Stopped, BrokerError> {
    let slots = usize::from(works.pace.slots.max(1));
    let free = Arc::new(Semaphore::new(slots));
    let mut consumer = works
        .broker
        .consume(works.pace.prefetch.max(works.pace.slots))
        .await?;
    let mut jobs = JoinSet::new();
    loop {
        while jobs.try_join_next().is_some() {}
        let slot = tokio::select! {
            slot = Arc::clone(&free).acquire_owned() => slot.expect("the semaphore is never closed"),
            () = stop.cancelled() => break,
        };
        let delivery = tokio::select! {
            delivery = consumer.next() => delivery,
            () = stop.cancelled() => break,
        };
        let Some(delivery) = delivery else { break };
        let (works, stop) = (works.clone(), stop.clone());
        jobs.spawn(async move {
            let _slot = slot;
            job(&works, delivery, &stop).await;
        });
    }
    consumer.stop().await;
    let drained = tokio::time::timeout(works.pace.grace, async {
        while jobs.join_next().await.is_some() {}
    })
    .await;
    if drained.is_ok() {
        return Ok(Stopped::Clean);
    }
    let left = jobs.len();
    tracing::warn!(
        jobs = left,
        "the grace period is over; the rest is left to the lease"
    );
    works.stopping.cancel();
    let _ = tokio::time::timeout(std::time::Duration::from_secs(2), async {
        while jobs.join_next().await.is_some() {}
    })
    .await;
    jobs.abort_all();
    Ok(Stopped::LetGo { jobs: left })
}

/// One job, from its delivery to the settling of its message.
async fn job(works: &Works, delivery: Delivery, stop: &CancellationToken) {
    let message = delivery.message_id.clone();
    let body = delivery.body.clone();
    let held = Arc::new(Held::new(delivery));
    loop {
        let (handler, taken, body) = (Arc::clone(&works.handler), Arc::clone(&held), body.clone());
        let handled = tokio::spawn(async move { handler.handle(&body, &*taken).await });
        // Ends with the slot, where the slot is ended.
        let handled = AbortOnDropHandle::new(handled).await;
        match handled {
            Ok(Disposition::Acknowledge) => {
                held.acknowledge().await;
                return count("acknowledged");
            }
            Ok(Disposition::DeadLetter(reason)) => {
                tracing::error!(
                    message,
                    reason,
                    "a job cannot be processed; it goes to the dead letters"
                );
                if let Some(delivery) = held.take() {
                    delivery.dead_letter(&reason).await;
                }
                return count("dead_lettered");
            }
            Ok(Disposition::RequeueAfter(pause)) => {
                // The message is kept meanwhile: an outage must not spin it through the delivery limit.
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stop.cancelled() => {
                        if let Some(delivery) = held.take() {
                            delivery.requeue().await;
                        }
                        return count("requeued");
                    }
                }
            }
            Err(panicked) => {
                tracing::error!(message, panic = panicked.is_panic(), "processing a job panicked");
                if let Some(delivery) = held.take() {
                    delivery.requeue().await;
                }
                return count("panicked");
            }
        }
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("countersign_jobs_total", "outcome" => outcome).increment(1);
}
