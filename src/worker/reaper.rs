//! The reaper: takes runs from workers that are gone, ends what nobody decided in time, and wakes jobs that were lost
//! on the way. Any number of reapers may work at a time.

use tokio_util::sync::CancellationToken;

use super::Works;
use crate::model::RunStatus;
use crate::resume::EventMint;
use crate::store::Result;

/// Rows that one pass takes at most.
const LIMIT: u32 = 100;

pub(super) async fn run(works: Works, stop: CancellationToken) {
    let mut away = false;
    loop {
        match reap_once(&works).await {
            Ok(()) => {
                if std::mem::take(&mut away) {
                    tracing::info!("the reaper goes on");
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut away, true) {
                    tracing::warn!(%error, "the reaper cannot do its part; it keeps trying");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(works.pace.reap_every) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// One pass over everything that may be late or lost.
///
/// # Errors
/// The store could not do its part.
pub async fn reap_once(works: &Works) -> Result<()> {
    // Each is done whatever became of the one before.
    let passes = [
        reap(works).await,
        end_the_late(works).await,
        wake(works).await,
        count(works).await,
    ];
    passes.into_iter().collect()
}

async fn reap(works: &Works) -> Result<()> {
    let mint = EventMint(works.clock.clone());
    for reaped in works.store.reap(LIMIT, works.pace.max_requeues, &mint).await? {
        tracing::warn!(
            run = %reaped.run, holder = %reaped.holder, status = %reaped.status,
            "a lease ran out; the run was taken from its worker"
        );
        metrics::counter!("countersign_leases_reaped_total", "status" => reaped.status.as_str()).increment(1);
    }
    Ok(())
}

async fn end_the_late(works: &Works) -> Result<()> {
    let mint = EventMint(works.clock.clone());
    for run in works.store.expire(LIMIT, &mint).await? {
        tracing::warn!(%run, "nobody decided in time; the run has expired");
    }
    for run in works.store.cancel_requested(LIMIT, &mint).await? {
        tracing::info!(%run, "the run is cancelled, as was asked while it ran");
    }
    Ok(())
}

async fn wake(works: &Works) -> Result<()> {
    let woken = works.store.rewake(works.pace.wake_after, LIMIT).await?;
    if woken > 0 {
        tracing::info!(jobs = woken, "jobs that nobody had taken are published again");
    }
    Ok(())
}

async fn count(works: &Works) -> Result<()> {
    let counted = works.store.count_runs().await?;
    for status in [
        RunStatus::Queued,
        RunStatus::Running,
        RunStatus::WaitingForApproval,
    ] {
        let runs = counted
            .iter()
            .find(|(of, _)| *of == status)
            .map_or(0, |(_, runs)| *runs);
        metrics::gauge!("countersign_runs", "status" => status.as_str()).set(runs as f64);
    }
    metrics::gauge!("countersign_outbox_depth").set(works.store.outbox_depth().await? as f64);
    Ok(())
}
