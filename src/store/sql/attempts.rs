//! Attempts at jobs that came before: counted before the work, forgotten once it has ended.

use sqlx::Row as _;

use super::{Result, Sql, Tx, failed};
use crate::model::Job;
use crate::store::row::Key;

pub(super) async fn begin(store: &Sql, job: &Job) -> Result<u32> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let row = sqlx::query(concat!(
        "INSERT INTO attempts (job, attempts, begun_at) VALUES ($1, 1, ",
        now!(),
        ") ON CONFLICT (job) DO UPDATE SET attempts = attempts.attempts + 1, begun_at = excluded.begun_at \
         RETURNING attempts"
    ))
    .bind(Key(job.key()))
    .fetch_one(tx.connection())
    .await
    .map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    let attempts: i32 = row.try_get("attempts").map_err(failed)?;
    Ok(attempts.unsigned_abs())
}

pub(super) async fn end(store: &Sql, job: &Job) -> Result<()> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    sqlx::query("DELETE FROM attempts WHERE job = $1")
        .bind(Key(job.key()))
        .execute(tx.connection())
        .await
        .map_err(failed)?;
    tx.commit().await.map_err(failed)
}
