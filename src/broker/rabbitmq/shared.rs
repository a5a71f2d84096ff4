//! What the publisher and the consumers of one broker have in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use super::board::{Board, Part};
use super::link::Link;
use super::settings::{Address, RabbitMqSettings};
use crate::broker::BrokerError;

/// Settings, health, the token that ends everything, and the links that are open.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: RabbitMqSettings,
    pub(super) address: Address,
    pub(super) board: Board,
    pub(super) closed: CancellationToken,
    consumers: AtomicU64,
    links: Mutex<Vec<Weak<Link>>>,
}

impl Shared {
    pub(super) fn new(settings: RabbitMqSettings) -> Result<Self, BrokerError> {
        let address = Address::parse(&settings.url)?;
        Ok(Self {
            settings,
            address,
            board: Board::new(),
            closed: CancellationToken::new(),
            consumers: AtomicU64::new(0),
            links: Mutex::default(),
        })
    }

    /// The name of a further consumer.
    pub(super) fn new_consumer(&self) -> Part {
        Part::Consumer(self.consumers.fetch_add(1, Ordering::Relaxed))
    }

    /// Remembers a link: receipts hold theirs beyond the consumer's end, and a close must reach those as well.
    pub(super) fn register(&self, link: &Arc<Link>) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|known| known.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }

    /// The links that somebody still holds.
    pub(super) fn links(&self) -> Vec<Arc<Link>> {
        self.links
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}
