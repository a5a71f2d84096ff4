//! Settles one delivery, over the very channel it came by. Where that channel is gone the broker has taken the message
//! back already: settling is then a no-op, and can never reach a new delivery that happens to carry the same tag.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tracing::{debug, warn};

use super::letter::Letter;
use super::link::Link;
use super::publisher::Publisher;
use crate::broker::{Receipt, dead_letters};

/// The settling side of a delivery from RabbitMQ.
pub(super) struct AmqpReceipt {
    acker: Acker,
    publisher: Arc<Publisher>,
    /// Keeps the connection open after the consumer was stopped, until the last delivery is settled.
    _link: Arc<Link>,
}

impl AmqpReceipt {
    pub(super) fn new(acker: Acker, link: Arc<Link>, publisher: Arc<Publisher>) -> Self {
        Self {
            acker,
            publisher,
            _link: link,
        }
    }

    /// Whether the channel of this delivery is still the one that the broker waits on.
    pub(super) fn stands(&self) -> bool {
        self.acker.usable()
    }
}

const REQUEUE: BasicNackOptions = BasicNackOptions {
    multiple: false,
    requeue: true,
};

#[async_trait]
impl Receipt for AmqpReceipt {
    async fn acknowledge(self: Box<Self>) {
        settled("acknowledge", self.acker.ack(BasicAckOptions::default()).await);
    }

    async fn requeue(self: Box<Self>) {
        settled("requeue", self.acker.nack(REQUEUE).await);
    }

    async fn dead_letter(self: Box<Self>, body: Vec<u8>, message_id: Option<String>, reason: &str) {
        if !self.stands() {
            return settled("dead-letter", Ok(false));
        }
        let letter = Letter::dead(self.publisher.topology(), body, message_id, reason);
        match self.publisher.send(vec![letter]).await.pop() {
            Some(Ok(())) => {
                dead_letters::count(reason);
                self.acknowledge().await;
            }
            outcome => {
                warn!(?outcome, "dead letter not confirmed, the message is requeued");
                self.requeue().await;
            }
        }
    }
}

impl Drop for AmqpReceipt {
    fn drop(&mut self) {
        if self.acker.usable() {
            // The first poll hands the frame to the connection; there is nothing to wait for after that.
            let _ = self.acker.nack(REQUEUE).now_or_never();
        }
    }
}

fn settled(verb: &str, outcome: lapin::Result<bool>) {
    match outcome {
        Ok(true) => {}
        Ok(false) => debug!("{verb}: the channel of the delivery is gone, the broker delivers it again"),
        Err(error) => debug!(%error, "{verb}: the channel broke meanwhile, the broker may deliver it again"),
    }
}
