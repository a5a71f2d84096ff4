//! Takes jobs: one task per consumer that subscribes, passes deliveries on, and subscribes anew on any error, on the end
//! of the stream (a deleted queue ends it without one) and on silence (lapin's heartbeat turns it into an error).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use lapin::message::Delivery as AmqpDelivery;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use super::board::Part;
use super::failure::Failure;
use super::link::Link;
use super::publisher::Publisher;
use super::rebuild::Rebuilder;
use super::receipt::AmqpReceipt;
use super::shared::Shared;
use crate::broker::topology::EARLIER_HEADER;
use crate::broker::{Consumer, Delivery, Health};

/// How long the broker may take to answer a cancel, before the connection's end has to do.
const CANCELLING: Duration = Duration::from_secs(3);

/// The receiving end of a consumer's task.
pub(super) struct AmqpConsumer {
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    closed: CancellationToken,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    _stop_when_dropped: DropGuard,
}

/// A delivery that was not handed out yet.
struct Arrival {
    body: Vec<u8>,
    message_id: Option<String>,
    came_before: u32,
    receipt: AmqpReceipt,
}

impl AmqpConsumer {
    /// Starts to take jobs, at most `prefetch` of them unsettled.
    pub(super) fn start(shared: Arc<Shared>, publisher: Arc<Publisher>, prefetch: u16) -> Self {
        // Unbounded here, since the broker bounds it: it sends no more than `prefetch` at a time.
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let closed = shared.closed.clone();
        let part = shared.new_consumer();
        let taker = Taker {
            shared,
            publisher,
            part,
            prefetch: prefetch.max(1),
            stop: stop.clone(),
            arrived,
        };
        let task = Some(tokio::spawn(taker.run()));
        Self {
            arrivals,
            closed,
            stop: stop.clone(),
            task,
            _stop_when_dropped: stop.drop_guard(),
        }
    }
}

#[async_trait]
impl Consumer for AmqpConsumer {
    async fn next(&mut self) -> Option<Delivery> {
        loop {
            let arrival = tokio::select! {
                biased;
                () = self.closed.cancelled() => None,
                arrival = self.arrivals.recv() => arrival,
            };
            let Arrival {
                body,
                message_id,
                came_before,
                receipt,
            } = arrival?;
            if receipt.stands() {
                return Some(Delivery {
                    body,
                    message_id,
                    came_before,
                    receipt: Box::new(receipt),
                });
            }
            debug!("a delivery is skipped whose channel is gone; the broker delivers it again");
        }
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // It cannot panic over what others do; if it does, its end is all that is wanted here.
            let _ = task.await;
        }
        self.arrivals.close();
        // Dropped unsettled, they go back to the queue.
        while self.arrivals.try_recv().is_ok() {}
    }
}

/// The task behind a consumer.
struct Taker {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    part: Part,
    prefetch: u16,
    stop: CancellationToken,
    arrived: mpsc::UnboundedSender<Arrival>,
}

/// A link and what comes over it.
struct Subscription {
    link: Arc<Link>,
    deliveries: lapin::Consumer,
}

impl Taker {
    async fn run(self) {
        tokio::select! {
            () = self.shared.closed.cancelled() => {}
            () = self.take() => {}
        }
        self.shared.board.remove(self.part);
    }

    async fn take(&self) {
        self.shared
            .board
            .set(self.part, Health::Down("not consuming yet".to_owned()));
        let mut rebuilder = Rebuilder::new(Arc::clone(&self.shared), self.part);
        let mut subscribed = self.subscribe().await;
        loop {
            let subscription = match subscribed {
                Ok(subscription) => subscription,
                Err(failure) => {
                    let again = tokio::select! {
                        () = self.stop.cancelled() => None,
                        again = rebuilder.rebuild(failure, || self.subscribe()) => again,
                    };
                    let Some(again) = again else { return };
                    again
                }
            };
            self.shared.board.set(self.part, Health::Up);
            let Subscription { link, mut deliveries } = subscription;
            tokio::select! {
                () = self.stop.cancelled() => return self.cancel(&link, deliveries).await,
                lost = self.pass_on(&link, &mut deliveries) => subscribed = Err(lost),
            }
            tokio::spawn(async move { link.close().await });
        }
    }

    async fn subscribe(&self) -> Result<Subscription, Failure> {
        let link = Link::open(&self.shared, self.part).await?;
        let jobs = self.shared.settings.topology.jobs.as_str();
        let subscribed = async {
            link.channel
                .basic_qos(self.prefetch, BasicQosOptions::default())
                .await?;
            let options = BasicConsumeOptions::default();
            link.channel
                .basic_consume(jobs.into(), "".into(), options, FieldTable::default())
                .await
        };
        match subscribed.await {
            Ok(deliveries) => Ok(Subscription { link, deliveries }),
            Err(error) => Err(Failure::in_use(&error)),
        }
    }

    /// Passes deliveries on until there are no more.
    async fn pass_on(&self, link: &Arc<Link>, deliveries: &mut lapin::Consumer) -> Failure {
        loop {
            match deliveries.next().await {
                Some(Ok(delivery)) => {
                    let receipt = AmqpReceipt::new(
                        delivery.acker.clone(),
                        Arc::clone(link),
                        Arc::clone(&self.publisher),
                    );
                    // Nobody receives any more when the consumer was dropped; the delivery then goes back.
                    drop(self.arrived.send(arrival(delivery, receipt)));
                }
                Some(Err(error)) => return Failure::in_use(&error),
                None => {
                    warn!(
                        queue = self.shared.settings.topology.jobs,
                        "the queue was deleted; it is declared again"
                    );
                    return Failure::passing("queue_deleted", "the stream of deliveries ended");
                }
            }
        }
    }

    /// Takes no more: what came and was not passed on goes back.
    async fn cancel(&self, link: &Arc<Link>, mut deliveries: lapin::Consumer) {
        let cancelled = link
            .channel
            .basic_cancel(deliveries.tag(), BasicCancelOptions::default());
        if !matches!(timeout(CANCELLING, cancelled).await, Ok(Ok(()))) {
            return link.close().await;
        }
        while let Ok(Some(Ok(delivery))) = timeout(CANCELLING, deliveries.next()).await {
            let acker = delivery.acker.clone();
            drop(AmqpReceipt::new(
                acker,
                Arc::clone(link),
                Arc::clone(&self.publisher),
            ));
        }
    }
}

fn arrival(delivery: AmqpDelivery, receipt: AmqpReceipt) -> Arrival {
    let AmqpDelivery {
        properties,
        redelivered,
        data,
        ..
    } = delivery;
    let counted = |header: &str| {
        let headers = properties.headers().as_ref()?;
        headers.inner().get(header).and_then(whole_number)
    };
    let redeliveries = counted("x-delivery-count").unwrap_or(u32::from(redelivered));
    // Anybody who may publish can write any number here.
    let came_before = redeliveries.saturating_add(counted(EARLIER_HEADER).unwrap_or_default());
    Arrival {
        body: data,
        message_id: properties.message_id().as_ref().map(ToString::to_string),
        came_before,
        receipt,
    }
}

fn whole_number(value: &AMQPValue) -> Option<u32> {
    match *value {
        AMQPValue::LongLongInt(number) => u32::try_from(number).ok(),
        AMQPValue::LongInt(number) => u32::try_from(number).ok(),
        AMQPValue::LongUInt(number) => Some(number),
        AMQPValue::ShortInt(number) => u32::try_from(number).ok(),
        AMQPValue::ShortUInt(number) => Some(u32::from(number)),
        AMQPValue::ShortShortUInt(number) => Some(u32::from(number)),
        AMQPValue::ShortShortInt(number) => u32::try_from(number).ok(),
        _ => None,
    }
}
