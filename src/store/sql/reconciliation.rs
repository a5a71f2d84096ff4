//! Writes whose outcome is unknown: listed, and settled by what an operator states.

use super::rows::{all, call_columns, call_of, run_columns, run_of};
use super::runs::turn_column;
use super::{Db, Result, Sql, Tx, events, failed, step};
use crate::model::{CallRecord, NewEvent, Run, RunId, unknown_outcome};
use crate::store::Guarded;
use crate::store::row::Key;

pub(super) async fn unknown_outcomes(
    store: &Sql,
    before: Option<RunId>,
    limit: u32,
) -> Result<Vec<(Run, CallRecord)>> {
    let mut query = sqlx::QueryBuilder::<Db>::new(concat!(
        "SELECT ",
        run_columns!(),
        " FROM runs WHERE status = 'failed' AND failure_code = 'write_outcome_unknown'"
    ));
    if let Some(before) = before {
        query.push(" AND id < ").push_bind(Key(before.uuid()));
    }
    query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
    let rows = query.build().fetch_all(store.pool()).await.map_err(failed)?;
    let runs = all(&rows, run_of)?;
    let mut calls = open_calls(store, &runs).await?;
    // A run that was reconciled between the two statements has no such call any more.
    Ok(runs
        .into_iter()
        .filter_map(|run| {
            let place = calls.iter().position(|call| {
                call.run == run.id && unknown_outcome(&run, std::slice::from_ref(call)).is_some()
            })?;
            Some((run, calls.swap_remove(place)))
        })
        .collect())
}

/// The calls of these runs' newest turns that are begun and not finished.
async fn open_calls(store: &Sql, runs: &[Run]) -> Result<Vec<CallRecord>> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = sqlx::QueryBuilder::<Db>::new(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE status = 'started' AND (run_id, turn) IN ("
    ));
    let mut list = query.separated(", ");
    for run in runs {
        list.push("(").push_bind_unseparated(Key(run.id.uuid()));
        list.push_unseparated(", ")
            .push_bind_unseparated(turn_column(run.turn));
        list.push_unseparated(")");
    }
    query.push(") ORDER BY run_id, turn, position");
    let rows = query.build().fetch_all(store.pool()).await.map_err(failed)?;
    all(&rows, call_of)
}

pub(super) async fn reconcile(store: &Sql, call: &CallRecord, told: &[NewEvent]) -> Result<Guarded> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let run = sqlx::query(concat!(
        "UPDATE runs SET status = 'queued', failure_code = NULL, failure_detail = NULL, updated_at = ",
        now!(),
        " WHERE id = $1 AND turn = $2 AND status = 'failed' AND failure_code = 'write_outcome_unknown' \
         AND EXISTS (SELECT 1 FROM calls WHERE run_id = $1 AND turn = $2 AND position = $3 AND status = 'started')"
    ))
    .bind(Key(call.run.uuid()))
    .bind(turn_column(call.turn))
    .bind(i32::try_from(call.position).unwrap_or(i32::MAX))
    .execute(tx.connection())
    .await
    .map_err(failed)?
    .rows_affected();
    if run == 0 {
        return Ok(Guarded::Lost);
    }
    step::write_calls(tx.connection(), std::slice::from_ref(call)).await?;
    events::insert(tx.connection(), told).await?;
    tx.commit().await.map_err(failed)?;
    store.bell.notify_one();
    Ok(Guarded::Done)
}
