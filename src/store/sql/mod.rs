//! The verbs in SQL, one source for both databases: this folder is compiled once under `postgres` and once
//! under `sqlite`, against the driver and the dialect that stand beside it there. Statements that both databases
//! take are written once; what differs comes from the dialect's macros (`now!`, `ahead!`, `ago!`, `lock_row!`, `skip_locked!`).

mod attempts;
mod catalogue;
mod claim;
mod decisions;
mod directory;
mod events;
mod ledger;
mod reconciliation;
mod rows;
mod runs;
mod step;
mod verbs;
mod workers;

use super::{Db, Row, Sql, Tx};
use crate::store::{Guarded, Result, StoreError};

type Connection = <Db as sqlx::Database>::Connection;

/// What a failed statement means to the caller.
fn failed(error: sqlx::Error) -> StoreError {
    crate::store::connect::classify(error)
}

fn guarded(rows: u64) -> Guarded {
    if rows == 0 { Guarded::Lost } else { Guarded::Done }
}
