//! The in-process broker: for one machine, for `countersign demo`, and for tests. It keeps RabbitMQ's promises, bar one:
//! nothing in it outlives the process. What was published and not finished is found again in the store, not here.

mod consumer;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::{broadcast, watch};

use self::consumer::EmbeddedConsumer;
use self::queue::Queue;
use super::{Broker, BrokerError, Consumer, DELIVERY_LIMIT, Destination, Health, Outgoing, PublishError};

/// How many events a subscriber may be behind before it misses some.
const EVENTS_KEPT: usize = 4_096;
/// As RabbitMQ 4 has it.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A job that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Why.
    pub reason: String,
    /// The message id, where the sender gave one.
    pub message_id: Option<String>,
    /// The message's body, unchanged.
    pub body: Vec<u8>,
}

/// An event as subscribers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedEvent {
    /// The routing key, such as `run.approved`.
    pub routing_key: &'static str,
    /// The message id.
    pub message_id: String,
    /// A JSON document.
    pub body: Vec<u8>,
}

/// A broker within the process.
#[derive(Debug)]
pub struct EmbeddedBroker {
    queue: Arc<Queue>,
    events: broadcast::Sender<EmbeddedEvent>,
    health: watch::Sender<Health>,
    max_message_bytes: usize,
    closed: AtomicBool,
}

impl Default for EmbeddedBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl EmbeddedBroker {
    /// A broker with RabbitMQ's usual limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(DELIVERY_LIMIT, MAX_MESSAGE_BYTES)
    }

    /// A broker that gives a job up when it came back more than `delivery_limit` times, and takes bodies of at most
    /// `max_message_bytes`.
    #[must_use]
    pub fn with_limits(delivery_limit: u32, max_message_bytes: usize) -> Self {
        Self {
            queue: Arc::new(Queue::new(delivery_limit)),
            events: broadcast::Sender::new(EVENTS_KEPT),
            health: watch::Sender::new(Health::Up),
            max_message_bytes,
            closed: AtomicBool::new(false),
        }
    }

    /// The jobs that were given up, oldest first. Only the latest are kept.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.queue.dead_letters()
    }

    /// The events that are published from now on.
    #[must_use]
    pub fn subscribe_events(&self) -> broadcast::Receiver<EmbeddedEvent> {
        self.events.subscribe()
    }

    fn take(&self, message: Outgoing) -> Result<(), PublishError> {
        let (bytes, limit) = (message.body.len(), self.max_message_bytes);
        if bytes > limit {
            return Err(PublishError::TooLarge { bytes, limit });
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(PublishError::Unconfirmed("the broker has been closed".to_owned()));
        }
        let message_id = message.id.to_string();
        match message.destination {
            Destination::Jobs => self.queue.put(message.body, Some(message_id), message.earlier),
            // An error says that nobody listens, which is none.
            Destination::Events(routing_key) => {
                drop(self.events.send(EmbeddedEvent {
                    routing_key,
                    message_id,
                    body: message.body,
                }));
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Broker for EmbeddedBroker {
    async fn consume(&self, prefetch: u16) -> Result<Box<dyn Consumer>, BrokerError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(BrokerError::Closed);
        }
        Ok(Box::new(EmbeddedConsumer::new(Arc::clone(&self.queue), prefetch)))
    }

    async fn publish(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>> {
        messages.into_iter().map(|message| self.take(message)).collect()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.queue.close();
        self.health.send_replace(Health::Down("closed".to_owned()));
    }
}
