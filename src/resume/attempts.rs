//! Jobs that end their worker: found by counting, and quarantined, so that one of them does not take the fleet with it.
//!
//! A job that comes for the first time is not counted: that costs nothing where nothing goes wrong. One that came before is
//! counted, durably and before the work, and forgotten once the work has ended or its claim is durable; from then
//! on it is the lease and `max_requeues` that find it. A process works on one counted job at a time, so that a
//! job which merely stood beside a poisonous one is not counted with it.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use super::{Disposition, Path, Stop, Taken, deliver, look, settle, start, tell};
use crate::gate::Refusal;
use crate::model::{DecisionId, DecisionStatus, Failure, FailureCode, Job, RunId};
use crate::store::Guarded;

/// How often a job may be tried, and the right to try one that came before.
#[derive(Clone, Debug)]
pub struct Attempts {
    most: u32,
    alone: Arc<Semaphore>,
}

impl Attempts {
    /// A job that ended its worker so often is quarantined.
    #[must_use]
    pub fn at_most(most: u32) -> Self {
        Self {
            most,
            alone: Arc::new(Semaphore::new(1)),
        }
    }
}

/// Works on a job that came before, unless it has ended its worker too often.
pub(super) async fn again(path: &Path, job: Job, taken: &dyn Taken) -> Disposition {
    let alone = Arc::clone(&path.attempts.alone).acquire_owned().await;
    let alone = alone.expect("the semaphore is never closed");
    let attempts = match path.store.begin_attempt(&job).await {
        Ok(attempts) => attempts,
        Err(error) => return Disposition::of(Err(error.into())),
    };
    let counted = Counted {
        path,
        job,
        taken,
        alone: Mutex::new(Some(alone)),
    };
    // The first time was not counted.
    let disposition = if attempts >= path.attempts.most {
        Disposition::of(quarantine(path, job, attempts).await)
    } else {
        super::work(path, job, &counted).await
    };
    counted.end().await;
    disposition
}

/// A job whose attempt is counted until it has ended, or its claim is durable.
struct Counted<'t> {
    path: &'t Path,
    job: Job,
    taken: &'t dyn Taken,
    alone: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Counted<'_> {
    async fn end(&self) {
        let Some(_alone) = self.alone.lock().await.take() else {
            return;
        };
        if let Err(error) = self.path.store.end_attempts(&self.job).await {
            // It only counts as one more attempt.
            tracing::debug!(run = %self.job.run(), %error, "an attempt that ended could not be forgotten");
        }
    }
}

#[async_trait]
impl Taken for Counted<'_> {
    fn came_before(&self) -> bool {
        true
    }

    async fn acknowledge(&self) {
        self.end().await;
        self.taken.acknowledge().await;
    }
}

/// Nothing of the job is executed, now or later: its decision is refused, or its run fails where it was queued.
async fn quarantine(path: &Path, job: Job, attempts: u32) -> Result<(), Stop> {
    tracing::error!(run = %job.run(), attempts, "a job has ended its worker too often; it is quarantined");
    metrics::counter!("countersign_jobs_quarantined_total").increment(1);
    match job {
        Job::Resume { run, decision } => refuse(path, run, decision, attempts).await?,
        Job::Start { run } => fail(path, run, attempts).await?,
    }
    Err(Stop::Unprocessable(format!(
        "quarantined: it ended its worker {attempts} times"
    )))
}

async fn refuse(path: &Path, run: RunId, decision: DecisionId, attempts: u32) -> Result<(), Stop> {
    let job = deliver::deliver(path, run, decision).await?;
    if job.decision.status != DecisionStatus::Pending {
        return Err(Stop::Done("the decision has had its outcome"));
    }
    let refusal = Refusal::Quarantined { attempts };
    let at = path.catalogues.current(&*path.store).await?;
    // The state is not opened: reading it may be what ends a worker.
    let events = look::events_of(path, &job.decision, &job.run, None, &refusal, &at);
    match path.store.refuse(decision, refusal.code(), &events).await? {
        Guarded::Done => tell::log_refusal(&job.decision, &refusal),
        Guarded::Lost => return Err(Stop::Done("the decision has had its outcome")),
    }
    Ok(())
}

async fn fail(path: &Path, run: RunId, attempts: u32) -> Result<(), Stop> {
    let scope = start::claim(path, run).await?;
    let detail = format!("its job ended its worker {attempts} times; `worker.max_attempts` allows no more");
    settle::fail(
        path,
        scope,
        None,
        &Failure::new(FailureCode::RetriesExhausted, detail),
    )
    .await
}
