//! Workers of the system, in this process.

use super::*;

impl System {
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

    /// What a worker of this system needs.
    pub fn path(&self, name: &str) -> Path {
        let engine = Engine {
            http: Arc::new(HttpCaller::new(self.clock.clone()).unwrap()),
            builtin: Arc::new(LedgerTools(self.opened.ledger.clone())),
            openai: Arc::new(OpenAi::new(self.clock.clone()).unwrap()),
            anthropic: Arc::new(Anthropic::new(self.clock.clone()).unwrap()),
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
            attempts: Attempts::at_most(3),
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
}

/// For a job that is handed over by the test itself: there is no message to acknowledge.
pub struct NotTaken;

#[async_trait::async_trait]
impl Taken for NotTaken {
    fn came_before(&self) -> bool {
        false
    }

    async fn acknowledge(&self) {}
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
