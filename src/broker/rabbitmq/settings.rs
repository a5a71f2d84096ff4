//! How to reach RabbitMQ, and the bounds we keep to. A wrong address is found here, before anything is dialled, and
//! the password is shown nowhere.

use std::fmt;
use std::time::Duration;

use lapin::uri::AMQPUri;
use url::{Host, Url};

use crate::broker::BrokerError;
use crate::broker::topology::{DELIVERY_LIMIT, Topology};

/// How RabbitMQ is reached and used.
#[derive(Clone)]
pub struct RabbitMqSettings {
    /// `amqp://user:password@host:port/vhost`, or `amqps://` for TLS. The default vhost is written `%2f`.
    pub url: String,
    /// The names of exchanges and queues.
    pub topology: Topology,
    /// The heartbeat: a connection that is silent for two of these is given up. At least 2 s.
    pub heartbeat: Duration,
    /// How long [`RabbitMq::connect`](super::RabbitMq::connect) tries before it gives up.
    pub connect_timeout: Duration,
    /// How long a batch may wait for the broker's confirms, including for a connection to send it over.
    pub confirm_timeout: Duration,
    /// The largest body that is sent. RabbitMQ 4 takes 16 MiB unless told otherwise, 3.x took 128 MiB; beyond its
    /// limit the broker closes the channel, with everything else that is under way on it.
    pub max_message_bytes: usize,
    /// How often a job may be delivered again before the broker dead-letters it.
    pub delivery_limit: u32,
    /// What the connections are called in RabbitMQ's own listings.
    pub connection_name: String,
}

impl RabbitMqSettings {
    /// The defaults, for the broker at this address.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            topology: Topology::default(),
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(60),
            confirm_timeout: Duration::from_secs(10),
            max_message_bytes: 16 * 1024 * 1024,
            delivery_limit: DELIVERY_LIMIT,
            connection_name: "countersign".to_owned(),
        }
    }
}

impl fmt::Debug for RabbitMqSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url =
            Address::parse(&self.url).map_or_else(|_| "(invalid)".to_owned(), |address| address.to_string());
        f.debug_struct("RabbitMqSettings")
            .field("url", &url)
            .field("topology", &self.topology)
            .field("heartbeat", &self.heartbeat)
            .field("connect_timeout", &self.connect_timeout)
            .field("confirm_timeout", &self.confirm_timeout)
            .field("max_message_bytes", &self.max_message_bytes)
            .field("delivery_limit", &self.delivery_limit)
            .field("connection_name", &self.connection_name)
            .finish()
    }
}

/// A checked address. Shown as scheme, host, port and vhost: never the credentials.
#[derive(Clone)]
pub(super) struct Address {
    uri: AMQPUri,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, BrokerError> {
        let wrong = |what: &str| {
            BrokerError::Misconfigured(format!(
                "the broker's address is not of the form amqp://user:password@host:port/vhost: {what}"
            ))
        };
        // Errors of the parsers below are made of fixed words; lapin's own may quote the address, hence the order.
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "amqp" | "amqps") {
            return Err(wrong("the scheme is neither amqp nor amqps"));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) if !name.is_empty() => name.to_owned(),
            Some(Host::Ipv4(ip)) => ip.to_string(),
            Some(Host::Ipv6(ip)) => ip.to_string(),
            _ => return Err(wrong("it names no host")),
        };
        let mut uri: AMQPUri = text.parse().map_err(|error: String| wrong(&error))?;
        if uri.vhost.is_empty() {
            return Err(wrong(
                "it ends in a bare slash, which is a vhost without a name; the default vhost is /%2f",
            ));
        }
        // lapin takes an IPv6 host for none at all and would dial localhost.
        uri.authority.host = host;
        Ok(Self { uri })
    }

    /// What lapin connects to, asking for this heartbeat.
    pub(super) fn uri(&self, heartbeat: Duration) -> AMQPUri {
        let mut uri = self.uri.clone();
        uri.query.heartbeat = Some(asked_heartbeat(heartbeat));
        uri
    }

    pub(super) fn vhost(&self) -> &str {
        &self.uri.vhost
    }

    pub(super) fn user(&self) -> &str {
        &self.uri.authority.userinfo.username
    }

    /// `host:port`.
    pub(super) fn endpoint(&self) -> String {
        let authority = &self.uri.authority;
        if authority.host.contains(':') {
            return format!("[{}]:{}", authority.host, authority.port);
        }
        format!("{}:{}", authority.host, authority.port)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{} (vhost {})",
            self.uri.scheme,
            self.endpoint(),
            self.uri.vhost
        )
    }
}

/// The heartbeat to ask for, in seconds. lapin looks every half beat and gives up at the first look after two beats,
/// so after two and a half at worst: asking for four fifths keeps the promise of two.
fn asked_heartbeat(promised: Duration) -> u16 {
    let seconds = promised.as_millis() * 4 / 5 / 1_000;
    u16::try_from(seconds).unwrap_or(u16::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        Address::parse(url)
            .map(|address| address.to_string())
            .expect_err("accepted")
            .to_string()
    }

    #[test]
    fn addresses_are_read_and_shown_without_credentials() {
        let address = Address::parse("amqp://olga:hunter2@broker.internal:5673/%2f").unwrap();
        assert_eq!(address.to_string(), "amqp://broker.internal:5673 (vhost /)");
        assert_eq!((address.user(), address.vhost()), ("olga", "/"));
        let six = Address::parse("amqps://olga:hunter2@[::1]/staging").unwrap();
        assert_eq!(six.endpoint(), "[::1]:5671");
        assert_eq!(six.uri(Duration::from_secs(10)).authority.host, "::1");
    }

    #[test]
    fn a_wrong_address_is_refused_and_the_password_never_repeated() {
        for url in [
            "olga:hunter2@broker",
            "http://olga:hunter2@broker/",
            "amqp:olga:hunter2",
            "amqp://olga:hunter2@broker:notaport/%2f",
            "amqp://olga:hunter2@/%2f",
            "amqp://olga:hunter2@broker/",
            "amqp://olga:hunter2@broker/%2f?heartbeat=often",
            "",
        ] {
            let text = refusal(url);
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("amqp://user:password@host:port/vhost"), "{text}");
        }
        assert!(refusal("amqp://broker/").contains("%2f"));
    }

    #[test]
    fn debug_shows_no_password() {
        for url in ["amqp://olga:hunter2@broker/%2f", "amqp://olga:hunter2@broker:x"] {
            assert!(!format!("{:?}", RabbitMqSettings::new(url)).contains("hunter2"));
        }
    }

    #[test]
    fn two_and_a_half_asked_heartbeats_fit_into_two_promised_ones() {
        for promised in 2..=60 {
            let asked = asked_heartbeat(Duration::from_secs(promised));
            assert!(f64::from(asked) * 2.5 <= promised as f64 * 2.0, "{promised}");
        }
    }
}
