//! PostgreSQL. The verbs are those of `store/sql`, compiled here against PostgreSQL's driver; this file holds what
//! differs: the clock, row locks, and how a transaction and a pool begin.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::Notify;

pub(super) type Db = sqlx::Postgres;
pub(super) type Row = sqlx::postgres::PgRow;

/// The database's clock.
macro_rules! now {
    () => {
        "now()"
    };
}
/// So many microseconds from now.
macro_rules! ahead {
    ($micros:literal) => {
        concat!(
            "(now() + CAST(",
            $micros,
            " AS bigint) * interval '1 microsecond')"
        )
    };
}
/// So many microseconds ago.
macro_rules! ago {
    ($micros:literal) => {
        concat!(
            "(now() - CAST(",
            $micros,
            " AS bigint) * interval '1 microsecond')"
        )
    };
}
/// Holds the row until the transaction ends.
macro_rules! lock_row {
    () => {
        " FOR UPDATE"
    };
}
/// Takes the rows that nobody else has taken.
macro_rules! skip_locked {
    ($of:literal) => {
        concat!(" FOR UPDATE OF ", $of, " SKIP LOCKED")
    };
}

#[path = "../sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one source, compiled for each database")]
mod sql;

/// A store in PostgreSQL.
pub struct PostgresStore {
    pool: sqlx::Pool<Db>,
    bell: Arc<Notify>,
}

pub(super) type Sql = PostgresStore;

/// A transaction.
pub(super) struct Tx(sqlx::Transaction<'static, Db>);

impl Tx {
    pub(super) async fn begin(store: &Sql) -> Result<Self, sqlx::Error> {
        store.pool.begin().await.map(Self)
    }

    pub(super) fn connection(&mut self) -> &mut sqlx::PgConnection {
        &mut self.0
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        self.0.commit().await
    }
}

impl PostgresStore {
    /// A pool of at most so many connections; none is opened yet.
    pub fn new(options: PgConnectOptions, max_connections: u32, acquire_timeout: Duration) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(acquire_timeout)
            // A begin that is cancelled can leave its transaction open on a pooled connection; later writes would
            // then report success and vanish. The rollback takes the place of the ping, at the same cost.
            .test_before_acquire(false)
            .before_acquire(|connection, _| {
                Box::pin(async move { sqlx::raw_sql("ROLLBACK").execute(connection).await.map(|_| true) })
            })
            .connect_lazy_with(options);
        Self {
            pool,
            bell: Arc::new(Notify::new()),
        }
    }

    pub(super) fn pool(&self) -> &sqlx::Pool<Db> {
        &self.pool
    }
}
