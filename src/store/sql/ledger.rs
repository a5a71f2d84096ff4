//! The demo's ledger in SQL.

use async_trait::async_trait;
use sqlx::Row as _;

use super::rows::all;
use super::{Connection, Result, Row, Sql, Tx, failed};
use crate::store::{Ledger, LedgerEntry, LedgerError};

fn entry_of(row: &Row) -> Result<LedgerEntry> {
    Ok(LedgerEntry {
        id: row.try_get("id").map_err(failed)?,
        customer: row.try_get("customer").map_err(failed)?,
        amount_cents: row.try_get("amount_cents").map_err(failed)?,
        refunded_cents: row.try_get("refunded_cents").map_err(failed)?,
    })
}

async fn get(connection: &mut Connection, id: &str) -> Result<Option<LedgerEntry>> {
    let row =
        sqlx::query("SELECT id, customer, amount_cents, refunded_cents FROM ledger_payments WHERE id = $1")
            .bind(id)
            .fetch_optional(connection)
            .await
            .map_err(failed)?;
    row.as_ref().map(entry_of).transpose()
}

#[async_trait]
impl Ledger for Sql {
    async fn payments(&self) -> Result<Vec<LedgerEntry>> {
        let rows =
            sqlx::query("SELECT id, customer, amount_cents, refunded_cents FROM ledger_payments ORDER BY id")
                .fetch_all(self.pool())
                .await
                .map_err(failed)?;
        all(&rows, entry_of)
    }

    async fn payment(&self, id: &str) -> Result<Option<LedgerEntry>> {
        let mut connection = self.pool().acquire().await.map_err(failed)?;
        get(&mut connection, id).await
    }

    async fn refund(
        &self,
        id: &str,
        amount_cents: i64,
        key: &str,
    ) -> std::result::Result<LedgerEntry, LedgerError> {
        if amount_cents < 1 {
            return Err(LedgerError::Nothing);
        }
        let mut tx = Tx::begin(self).await.map_err(failed)?;
        let first = sqlx::query(
            "INSERT INTO ledger_refunds (key, payment_id, amount_cents) SELECT $1, id, $3 FROM ledger_payments \
             WHERE id = $2 ON CONFLICT (key) DO NOTHING",
        )
        .bind(key)
        .bind(id)
        .bind(amount_cents)
        .execute(tx.connection())
        .await
        .map_err(failed)?
        .rows_affected();
        if first == 1 {
            let taken = sqlx::query(
                "UPDATE ledger_payments SET refunded_cents = refunded_cents + $2 \
                 WHERE id = $1 AND refunded_cents + $2 <= amount_cents",
            )
            .bind(id)
            .bind(amount_cents)
            .execute(tx.connection())
            .await
            .map_err(failed)?
            .rows_affected();
            if taken == 0 {
                let entry = get(tx.connection(), id).await?;
                let left_cents = entry.map_or(0, |entry| entry.amount_cents - entry.refunded_cents);
                return Err(LedgerError::TooMuch {
                    id: id.to_owned(),
                    left_cents,
                });
            }
        }
        let entry = get(tx.connection(), id)
            .await?
            .ok_or_else(|| LedgerError::NoSuchPayment(id.to_owned()))?;
        tx.commit().await.map_err(failed)?;
        Ok(entry)
    }

    async fn put_payment(&self, entry: &LedgerEntry) -> Result<()> {
        let mut tx = Tx::begin(self).await.map_err(failed)?;
        sqlx::query(
            "INSERT INTO ledger_payments (id, customer, amount_cents, refunded_cents) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (id) DO UPDATE SET customer = excluded.customer, amount_cents = excluded.amount_cents, \
             refunded_cents = excluded.refunded_cents",
        )
        .bind(entry.id.as_str())
        .bind(entry.customer.as_str())
        .bind(entry.amount_cents)
        .bind(entry.refunded_cents)
        .execute(tx.connection())
        .await
        .map_err(failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn refunds(&self) -> Result<i64> {
        sqlx::query("SELECT count(*) AS refunds FROM ledger_refunds")
            .fetch_one(self.pool())
            .await
            .and_then(|row| row.try_get("refunds"))
            .map_err(failed)
    }
}
