//! SQLite. The verbs are those of `store/sql`, compiled here against SQLite's driver; this file holds what
//! differs: the clock, and that there is one writer at a time.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};

pub(super) type Db = sqlx::Sqlite;
pub(super) type Row = sqlx::sqlite::SqliteRow;

/// The clock, in microseconds.
macro_rules! now {
    () => {
        "CAST(unixepoch('subsec') * 1000000 AS integer)"
    };
}
/// So many microseconds from now.
macro_rules! ahead {
    ($micros:literal) => {
        concat!("(CAST(unixepoch('subsec') * 1000000 AS integer) + ", $micros, ")")
    };
}
/// So many microseconds ago.
macro_rules! ago {
    ($micros:literal) => {
        concat!("(CAST(unixepoch('subsec') * 1000000 AS integer) - ", $micros, ")")
    };
}
/// There is one writer at a time, so the row is held already.
macro_rules! lock_row {
    () => {
        ""
    };
}
/// There is one writer at a time, so there is nothing to skip.
macro_rules! skip_locked {
    ($of:literal) => {
        ""
    };
}

#[path = "../sql/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one source, compiled for each database")]
mod sql;

/// A store in one SQLite file.
pub struct SqliteStore {
    pool: sqlx::Pool<Db>,
    bell: Arc<Notify>,
    /// Writers of this process take turns here, in order, rather than polling the file's lock.
    writer: Arc<Mutex<()>>,
}

pub(super) type Sql = SqliteStore;

/// A writing transaction, and the turn that it has.
pub(super) struct Tx {
    inner: sqlx::Transaction<'static, Db>,
    _turn: OwnedMutexGuard<()>,
}

impl Tx {
    pub(super) async fn begin(store: &Sql) -> Result<Self, sqlx::Error> {
        let turn = Arc::clone(&store.writer).lock_owned().await;
        // A deferred transaction that turns into a writer fails at once where another has written meanwhile.
        let inner = store.pool.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Self { inner, _turn: turn })
    }

    pub(super) fn connection(&mut self) -> &mut sqlx::SqliteConnection {
        &mut self.inner
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        self.inner.commit().await
    }
}

impl SqliteStore {
    /// A pool over the file, which is created where it is missing; nothing is opened yet.
    pub fn new(options: SqliteConnectOptions, max_connections: u32, acquire_timeout: Duration) -> Self {
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // WAL with NORMAL could lose the last commits with the machine's power; a claim must not be lost.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(30))
            .foreign_keys(true);
        let pool = SqlitePoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(acquire_timeout)
            .connect_lazy_with(options);
        Self {
            pool,
            bell: Arc::new(Notify::new()),
            writer: Arc::new(Mutex::new(())),
        }
    }

    pub(super) fn pool(&self) -> &sqlx::Pool<Db> {
        &self.pool
    }
}
