//! What the addresses in the settings mean: which database, which broker, where to listen. No message repeats an
//! address, since a password may be part of it.

use std::net::SocketAddr;

use url::Url;

use super::build::Values;
use super::{BrokerAddress, DatabaseKind, Secret};

impl Values {
    /// Which database the URL means.
    pub(super) fn database_kind(&mut self, url: Option<&Secret>) -> Option<DatabaseKind> {
        const PATH: &str = "database.url";
        let Some(url) = url.map(Secret::expose) else {
            if self.problems.is_empty() {
                self.wrong(
                    PATH,
                    "is not set: it names the database, as `sqlite:///path/file.db` or `postgres://…`",
                );
            }
            return None;
        };
        if let Some(file) = url.strip_prefix("sqlite:") {
            let name = file.split('?').next().unwrap_or_default().trim_start_matches('/');
            if name.is_empty() {
                self.wrong(PATH, "names no file: write `sqlite:///path/file.db`");
            } else if name == ":memory:" || file.contains("mode=memory") {
                self.wrong(
                    PATH,
                    "is in memory: runs that wait for a decision would be lost with the process",
                );
            }
            return Some(DatabaseKind::Sqlite);
        }
        let is_server = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "postgres" | "postgresql"));
        if !is_server {
            self.wrong(
                PATH,
                "must be `sqlite:///path/file.db` or `postgres://user@host/database`",
            );
        }
        is_server.then_some(DatabaseKind::Postgres)
    }

    /// Which broker the URL means, and whether it goes with the database.
    pub(super) fn broker_address(
        &mut self,
        url: Option<Secret>,
        database: Option<DatabaseKind>,
    ) -> Option<BrokerAddress> {
        const PATH: &str = "broker.url";
        match (url, database) {
            (None, Some(DatabaseKind::Sqlite)) => Some(BrokerAddress::Embedded),
            (None, Some(DatabaseKind::Postgres)) => {
                self.wrong(
                    PATH,
                    "is not set: with PostgreSQL, write `amqp://…`, or `embedded` for one process",
                );
                None
            }
            (None, None) => None,
            (Some(url), _) if url.expose() == "embedded" => Some(BrokerAddress::Embedded),
            (Some(url), database) => {
                let is_broker = Url::parse(url.expose())
                    .is_ok_and(|url| matches!(url.scheme(), "amqp" | "amqps") && url.has_host());
                if !is_broker {
                    self.wrong(
                        PATH,
                        "must be `embedded`, `amqp://user@host` or `amqps://user@host`",
                    );
                } else if database == Some(DatabaseKind::Sqlite) {
                    self.wrong(
                        PATH,
                        "names RabbitMQ, but database.url names a SQLite file: workers on other machines would take \
                         jobs whose runs they cannot see. Use PostgreSQL, or the `embedded` broker",
                    );
                }
                is_broker.then_some(BrokerAddress::Amqp(url))
            }
        }
    }

    /// The outer option: whether the setting is right. The inner: whether to listen.
    pub(super) fn listen(&mut self) -> Option<Option<SocketAddr>> {
        const PATH: &str = "http.listen";
        let text = self.text(PATH)?;
        if text == "off" {
            return Some(None);
        }
        let address = text.parse().ok();
        if address.is_none() {
            self.wrong(
                PATH,
                "must be an address and a port as numbers, such as \"127.0.0.1:8080\", or \"off\"",
            );
        }
        address.map(Some)
    }
}
