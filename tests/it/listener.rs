//! Listens to published events, as a consumer of the events exchange does.

use std::time::Duration;

use countersign::broker::EmbeddedEvent;
use futures_util::StreamExt as _;
use tokio::sync::broadcast;

/// A published event: its routing key, message id and body.
#[derive(Clone, Debug)]
pub struct Published {
    pub kind: String,
    pub id: String,
    pub body: serde_json::Value,
}

/// A private queue bound to everything.
pub enum Listener {
    Embedded(broadcast::Receiver<EmbeddedEvent>),
    Rabbit {
        consumer: Box<lapin::Consumer>,
        _connection: Box<lapin::Connection>,
    },
}

impl Listener {
    pub fn embedded(receiver: broadcast::Receiver<EmbeddedEvent>) -> Self {
        Self::Embedded(receiver)
    }

    pub async fn rabbit(exchange: &str) -> Self {
        use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
        use lapin::types::FieldTable;
        let url = crate::system::service("AMQP_URL");
        let connection = lapin::Connection::connect(&url, lapin::ConnectionProperties::default())
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        let options = QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel
            .queue_declare("".into(), options, FieldTable::default())
            .await
            .unwrap();
        let name = queue.name().clone();
        channel
            .queue_bind(
                name.clone(),
                exchange.into(),
                "#".into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await
            .unwrap();
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let consumer = channel
            .basic_consume(name, "".into(), options, FieldTable::default())
            .await
            .unwrap();
        Self::Rabbit {
            consumer: Box::new(consumer),
            _connection: Box::new(connection),
        }
    }

    /// The next event. Fails after 30 s.
    pub async fn next(&mut self) -> Published {
        tokio::time::timeout(Duration::from_secs(30), self.take())
            .await
            .expect("an event is published within 30 s")
    }

    async fn take(&mut self) -> Published {
        match self {
            Self::Embedded(receiver) => {
                let event = receiver.recv().await.unwrap();
                Published {
                    kind: event.routing_key.to_owned(),
                    id: event.message_id,
                    body: serde_json::from_slice(&event.body).unwrap(),
                }
            }
            Self::Rabbit { consumer, .. } => {
                let delivery = consumer.next().await.unwrap().unwrap();
                Published {
                    kind: delivery.routing_key.to_string(),
                    id: delivery.properties.message_id().as_ref().unwrap().to_string(),
                    body: serde_json::from_slice(&delivery.data).unwrap(),
                }
            }
        }
    }

    /// The next event of that kind; others are passed over.
    pub async fn next_of(&mut self, kind: &str) -> Published {
        loop {
            let event = self.next().await;
            if event.kind == kind {
                return event;
            }
        }
    }
}

async fn channel() -> (lapin::Connection, lapin::Channel) {
    let url = crate::system::service("AMQP_URL");
    let connection = lapin::Connection::connect(&url, lapin::ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

/// The next dead letter of RabbitMQ: its body and its reason.
pub async fn dead_letter(queue: &str) -> (String, String) {
    let (_connection, channel) = channel().await;
    crate::system::eventually("a dead letter", || async {
        let options = lapin::options::BasicGetOptions { no_ack: true };
        let letter = channel.basic_get(queue.into(), options).await.unwrap()?;
        let headers = letter.properties.headers().clone().unwrap_or_default();
        let reason = match headers.inner().get("x-countersign-reason") {
            Some(lapin::types::AMQPValue::LongString(reason)) => reason.to_string(),
            _ => format!("{:?}", headers.inner().get("x-death")),
        };
        Some((String::from_utf8_lossy(&letter.data).into_owned(), reason))
    })
    .await
}

/// Empties a queue of RabbitMQ.
pub async fn purge(queue: &str) {
    let (_connection, channel) = channel().await;
    let purged = channel
        .queue_purge(queue.into(), lapin::options::QueuePurgeOptions::default())
        .await
        .unwrap();
    assert_eq!(purged, 1, "the job was in the queue");
}

/// How many messages a queue of RabbitMQ holds.
pub async fn depth(queue: &str) -> u32 {
    let (_connection, channel) = channel().await;
    let options = lapin::options::QueueDeclareOptions {
        passive: true,
        ..lapin::options::QueueDeclareOptions::default()
    };
    let declared = channel
        .queue_declare(queue.into(), options, lapin::types::FieldTable::default())
        .await;
    declared.unwrap().message_count()
}
