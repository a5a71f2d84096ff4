//! The settings as the rest of the product reads them: one struct a section, each field a setting. A value of
//! these types has passed every check.

use std::net::SocketAddr;
use std::time::Duration;

use super::Secret;

/// All settings of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[database]`
    pub database: DatabaseSettings,
    /// `[broker]`
    pub broker: BrokerSettings,
    /// `[worker]`
    pub worker: WorkerSettings,
    /// `[lease]`
    pub lease: LeaseSettings,
    /// `[relay]`
    pub relay: RelaySettings,
    /// `[reaper]`
    pub reaper: ReaperSettings,
    /// `[limits]`
    pub limits: LimitSettings,
    /// `[http]`
    pub http: HttpSettings,
    /// `[log]`
    pub log: LogSettings,
}

/// Where the state is kept.
#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    /// `sqlite:///path/file.db` or `postgres://…`; from `url`, or from the file that `url_file` names.
    pub url: Secret,
    /// Which of the two it is.
    pub kind: DatabaseKind,
    /// The most connections that the process opens.
    pub max_connections: u32,
    /// How long the start waits for a database that does not answer.
    pub connect_timeout: Duration,
}

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// A file, for one process.
    Sqlite,
    /// A server, for any number of processes.
    Postgres,
}

/// Where jobs come from and events go to.
#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// From `url`, or from the file that `url_file` names.
    pub address: BrokerAddress,
    /// How many jobs are taken and not yet settled; at least the number of slots.
    pub prefetch: u16,
    /// A connection that is silent for two of these is given up.
    pub heartbeat: Duration,
    /// How long the start waits for a broker that does not answer.
    pub connect_timeout: Duration,
    /// How long a publish waits for the broker's confirm.
    pub confirm_timeout: Duration,
    /// The largest message that is sent, in bytes; not more than the broker takes.
    pub max_message_bytes: usize,
    /// How often a job may come again before the broker dead-letters it.
    pub delivery_limit: u32,
    /// The names of exchanges and queues begin with it.
    pub prefix: String,
}

/// Which broker it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerAddress {
    /// `embedded`: within the process.
    Embedded,
    /// RabbitMQ, at this `amqp://` or `amqps://` address.
    Amqp(Secret),
}

/// How runs are run.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// How many runs are run at a time.
    pub slots: u16,
    /// Who holds a run, as the lease and the log say it; the host's name unless set.
    pub name: String,
    /// How long runs may go on after the order to stop.
    pub grace: Duration,
    /// A job that ended its worker so often is quarantined.
    pub max_attempts: u32,
}

/// The right to go on with a run.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// How long a lease lasts that is not renewed.
    pub ttl: Duration,
    /// How often it is renewed; a third of `ttl` unless set, and at most half of it.
    pub renew_every: Duration,
    /// How often a run is taken up again after its worker was lost, before it fails as `retries_exhausted`.
    pub max_requeues: u32,
}

/// How events get from the database to the broker.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// How long the relay waits after it found no event.
    pub poll: Duration,
    /// The most events that it publishes at a time.
    pub batch: u32,
}

/// How lost runs are found.
#[derive(Clone, Debug)]
pub struct ReaperSettings {
    /// How often expired leases and deadlines are looked for.
    pub every: Duration,
    /// How old a decision that nobody has acted on gets before its job is published again.
    pub wake_after: Duration,
}

/// How large what a model or a tool sends may be.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// The arguments of one call, in bytes.
    pub argument_bytes: usize,
    /// The calls of one turn.
    pub calls_per_turn: usize,
    /// The result of one call, in bytes.
    pub result_bytes: usize,
    /// The transcript of a run, in bytes.
    pub transcript_bytes: usize,
}

/// The API and the pages.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Address and port, as numbers; none for `off`.
    pub listen: Option<SocketAddr>,
}

/// What the process tells.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// How a line is written.
    pub format: LogFormat,
    /// A level, or directives such as `info,countersign=debug`.
    pub level: String,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
