//! One durable step of a running segment: state, journal, end and events in one commit, guarded by the lease.

use super::rows::run_columns;
use super::runs::turn_column;
use super::{Connection, Db, Result, Sql, Tx, events, failed, guarded};
use crate::model::{CallRecord, Lease, RunId, RunStatus, Transition, next};
use crate::store::row::{Key, Stamp};
use crate::store::{End, Guarded, Renewed, Step, micros};

pub(super) async fn step(store: &Sql, run: RunId, lease: &Lease, step: &Step) -> Result<Guarded> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let written = write(tx.connection(), run, lease, step).await?;
    if written == Guarded::Done {
        tx.commit().await.map_err(failed)?;
        if !step.events.is_empty() {
            store.bell.notify_one();
        }
    }
    Ok(written)
}

fn status_after(end: Option<&End>) -> RunStatus {
    let transition = match end {
        None => return RunStatus::Running,
        Some(End::Complete) => Transition::Complete,
        Some(End::Suspend { .. }) => Transition::Suspend,
        Some(End::Fail(_)) => Transition::Fail,
        Some(End::Cancel) => Transition::Cancel,
        Some(End::Release) => Transition::Requeue,
    };
    next(RunStatus::Running, transition).expect("every end of a segment is legal for a running run")
}

pub(super) async fn write(
    connection: &mut Connection,
    run: RunId,
    lease: &Lease,
    step: &Step,
) -> Result<Guarded> {
    let (turn, state) = step
        .state
        .as_ref()
        .map(|(turn, state)| (turn_column(*turn), state))
        .unzip();
    let failure = match &step.end {
        Some(End::Fail(failure)) => Some(failure),
        _ => None,
    };
    let deadline = match &step.end {
        Some(End::Suspend { deadline }) => Some(Stamp(*deadline)),
        _ => None,
    };
    let rows = sqlx::query(concat!(
        "UPDATE runs SET status = $4, state = COALESCE($5, state), seal = COALESCE($6, seal), \
         turn = COALESCE($7, turn), failure_code = $8, failure_detail = $9, deadline = COALESCE($10, deadline), \
         claimed_by = CASE WHEN $4 = 'running' THEN claimed_by END, \
         lease_until = CASE WHEN $4 = 'running' THEN lease_until END, updated_at = ",
        now!(),
        " WHERE id = $1 AND claimed_by = $2 AND epoch = $3 AND status = 'running'"
    ))
    .bind(Key(run.uuid()))
    .bind(lease.holder.as_str())
    .bind(lease.epoch)
    .bind(status_after(step.end.as_ref()).as_str())
    .bind(state.map(|state| state.bytes.as_slice()))
    .bind(state.map(|state| state.seal.as_str()))
    .bind(turn)
    .bind(failure.map(|failure| failure.code.as_str()))
    .bind(failure.map(|failure| failure.detail.as_str()))
    .bind(deadline)
    .execute(&mut *connection)
    .await
    .map_err(failed)?
    .rows_affected();
    if rows == 0 {
        return Ok(Guarded::Lost);
    }
    write_calls(connection, &step.calls).await?;
    events::tell(connection, &step.events).await?;
    Ok(Guarded::Done)
}

/// Writes journal rows, new or changed. What was cleared of a call (its tool, its effect) never changes.
pub(super) async fn write_calls(connection: &mut Connection, calls: &[CallRecord]) -> Result<()> {
    // A statement takes at most 32,766 parameters in SQLite; a row has ten.
    for some in calls.chunks(1_000) {
        let mut query = sqlx::QueryBuilder::<Db>::new(
            "INSERT INTO calls (run_id, turn, position, call_id, tool, effect, status, result, started_at, finished_at) ",
        );
        query.push_values(some, |mut row, call| {
            row.push_bind(Key(call.run.uuid()))
                .push_bind(turn_column(call.turn))
                .push_bind(i32::try_from(call.position).unwrap_or(i32::MAX))
                .push_bind(call.call.as_str())
                .push_bind(call.tool.as_str())
                .push_bind(call.effect.as_str())
                .push_bind(call.status.as_str())
                .push_bind(call.result.as_deref().map(str::as_bytes))
                .push_bind(call.started_at.map(Stamp))
                .push_bind(call.finished_at.map(Stamp));
        });
        query.push(
            " ON CONFLICT (run_id, turn, position) DO UPDATE SET status = excluded.status, \
             result = excluded.result, started_at = excluded.started_at, finished_at = excluded.finished_at",
        );
        query.build().execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}

pub(super) async fn renew(
    store: &Sql,
    run: RunId,
    lease: &Lease,
    ttl: std::time::Duration,
) -> Result<Renewed> {
    use sqlx::Row as _;
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let row = sqlx::query(concat!(
        "UPDATE runs SET lease_until = ",
        ahead!("$4"),
        " WHERE id = $1 AND claimed_by = $2 AND epoch = $3 AND status = 'running' RETURNING cancel_requested_by, ",
        run_columns!()
    ))
    .bind(Key(run.uuid()))
    .bind(lease.holder.as_str())
    .bind(lease.epoch)
    .bind(micros(ttl))
    .fetch_optional(tx.connection())
    .await
    .map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    let Some(row) = row else { return Ok(Renewed::Lost) };
    let cancelled_by: Option<String> = row.try_get("cancel_requested_by").map_err(failed)?;
    Ok(match cancelled_by.and_then(|actor| actor.parse().ok()) {
        Some(actor) => Renewed::CancelRequested(actor),
        None => Renewed::Held,
    })
}

/// Takes an expired run from its worker.
pub(super) async fn take_from(
    connection: &mut Connection,
    run: RunId,
    lease: &Lease,
    to: &End,
) -> Result<Guarded> {
    let failure = match to {
        End::Fail(failure) => Some(failure),
        _ => None,
    };
    let rows = sqlx::query(concat!(
        "UPDATE runs SET status = $4, claimed_by = NULL, lease_until = NULL, requeues = requeues + 1, \
         failure_code = $5, failure_detail = $6, updated_at = ",
        now!(),
        " WHERE id = $1 AND claimed_by = $2 AND epoch = $3 AND status = 'running' AND lease_until < ",
        now!()
    ))
    .bind(Key(run.uuid()))
    .bind(lease.holder.as_str())
    .bind(lease.epoch)
    .bind(status_after(Some(to)).as_str())
    .bind(failure.map(|failure| failure.code.as_str()))
    .bind(failure.map(|failure| failure.detail.as_str()))
    .execute(connection)
    .await
    .map_err(failed)?
    .rows_affected();
    Ok(guarded(rows))
}
