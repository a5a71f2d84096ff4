//! How a store is opened: which database the URL means, waiting for one that is not there yet, refusing one that
//! is not ours to use, and bringing its tables up to this build.

use std::borrow::Cow;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::time::Instant;

use super::postgres::PostgresStore;
use super::sqlite::SqliteStore;
use super::{Ledger, SharedStore, StoreError};
use crate::retry::Pauses;

static POSTGRES: Migrator = sqlx::migrate!("./migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("./migrations/sqlite");

/// Where the applied migrations are kept.
const MIGRATIONS_TABLE: &str = "countersign_migrations";

/// Where the database is and how it is used.
#[derive(Clone)]
pub struct StoreSettings {
    /// `postgres://…` or `sqlite://…`; may hold a password and is never shown.
    pub url: String,
    /// The most connections of this process.
    pub max_connections: u32,
    /// How long to wait for a database that is not there yet.
    pub connect_timeout: Duration,
}

/// What to do about tables that are behind this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// Bring them up.
    Apply,
    /// Refuse.
    Require,
}

/// An open store and the ledger in the same database.
#[derive(Clone)]
pub struct Opened {
    /// The store.
    pub store: SharedStore,
    /// The demo's ledger.
    pub ledger: Arc<dyn Ledger>,
}

/// The database could not be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Waiting does not help; the text says what is wrong and what to do.
    #[error("{0}")]
    Misconfigured(String),
    /// Not reachable within the time given.
    #[error("the database at {place} could not be reached within {} s: {reason}", waited.as_secs())]
    Unreachable {
        /// Host and port, or the file; never a password.
        place: String,
        /// How long it was waited for.
        waited: Duration,
        /// What the last attempt said.
        reason: String,
    },
}

enum Target {
    Postgres(Box<PgConnectOptions>),
    Sqlite(Box<SqliteConnectOptions>),
}

fn target(url: &str) -> Result<Target, ConnectError> {
    let wrong =
        |error: sqlx::Error| ConnectError::Misconfigured(format!("`database.url` cannot be read: {error}"));
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => {
            let options = PgConnectOptions::from_str(url)
                .map_err(wrong)?
                .application_name("countersign");
            Ok(Target::Postgres(Box::new(options)))
        }
        Some("sqlite") => Ok(Target::Sqlite(Box::new(
            SqliteConnectOptions::from_str(url).map_err(wrong)?,
        ))),
        _ => Err(ConnectError::Misconfigured(
            "`database.url` must begin with `postgres://` or `sqlite://`".to_owned(),
        )),
    }
}

/// Opens the store. Waits for a database that does not answer yet, with one log line for each attempt.
///
/// # Errors
/// The URL, the password or the database's name is wrong, its tables are behind or ahead of this build, or it did not
/// answer in time.
pub async fn connect(settings: &StoreSettings, migration: Migration) -> Result<Opened, ConnectError> {
    match target(&settings.url)? {
        Target::Postgres(options) => {
            let place = format!("{}:{}", options.get_host(), options.get_port());
            let acquire = Duration::from_secs(5);
            let store = PostgresStore::new(*options, settings.max_connections, acquire);
            reach(&place, settings.connect_timeout, || async {
                store.pool().acquire().await.map(drop)
            })
            .await?;
            let applied = applied_versions(
                sqlx::query_scalar("SELECT version FROM countersign_migrations WHERE success")
                    .fetch_all(store.pool())
                    .await,
            )?;
            if needs_migration(&POSTGRES, &applied, migration)? {
                renamed(&POSTGRES).run(store.pool()).await.map_err(not_migrated)?;
            }
            let store = Arc::new(store);
            Ok(Opened {
                store: store.clone(),
                ledger: store,
            })
        }
        Target::Sqlite(options) => {
            let file = options.get_filename().to_owned();
            let place = file.display().to_string();
            if let Some(folder) = file.parent()
                && !folder.as_os_str().is_empty()
                && !folder.is_dir()
            {
                return Err(ConnectError::Misconfigured(format!(
                    "the folder of the database file {place} does not exist; create it first"
                )));
            }
            let store = SqliteStore::new(*options, settings.max_connections, Duration::from_secs(30));
            reach(&place, settings.connect_timeout, || async {
                store.pool().acquire().await.map(drop)
            })
            .await?;
            let applied = applied_versions(
                sqlx::query_scalar("SELECT version FROM countersign_migrations WHERE success")
                    .fetch_all(store.pool())
                    .await,
            )?;
            if needs_migration(&SQLITE, &applied, migration)? {
                renamed(&SQLITE).run(store.pool()).await.map_err(not_migrated)?;
            }
            let store = Arc::new(store);
            Ok(Opened {
                store: store.clone(),
                ledger: store,
            })
        }
    }
}

fn renamed(migrator: &'static Migrator) -> Migrator {
    let mut renamed = Migrator::with_migrations(migrator.iter().cloned().collect());
    renamed.table_name = Cow::Borrowed(MIGRATIONS_TABLE);
    renamed
}

fn not_migrated(error: sqlx::migrate::MigrateError) -> ConnectError {
    ConnectError::Misconfigured(format!("the database could not be migrated: {error}"))
}

/// The migrations of the database; none for one that has none of our tables.
fn applied_versions(read: Result<Vec<i64>, sqlx::Error>) -> Result<Vec<i64>, ConnectError> {
    match read {
        Ok(versions) => Ok(versions),
        Err(sqlx::Error::Database(error))
            if error.code().as_deref() == Some("42P01") || error.message().contains("no such table") =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(ConnectError::Misconfigured(format!(
            "the database cannot be read: {error}"
        ))),
    }
}

/// Whether a migration of this build is missing. One that this build does not know is a younger build's.
fn needs_migration(migrator: &Migrator, applied: &[i64], migration: Migration) -> Result<bool, ConnectError> {
    let known: Vec<i64> = migrator.iter().map(|migration| migration.version).collect();
    if let Some(newer) = applied.iter().find(|version| !known.contains(version)) {
        return Err(ConnectError::Misconfigured(format!(
            "the database has migration {newer}, which is newer than this build; use a newer build"
        )));
    }
    let missing = known.iter().find(|version| !applied.contains(version));
    match (missing, migration) {
        (None, _) => Ok(false),
        (Some(_), Migration::Apply) => Ok(true),
        (Some(missing), Migration::Require) => Err(ConnectError::Misconfigured(format!(
            "the database lacks migration {missing}, which this build needs; run `countersign migrate` first"
        ))),
    }
}

/// Tries until the database answers, waiting does not help any more, or the time is over.
async fn reach<F, A>(place: &str, timeout: Duration, mut attempt: F) -> Result<(), ConnectError>
where
    F: FnMut() -> A,
    A: Future<Output = Result<(), sqlx::Error>>,
{
    let begun = Instant::now();
    let mut pauses = Pauses::new(Duration::from_millis(250), Duration::from_secs(5));
    loop {
        let error = match attempt().await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !passes(&error) {
            return Err(ConnectError::Misconfigured(format!(
                "the database at {place} refuses: {error}"
            )));
        }
        let pause = pauses.next_pause();
        if begun.elapsed() + pause > timeout {
            let reason = error.to_string();
            return Err(ConnectError::Unreachable {
                place: place.to_owned(),
                waited: timeout,
                reason,
            });
        }
        tracing::warn!(%place, %error, "the database does not answer yet; trying again");
        tokio::time::sleep(pause).await;
    }
}

/// What a failed statement means to the caller.
pub(super) fn classify(error: sqlx::Error) -> StoreError {
    if passes(&error) {
        StoreError::Unavailable(error)
    } else {
        StoreError::Failed(error)
    }
}

/// Whether trying again can help.
fn passes(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| is_transient_code(&code)),
        _ => false,
    }
}

fn is_transient_code(code: &str) -> bool {
    match code {
        // PostgreSQL: shutting down, starting, terminated, too many connections, deadlock, serialisation, read-only
        // during a fail-over, and a cached plan that another build's migration has outdated.
        "57P01" | "57P02" | "57P03" | "53300" | "53400" | "40001" | "40P01" | "25006" | "0A000" => true,
        code if code.len() == 5 => code.starts_with("08") || code.starts_with("58"),
        // SQLite: busy and locked, in all their extended forms.
        code => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_have_the_same_migrations() {
        let names = |migrator: &Migrator| {
            migrator
                .iter()
                .map(|m| (m.version, m.description.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&POSTGRES), names(&SQLITE));
    }

    #[test]
    fn other_databases_are_refused_by_name() {
        for url in ["mysql://x", "nonsense", ""] {
            assert!(
                matches!(target(url), Err(ConnectError::Misconfigured(_))),
                "{url}"
            );
        }
    }

    #[test]
    fn what_passes_is_tried_again() {
        for code in ["57P01", "08006", "40001", "5", "261", "517", "6"] {
            assert!(is_transient_code(code), "{code}");
        }
        for code in ["23505", "42P01", "28P01", "3D000", "19", "1"] {
            assert!(!is_transient_code(code), "{code}");
        }
    }
}
