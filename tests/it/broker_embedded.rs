//! The in-process broker keeps every promise of the suite.

use std::sync::Arc;

use async_trait::async_trait;
use countersign::broker::{Broker, EmbeddedBroker, EmbeddedEvent};
use tokio::sync::{Mutex, broadcast};

use crate::broker_suite::{Bench, DELIVERY_LIMIT, Dead, MAX_MESSAGE_BYTES, conformance};

struct EmbeddedBench {
    broker: Arc<EmbeddedBroker>,
    events: Mutex<broadcast::Receiver<EmbeddedEvent>>,
    seen_dead: Mutex<usize>,
}

#[async_trait]
impl Bench for EmbeddedBench {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::clone(&self.broker) as Arc<dyn Broker>
    }

    async fn next_dead(&self) -> Option<Dead> {
        let mut seen = self.seen_dead.lock().await;
        let letter = self.broker.dead_letters().get(*seen)?.clone();
        *seen += 1;
        Some(Dead {
            reason: letter.reason,
            message_id: letter.message_id,
            body: letter.body,
        })
    }

    async fn next_event(&self) -> Option<(String, Vec<u8>)> {
        let event = self.events.lock().await.try_recv().ok()?;
        Some((event.routing_key.to_owned(), event.body))
    }
}

async fn bench() -> EmbeddedBench {
    let broker = Arc::new(EmbeddedBroker::with_limits(DELIVERY_LIMIT, MAX_MESSAGE_BYTES));
    EmbeddedBench {
        events: Mutex::new(broker.subscribe_events()),
        broker,
        seen_dead: Mutex::default(),
    }
}

async fn finish(_: EmbeddedBench) {}

conformance!(bench, finish);
