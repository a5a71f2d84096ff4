//! RabbitMQ as `tests/services` runs it: its address, its commands, and a topology of one's own on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign::broker::{Broker, RabbitMq, RabbitMqSettings, REASON_HEADER, Topology};
use lapin::message::BasicGetMessage;
use lapin::options::{BasicGetOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::process::Command;

use crate::broker_suite::{Bench, Dead, fresh_id};

/// A setting of the services, such as `AMQP_URL`.
#[expect(clippy::disallowed_methods, reason = "the services' addresses come through the environment")]
pub fn service(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: start the services with `tests/services up DIR`, then `eval \"$(tests/services env DIR)\"`")
    })
}

/// Runs one of the services' commands, and insists that it succeeds.
pub async fn command(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(service(name)).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The socket that RabbitMQ listens on.
pub fn endpoint() -> SocketAddr {
    let url: url::Url = service("AMQP_URL").parse().unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap()).parse().unwrap()
}

/// `AMQP_URL`, by way of another address.
pub fn url_through(address: SocketAddr) -> String {
    let mut url: url::Url = service("AMQP_URL").parse().unwrap();
    url.set_host(Some(&address.ip().to_string())).unwrap();
    url.set_port(Some(address.port())).unwrap();
    url.into()
}

/// Settings with a topology of one's own.
pub fn settings() -> RabbitMqSettings {
    RabbitMqSettings {
        topology: Topology::named(&format!("test-{}", fresh_id())),
        connect_timeout: Duration::from_secs(30),
        ..RabbitMqSettings::new(service("AMQP_URL"))
    }
}

/// A second way to the broker, for looking and for meddling.
pub struct Admin {
    _connection: Connection,
    channel: Channel,
    topology: Topology,
}

impl Admin {
    pub async fn connect(topology: Topology) -> Self {
        let connection = Connection::connect(&service("AMQP_URL"), ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        Self {
            _connection: connection,
            channel,
            topology,
        }
    }

    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Deletes the queue of jobs.
    pub async fn delete_jobs(&self) {
        let options = QueueDeleteOptions::default();
        self.channel.queue_delete(self.topology.jobs.as_str().into(), options).await.unwrap();
    }

    /// A queue of its own that gets all events.
    pub async fn tap_events(&self) -> String {
        let name = format!("{}.tap", self.topology.events);
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let (queue, exchange) = (name.as_str(), self.topology.events.as_str());
        let arguments = FieldTable::default();
        self.channel.queue_declare(queue.into(), options, arguments.clone()).await.unwrap();
        let options = QueueBindOptions::default();
        self.channel.queue_bind(queue.into(), exchange.into(), "#".into(), options, arguments).await.unwrap();
        name
    }

    /// The next message of a queue, taken out of it.
    pub async fn get(&self, queue: &str) -> Option<BasicGetMessage> {
        let options = BasicGetOptions { no_ack: true };
        self.channel.basic_get(queue.into(), options).await.unwrap()
    }

    /// Removes what the topology declared.
    pub async fn clean_up(&self) {
        let Topology { jobs, dead, events } = &self.topology;
        for queue in [jobs, dead, &format!("{events}.tap")] {
            let options = QueueDeleteOptions::default();
            self.channel.queue_delete(queue.as_str().into(), options).await.unwrap();
        }
        for exchange in [jobs, dead, events] {
            let options = ExchangeDeleteOptions::default();
            self.channel.exchange_delete(exchange.as_str().into(), options).await.unwrap();
        }
    }
}

/// A broker on RabbitMQ, under test.
pub struct RealBench {
    pub broker: Arc<RabbitMq>,
    pub admin: Admin,
    tap: String,
    dead: String,
}

impl RealBench {
    pub async fn new(settings: RabbitMqSettings) -> Self {
        let topology = settings.topology.clone();
        let broker = RabbitMq::connect(settings).await.unwrap();
        let admin = Admin::connect(topology.clone()).await;
        let tap = admin.tap_events().await;
        Self {
            broker,
            admin,
            tap,
            dead: topology.dead,
        }
    }

    pub async fn finish(self) {
        self.broker.close().await;
        self.admin.clean_up().await;
    }
}

#[async_trait]
impl Bench for RealBench {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::clone(&self.broker) as Arc<dyn Broker>
    }

    async fn next_dead(&self) -> Option<Dead> {
        let message = self.admin.get(&self.dead).await?.delivery;
        let header = |name: &str| {
            let headers = message.properties.headers().as_ref()?.inner().clone();
            match headers.get(name)? {
                AMQPValue::LongString(text) => Some(text.to_string()),
                other => panic!("{name} is {other:?}"),
            }
        };
        Some(Dead {
            reason: header(REASON_HEADER).or_else(|| header("x-first-death-reason")).unwrap_or_default(),
            message_id: message.properties.message_id().as_ref().map(ToString::to_string),
            body: message.data.clone(),
        })
    }

    async fn next_event(&self) -> Option<(String, Vec<u8>)> {
        let message = self.admin.get(&self.tap).await?.delivery;
        Some((message.routing_key.to_string(), message.data))
    }
}
