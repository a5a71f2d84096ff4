//! What workers do beside the path: duties, the outbox, reaping, expiring, waking again.

use std::time::Duration;

use sqlx::Row as _;

use super::rows::{event_columns, event_of, run_columns, run_of};
use super::{Db, Result, Sql, Tx, events, failed, runs, step};
use crate::model::{
    Event, EventId, EventKind, Failure, FailureCode, Lease, RunId, RunStatus, WorkerName, write_under_way,
};
use crate::store::row::Key;
use crate::store::{End, Guarded, Mint, Reaped, micros};

pub(super) async fn hold_duty(store: &Sql, duty: &str, worker: &WorkerName, ttl: Duration) -> Result<bool> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let held = sqlx::query(concat!(
        "INSERT INTO duties (name, holder, held_until) VALUES ($1, $2, ",
        ahead!("$3"),
        ") ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until \
         WHERE duties.holder = excluded.holder OR duties.held_until < ",
        now!()
    ))
    .bind(duty)
    .bind(worker.as_str())
    .bind(micros(ttl))
    .execute(tx.connection())
    .await
    .map_err(failed)?
    .rows_affected();
    tx.commit().await.map_err(failed)?;
    Ok(held == 1)
}

/// One row that cannot be read must not stop the others. A newer build may be able to read it.
fn readable<T>(row: Result<T>) -> Option<T> {
    row.inspect_err(|error| {
        tracing::debug!(%error, "a row is passed over");
        metrics::counter!("countersign_rows_passed_over_total").increment(1);
    })
    .ok()
}

pub(super) async fn outbox(store: &Sql, limit: u32) -> Result<Vec<Event>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        event_columns!(),
        " FROM events WHERE published_at IS NULL ORDER BY position LIMIT $1"
    ))
    .bind(i64::from(limit))
    .fetch_all(store.pool())
    .await
    .map_err(failed)?;
    Ok(rows.iter().filter_map(|row| readable(event_of(row))).collect())
}

pub(super) async fn outbox_depth(store: &Sql) -> Result<i64> {
    sqlx::query("SELECT count(*) AS depth FROM events WHERE published_at IS NULL")
        .fetch_one(store.pool())
        .await
        .and_then(|row| row.try_get("depth"))
        .map_err(failed)
}

pub(super) async fn mark_published(store: &Sql, ids: &[EventId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    for some in ids.chunks(1_000) {
        let mut query = sqlx::QueryBuilder::<Db>::new(concat!(
            "UPDATE events SET published_at = ",
            now!(),
            " WHERE id IN ("
        ));
        let mut list = query.separated(", ");
        for id in some {
            list.push_bind(Key(id.uuid()));
        }
        query.push(")");
        query.build().execute(tx.connection()).await.map_err(failed)?;
    }
    tx.commit().await.map_err(failed)
}

pub(super) async fn reap(store: &Sql, limit: u32, max_requeues: u32, mint: &dyn Mint) -> Result<Vec<Reaped>> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let rows = sqlx::query(concat!(
        "SELECT ",
        run_columns!(),
        " FROM runs WHERE status = 'running' AND lease_until < ",
        now!(),
        " ORDER BY lease_until LIMIT $1",
        skip_locked!("runs")
    ))
    .bind(i64::from(limit))
    .fetch_all(tx.connection())
    .await
    .map_err(failed)?;
    let mut reaped = Vec::new();
    for run in rows.iter().filter_map(|row| readable(run_of(row))) {
        let Some(holder) = run.claimed_by.clone() else {
            continue;
        };
        let calls = runs::calls(tx.connection(), run.id, Some(run.turn)).await?;
        let end = match write_under_way(&calls) {
            Some(call) => End::Fail(Failure::new(
                FailureCode::WriteOutcomeUnknown,
                format!(
                    "the worker was lost while `{}` (call `{}`) was under way",
                    call.tool, call.call
                ),
            )),
            None if run.requeues >= max_requeues => End::Fail(Failure::new(
                FailureCode::RetriesExhausted,
                format!(
                    "workers were lost {} times; `lease.max_requeues` is {max_requeues}",
                    run.requeues + 1
                ),
            )),
            None => End::Release,
        };
        let lease = Lease {
            holder: holder.clone(),
            epoch: run.epoch,
        };
        if step::take_from(tx.connection(), run.id, &lease, &end).await? == Guarded::Lost {
            continue;
        }
        let expired = serde_json::json!({ "holder": holder.as_str(), "epoch": run.epoch });
        let (status, kind, data) = match &end {
            End::Fail(failure) => (
                RunStatus::Failed,
                EventKind::RunFailed,
                serde_json::json!({ "code": failure.code.as_str(), "message": failure.detail }),
            ),
            _ => (
                RunStatus::Queued,
                EventKind::RunQueued,
                serde_json::json!({ "requeue": run.requeues + 1 }),
            ),
        };
        let told = [
            mint.event(run.id, EventKind::LeaseExpired, expired),
            mint.event(run.id, kind, data),
        ];
        events::insert(tx.connection(), &told).await?;
        reaped.push(Reaped {
            run: run.id,
            holder,
            status,
        });
    }
    tx.commit().await.map_err(failed)?;
    if !reaped.is_empty() {
        store.bell.notify_one();
    }
    Ok(reaped)
}

pub(super) async fn expire(store: &Sql, limit: u32, mint: &dyn Mint) -> Result<Vec<RunId>> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let rows = sqlx::query(concat!(
        "UPDATE runs SET status = 'expired', failure_code = 'approval_expired', \
         failure_detail = 'nobody decided in time', updated_at = ",
        now!(),
        " WHERE id IN (SELECT id FROM runs WHERE status = 'waiting_for_approval' AND deadline <= ",
        now!(),
        " ORDER BY deadline LIMIT $1",
        skip_locked!("runs"),
        ") AND status = 'waiting_for_approval' RETURNING id, turn"
    ))
    .bind(i64::from(limit))
    .fetch_all(tx.connection())
    .await
    .map_err(failed)?;
    let mut expired = Vec::new();
    for row in &rows {
        let id = RunId::from(row.try_get::<Key, _>("id").map_err(failed)?.0);
        let turn: i32 = row.try_get("turn").map_err(failed)?;
        let data = serde_json::json!({ "code": FailureCode::ApprovalExpired.as_str(), "turn": turn });
        events::insert(tx.connection(), &[mint.event(id, EventKind::RunExpired, data)]).await?;
        expired.push(id);
    }
    tx.commit().await.map_err(failed)?;
    if !expired.is_empty() {
        store.bell.notify_one();
    }
    Ok(expired)
}

/// Queued and waiting runs that somebody asked to be cancelled while they ran.
pub(super) async fn cancel_requested(store: &Sql, limit: u32, mint: &dyn Mint) -> Result<Vec<RunId>> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let rows = sqlx::query(concat!(
        "UPDATE runs SET status = 'cancelled', updated_at = ",
        now!(),
        " WHERE id IN (SELECT id FROM runs WHERE status IN ('queued', 'waiting_for_approval') \
         AND cancel_requested_by IS NOT NULL LIMIT $1",
        skip_locked!("runs"),
        ") AND status IN ('queued', 'waiting_for_approval') RETURNING id, cancel_requested_by"
    ))
    .bind(i64::from(limit))
    .fetch_all(tx.connection())
    .await
    .map_err(failed)?;
    let mut cancelled = Vec::new();
    for row in &rows {
        let id = RunId::from(row.try_get::<Key, _>("id").map_err(failed)?.0);
        let by: String = row.try_get("cancel_requested_by").map_err(failed)?;
        let mut event = mint.event(id, EventKind::RunCancelled, serde_json::json!({}));
        event.actor = by.parse().ok();
        events::insert(tx.connection(), &[event]).await?;
        cancelled.push(id);
    }
    tx.commit().await.map_err(failed)?;
    if !cancelled.is_empty() {
        store.bell.notify_one();
    }
    Ok(cancelled)
}

/// The pause before a job is put back doubles each time, seven times at most.
macro_rules! waited_long_enough {
    () => {
        concat!(
            "events.published_at <= ",
            ago!("($1 * (1 << CASE WHEN events.wakes > 7 THEN 7 ELSE events.wakes END))")
        )
    };
}

pub(super) async fn rewake(store: &Sql, after: Duration, limit: u32) -> Result<u64> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let mut woken = 0;
    for statement in [
        concat!(
            "UPDATE events SET published_at = NULL, wakes = wakes + 1 WHERE position IN (SELECT events.position \
             FROM runs JOIN events ON events.run_id = runs.id AND events.kind = 'run.queued' \
             WHERE runs.status = 'queued' AND ",
            waited_long_enough!(),
            " AND NOT EXISTS (SELECT 1 FROM events AS later WHERE later.run_id = runs.id \
             AND later.kind = 'run.queued' AND later.position > events.position) ORDER BY events.position LIMIT $2)"
        ),
        // The event of a decision has the decision's id.
        concat!(
            "UPDATE events SET published_at = NULL, wakes = wakes + 1 WHERE position IN (SELECT events.position \
             FROM decisions JOIN events ON events.id = decisions.id WHERE decisions.status = 'pending' AND ",
            waited_long_enough!(),
            " ORDER BY events.position LIMIT $2)"
        ),
    ] {
        woken += sqlx::query(statement)
            .bind(micros(after))
            .bind(i64::from(limit))
            .execute(tx.connection())
            .await
            .map_err(failed)?
            .rows_affected();
    }
    tx.commit().await.map_err(failed)?;
    if woken > 0 {
        store.bell.notify_one();
    }
    Ok(woken)
}
