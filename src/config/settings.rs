//! The table of all settings. The file's keys, the variables' names, the defaults, the ranges and
//! `docs/settings.md` all follow from it.

use std::time::Duration;

use super::value::Kind;

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    /// Section and key: `worker.slots`.
    pub path: &'static str,
    /// Its value when it is not set, as it would be written; none where there is nothing to assume.
    pub default: Option<&'static str>,
    /// What it is when it is not set and the default is no fixed value.
    pub otherwise: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    pub(super) kind: Kind,
}

impl SettingRow {
    /// The section and the key in it.
    #[must_use]
    pub fn section_and_key(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').unwrap_or((self.path, ""))
    }

    /// The name of the variable: `COUNTERSIGN_WORKER_SLOTS`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.path.replace('.', "_").to_uppercase())
    }
}

/// What all variables begin with.
pub(super) const VARIABLE_PREFIX: &str = "COUNTERSIGN_";

/// The path of the settings' file. The command line reads it; it is no setting.
pub const VARIABLE_OF_THE_FILE: &str = "COUNTERSIGN_CONFIG";

/// Variables of the tests, which the product leaves alone.
pub(super) const TEST_VARIABLE_PREFIX: &str = "COUNTERSIGN_TEST_";

const fn fixed(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> SettingRow {
    SettingRow {
        path,
        default: Some(default),
        otherwise: "",
        about,
        kind,
    }
}

const fn open(path: &'static str, kind: Kind, otherwise: &'static str, about: &'static str) -> SettingRow {
    SettingRow {
        path,
        default: None,
        otherwise,
        about,
        kind,
    }
}

const fn number(least: u64, most: u64) -> Kind {
    Kind::Number { least, most }
}

const fn duration(least_ms: u64, most_s: u64) -> Kind {
    Kind::Duration {
        least: Duration::from_millis(least_ms),
        most: Duration::from_secs(most_s),
    }
}

const HOUR: u64 = 3_600;
const GIB: u64 = 1 << 30;

/// Every setting there is.
pub const SETTINGS: [SettingRow; 31] = [
    open(
        "database.url",
        Kind::Text,
        "must be set",
        "`sqlite:///path/file.db` or `postgres://…`",
    ),
    open(
        "database.url_file",
        Kind::Text,
        "not used",
        "A file that holds the URL, in place of `url`",
    ),
    fixed(
        "database.max_connections",
        number(2, 10_000),
        "16",
        "The most connections that the process opens",
    ),
    fixed(
        "database.connect_timeout",
        duration(1, HOUR),
        "60s",
        "How long the start waits for a database that does not answer",
    ),
    open(
        "broker.url",
        Kind::Text,
        "`embedded` with SQLite",
        "`embedded`, `amqp://…` or `amqps://…`",
    ),
    open(
        "broker.url_file",
        Kind::Text,
        "not used",
        "A file that holds the URL, in place of `url`",
    ),
    open(
        "broker.prefetch",
        number(1, 65_535),
        "`worker.slots`",
        "How many jobs are taken and not yet settled",
    ),
    fixed(
        "broker.heartbeat",
        duration(2_000, HOUR),
        "10s",
        "A connection that is silent for two of these is given up",
    ),
    fixed(
        "broker.connect_timeout",
        duration(1, HOUR),
        "60s",
        "How long the start waits for a broker that does not answer",
    ),
    fixed(
        "broker.confirm_timeout",
        duration(1, HOUR),
        "10s",
        "How long a publish waits for the broker's confirm",
    ),
    fixed(
        "broker.max_message_bytes",
        number(4_096, GIB),
        "16777216",
        "The largest message that is sent; not more than the broker takes",
    ),
    fixed(
        "broker.delivery_limit",
        number(1, 1_000_000),
        "20",
        "How often a job may come again before the broker dead-letters it",
    ),
    fixed(
        "broker.prefix",
        Kind::Text,
        "countersign",
        "The names of exchanges and queues begin with it",
    ),
    fixed(
        "worker.slots",
        number(1, 1_024),
        "8",
        "How many runs are run at a time",
    ),
    open(
        "worker.name",
        Kind::Text,
        "the host's name",
        "Who holds a run, as the lease and the log say it",
    ),
    fixed(
        "worker.grace",
        duration(0, HOUR),
        "30s",
        "How long runs may go on after the order to stop",
    ),
    fixed(
        "worker.max_attempts",
        number(2, 1_000),
        "3",
        "A job that ended its worker so often is quarantined",
    ),
    fixed(
        "lease.ttl",
        duration(1_000, 24 * HOUR),
        "30s",
        "How long a lease lasts that is not renewed",
    ),
    open(
        "lease.renew_every",
        duration(100, 24 * HOUR),
        "a third of `lease.ttl`",
        "How often a lease is renewed; at most half of `lease.ttl`",
    ),
    fixed(
        "lease.max_requeues",
        number(0, 1_000),
        "5",
        "How often a run is taken up again after its worker was lost",
    ),
    fixed(
        "relay.poll",
        duration(10, HOUR),
        "200ms",
        "How long the relay waits after it found no event",
    ),
    fixed(
        "relay.batch",
        number(1, 10_000),
        "200",
        "The most events that the relay publishes at a time",
    ),
    fixed(
        "reaper.every",
        duration(100, HOUR),
        "5s",
        "How often expired leases and deadlines are looked for",
    ),
    fixed(
        "reaper.wake_after",
        duration(1_000, 24 * HOUR),
        "60s",
        "How old a decision gets that nobody has acted on, before its job is published again",
    ),
    fixed(
        "limits.argument_bytes",
        number(1, GIB),
        "1048576",
        "The arguments of one call",
    ),
    fixed(
        "limits.calls_per_turn",
        number(1, 10_000),
        "128",
        "The calls of one turn",
    ),
    fixed(
        "limits.result_bytes",
        number(1, GIB),
        "1048576",
        "The result of one call",
    ),
    fixed(
        "limits.transcript_bytes",
        number(1, GIB),
        "16777216",
        "The transcript of a run",
    ),
    fixed(
        "http.listen",
        Kind::Text,
        "127.0.0.1:8080",
        "Address and port as numbers, or `off`",
    ),
    fixed(
        "log.format",
        Kind::Word(&["text", "json"]),
        "text",
        "`text` for people, `json` for one object a line",
    ),
    fixed(
        "log.level",
        Kind::Text,
        "info",
        "A level, or directives such as `info,countersign=debug`",
    ),
];
