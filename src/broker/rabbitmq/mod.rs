//! The queue on RabbitMQ, with lapin.
//!
//! A *link* is one connection with one channel. The publisher has one, each consumer has one, and neither is ever
//! repaired: on any fault it is thrown away and made again (`rebuild`), topology included. A delivery belongs to the
//! link that it came over; once that is gone, settling it does nothing.

mod batch;
mod board;
mod consumer;
mod declare;
mod failure;
mod letter;
mod link;
mod outlet;
mod publisher;
mod rebuild;
mod receipt;
mod settings;
mod shared;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

pub use settings::RabbitMqSettings;

use self::consumer::AmqpConsumer;
use self::failure::Failure;
use self::link::Link;
use self::outlet::{Outlet, keep};
use self::publisher::Publisher;
use self::rebuild::pauses;
use self::shared::Shared;
use super::{Broker, BrokerError, Consumer, Health, Outgoing, PublishError};

/// A broker on RabbitMQ.
#[derive(Debug)]
pub struct RabbitMq {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
}

impl RabbitMq {
    /// Connects and declares the topology. A broker that cannot be reached is tried again, each attempt with a line in the
    /// log, until the connect timeout.
    ///
    /// # Errors
    /// [`BrokerError::Misconfigured`] at once where waiting does not help; [`BrokerError::Unreachable`] at the timeout.
    pub async fn connect(settings: RabbitMqSettings) -> Result<Arc<Self>, BrokerError> {
        let shared = Arc::new(Shared::new(settings)?);
        let link = first_link(&shared).await?;
        info!(broker = %shared.address, "connected to the broker");
        let (current, outlet) = watch::channel(None);
        let publisher = Arc::new(Publisher::new(Arc::clone(&shared), outlet));
        // Up from here on, and not only once the task below has run.
        shared.board.set(board::Part::Publisher, Health::Up);
        tokio::spawn(keep(Arc::clone(&shared), link, current));
        Ok(Arc::new(Self { shared, publisher }))
    }
}

/// The first link, tried for as long as the connect timeout says.
async fn first_link(shared: &Shared) -> Result<Arc<Link>, BrokerError> {
    let deadline = Instant::now() + shared.settings.connect_timeout;
    let mut pauses = pauses();
    let mut attempt = 0_u32;
    loop {
        attempt += 1;
        let text = match Outlet::open(shared).await {
            Ok(link) => return Ok(link),
            Err(Failure::Misconfigured(text)) => return Err(BrokerError::Misconfigured(text)),
            Err(Failure::Passing { text, .. }) => text,
        };
        let pause = pauses.next_pause();
        warn!(broker = %shared.address, attempt, "the broker cannot be reached: {text}");
        if Instant::now() + pause > deadline {
            return Err(BrokerError::Unreachable {
                address: shared.address.endpoint(),
                reason: text,
            });
        }
        tokio::time::sleep(pause).await;
    }
}

#[async_trait]
impl Broker for RabbitMq {
    async fn consume(&self, prefetch: u16) -> Result<Box<dyn Consumer>, BrokerError> {
        if self.shared.closed.is_cancelled() {
            return Err(BrokerError::Closed);
        }
        let (shared, publisher) = (Arc::clone(&self.shared), Arc::clone(&self.publisher));
        Ok(Box::new(AmqpConsumer::start(shared, publisher, prefetch)))
    }

    async fn publish(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>> {
        self.publisher.publish(messages).await
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.board.whole()
    }

    async fn close(&self) {
        self.shared.closed.cancel();
        join_all(self.shared.links().iter().map(|link| link.close())).await;
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        // Ends the tasks, and with them the connections, of a broker that nobody closed.
        self.shared.closed.cancel();
    }
}
