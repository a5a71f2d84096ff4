//! A whole system for one test: its own database, its own queues, a tool server and a model server that are processes of
//! their own, people and a catalogue. A case written once is played on SQLite with the embedded broker and on
//! PostgreSQL with RabbitMQ.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign::broker::{
    Broker, Destination, EmbeddedBroker, Outgoing, RabbitMq, RabbitMqSettings, Topology,
};
use countersign::clock::{Clock, SystemClock};
use countersign::config::Role;
use countersign::engine::models::{Anthropic, OpenAi, Scripted};
use countersign::engine::tools::HttpCaller;
use countersign::engine::{Engine, Limits};
use countersign::model::{
    Actor, Decision, DecisionId, DecisionStatus, Event, EventId, EventKind, Job, Message, NewEvent, Run,
    RunId, RunState, RunStatus, Scope, SealedState, Transcript, TurnDigest, TurnOrdinal, UserGrant, Verdict,
    WorkerName,
};
use countersign::resume::{Attempts, Catalogues, Disposition, LedgerTools, Path, Taken};
use countersign::store::{
    Account, Cancelled, Directory, Group, Guarded, Migration, NewRun, Opened, Person, SharedStore,
    StoreSettings, connect,
};
use countersign::worker::{self, Handler, Pace, Stopped, Works};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod declared;
mod scenes;
mod tampering;
mod watching;
mod workers;

pub use declared::people;
pub use scenes::{Waiting, asks};
pub use workers::{Working, rabbit};

use crate::listener::Listener;
use crate::servers::{ChatServer, ToolServer};

/// On what a case is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SQLite and the embedded broker.
    Embedded,
    /// PostgreSQL and RabbitMQ.
    Real,
}

/// Plays each case on both kinds: `embedded::case` and `real_services::case`.
macro_rules! on_both {
    ($($(#[$doc:meta])* async fn $name:ident($system:ident) $body:block)*) => {
        mod cases {
            use super::*;
            $($(#[$doc])* pub async fn $name($system: std::sync::Arc<crate::system::System>) $body)*
        }
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::system::play(crate::system::Kind::Embedded, super::cases::$name).await;
            })*
        }
        mod real_services {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::system::play(crate::system::Kind::Real, super::cases::$name).await;
            })*
        }
    };
}
pub(crate) use on_both;

/// Sets a system up, plays the case, and takes the system down again, whatever came of the case.
pub async fn play<F, A>(kind: Kind, case: F)
where
    F: FnOnce(Arc<System>) -> A,
    A: Future<Output = ()> + Send + 'static,
{
    let system = Arc::new(System::new(kind).await);
    let played = tokio::spawn(case(Arc::clone(&system))).await;
    system.tear_down().await;
    if let Err(error) = played {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// Waits until the condition gives something. Fails after 30 s.
pub async fn eventually<T, F, A>(what: &str, mut condition: F) -> T
where
    F: FnMut() -> A,
    A: Future<Output = Option<T>>,
{
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what}: not within 30 s");
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

/// See the module's docs.
pub struct System {
    pub kind: Kind,
    pub store: SharedStore,
    pub opened: Opened,
    pub broker: Arc<dyn Broker>,
    pub embedded: Option<Arc<EmbeddedBroker>>,
    pub topology: Topology,
    pub tools: ToolServer,
    pub chat: ChatServer,
    pub clock: Arc<dyn Clock>,
    /// The database's URL.
    pub url: String,
    database: Option<String>,
    folder: tempfile::TempDir,
    /// How many dead letters have been looked at.
    letters: tokio::sync::Mutex<usize>,
}

/// What `DATABASE_URL` or `AMQP_URL` holds.
#[expect(
    clippy::disallowed_methods,
    reason = "the runner of the tests tells where the services are"
)]
pub fn service(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run the tests through tests/run"))
}

/// A statement on the service's own database.
pub async fn administrate(statement: String) {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(&service("DATABASE_URL"))
        .await
        .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

impl System {
    async fn new(kind: Kind) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let name = format!("cs_{}", clock.new_id().simple());
        let (url, database) = match kind {
            Kind::Embedded => (
                format!("sqlite://{}", folder.path().join("test.db").display()),
                None,
            ),
            Kind::Real => {
                administrate(format!("CREATE DATABASE {name}")).await;
                let mut url = url::Url::parse(&service("DATABASE_URL")).unwrap();
                url.set_path(&name);
                (url.to_string(), Some(name.clone()))
            }
        };
        let settings = StoreSettings {
            url: url.clone(),
            max_connections: 12,
            connect_timeout: Duration::from_secs(20),
        };
        let opened = connect(&settings, Migration::Apply).await.unwrap();
        let topology = Topology::named(&name);
        let (broker, embedded): (Arc<dyn Broker>, _) = match kind {
            Kind::Embedded => {
                let broker = Arc::new(EmbeddedBroker::new());
                (broker.clone(), Some(broker))
            }
            Kind::Real => (RabbitMq::connect(rabbit(&topology)).await.unwrap(), None),
        };
        let (tools, chat) = tokio::join!(ToolServer::start(), ChatServer::start());
        let system = Self {
            kind,
            store: opened.store.clone(),
            opened,
            broker,
            embedded,
            topology,
            tools,
            chat,
            clock,
            url,
            database,
            folder,
            letters: tokio::sync::Mutex::new(0),
        };
        system.apply_directory(&people()).await;
        system.apply_catalogue(&system.catalogue()).await;
        system
    }

    async fn tear_down(&self) {
        self.broker.close().await;
        if let Some(name) = &self.database {
            administrate(format!("DROP DATABASE {name} WITH (FORCE)")).await;
            let connection =
                lapin::Connection::connect(&service("AMQP_URL"), lapin::ConnectionProperties::default())
                    .await;
            let channel = connection.unwrap().create_channel().await.unwrap();
            for queue in [&self.topology.jobs, &self.topology.dead] {
                channel
                    .queue_delete(
                        queue.as_str().into(),
                        lapin::options::QueueDeleteOptions::default(),
                    )
                    .await
                    .ok();
            }
            for exchange in [&self.topology.jobs, &self.topology.dead, &self.topology.events] {
                let options = lapin::options::ExchangeDeleteOptions::default();
                channel
                    .exchange_delete(exchange.as_str().into(), options)
                    .await
                    .ok();
            }
        }
    }

    /// A folder that ends with the test.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}
