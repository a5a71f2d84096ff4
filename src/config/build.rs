//! From what was given to [`Settings`]: defaults, secrets from files, and what the values have to be together.
//! Which database and which broker an address means is in `addresses`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::settings::SETTINGS;
use super::source::Given;
use super::value::Value;
use super::{
    BrokerAddress, BrokerSettings, DatabaseKind, DatabaseSettings, HttpSettings, LeaseSettings,
    LimitSettings, LogFormat, LogSettings, ReaperSettings, RelaySettings, Secret, Settings, SettingsError,
    WorkerSettings,
};
use crate::declaration::Problem;

/// Why there are no settings.
pub(super) enum Failed {
    Unreadable(SettingsError),
    Wrong(Vec<Problem>),
}

/// Builds the settings. `read` reads the file that holds a secret.
pub(super) fn build(
    given: Given,
    read: impl Fn(&str, &Path) -> Result<String, SettingsError>,
) -> Result<Settings, Failed> {
    let Given {
        values,
        host,
        problems,
    } = given;
    if !problems.is_empty() {
        return Err(Failed::Wrong(problems));
    }
    let mut values = Values { values, problems };
    let database_url = values.secret("database.url", "database.url_file", &read)?;
    let broker_url = values.secret("broker.url", "broker.url_file", &read)?;
    let database_kind = values.database_kind(database_url.as_ref());
    let broker = values.broker_address(broker_url, database_kind);
    let listen = values.listen();
    let settings = values.gather(database_url, database_kind, broker, listen, host);
    if let Some(settings) = &settings {
        values.compare(settings);
    }
    match settings {
        Some(settings) if values.problems.is_empty() => Ok(settings),
        _ => Err(Failed::Wrong(values.problems)),
    }
}

/// What was given, and what is wrong with it.
pub(super) struct Values {
    values: BTreeMap<&'static str, Value>,
    pub(super) problems: Vec<Problem>,
}

impl Values {
    pub(super) fn wrong(&mut self, path: &str, fault: &str) {
        self.problems
            .push(Problem::elsewhere(path, format!("{path} {fault}")));
    }

    /// The value that was given, or the default, if there is one.
    fn value(&self, path: &str) -> Option<Value> {
        let default = || {
            let row = SETTINGS.iter().find(|row| row.path == path)?;
            row.default.and_then(|text| row.kind.read(text).ok())
        };
        self.values.get(path).cloned().or_else(default)
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        match self.value(path)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number<N: TryFrom<u64>>(&self, path: &str) -> Option<N> {
        match self.value(path)? {
            Value::Number(number) => N::try_from(number).ok(),
            _ => None,
        }
    }

    fn duration(&self, path: &str) -> Option<Duration> {
        match self.value(path)? {
            Value::Duration(duration) => Some(duration),
            _ => None,
        }
    }

    /// A secret, from its setting or from the file that another names.
    fn secret(
        &mut self,
        path: &str,
        file_path: &str,
        read: impl Fn(&str, &Path) -> Result<String, SettingsError>,
    ) -> Result<Option<Secret>, Failed> {
        match (self.text(path), self.text(file_path)) {
            (Some(_), Some(_)) => {
                self.wrong(
                    file_path,
                    &format!("and {path} are both set; one source must be named"),
                );
                Ok(None)
            }
            (Some(url), None) => Ok(Some(Secret::new(url))),
            (None, Some(file)) => {
                let text = read(path, Path::new(&file)).map_err(Failed::Unreadable)?;
                Ok(Some(Secret::new(text.trim_end_matches(['\r', '\n']))))
            }
            (None, None) => Ok(None),
        }
    }

    /// Puts the sections together; nothing if a part of them is missing, which has been reported.
    fn gather(
        &self,
        database_url: Option<Secret>,
        database_kind: Option<DatabaseKind>,
        broker: Option<BrokerAddress>,
        listen: Option<Option<SocketAddr>>,
        host: Option<String>,
    ) -> Option<Settings> {
        let slots = self.number("worker.slots")?;
        let ttl = self.duration("lease.ttl")?;
        Some(Settings {
            database: DatabaseSettings {
                url: database_url?,
                kind: database_kind?,
                max_connections: self.number("database.max_connections")?,
                connect_timeout: self.duration("database.connect_timeout")?,
            },
            broker: BrokerSettings {
                address: broker?,
                prefetch: self.number("broker.prefetch").unwrap_or(slots),
                heartbeat: self.duration("broker.heartbeat")?,
                connect_timeout: self.duration("broker.connect_timeout")?,
                confirm_timeout: self.duration("broker.confirm_timeout")?,
                max_message_bytes: self.number("broker.max_message_bytes")?,
                delivery_limit: self.number("broker.delivery_limit")?,
                prefix: self.text("broker.prefix")?,
            },
            worker: WorkerSettings {
                slots,
                name: self
                    .text("worker.name")
                    .or(host)
                    .unwrap_or_else(|| "worker".to_owned()),
                grace: self.duration("worker.grace")?,
                max_attempts: self.number("worker.max_attempts")?,
            },
            lease: LeaseSettings {
                ttl,
                renew_every: self.duration("lease.renew_every").unwrap_or(ttl / 3),
                max_requeues: self.number("lease.max_requeues")?,
            },
            relay: RelaySettings {
                poll: self.duration("relay.poll")?,
                batch: self.number("relay.batch")?,
            },
            reaper: ReaperSettings {
                every: self.duration("reaper.every")?,
                wake_after: self.duration("reaper.wake_after")?,
            },
            limits: LimitSettings {
                argument_bytes: self.number("limits.argument_bytes")?,
                calls_per_turn: self.number("limits.calls_per_turn")?,
                result_bytes: self.number("limits.result_bytes")?,
                transcript_bytes: self.number("limits.transcript_bytes")?,
            },
            http: HttpSettings { listen: listen? },
            log: LogSettings {
                format: if self.text("log.format")? == "json" {
                    LogFormat::Json
                } else {
                    LogFormat::Text
                },
                level: self.text("log.level")?,
            },
        })
    }

    /// What cannot work together.
    fn compare(&mut self, settings: &Settings) {
        let Settings {
            broker,
            worker,
            lease,
            limits,
            log,
            ..
        } = settings;
        if lease.renew_every * 2 > lease.ttl {
            self.wrong(
                "lease.renew_every",
                "must be at most half of lease.ttl: one lost renewal would lose the lease",
            );
        }
        if broker.prefetch < worker.slots {
            self.wrong(
                "broker.prefetch",
                "must be at least worker.slots: some slots would never get a job",
            );
        }
        for (path, bytes) in [
            ("limits.argument_bytes", limits.argument_bytes),
            ("limits.result_bytes", limits.result_bytes),
        ] {
            if bytes > limits.transcript_bytes {
                self.wrong(
                    path,
                    "must be at most limits.transcript_bytes, into which it has to fit",
                );
            }
        }
        if broker.prefix.len() > 64
            || !broker
                .prefix
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        {
            self.wrong(
                "broker.prefix",
                "must be 1 to 64 letters, digits, `.`, `_` or `-`",
            );
        }
        if tracing_subscriber::EnvFilter::builder()
            .parse(&log.level)
            .is_err()
        {
            self.wrong(
                "log.level",
                "must be a level such as `info`, or directives such as `info,countersign=debug`",
            );
        }
    }
}
