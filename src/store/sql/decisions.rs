//! Decisions: recorded, read, refused, revoked.

use super::rows::{all, decision_columns, decision_of};
use super::runs::turn_column;
use super::{Connection, Result, Sql, Tx, events, failed, guarded};
use crate::model::{Decision, DecisionId, NewEvent, RunId, TurnOrdinal};
use crate::store::Guarded;
use crate::store::row::{Key, Stamp};

pub(super) async fn record(store: &Sql, decision: &Decision, event: &NewEvent) -> Result<()> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    sqlx::query(
        "INSERT INTO decisions (id, run_id, turn, digest, verdict, actor, comment, status, decided_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8) ON CONFLICT (id) DO NOTHING",
    )
    .bind(Key(decision.id.uuid()))
    .bind(Key(decision.run.uuid()))
    .bind(decision.turn.map(turn_column))
    .bind(decision.digest.as_ref().map(ToString::to_string))
    .bind(decision.verdict.as_str())
    .bind(decision.actor.to_string())
    .bind(decision.comment.as_deref())
    .bind(Stamp(decision.decided_at))
    .execute(tx.connection())
    .await
    .map_err(failed)?;
    events::insert(tx.connection(), std::slice::from_ref(event)).await?;
    tx.commit().await.map_err(failed)?;
    store.bell.notify_one();
    Ok(())
}

pub(super) async fn get(store: &Sql, id: DecisionId) -> Result<Option<Decision>> {
    let row = sqlx::query(concat!(
        "SELECT ",
        decision_columns!(),
        " FROM decisions WHERE id = $1"
    ))
    .bind(Key(id.uuid()))
    .fetch_optional(store.pool())
    .await
    .map_err(failed)?;
    row.as_ref().map(decision_of).transpose()
}

pub(super) async fn of_run(store: &Sql, run: RunId) -> Result<Vec<Decision>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        decision_columns!(),
        " FROM decisions WHERE run_id = $1 ORDER BY id"
    ))
    .bind(Key(run.uuid()))
    .fetch_all(store.pool())
    .await
    .map_err(failed)?;
    all(&rows, decision_of)
}

pub(super) async fn standing(store: &Sql, run: RunId, turn: TurnOrdinal) -> Result<Option<Decision>> {
    let row = sqlx::query(concat!(
        "SELECT ",
        decision_columns!(),
        " FROM decisions WHERE run_id = $1 AND turn = $2 AND status = 'standing'"
    ))
    .bind(Key(run.uuid()))
    .bind(turn_column(turn))
    .fetch_optional(store.pool())
    .await
    .map_err(failed)?;
    row.as_ref().map(decision_of).transpose()
}

/// A pending decision is refused with a code.
pub(super) async fn mark_refused(connection: &mut Connection, id: DecisionId, code: &str) -> Result<Guarded> {
    sqlx::query(
        "UPDATE decisions SET status = 'refused', refusal_code = $2 WHERE id = $1 AND status = 'pending'",
    )
    .bind(Key(id.uuid()))
    .bind(code)
    .execute(connection)
    .await
    .map(|done| guarded(done.rows_affected()))
    .map_err(failed)
}

/// A pending decision stands now.
pub(super) async fn mark_standing(connection: &mut Connection, id: DecisionId) -> Result<Guarded> {
    // The second half is what the unique index would say; asked here so that losing is no error.
    sqlx::query(
        "UPDATE decisions SET status = 'standing' WHERE id = $1 AND status = 'pending' AND NOT EXISTS \
         (SELECT 1 FROM decisions AS other WHERE other.run_id = decisions.run_id \
          AND other.turn = decisions.turn AND other.status = 'standing')",
    )
    .bind(Key(id.uuid()))
    .execute(connection)
    .await
    .map(|done| guarded(done.rows_affected()))
    .map_err(failed)
}

pub(super) async fn refuse(store: &Sql, id: DecisionId, code: &str, told: &[NewEvent]) -> Result<Guarded> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let refused = mark_refused(tx.connection(), id, code).await?;
    events::tell(tx.connection(), told).await?;
    tx.commit().await.map_err(failed)?;
    store.bell.notify_one();
    Ok(refused)
}

pub(super) async fn revoke(store: &Sql, id: DecisionId, event: &NewEvent) -> Result<Guarded> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let rows = sqlx::query("UPDATE decisions SET status = 'revoked' WHERE id = $1 AND status = 'pending'")
        .bind(Key(id.uuid()))
        .execute(tx.connection())
        .await
        .map_err(failed)?
        .rows_affected();
    if rows == 1 {
        events::insert(tx.connection(), std::slice::from_ref(event)).await?;
        tx.commit().await.map_err(failed)?;
    }
    Ok(guarded(rows))
}
