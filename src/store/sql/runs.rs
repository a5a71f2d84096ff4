//! Runs: created, read, listed, cancelled.

use sqlx::Row as _;

use super::rows::{all, call_columns, call_of, run_columns, run_of, state_of};
use super::{Connection, Db, Result, Sql, Tx, events, failed};
use crate::model::{Actor, CallRecord, NewEvent, Run, RunId, RunStatus, SealedState, TurnOrdinal};
use crate::store::row::{Key, Stamp};
use crate::store::{Cancelled, NewRun, RunFilter};

pub(super) async fn create(store: &Sql, new: &NewRun) -> Result<()> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let run = &new.run;
    sqlx::query(
        "INSERT INTO runs (id, owner, configuration, status, turn, state, seal, created_at, updated_at, deadline) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING",
    )
    .bind(Key(run.id.uuid()))
    .bind(run.owner.to_string())
    .bind(run.configuration.as_str())
    .bind(run.status.as_str())
    .bind(turn_column(run.turn))
    .bind(new.state.bytes.as_slice())
    .bind(new.state.seal.as_str())
    .bind(Stamp(run.created_at))
    .bind(Stamp(run.updated_at))
    .bind(run.deadline.map(Stamp))
    .execute(tx.connection())
    .await
    .map_err(failed)?;
    events::insert(tx.connection(), &new.events).await?;
    tx.commit().await.map_err(failed)?;
    store.bell.notify_one();
    Ok(())
}

/// A turn as a column holds it. Ordinals count turns of one run and stay far below the limit.
pub(super) fn turn_column(turn: TurnOrdinal) -> i32 {
    i32::try_from(turn.0).unwrap_or(i32::MAX)
}

pub(super) async fn get(store: &Sql, id: RunId) -> Result<Option<Run>> {
    let row = sqlx::query(concat!("SELECT ", run_columns!(), " FROM runs WHERE id = $1"))
        .bind(Key(id.uuid()))
        .fetch_optional(store.pool())
        .await
        .map_err(failed)?;
    row.as_ref().map(run_of).transpose()
}

pub(super) async fn get_with_state(store: &Sql, id: RunId) -> Result<Option<(Run, SealedState)>> {
    let row = sqlx::query(concat!(
        "SELECT ",
        run_columns!(),
        ", state, seal FROM runs WHERE id = $1"
    ))
    .bind(Key(id.uuid()))
    .fetch_optional(store.pool())
    .await
    .map_err(failed)?;
    row.as_ref()
        .map(|row| Ok((run_of(row)?, state_of(row)?)))
        .transpose()
}

pub(super) async fn list(store: &Sql, filter: &RunFilter) -> Result<Vec<Run>> {
    let mut query =
        sqlx::QueryBuilder::<Db>::new(concat!("SELECT ", run_columns!(), " FROM runs WHERE 1 = 1"));
    if let Some(status) = filter.status {
        query.push(" AND status = ").push_bind(status.as_str());
    }
    if let Some(owner) = &filter.owner {
        query.push(" AND owner = ").push_bind(owner.to_string());
    }
    if let Some(before) = filter.before {
        query.push(" AND id < ").push_bind(Key(before.uuid()));
    }
    query
        .push(" ORDER BY id DESC LIMIT ")
        .push_bind(i64::from(filter.limit));
    let rows = query.build().fetch_all(store.pool()).await.map_err(failed)?;
    all(&rows, run_of)
}

pub(super) async fn count(store: &Sql) -> Result<Vec<(RunStatus, i64)>> {
    let rows = sqlx::query("SELECT status, count(*) AS runs FROM runs WHERE status IN ('queued', 'running', 'waiting_for_approval') GROUP BY status")
        .fetch_all(store.pool())
        .await
        .map_err(failed)?;
    let count = |row: &super::Row| {
        let status: String = row.try_get("status").map_err(failed)?;
        let runs: i64 = row.try_get("runs").map_err(failed)?;
        Ok(RunStatus::parse(&status).map(|status| (status, runs)))
    };
    Ok(all(&rows, count)?.into_iter().flatten().collect())
}

pub(super) async fn calls(
    connection: &mut Connection,
    run: RunId,
    turn: Option<TurnOrdinal>,
) -> Result<Vec<CallRecord>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE run_id = $1 AND ($2 < 0 OR turn = $2) ORDER BY turn, position"
    ))
    .bind(Key(run.uuid()))
    .bind(turn.map_or(-1, turn_column))
    .fetch_all(connection)
    .await
    .map_err(failed)?;
    all(&rows, call_of)
}

pub(super) async fn cancel(store: &Sql, run: RunId, by: &Actor, event: &NewEvent) -> Result<Cancelled> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    // Locked, so that what is read is what is changed, though a worker may be about to end or to lose the run.
    let row = sqlx::query(concat!(
        "SELECT ",
        run_columns!(),
        " FROM runs WHERE id = $1",
        lock_row!()
    ))
    .bind(Key(run.uuid()))
    .fetch_optional(tx.connection())
    .await
    .map_err(failed)?;
    let Some(row) = row else {
        return Ok(Cancelled::NoSuchRun);
    };
    let cancelled = match run_of(&row)?.status {
        RunStatus::Queued | RunStatus::WaitingForApproval => {
            sqlx::query(concat!(
                "UPDATE runs SET status = 'cancelled', updated_at = ",
                now!(),
                " WHERE id = $1"
            ))
            .bind(Key(run.uuid()))
            .execute(tx.connection())
            .await
            .map_err(failed)?;
            events::insert(tx.connection(), std::slice::from_ref(event)).await?;
            Cancelled::Now
        }
        RunStatus::Running => {
            sqlx::query("UPDATE runs SET cancel_requested_by = $2 WHERE id = $1")
                .bind(Key(run.uuid()))
                .bind(by.to_string())
                .execute(tx.connection())
                .await
                .map_err(failed)?;
            Cancelled::Requested
        }
        ended => return Ok(Cancelled::TooLate(ended)),
    };
    tx.commit().await.map_err(failed)?;
    store.bell.notify_one();
    Ok(cancelled)
}
