//! The path of a job: deliver → look → claim → bind → permit → record → run → settle or hand back.
//!
//! `resume` is the whole sequence on one screen; everything else serves it. It ends in a [`Disposition`], never in an
//! error: the set of ends is closed. The room knows nothing of brokers: it is told how to acknowledge, and does so as
//! soon as the claim is durable, since from then on the lease and not the message keeps the run from being lost.

mod attempts;
mod builtin;
mod catalogues;
mod claim;
mod deliver;
mod disposition;
mod look;
mod run;
mod settle;
mod start;
mod tell;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use attempts::Attempts;
pub use builtin::LedgerTools;
pub use catalogues::Catalogues;
pub use disposition::{Disposition, Stop, Taken};
pub use tell::EventMint;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::model::{DecisionId, Job, RunId, WorkerName};
use crate::store::SharedStore;

/// What a job needs on its way.
#[derive(Clone)]
pub struct Path {
    /// What is durable.
    pub store: SharedStore,
    /// Parsed catalogue versions.
    pub catalogues: Arc<Catalogues>,
    /// What reaches tools and models.
    pub engine: Engine,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Who claims.
    pub worker: WorkerName,
    /// How long a lease holds.
    pub lease_ttl: Duration,
    /// How often it is renewed.
    pub renew_every: Duration,
    /// How often a job may be tried.
    pub attempts: Attempts,
    /// Set when this process must let go of everything.
    pub stopping: CancellationToken,
}

/// Takes one job from its message to its outcome.
pub async fn handle(path: &Path, body: &[u8], taken: &dyn Taken) -> Disposition {
    match Job::parse(body) {
        Ok(job) if taken.came_before() => attempts::again(path, job, taken).await,
        Ok(job) => work(path, job, taken).await,
        Err(invalid) => Disposition::DeadLetter(format!("invalid_job: {invalid}")),
    }
}

async fn work(path: &Path, job: Job, taken: &dyn Taken) -> Disposition {
    match job {
        Job::Resume { run, decision } => resume(path, run, decision, taken).await,
        Job::Start { run } => start::start(path, run, taken).await,
    }
}

/// How often a job looks at once; after that it pauses. Two are enough, unless clocks differ at a deadline.
const LOOKS: u32 = 3;

/// The journey of a resume job. Losing the claim is normal: the job then looks once more at what the winner made of
/// the run, so that every decision learns its outcome.
async fn resume(path: &Path, run: RunId, decision: DecisionId, taken: &dyn Taken) -> Disposition {
    for _ in 0..LOOKS {
        match journey(path, run, decision, taken).await {
            Err(Stop::Lost) => tokio::task::yield_now().await,
            ended => return Disposition::of(ended),
        }
    }
    Disposition::of(Err(Stop::Lost))
}

/// The sequence itself.
async fn journey(path: &Path, run: RunId, decision: DecisionId, taken: &dyn Taken) -> Result<(), Stop> {
    let job = deliver::deliver(path, run, decision).await?;
    look::look(path, &job).await?;
    let (claim, mut scope) = claim::claim(path, &job).await?;
    let gates = claim::Gates::enter(path, &mut *scope, &job).await?;
    let segment = match gates.bind_permit_record(claim, &mut *scope).await {
        Ok(cleared) => claim::commit(path, scope, &job, cleared).await?,
        Err(stopped) => return settle::hand_back(path, scope, &job, stopped).await,
    };
    taken.acknowledge().await;
    let ended = run::run(path, segment).await?;
    settle::settle(path, ended).await
}
