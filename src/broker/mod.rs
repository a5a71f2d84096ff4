//! The queue: where jobs come from and events go to. One trait, two brokers: RabbitMQ for many processes,
//! an in-process one for a single machine.
//!
//! What the room promises: a delivery is handed out until it is settled; a confirmed publish is with the
//! broker; a lost connection, channel or consumer is rebuilt here and seen outside only as [`Health`] and
//! as redelivery. What it knows nothing about: runs, decisions, gates, the store. lapin is used nowhere else.

mod dead_letters;
mod embedded;
mod rabbitmq;
mod topology;

use std::fmt;

use async_trait::async_trait;

pub use embedded::{DeadLetter, EmbeddedBroker, EmbeddedEvent};
pub use rabbitmq::{RabbitMq, RabbitMqSettings};
pub use topology::{DEAD, DELIVERY_LIMIT, EVENTS, JOBS, REASON_HEADER, Topology};

use crate::model::EventId;

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The jobs queue. Mandatory: a job that reaches no queue is an error.
    Jobs,
    /// The events exchange, under this routing key. That nobody listens is no error.
    Events(&'static str),
}

/// A message to publish. It is persistent, and its id is the event's, every time it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The message id.
    pub id: EventId,
    /// Where it goes.
    pub destination: Destination,
    /// A JSON document.
    pub body: Vec<u8>,
    /// How often it was sent before and nobody acted on it, as far as the sender counts that.
    pub earlier: u32,
}

/// Why a message is not known to be with the broker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Larger than the broker takes; sending it would close the channel. Trying again is no use.
    #[error("the message has {bytes} bytes; the broker takes at most {limit}")]
    TooLarge {
        /// The size of the message's body.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A job that no queue took.
    #[error("no queue is bound to take the message")]
    Unroutable,
    /// Not confirmed: refused, timed out, or the connection was lost. The broker may have it all the same.
    #[error("not confirmed by the broker: {0}")]
    Unconfirmed(String),
}

/// Whether the broker can be worked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Connected and consuming or publishing.
    Up,
    /// Connected, but the broker takes no publishes (a memory or disk alarm).
    Blocked(String),
    /// Not connected; the text says why.
    Down(String),
}

/// A broker could not be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Waiting does not help: wrong address, wrong password, another topology. The text says what to do.
    #[error("{0}")]
    Misconfigured(String),
    /// Not reachable within the time given.
    #[error("the broker at {address} could not be reached: {reason}")]
    Unreachable {
        /// Host and port, never a password.
        address: String,
        /// What the last attempt said.
        reason: String,
    },
    /// It was told to stop.
    #[error("the broker has been closed")]
    Closed,
}

/// A queue of jobs and an exchange of events.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Begins to take jobs. At most `prefetch` deliveries are out and unsettled at a time. The consumer
    /// outlives every outage; it ends only when stopped.
    async fn consume(&self, prefetch: u16) -> Result<Box<dyn Consumer>, BrokerError>;

    /// Publishes the messages in their order and waits for the broker's confirms. One result for each
    /// message, in the same order; once a message is `Ok`, the broker has it durably.
    async fn publish(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>>;

    /// How the broker is; changes can be awaited.
    fn health(&self) -> tokio::sync::watch::Receiver<Health>;

    /// Closes the connections in good order. Unsettled deliveries go back to the queue.
    async fn close(&self);
}

/// The jobs as they come.
#[async_trait]
pub trait Consumer: Send {
    /// The next delivery; nothing once the consumer has been stopped. Safe to cancel.
    async fn next(&mut self) -> Option<Delivery>;

    /// Takes no more jobs. Deliveries that are out can still be settled; those not handed out yet go back.
    async fn stop(&mut self);
}

/// One job, until it is settled. A delivery that is dropped unsettled comes again.
#[must_use = "a delivery that is not settled comes again"]
pub struct Delivery {
    /// The message's body, as it came.
    pub body: Vec<u8>,
    /// The message id, where the sender gave one.
    pub message_id: Option<String>,
    /// How often the message came before, as far as the broker and its sender count it.
    pub came_before: u32,
    /// How it is settled.
    receipt: Box<dyn Receipt>,
}

impl Delivery {
    /// Done: the outcome is durable elsewhere.
    pub async fn acknowledge(self) {
        self.receipt.acknowledge().await;
    }

    /// Not done: to be delivered again, now. Counts towards the delivery limit.
    pub async fn requeue(self) {
        self.receipt.requeue().await;
    }

    /// Cannot be done: goes to the dead-letter queue with the reason, body unchanged.
    pub async fn dead_letter(self, reason: &str) {
        let Self {
            body,
            message_id,
            receipt,
            ..
        } = self;
        receipt.dead_letter(body, message_id, reason).await;
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("message_id", &self.message_id)
            .field("bytes", &self.body.len())
            .field("came_before", &self.came_before)
            .finish_non_exhaustive()
    }
}

/// The settling side of a delivery. Where the connection it came over is gone, settling does nothing: the broker will
/// deliver the message again, and the old receipt must never reach that new delivery.
#[async_trait]
trait Receipt: Send + Sync {
    async fn acknowledge(self: Box<Self>);
    async fn requeue(self: Box<Self>);
    /// Publishes to the dead-letter exchange, waits for the confirm, then acknowledges. If the publish
    /// cannot be confirmed the delivery is requeued instead.
    async fn dead_letter(self: Box<Self>, body: Vec<u8>, message_id: Option<String>, reason: &str);
}
