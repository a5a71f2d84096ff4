//! Puts a working process together from its settings: the broker, the engine, the path, the roles. Used by `serve` and by
//! the demo, so that the demo is the product and no play.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, BrokerError, EmbeddedBroker, RabbitMq, RabbitMqSettings, Topology};
use crate::clock::Clock;
use crate::config::{BrokerAddress, Settings};
use crate::engine::models::{Anthropic, OpenAi, Scripted};
use crate::engine::tools::HttpCaller;
use crate::engine::{Engine, Limits};
use crate::model::WorkerName;
use crate::resume::{Attempts, Catalogues, LedgerTools, Path};
use crate::store::Opened;
use crate::worker::{Pace, Works};

/// The broker that the settings name, connected.
pub(super) async fn broker(settings: &Settings) -> Result<Arc<dyn Broker>, BrokerError> {
    let broker = &settings.broker;
    match &broker.address {
        BrokerAddress::Embedded => Ok(Arc::new(EmbeddedBroker::with_limits(
            broker.delivery_limit,
            broker.max_message_bytes,
        ))),
        BrokerAddress::Amqp(url) => {
            let rabbit = RabbitMqSettings {
                url: url.expose().to_owned(),
                topology: Topology::named(&broker.prefix),
                heartbeat: broker.heartbeat,
                connect_timeout: broker.connect_timeout,
                confirm_timeout: broker.confirm_timeout,
                max_message_bytes: broker.max_message_bytes,
                delivery_limit: broker.delivery_limit,
                connection_name: format!("countersign {}", settings.worker.name),
            };
            Ok(RabbitMq::connect(rabbit).await?)
        }
    }
}

/// What the roles of this process work with.
pub(super) fn works(
    settings: &Settings,
    opened: Opened,
    broker: Arc<dyn Broker>,
    clock: Arc<dyn Clock>,
    scripted: Scripted,
) -> anyhow::Result<Works> {
    let stopping = CancellationToken::new();
    let boot = clock.new_id().simple().to_string();
    // The end of the id is its random part.
    let worker = WorkerName::new(&settings.worker.name, std::process::id(), &boot[20..]);
    let limits = &settings.limits;
    let engine = Engine {
        http: Arc::new(HttpCaller::new(clock.clone())?),
        builtin: Arc::new(LedgerTools(opened.ledger)),
        openai: Arc::new(OpenAi::new(clock.clone())?),
        anthropic: Arc::new(Anthropic::new(clock.clone())?),
        scripted: Arc::new(scripted),
        limits: Limits {
            argument_bytes: limits.argument_bytes,
            calls_per_turn: limits.calls_per_turn,
            result_bytes: limits.result_bytes,
            transcript_bytes: limits.transcript_bytes,
        },
    };
    let path = Path {
        store: opened.store.clone(),
        catalogues: Arc::new(Catalogues::default()),
        engine,
        clock: clock.clone(),
        worker: worker.clone(),
        lease_ttl: settings.lease.ttl,
        renew_every: settings.lease.renew_every,
        attempts: Attempts::at_most(settings.worker.max_attempts),
        stopping: stopping.clone(),
    };
    let pace = Pace {
        slots: settings.worker.slots,
        prefetch: settings.broker.prefetch,
        grace: settings.worker.grace,
        relay_poll: settings.relay.poll,
        relay_batch: settings.relay.batch,
        reap_every: settings.reaper.every,
        max_requeues: settings.lease.max_requeues,
        wake_after: settings.reaper.wake_after,
    };
    Ok(Works {
        store: opened.store,
        broker,
        clock,
        worker,
        handler: Arc::new(path),
        stopping,
        pace,
    })
}

/// The embedded queue begins empty at every start: what it held is published again, under the same ids.
pub(super) async fn refill(settings: &Settings, works: &Works) -> anyhow::Result<()> {
    if settings.broker.address == BrokerAddress::Embedded {
        works
            .store
            .rewake(std::time::Duration::ZERO, u32::MAX / 2)
            .await?;
    }
    Ok(())
}
