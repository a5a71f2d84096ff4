//! What every broker promises. Each function here is one promise; `conformance!` plays them all against one kind of
//! broker.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign::broker::{Broker, Consumer, Delivery, Destination, Outgoing, PublishError};
use countersign::clock::{Clock as _, SystemClock};
use tokio::time::timeout;
use uuid::Uuid;

use crate::eventually::eventually;

/// How long anything may take that is bound to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must happen. Too short a time can hide a fault, never invent one.
const A_WHILE: Duration = Duration::from_millis(300);
/// The limits that brokers under test are given.
pub const DELIVERY_LIMIT: u32 = 3;
pub const MAX_MESSAGE_BYTES: usize = 1_000;

/// A broker under test, and ways to look behind it.
#[async_trait]
pub trait Bench: Send + Sync {
    fn broker(&self) -> Arc<dyn Broker>;
    /// Takes the oldest dead letter.
    async fn next_dead(&self) -> Option<Dead>;
    /// Takes the oldest event: its routing key and body.
    async fn next_event(&self) -> Option<(String, Vec<u8>)>;
}

/// A dead letter, seen from outside.
#[derive(Debug, PartialEq, Eq)]
pub struct Dead {
    pub reason: String,
    pub message_id: Option<String>,
    pub body: Vec<u8>,
}

/// An id that nobody else has.
pub fn fresh_id() -> Uuid {
    SystemClock.new_id()
}

/// A job with this body.
pub fn job(body: &str) -> Outgoing {
    message(Destination::Jobs, body)
}

/// A message with a fresh id.
pub fn message(destination: Destination, body: &str) -> Outgoing {
    Outgoing {
        id: fresh_id().into(),
        destination,
        body: body.as_bytes().to_vec(),
        earlier: 0,
    }
}

/// Publishes, and insists that all of it is confirmed.
pub async fn publish(broker: &dyn Broker, messages: Vec<Outgoing>) {
    for result in broker.publish(messages).await {
        result.unwrap();
    }
}

/// The next delivery.
pub async fn next(consumer: &mut dyn Consumer) -> Delivery {
    let next = timeout(PATIENCE, consumer.next()).await;
    next.expect("no delivery came").expect("the consumer has ended")
}

/// Insists that nothing comes for a while.
async fn nothing(consumer: &mut dyn Consumer) {
    if let Ok(came) = timeout(A_WHILE, consumer.next()).await {
        panic!("came: {came:?}");
    }
}

fn text(delivery: &Delivery) -> &str {
    std::str::from_utf8(&delivery.body).unwrap()
}

async fn dead(bench: &dyn Bench) -> Dead {
    eventually("a dead letter", PATIENCE, || bench.next_dead()).await
}

pub async fn jobs_come_in_their_order_with_their_ids(bench: &dyn Bench) {
    let broker = bench.broker();
    let jobs: Vec<_> = (0..20).map(|number| job(&format!("job {number}"))).collect();
    publish(&*broker, jobs.clone()).await;
    let mut consumer = broker.consume(5).await.unwrap();
    for sent in jobs {
        let delivery = next(&mut *consumer).await;
        assert_eq!(delivery.body, sent.body);
        assert_eq!(delivery.message_id, Some(sent.id.to_string()));
        assert_eq!(delivery.came_before, 0);
        delivery.acknowledge().await;
    }
    nothing(&mut *consumer).await;
}

pub async fn an_acknowledged_job_is_gone(bench: &dyn Bench) {
    let broker = bench.broker();
    publish(&*broker, vec![job("once")]).await;
    let mut first = broker.consume(1).await.unwrap();
    next(&mut *first).await.acknowledge().await;
    first.stop().await;
    nothing(&mut *broker.consume(1).await.unwrap()).await;
}

pub async fn no_more_than_the_prefetch_is_out(bench: &dyn Bench) {
    let broker = bench.broker();
    publish(&*broker, (0..5).map(|number| job(&number.to_string())).collect()).await;
    let mut consumer = broker.consume(2).await.unwrap();
    let first = next(&mut *consumer).await;
    let _second = next(&mut *consumer).await;
    nothing(&mut *consumer).await;
    first.acknowledge().await;
    assert_eq!(text(&next(&mut *consumer).await), "2");
}

pub async fn a_requeued_job_comes_again_and_is_counted(bench: &dyn Bench) {
    let broker = bench.broker();
    publish(&*broker, vec![job("again")]).await;
    let mut consumer = broker.consume(1).await.unwrap();
    for redeliveries in 0..=DELIVERY_LIMIT {
        let delivery = next(&mut *consumer).await;
        assert_eq!(delivery.came_before, redeliveries);
        match redeliveries {
            DELIVERY_LIMIT => delivery.acknowledge().await,
            _ => delivery.requeue().await,
        }
    }
    nothing(&mut *consumer).await;
    assert_eq!(bench.next_dead().await, None);
}

pub async fn a_dropped_job_comes_again(bench: &dyn Bench) {
    let broker = bench.broker();
    publish(&*broker, vec![job("dropped")]).await;
    let mut consumer = broker.consume(1).await.unwrap();
    drop(next(&mut *consumer).await);
    let delivery = next(&mut *consumer).await;
    assert_eq!((text(&delivery), delivery.came_before), ("dropped", 1));
    delivery.acknowledge().await;
}

pub async fn case_g8_a_job_that_panics_every_time_ends_as_a_dead_letter(bench: &dyn Bench) {
    let broker = bench.broker();
    let poison = job("poison");
    publish(&*broker, vec![poison.clone(), job("good")]).await;
    let mut consumer = broker.consume(1).await.unwrap();
    let mut panics = 0;
    loop {
        let delivery = next(&mut *consumer).await;
        if text(&delivery) == "good" {
            delivery.acknowledge().await;
            break;
        }
        let handler = tokio::spawn(async move { panic!("while handling {delivery:?}") });
        assert!(handler.await.unwrap_err().is_panic());
        panics += 1;
    }
    assert_eq!(panics, DELIVERY_LIMIT + 1);
    let dead = dead(bench).await;
    assert!(dead.reason.starts_with("delivery_limit"), "{}", dead.reason);
    assert_eq!(
        (dead.body, dead.message_id),
        (poison.body, Some(poison.id.to_string()))
    );
}

pub async fn a_dead_letter_keeps_body_and_id_and_says_why(bench: &dyn Bench) {
    let broker = bench.broker();
    let broken = job("{\"v\":9}");
    publish(&*broker, vec![broken.clone()]).await;
    let mut consumer = broker.consume(1).await.unwrap();
    next(&mut *consumer)
        .await
        .dead_letter("invalid_job: v is 9")
        .await;
    let expected = Dead {
        reason: "invalid_job: v is 9".to_owned(),
        message_id: Some(broken.id.to_string()),
        body: broken.body,
    };
    assert_eq!(dead(bench).await, expected);
    nothing(&mut *consumer).await;
}

pub async fn a_stopped_consumer_gives_back_what_it_did_not_hand_out(bench: &dyn Bench) {
    let broker = bench.broker();
    publish(&*broker, (0..4).map(|number| job(&number.to_string())).collect()).await;
    let mut stopping = broker.consume(3).await.unwrap();
    let held = next(&mut *stopping).await;
    stopping.stop().await;
    assert!(stopping.next().await.is_none());
    let mut other = broker.consume(10).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..3 {
        let delivery = next(&mut *other).await;
        others.push(text(&delivery).to_owned());
        delivery.acknowledge().await;
    }
    others.sort();
    assert_eq!(others, ["1", "2", "3"]);
    assert_eq!(text(&held), "0");
    held.acknowledge().await;
    nothing(&mut *other).await;
    stopping.stop().await;
}

pub async fn next_can_be_cancelled_without_losing_a_job(bench: &dyn Bench) {
    let broker = bench.broker();
    let mut consumer = broker.consume(1).await.unwrap();
    for number in 0..50 {
        let sent = job(&number.to_string());
        let mut came = None;
        let published = async { publish(&*broker, vec![sent.clone()]).await };
        tokio::pin!(published);
        let mut done = false;
        while came.is_none() {
            tokio::select! {
                biased;
                () = &mut published, if !done => done = true,
                delivery = consumer.next() => came = delivery,
                () = tokio::task::yield_now() => {}
            }
        }
        if !done {
            published.await;
        }
        let delivery = came.unwrap();
        assert_eq!((&delivery.body, delivery.came_before), (&sent.body, 0));
        delivery.acknowledge().await;
    }
}

pub async fn events_go_out_under_their_routing_key(bench: &dyn Bench) {
    let broker = bench.broker();
    let events = ["run.approved", "run.denied"].map(|key| message(Destination::Events(key), key));
    publish(&*broker, events.to_vec()).await;
    for key in ["run.approved", "run.denied"] {
        let (routing_key, body) = eventually("an event", PATIENCE, || bench.next_event()).await;
        assert_eq!((routing_key.as_str(), body.as_slice()), (key, key.as_bytes()));
    }
    nothing(&mut *broker.consume(1).await.unwrap()).await;
}

pub async fn case_h15_a_message_that_is_too_large_stops_no_other(bench: &dyn Bench) {
    let broker = bench.broker();
    let large = job(&"x".repeat(MAX_MESSAGE_BYTES + 1));
    let largest = job(&"x".repeat(MAX_MESSAGE_BYTES));
    let results = broker
        .publish(vec![job("before"), large, largest, job("after")])
        .await;
    let refused = PublishError::TooLarge {
        bytes: MAX_MESSAGE_BYTES + 1,
        limit: MAX_MESSAGE_BYTES,
    };
    assert_eq!(results, [Ok(()), Err(refused), Ok(()), Ok(())]);
    let mut consumer = broker.consume(5).await.unwrap();
    for bytes in [6, MAX_MESSAGE_BYTES, 5] {
        let delivery = next(&mut *consumer).await;
        assert_eq!(delivery.body.len(), bytes);
        delivery.acknowledge().await;
    }
}

pub async fn closing_ends_the_consumer_and_refuses_everything(bench: &dyn Bench) {
    let broker = bench.broker();
    publish(&*broker, vec![job("held")]).await;
    let mut consumer = broker.consume(1).await.unwrap();
    let held = next(&mut *consumer).await;
    broker.close().await;
    assert!(timeout(PATIENCE, consumer.next()).await.unwrap().is_none());
    held.acknowledge().await;
    assert!(broker.consume(1).await.is_err());
    assert!(matches!(
        broker.publish(vec![job("late")]).await[..],
        [Err(PublishError::Unconfirmed(_))]
    ));
    broker.close().await;
}

/// Plays every promise against the broker that `$bench` makes and `$finish` takes away again.
macro_rules! conformance {
    ($bench:path, $finish:path) => {
        $crate::broker_suite::conformance! {
            $bench, $finish:
            jobs_come_in_their_order_with_their_ids,
            an_acknowledged_job_is_gone,
            no_more_than_the_prefetch_is_out,
            a_requeued_job_comes_again_and_is_counted,
            a_dropped_job_comes_again,
            case_g8_a_job_that_panics_every_time_ends_as_a_dead_letter,
            a_dead_letter_keeps_body_and_id_and_says_why,
            a_stopped_consumer_gives_back_what_it_did_not_hand_out,
            next_can_be_cancelled_without_losing_a_job,
            events_go_out_under_their_routing_key,
            case_h15_a_message_that_is_too_large_stops_no_other,
            closing_ends_the_consumer_and_refuses_everything,
        }
    };
    ($bench:path, $finish:path: $($promise:ident,)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let bench = $bench().await;
                $crate::broker_suite::$promise(&bench).await;
                $finish(bench).await;
            }
        )*
    };
}
pub(crate) use conformance;
