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
use countersign::engine::models::{OpenAi, Scripted};
use countersign::engine::tools::HttpCaller;
use countersign::engine::{Engine, Limits};
use countersign::model::{
    Actor, Decision, DecisionId, DecisionStatus, Event, EventId, EventKind, Job, Message, NewEvent, Run,
    RunId, RunState, RunStatus, Scope, SealedState, Transcript, TurnDigest, TurnOrdinal, UserGrant, Verdict,
    WorkerName,
};
use countersign::resume::{Catalogues, Disposition, LedgerTools, Path, Taken};
use countersign::store::{
    Account, Cancelled, Directory, Group, Guarded, Migration, NewRun, Opened, Person, SharedStore,
    StoreSettings, connect,
};
use countersign::worker::{self, Handler, Pace, Stopped, Works};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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

    /// The catalogue of the tests, with the addresses of this test's servers.
    pub fn catalogue(&self) -> String {
        let tool = |name: &str, effect: &str, more: &str| {
            let url = self.tools.url("/effect");
            format!(
                "[tools.{name}]\nkind = \"http\"\nurl = \"{url}\"\ndescription = \"x\"\neffect = \"{effect}\"\n\
                 data_class = \"internal\"\ntimeout = \"20s\"\n{more}\n"
            )
        };
        let configuration = |name: &str, more: &str| {
            format!(
                "[configurations.{name}]\nmodel = \"m\"\ninstructions = \"help\"\ntoolsets = [\"all\"]\n{more}\n"
            )
        };
        [
            format!(
                "[providers.p]\nkind = \"openai\"\nbase_url = \"{}\"\nmax_retries = 1\n",
                self.chat.url()
            ),
            "[models.m]\nprovider = \"p\"\nzone = \"local\"\n".to_owned(),
            configuration("support", ""),
            configuration("two-eyes", "require_second_approver = true"),
            configuration("brief", "max_iterations = 2"),
            "[toolsets.all]\ntools = [\"look\", \"guarded_look\", \"refund\", \"tag\", \"purge\"]\n"
                .to_owned(),
            tool("look", "read_only", ""),
            tool("guarded_look", "read_only", "requires_approval = true"),
            tool("refund", "non_idempotent_write", "groups = [\"finance\"]"),
            tool("tag", "idempotent_write", ""),
            tool("purge", "non_idempotent_write", "requires_admin = true"),
        ]
        .join("\n")
    }

    /// Applies a catalogue as the next version.
    pub async fn apply_catalogue(&self, source: &str) -> i64 {
        countersign::catalogue::Catalogue::parse(source).unwrap_or_else(|problems| panic!("{problems}"));
        self.store
            .apply_catalogue(source, None, &self.event(None, EventKind::CatalogueApplied))
            .await
            .unwrap()
    }

    /// The directory is this one.
    pub async fn apply_directory(&self, directory: &Directory) {
        let event = self.event(None, EventKind::DirectoryChanged);
        self.store.replace_directory(directory, &event).await.unwrap();
    }

    /// An actor is enabled or disabled.
    pub async fn set_enabled(&self, actor: &str, enabled: bool) {
        let event = self.event(None, EventKind::DirectoryChanged);
        let _ = self
            .store
            .set_enabled(&actor.parse().unwrap(), enabled, &event)
            .await
            .unwrap();
    }

    fn event(&self, run: Option<RunId>, kind: EventKind) -> NewEvent {
        NewEvent {
            id: self.clock.new_id().into(),
            run,
            kind,
            actor: None,
            at: self.clock.now(),
            data: json!({}),
        }
    }

    /// A run of olga that waits on turn 7 with these calls: (id, tool, arguments).
    pub async fn waiting(&self, configuration: &str, calls: &[(&str, &str, &str)]) -> Waiting {
        self.waiting_of("user:olga", configuration, calls).await
    }

    /// A waiting run of somebody.
    pub async fn waiting_of(
        &self,
        owner: &str,
        configuration: &str,
        calls: &[(&str, &str, &str)],
    ) -> Waiting {
        let id: RunId = self.clock.new_id().into();
        let owner: Actor = owner.parse().unwrap();
        let transcript = Transcript::new(vec![
            Message::plain("system", "help"),
            Message::plain("user", "please"),
            Message::parse(asks(calls)).unwrap(),
        ]);
        let mut state = RunState::new(id, owner.clone(), transcript);
        state.turn = TurnOrdinal(7);
        state.iterations = 1;
        let digest = state.pending_turn().unwrap().unwrap().digest();
        let now = self.clock.now();
        let run = Run {
            id,
            owner,
            configuration: configuration.to_owned(),
            status: RunStatus::WaitingForApproval,
            turn: state.turn,
            failure: None,
            claimed_by: None,
            epoch: 0,
            requeues: 0,
            created_at: now,
            updated_at: now,
            deadline: Some(now + Duration::from_secs(3_600)),
        };
        let sealed = state.seal();
        let new = NewRun {
            run,
            state: sealed.clone(),
            events: vec![self.event(Some(id), EventKind::RunWaiting)],
        };
        self.store.create_run(&new).await.unwrap();
        Waiting {
            run: id,
            turn: TurnOrdinal(7),
            digest,
            sealed,
        }
    }

    /// A queued run of olga with this message.
    pub async fn queued(&self, configuration: &str, input: &str) -> RunId {
        let id: RunId = self.clock.new_id().into();
        let owner: Actor = "user:olga".parse().unwrap();
        let transcript = Transcript::new(vec![Message::plain("user", input)]);
        let now = self.clock.now();
        let run = Run {
            id,
            owner: owner.clone(),
            configuration: configuration.to_owned(),
            status: RunStatus::Queued,
            turn: TurnOrdinal(0),
            failure: None,
            claimed_by: None,
            epoch: 0,
            requeues: 0,
            created_at: now,
            updated_at: now,
            deadline: None,
        };
        let state = RunState::new(id, owner, transcript).seal();
        let new = NewRun {
            run,
            state,
            events: vec![self.event(Some(id), EventKind::RunQueued)],
        };
        self.store.create_run(&new).await.unwrap();
        id
    }

    /// A decision of a waiting turn, as an authenticated surface writes it.
    pub async fn decide(&self, waiting: &Waiting, verdict: Verdict, actor: &str) -> DecisionId {
        self.decide_so(
            waiting.run,
            Some(waiting.turn),
            Some(waiting.digest.clone()),
            verdict,
            actor,
            None,
        )
        .await
    }

    /// A decision with everything said.
    pub async fn decide_so(
        &self,
        run: RunId,
        turn: Option<TurnOrdinal>,
        digest: Option<TurnDigest>,
        verdict: Verdict,
        actor: &str,
        comment: Option<&str>,
    ) -> DecisionId {
        let decision = Decision {
            id: self.clock.new_id().into(),
            run,
            turn,
            digest,
            verdict,
            actor: actor.parse().unwrap(),
            comment: comment.map(str::to_owned),
            status: DecisionStatus::Pending,
            decided_at: self.clock.now(),
        };
        let event = NewEvent {
            id: EventId::from(decision.id.uuid()),
            actor: Some(decision.actor.clone()),
            data: json!({ "decision_id": decision.id }),
            ..self.event(Some(run), EventKind::DecisionMade)
        };
        self.store.record_decision(&decision, &event).await.unwrap();
        decision.id
    }

    /// A decision is taken back.
    pub async fn revoke(&self, run: RunId, decision: DecisionId) {
        let event = self.event(Some(run), EventKind::DecisionRevoked);
        assert_eq!(self.store.revoke(decision, &event).await.unwrap(), Guarded::Done);
    }

    /// A statement on the test's database.
    pub async fn sql(&self, statement: &str) {
        use sqlx::Connection as _;
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        match self.kind {
            Kind::Embedded => {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::raw_sql("PRAGMA busy_timeout = 20000")
                    .execute(&mut connection)
                    .await
                    .unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
            }
            Kind::Real => {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
            }
        }
    }

    /// Until when the run's lease holds, as the database writes it.
    pub async fn lease_until(&self, run: RunId) -> Option<String> {
        use sqlx::Connection as _;
        let query = "SELECT CAST(lease_until AS text) FROM runs WHERE CAST(id AS text) = $1";
        match self.kind {
            Kind::Embedded => {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(query)
                    .bind(run.to_string())
                    .fetch_one(&mut connection)
                    .await
                    .unwrap()
            }
            Kind::Real => {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(query)
                    .bind(run.to_string())
                    .fetch_one(&mut connection)
                    .await
                    .unwrap()
            }
        }
    }

    /// The lease has been renewed once more, from its beginning to its end.
    pub async fn renewed(&self, run: RunId) {
        // The first change may be of a renewal that was under way before.
        for _ in 0..2 {
            let before = self.lease_until(run).await;
            eventually("the lease is renewed", || async {
                (self.lease_until(run).await != before).then_some(())
            })
            .await;
        }
    }

    /// The stored state is replaced by another one.
    pub async fn put_state(&self, run: RunId, state: &SealedState) {
        let hex: String = state.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes = match self.kind {
            Kind::Embedded => format!("x'{hex}'"),
            Kind::Real => format!("'\\x{hex}'"),
        };
        self.sql(&format!(
            "UPDATE runs SET state = {bytes}, seal = '{}' WHERE id = '{run}'",
            state.seal
        ))
        .await;
    }

    /// The run's deadline is so many seconds from now.
    pub async fn set_deadline(&self, run: RunId, seconds: i64) {
        let deadline = match self.kind {
            Kind::Embedded => format!("(unixepoch() + ({seconds})) * 1000000"),
            Kind::Real => format!("now() + interval '{seconds} seconds'"),
        };
        self.sql(&format!(
            "UPDATE runs SET deadline = {deadline} WHERE id = '{run}'"
        ))
        .await;
    }

    /// The run is cancelled, or marked to be.
    pub async fn cancel(&self, run: RunId) -> Cancelled {
        let event = self.event(Some(run), EventKind::RunCancelled);
        self.store
            .cancel(run, &"user:olga".parse().unwrap(), &event)
            .await
            .unwrap()
    }

    /// Puts a body on the jobs queue, as anybody with the right to publish can.
    pub async fn publish_job(&self, body: Vec<u8>) {
        let message = Outgoing {
            id: self.clock.new_id().into(),
            destination: Destination::Jobs,
            body,
        };
        for result in self.broker.publish(vec![message]).await {
            result.unwrap();
        }
    }

    /// The next dead letter: its body, and its reason. Taken from the queue.
    async fn next_dead_letter(&self) -> (String, String) {
        match &self.embedded {
            Some(broker) => {
                let taken = *self.letters.lock().await;
                let letter = eventually("a dead letter", || async {
                    broker.dead_letters().get(taken).cloned()
                })
                .await;
                *self.letters.lock().await += 1;
                (String::from_utf8_lossy(&letter.body).into_owned(), letter.reason)
            }
            None => crate::listener::dead_letter(&self.topology.dead).await,
        }
    }

    /// The body of the next dead letter.
    pub async fn dead_letter(&self) -> String {
        self.next_dead_letter().await.0
    }

    /// The reason of the next dead letter.
    pub async fn dead_letter_reason(&self) -> String {
        self.next_dead_letter().await.1
    }

    /// Every job that is in the queue is lost.
    pub async fn lose_jobs(&self) {
        match &self.embedded {
            Some(_) => self.drain_embedded().await,
            None => crate::listener::purge(&self.topology.jobs).await,
        }
    }

    async fn drain_embedded(&self) {
        let mut consumer = self.broker.consume(100).await.unwrap();
        let delivery = tokio::time::timeout(Duration::from_secs(10), consumer.next())
            .await
            .unwrap()
            .unwrap();
        delivery.acknowledge().await;
        consumer.stop().await;
    }

    /// Works that give a lost worker up after a second.
    pub fn impatient(&self, name: &str) -> Works {
        let path = Path {
            lease_ttl: Duration::from_secs(1),
            renew_every: Duration::from_millis(300),
            ..self.path(name)
        };
        Works {
            worker: path.worker.clone(),
            stopping: path.stopping.clone(),
            ..self.works_with(Arc::new(path))
        }
    }

    /// Listens to the events that are published from now on.
    pub async fn listen(&self) -> Listener {
        match &self.embedded {
            Some(broker) => Listener::embedded(broker.subscribe_events()),
            None => Listener::rabbit(&self.topology.events).await,
        }
    }

    /// What a worker of this system needs.
    pub fn path(&self, name: &str) -> Path {
        let engine = Engine {
            http: Arc::new(HttpCaller::new(self.clock.clone()).unwrap()),
            builtin: Arc::new(LedgerTools(self.opened.ledger.clone())),
            openai: Arc::new(OpenAi::new(self.clock.clone()).unwrap()),
            scripted: Arc::new(Scripted::new()),
            limits: Limits::default(),
        };
        Path {
            store: self.store.clone(),
            catalogues: Arc::new(Catalogues::default()),
            engine,
            clock: self.clock.clone(),
            worker: WorkerName::new(
                name,
                std::process::id(),
                &self.clock.new_id().simple().to_string(),
            ),
            lease_ttl: Duration::from_secs(10),
            renew_every: Duration::from_secs(2),
            stopping: CancellationToken::new(),
        }
    }

    /// What the roles of a process of this system work with.
    pub fn works(&self, name: &str) -> Works {
        let path = self.path(name);
        Works {
            worker: path.worker.clone(),
            stopping: path.stopping.clone(),
            ..self.works_with(Arc::new(path))
        }
    }

    /// The same with another handler.
    pub fn works_with(&self, handler: Arc<dyn Handler>) -> Works {
        Works {
            store: self.store.clone(),
            broker: self.broker.clone(),
            clock: self.clock.clone(),
            worker: WorkerName::new(
                "test",
                std::process::id(),
                &self.clock.new_id().simple().to_string(),
            ),
            handler,
            stopping: CancellationToken::new(),
            pace: Pace {
                slots: 8,
                prefetch: 9,
                grace: Duration::from_secs(10),
                relay_poll: Duration::from_millis(20),
                relay_batch: 200,
                reap_every: Duration::from_millis(250),
                max_requeues: 5,
                wake_after: Duration::from_secs(60),
            },
        }
    }

    /// Delivers the job of a decision once more, as a broker does, and tells what becomes of the message.
    pub async fn redeliver(&self, run: RunId, decision: DecisionId) -> Disposition {
        let job = Job::Resume { run, decision };
        countersign::resume::handle(&self.path("again"), &job.to_bytes(), &NotTaken).await
    }

    /// Starts all roles.
    pub fn start(&self) -> Working {
        Working::start(self.works("worker"), &Role::ALL)
    }

    pub async fn run(&self, id: RunId) -> Run {
        self.store.run(id).await.unwrap().unwrap()
    }

    pub async fn state(&self, id: RunId) -> SealedState {
        self.store.run_with_state(id).await.unwrap().unwrap().1
    }

    pub async fn decision(&self, id: DecisionId) -> Decision {
        self.store.decision(id).await.unwrap().unwrap()
    }

    /// All events of a run, in order.
    pub async fn events(&self, run: RunId) -> Vec<Event> {
        self.store.events(Some(run), 0, 10_000).await.unwrap()
    }

    /// The kinds of a run's events, in order.
    pub async fn kinds(&self, run: RunId) -> Vec<&'static str> {
        self.events(run)
            .await
            .iter()
            .map(|event| event.event.kind.as_str())
            .collect()
    }

    /// The run, once it has this status.
    pub async fn reaches(&self, id: RunId, status: RunStatus) -> Run {
        eventually(&format!("run {id} is {status}"), || async {
            Some(self.run(id).await).filter(|run| run.status == status)
        })
        .await
    }

    /// What became of a decision, once something has.
    pub async fn concluded(&self, id: DecisionId) -> DecisionStatus {
        eventually("the decision is concluded", || async {
            Some(self.decision(id).await.status).filter(|status| *status != DecisionStatus::Pending)
        })
        .await
    }

    /// The decision was refused with this code, nothing was executed, the run waits as before, and it is told once.
    pub async fn refused(&self, waiting: &Waiting, decision: DecisionId, code: &str) {
        assert_eq!(
            self.concluded(decision).await,
            DecisionStatus::Refused(code.to_owned())
        );
        let run = self.run(waiting.run).await;
        assert_eq!(run.status, RunStatus::WaitingForApproval);
        assert_eq!(run.claimed_by, None);
        assert_eq!(
            self.state(waiting.run).await,
            waiting.sealed,
            "the state is the same, byte for byte"
        );
        let events = self.events(waiting.run).await;
        let told: Vec<_> = events
            .iter()
            .filter(|event| event.event.kind == EventKind::RunRefused)
            .filter(|event| event.event.data["decision_id"] == json!(decision))
            .collect();
        assert_eq!(told.len(), 1, "told once");
        assert_eq!(told[0].event.data["code"], json!(code));
        assert_eq!(
            events.last().unwrap().event.kind,
            EventKind::RunWaiting,
            "the turn is announced again"
        );
        assert!(self.tools.calls().await.is_empty(), "nothing was executed");
        assert!(self.chat.requests().await.is_empty(), "no model was asked");
    }

    /// Everything in the outbox has been published.
    pub async fn published(&self) {
        eventually("the outbox is empty", || async {
            (self.store.outbox_depth().await.unwrap() == 0).then_some(())
        })
        .await;
    }

    /// The tools that were called, in order.
    pub async fn called(&self) -> Vec<String> {
        let name = |body: &str| {
            serde_json::from_str::<Value>(body).unwrap()["tool"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        self.tools
            .calls()
            .await
            .iter()
            .map(|call| name(&call.body))
            .collect()
    }

    /// The messages that the model was given, at each request.
    pub async fn asked(&self) -> Vec<Vec<Value>> {
        let messages = |body: &str| {
            serde_json::from_str::<Value>(body).unwrap()["messages"]
                .as_array()
                .unwrap()
                .clone()
        };
        self.chat
            .requests()
            .await
            .iter()
            .map(|request| messages(&request.body))
            .collect()
    }
}

/// For a job that is handed over by the test itself: there is no message to acknowledge.
pub struct NotTaken;

#[async_trait::async_trait]
impl Taken for NotTaken {
    async fn acknowledge(&self) {}
}

/// A run that waits, as it was when it was made.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub run: RunId,
    pub turn: TurnOrdinal,
    pub digest: TurnDigest,
    pub sealed: SealedState,
}

/// Roles at work.
pub struct Working {
    pub stop: CancellationToken,
    task: JoinHandle<Stopped>,
}

impl Working {
    pub fn start(works: Works, roles: &[Role]) -> Self {
        let stop = CancellationToken::new();
        let (roles, token) = (roles.iter().copied().collect(), stop.clone());
        let task = tokio::spawn(async move { worker::work(works, &roles, token).await.unwrap() });
        Self { stop, task }
    }

    /// The first signal, and how it ended.
    pub async fn end(self) -> Stopped {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    /// Gone, as if the process had been killed.
    pub async fn kill(self) {
        self.task.abort();
        self.task.await.ok();
    }
}

/// The broker's settings for a test.
pub fn rabbit(topology: &Topology) -> RabbitMqSettings {
    let mut settings = RabbitMqSettings::new(service("AMQP_URL"));
    settings.topology = topology.clone();
    settings
}

/// The text of an assistant's message that asks for these calls: (id, tool, arguments).
pub fn asks(calls: &[(&str, &str, &str)]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, tool, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": tool, "arguments": arguments } })
        })
        .collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls }).to_string()
}

fn person(id: &str, admin: bool, groups: &[&str]) -> Person {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Person {
        id: id.to_owned(),
        name: id.to_owned(),
        admin,
        enabled: true,
        groups,
    }
}

fn account(id: &str, scopes: &[Scope]) -> Account {
    let scopes = scopes.iter().copied().collect();
    Account {
        id: id.to_owned(),
        name: id.to_owned(),
        enabled: true,
        scopes,
    }
}

/// ada is an admin, gina may decide for others, olga owns the runs, paul may nothing; ada and olga are in finance.
pub fn people() -> Directory {
    Directory {
        people: vec![
            person("ada", true, &["finance"]),
            person("gina", false, &["approvers"]),
            person("olga", false, &["finance"]),
            person("paul", false, &[]),
        ],
        groups: vec![
            Group {
                id: "approvers".to_owned(),
                grants: BTreeSet::from([UserGrant::AgentApprove]),
            },
            Group {
                id: "finance".to_owned(),
                grants: BTreeSet::new(),
            },
        ],
        accounts: vec![
            account("sweeper", &[Scope::AgentApprove]),
            account("reader", &[Scope::ConfigurationUse]),
        ],
    }
}
