//! What runs for as long as the process does: slots that take jobs, the relay that publishes what happened, the
//! reaper that finds what was lost. [`work`] starts the roles and ends them in two stages.
//!
//! The room knows nothing of gates and tools: a job is handed to a [`Handler`], and what becomes of its message is
//! the handler's word.

mod reaper;
mod relay;
mod slots;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use reaper::reap_once;
pub use relay::relay_once;
pub use slots::Handler;

use crate::broker::{Broker, BrokerError};
use crate::clock::Clock;
use crate::config::Role;
use crate::model::WorkerName;
use crate::store::SharedStore;

/// How the roles work.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Jobs that are worked on at a time.
    pub slots: u16,
    /// Jobs that are taken and not settled yet; at least one for each slot.
    pub prefetch: u16,
    /// How long running turns may go on after the first signal.
    pub grace: Duration,
    /// How often the relay looks where nothing rings.
    pub relay_poll: Duration,
    /// Events that are published at a time.
    pub relay_batch: u32,
    /// How often the reaper looks.
    pub reap_every: Duration,
    /// How often a run may be taken from a lost worker.
    pub max_requeues: u32,
    /// After how long a job that nobody has taken is published again.
    pub wake_after: Duration,
}

/// What the roles work with.
#[derive(Clone)]
pub struct Works {
    /// What is durable.
    pub store: SharedStore,
    /// Where jobs come from and events go to.
    pub broker: Arc<dyn Broker>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Who works.
    pub worker: WorkerName,
    /// What a job is handed to.
    pub handler: Arc<dyn Handler>,
    /// Set by the room when running turns must be let go.
    pub stopping: CancellationToken,
    /// How.
    pub pace: Pace,
}

/// How the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every running turn came to an end.
    Clean,
    /// The grace period was over; what was left waits for its lease to run out.
    LetGo {
        /// How many jobs were left.
        jobs: usize,
    },
}

/// Works in these roles until `stop` is set, and then until what runs has ended or the grace period is over.
///
/// # Errors
/// The broker could not be consumed from.
pub async fn work(
    works: Works,
    roles: &BTreeSet<Role>,
    stop: CancellationToken,
) -> Result<Stopped, BrokerError> {
    let mut beside = JoinSet::new();
    if roles.contains(&Role::Relay) {
        beside.spawn(relay::run(works.clone(), stop.clone()));
    }
    if roles.contains(&Role::Reaper) {
        beside.spawn(reaper::run(works.clone(), stop.clone()));
    }
    let stopped = if roles.contains(&Role::Worker) {
        slots::run(&works, stop.clone()).await?
    } else {
        stop.cancelled().await;
        Stopped::Clean
    };
    while beside.join_next().await.is_some() {}
    // What the last turns told is still to be published.
    if roles.contains(&Role::Relay) {
        let _ = tokio::time::timeout(Duration::from_secs(5), relay::drain(&works)).await;
    }
    Ok(stopped)
}
