//! Declares the topology: done at every opening of a link, so that a queue which was deleted is there again. A
//! declaration of what exists with the same arguments changes nothing.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};

use super::failure::Failure;
use super::shared::Shared;

/// Declares exchanges, queues and bindings. The dead-letter side comes first, so that jobs never lack it.
pub(super) async fn declare(channel: &Channel, shared: &Shared) -> Result<(), Failure> {
    let names = &shared.settings.topology;
    let declared = async {
        exchange(channel, &names.dead, ExchangeKind::Fanout).await?;
        queue(channel, &names.dead, dead_arguments()).await?;
        exchange(channel, &names.jobs, ExchangeKind::Direct).await?;
        queue(
            channel,
            &names.jobs,
            jobs_arguments(&names.dead, shared.settings.delivery_limit),
        )
        .await?;
        exchange(channel, &names.events, ExchangeKind::Topic).await
    };
    declared
        .await
        .map_err(|error| Failure::declaring(&error, &shared.address))
}

async fn exchange(channel: &Channel, name: &str, kind: ExchangeKind) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(name.into(), kind, options, FieldTable::default())
        .await
}

/// A queue, bound to the exchange of its name under its name.
async fn queue(channel: &Channel, name: &str, arguments: FieldTable) -> lapin::Result<()> {
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel.queue_declare(name.into(), options, arguments).await?;
    let name = ShortString::from(name);
    channel
        .queue_bind(
            name.clone(),
            name.clone(),
            name,
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
}

fn dead_arguments() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

/// At-least-once dead-lettering keeps a given-up job until the dead-letter queue has confirmed it. RabbitMQ grants that
/// only together with the overflow behaviour `reject-publish`.
fn jobs_arguments(dead: &str, delivery_limit: u32) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments.insert(
        "x-delivery-limit".into(),
        AMQPValue::LongLongInt(i64::from(delivery_limit)),
    );
    arguments.insert("x-dead-letter-exchange".into(), text(dead));
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}
