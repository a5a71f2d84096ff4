//! A database and a store on it, and nothing else: no broker, no servers. A promise of the store that is written once is
//! played on SQLite and on PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use countersign::clock::{Clock as _, SystemClock};
use countersign::model::{
    Actor, CallRecord, Decision, DecisionId, DecisionStatus, Effect, Event, EventId, EventKind, Lease,
    NewEvent, PendingCall, Run, RunId, RunStatus, SealedState, TurnDigest, TurnOrdinal, Verdict, WorkerName,
};
use countersign::store::{
    ClaimRequest, ClaimScope, Guarded, Migration, Mint, NewRun, Opened, SharedStore, StoreSettings, connect,
};
use serde_json::{Value, json};

use crate::system::{Kind, administrate, service};

/// Plays each promise on both databases: `sqlite::promise` and `real_postgres::promise`.
macro_rules! on_both_databases {
    ($($(#[$doc:meta])* async fn $name:ident($database:ident) $body:block)*) => {
        mod promises {
            use super::*;
            $($(#[$doc])* pub async fn $name($database: std::sync::Arc<crate::store_fixture::Database>) $body)*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::store_fixture::play(crate::system::Kind::Embedded, super::promises::$name).await;
            })*
        }
        mod real_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::store_fixture::play(crate::system::Kind::Real, super::promises::$name).await;
            })*
        }
    };
}
pub(crate) use on_both_databases;

/// See the module's docs.
pub struct Database {
    pub kind: Kind,
    pub opened: Opened,
    pub store: SharedStore,
    pub url: String,
    name: Option<String>,
    _folder: tempfile::TempDir,
}

/// Makes a database, plays the promise, and drops the database again, whatever came of the promise.
pub async fn play<F, A>(kind: Kind, promise: F)
where
    F: FnOnce(Arc<Database>) -> A,
    A: Future<Output = ()> + Send + 'static,
{
    let database = Arc::new(Database::new(kind).await);
    let played = tokio::spawn(promise(Arc::clone(&database))).await;
    if let Some(name) = &database.name {
        administrate(format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }
    if let Err(error) = played {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// The ids and times of what the store tells by itself.
pub struct TestMint;

impl Mint for TestMint {
    fn event(&self, run: RunId, kind: EventKind, data: Value) -> NewEvent {
        NewEvent {
            data,
            ..event(run, kind)
        }
    }
}

/// An event of the run, happening now.
pub fn event(run: RunId, kind: EventKind) -> NewEvent {
    NewEvent {
        run: Some(run),
        ..event_of_nobody(kind)
    }
}

/// An event of no run.
pub fn event_of_nobody(kind: EventKind) -> NewEvent {
    NewEvent {
        id: SystemClock.new_id().into(),
        run: None,
        kind,
        actor: None,
        at: SystemClock.now(),
        data: json!({}),
    }
}

/// Who owns the runs here.
pub fn olga() -> Actor {
    "user:olga".parse().unwrap()
}

/// A worker of that name.
pub fn worker(name: &str) -> WorkerName {
    WorkerName::from(name.to_owned())
}

/// Some sealed state. The store neither reads nor checks it.
pub fn state(text: &str) -> SealedState {
    SealedState {
        bytes: text.as_bytes().to_vec(),
        seal: format!("sha256:{}", text.len()),
    }
}

/// A run of olga in this status, at turn 3, not created yet.
pub fn new_run(status: RunStatus) -> NewRun {
    let id: RunId = SystemClock.new_id().into();
    let now = SystemClock.now();
    let (kind, deadline) = match status {
        RunStatus::Queued => (EventKind::RunQueued, None),
        _ => (EventKind::RunWaiting, Some(now + Duration::from_secs(3_600))),
    };
    NewRun {
        run: Run {
            id,
            owner: olga(),
            configuration: "support".to_owned(),
            status,
            turn: TurnOrdinal(3),
            failure: None,
            claimed_by: None,
            epoch: 0,
            requeues: 0,
            created_at: now,
            updated_at: now,
            deadline,
        },
        state: state("{\"first\": 1}"),
        events: vec![event(id, kind)],
    }
}

/// The journal row of a call of turn 3 that is cleared and not begun.
pub fn call(run: RunId, position: u32, effect: Effect) -> CallRecord {
    let pending = PendingCall {
        id: format!("c{position}").as_str().into(),
        tool: "refund".into(),
        arguments: "{}".into(),
    };
    CallRecord::pending(run, TurnOrdinal(3), position, &pending, effect)
}

impl Database {
    async fn new(kind: Kind) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let name = format!("cs_{}", SystemClock.new_id().simple());
        let (url, name) = match kind {
            Kind::Embedded => (format!("sqlite://{}/test.db", folder.path().display()), None),
            Kind::Real => {
                administrate(format!("CREATE DATABASE {name}")).await;
                let mut url = url::Url::parse(&service("DATABASE_URL")).unwrap();
                url.set_path(&name);
                (url.to_string(), Some(name))
            }
        };
        let opened = open(&url, 10).await;
        Self {
            kind,
            store: opened.store.clone(),
            opened,
            url,
            name,
            _folder: folder,
        }
    }

    /// Another pool on the same database, as another process would have.
    pub async fn another(&self, max_connections: u32) -> Opened {
        open(&self.url, max_connections).await
    }

    /// A statement on the database, past the store.
    pub async fn sql(&self, statement: &str) {
        use sqlx::Connection as _;
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        match self.kind {
            Kind::Embedded => {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
            }
            Kind::Real => {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
            }
        }
    }

    /// So many seconds from now, as this database writes it.
    pub fn time_from_now(&self, seconds: i64) -> String {
        match self.kind {
            Kind::Embedded => format!("(unixepoch() + ({seconds})) * 1000000"),
            Kind::Real => format!("now() + interval '{seconds} seconds'"),
        }
    }

    /// A column of a run is set, past the store.
    pub async fn set(&self, run: RunId, column: &str, value: &str) {
        self.sql(&format!("UPDATE runs SET {column} = {value} WHERE id = '{run}'"))
            .await;
    }

    /// The run's lease ran out a minute ago.
    pub async fn run_out(&self, run: RunId) {
        self.set(run, "lease_until", &self.time_from_now(-60)).await;
    }

    /// A created run in this status.
    pub async fn created(&self, status: RunStatus) -> RunId {
        let new = new_run(status);
        self.store.create_run(&new).await.unwrap();
        new.run.id
    }

    /// A claim in the making, or none.
    pub async fn claim(&self, run: RunId, from: RunStatus, holder: &str) -> Option<Box<dyn ClaimScope>> {
        let request = ClaimRequest {
            run,
            from,
            worker: worker(holder),
            ttl: Duration::from_secs(60),
        };
        self.store.claim(&request).await.unwrap()
    }

    /// A queued run is this worker's now.
    pub async fn take(&self, run: RunId, holder: &str) -> Lease {
        let scope = self.claim(run, RunStatus::Queued, holder).await.unwrap();
        let lease = scope.claimed().lease.clone();
        assert_eq!(scope.commit(None, &[]).await.unwrap(), Guarded::Done);
        lease
    }

    /// A new run that `w` holds.
    pub async fn running(&self) -> (RunId, Lease) {
        let run = self.created(RunStatus::Queued).await;
        let lease = self.take(run, "w").await;
        (run, lease)
    }

    /// A recorded decision of turn 3.
    pub async fn decided(&self, run: RunId) -> DecisionId {
        let decision = Decision {
            id: SystemClock.new_id().into(),
            run,
            turn: Some(TurnOrdinal(3)),
            digest: TurnDigest::parse(&format!("sha256:{}", "0".repeat(64))),
            verdict: Verdict::Approve,
            actor: "user:ada".parse().unwrap(),
            comment: Some("fine — ok".to_owned()),
            status: DecisionStatus::Pending,
            decided_at: SystemClock.now(),
        };
        let made = NewEvent {
            id: EventId::from(decision.id.uuid()),
            data: json!({ "decision_id": decision.id }),
            ..event(run, EventKind::DecisionMade)
        };
        self.store.record_decision(&decision, &made).await.unwrap();
        assert_eq!(
            self.store.decision(decision.id).await.unwrap().as_ref(),
            Some(&decision)
        );
        decision.id
    }

    pub async fn decision_status(&self, decision: DecisionId) -> DecisionStatus {
        self.store.decision(decision).await.unwrap().unwrap().status
    }

    pub async fn status(&self, run: RunId) -> RunStatus {
        self.store.run(run).await.unwrap().unwrap().status
    }

    /// The run's events.
    pub async fn events(&self, run: RunId) -> Vec<Event> {
        self.store.events(Some(run), 0, 1_000).await.unwrap()
    }

    /// What has happened to the run.
    pub async fn kinds(&self, run: RunId) -> Vec<EventKind> {
        self.events(run)
            .await
            .iter()
            .map(|event| event.event.kind)
            .collect()
    }

    /// The outbox is empty: everything in it has been published.
    pub async fn publish_all(&self) {
        let waiting = self.store.outbox(10_000).await.unwrap();
        let ids: Vec<_> = waiting.iter().map(|event| event.event.id).collect();
        self.store.mark_published(&ids).await.unwrap();
    }
}

async fn open(url: &str, max_connections: u32) -> Opened {
    let settings = StoreSettings {
        url: url.to_owned(),
        max_connections,
        connect_timeout: Duration::from_secs(20),
    };
    connect(&settings, Migration::Apply).await.unwrap()
}
