//! What becomes of jobs and events while RabbitMQ, or the way to it, fails.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::broker::{Broker, BrokerError, Consumer, Destination, Health, Outgoing, PublishError};
use countersign::broker::{RabbitMq, RabbitMqSettings};

use crate::broker_suite::{PATIENCE, job, message, next, publish};
use crate::chaos_proxy::{ChaosProxy, Mode};
use crate::eventually::eventually;
use crate::overheard::{Overheard, metrics};
use crate::rabbitmq::{Admin, RealBench, command, endpoint, settings, url_through};

/// A restart of the broker takes its time.
const RESTARTED: Duration = Duration::from_secs(90);
const HEARTBEAT: Duration = Duration::from_secs(2);

/// A broker that is reached through the proxy.
async fn behind(proxy: &ChaosProxy) -> RealBench {
    RealBench::new(through(proxy)).await
}

fn through(proxy: &ChaosProxy) -> RabbitMqSettings {
    RabbitMqSettings {
        url: url_through(proxy.address),
        heartbeat: HEARTBEAT,
        ..settings()
    }
}

fn passing() -> ChaosProxy {
    ChaosProxy::start(endpoint(), Mode::Pass)
}

async fn until_health(broker: &RabbitMq, patience: Duration, wanted: fn(&Health) -> bool) -> Health {
    let mut health = broker.health();
    let reached = tokio::time::timeout(patience, health.wait_for(wanted)).await;
    match reached {
        Ok(reached) => reached.unwrap().clone(),
        Err(_) => panic!("health stays {:?}", *broker.health().borrow()),
    }
}

fn up(health: &Health) -> bool {
    *health == Health::Up
}

fn down(health: &Health) -> bool {
    matches!(health, Health::Down(_))
}

fn blocked(health: &Health) -> bool {
    matches!(health, Health::Blocked(_))
}

/// A consumer that is known to consume: it got a job, and gave it up.
async fn consuming(bench: &RealBench, prefetch: u16) -> Box<dyn Consumer> {
    let mut consumer = bench.broker.consume(prefetch).await.unwrap();
    publish(&*bench.broker, vec![job("warm-up")]).await;
    next(&mut *consumer).await.acknowledge().await;
    consumer
}

/// Works jobs off until this one came.
async fn until_job(consumer: &mut dyn Consumer, body: &str) {
    loop {
        let delivery = next(consumer).await;
        let found = delivery.body == body.as_bytes();
        delivery.acknowledge().await;
        if found {
            return;
        }
    }
}

/// Publishes as the relay does: what is not confirmed is sent again, under its id, until all of it is.
async fn publish_stubbornly(broker: &dyn Broker, mut messages: Vec<Outgoing>) {
    let deadline = Instant::now() + RESTARTED;
    while !messages.is_empty() {
        assert!(
            Instant::now() < deadline,
            "{} are never confirmed",
            messages.len()
        );
        let results = broker.publish(messages.clone()).await;
        let open = messages
            .into_iter()
            .zip(results)
            .filter(|(_, result)| result.is_err());
        messages = open.map(|(message, _)| message).collect();
    }
}

#[tokio::test]
async fn case_h1_a_worker_that_starts_before_the_broker_waits_for_it() {
    let overheard = Overheard::listen();
    let proxy = ChaosProxy::start(endpoint(), Mode::Refuse);
    let connecting = tokio::spawn(RabbitMq::connect(through(&proxy)));
    eventually("three attempts", PATIENCE, || async {
        (overheard.lines("the broker cannot be reached").len() >= 3).then_some(())
    })
    .await;
    let attempts = overheard.lines("the broker cannot be reached");
    for (number, line) in attempts.iter().enumerate() {
        assert!(line.contains(&format!("attempt={}", number + 1)), "{line}");
        assert!(!line.contains("guest"), "{line}");
    }
    assert!(!connecting.is_finished());
    proxy.set(Mode::Pass);
    let broker = connecting.await.unwrap().unwrap();
    assert_eq!(*broker.health().borrow(), Health::Up);
    let mut consumer = broker.consume(1).await.unwrap();
    publish(&*broker, vec![job("first")]).await;
    next(&mut *consumer).await.acknowledge().await;
    broker.close().await;
}

#[tokio::test]
async fn case_h1_the_connect_timeout_ends_the_waiting() {
    let proxy = ChaosProxy::start(endpoint(), Mode::Refuse);
    let settings = RabbitMqSettings {
        connect_timeout: Duration::from_secs(1),
        ..through(&proxy)
    };
    let began = Instant::now();
    let error = RabbitMq::connect(settings).await.expect_err("connected");
    assert!(matches!(error, BrokerError::Unreachable { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_peer_that_accepts_and_says_nothing_is_given_up_and_leaves_no_thread() {
    let proxy = ChaosProxy::start(endpoint(), Mode::SwallowFromService);
    let settings = RabbitMqSettings {
        connect_timeout: Duration::from_secs(1),
        ..through(&proxy)
    };
    let error = RabbitMq::connect(settings).await.expect_err("connected");
    assert!(error.to_string().contains("handshake"), "{error}");
    let threads = || {
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter(is_lapin)
            .count()
    };
    eventually("lapin's thread to end", PATIENCE, || async {
        (threads() == 0).then_some(())
    })
    .await;
}

fn is_lapin(task: &std::io::Result<std::fs::DirEntry>) -> bool {
    let name = task
        .as_ref()
        .map(|task| std::fs::read_to_string(task.path().join("comm")));
    matches!(name, Ok(Ok(name)) if name.starts_with("lapin"))
}

async fn swallowed(mode: Mode) {
    let proxy = passing();
    let bench = behind(&proxy).await;
    let mut consumer = consuming(&bench, 1).await;
    proxy.set(mode);
    let began = Instant::now();
    until_health(&bench.broker, PATIENCE, down).await;
    // A second on top, for the machine's scheduling and the broker's own clock.
    assert!(
        began.elapsed() < HEARTBEAT * 2 + Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    proxy.set(Mode::Pass);
    // The other connection may be a moment behind in noticing.
    publish_stubbornly(&*bench.broker, vec![job("after")]).await;
    // The first job may come again: the link may have swallowed its acknowledgement.
    until_job(&mut *consumer, "after").await;
    until_health(&bench.broker, PATIENCE, up).await;
    bench.finish().await;
}

#[tokio::test]
async fn case_h2_a_link_that_swallows_what_the_broker_says_is_dead_within_two_heartbeats() {
    swallowed(Mode::SwallowFromService).await;
}

#[tokio::test]
async fn case_h2_a_link_that_swallows_what_we_say_is_dead_within_two_heartbeats() {
    swallowed(Mode::SwallowToService).await;
}

/// Makes the broker close channels whose deliveries are not settled within two seconds, until dropped state is reset.
async fn impatient_broker() {
    let settings = "application:set_env(rabbit, channel_tick_interval, 500), \
                    application:set_env(rabbit, consumer_timeout, 2000).";
    command("RABBITMQ_CTL", &["eval", settings]).await;
}

async fn patient_broker() {
    let settings = "application:set_env(rabbit, channel_tick_interval, 60000), \
                    application:set_env(rabbit, consumer_timeout, 1800000).";
    command("RABBITMQ_CTL", &["eval", settings]).await;
}

#[tokio::test]
async fn case_h3_case_g7_a_channel_closed_by_the_brokers_consumer_timeout_is_made_again() {
    metrics();
    impatient_broker().await;
    let bench = RealBench::new(settings()).await;
    let mut consumer = consuming(&bench, 1).await;
    publish(&*bench.broker, vec![job("long")]).await;
    let slow = next(&mut *consumer).await;
    until_health(&bench.broker, RESTARTED, down).await;
    patient_broker().await;
    let again = next(&mut *consumer).await;
    assert_eq!((&again.body, again.came_before), (&slow.body, 1));
    // The first handler ends only now: its acknowledgement reaches nothing.
    slow.acknowledge().await;
    again.acknowledge().await;
    publish(&*bench.broker, vec![job("next")]).await;
    assert_eq!(next(&mut *consumer).await.body, b"next");
    let counted = metrics().render();
    let line = "countersign_broker_rebuilds_total{part=\"consumer\",reason=\"consumer_timeout\"} 1";
    assert!(counted.contains(line), "{counted}");
    bench.finish().await;
}

#[tokio::test]
async fn case_h4_a_queue_that_is_deleted_while_consuming_is_made_again() {
    let overheard = Overheard::listen();
    let bench = RealBench::new(settings()).await;
    let mut consumer = consuming(&bench, 5).await;
    for round in 1..=2 {
        bench.admin.delete_jobs().await;
        publish_stubbornly(&*bench.broker, vec![job("after")]).await;
        let delivery = next(&mut *consumer).await;
        assert_eq!(delivery.body, b"after");
        delivery.acknowledge().await;
        assert_eq!(
            overheard
                .lines("the queue was deleted; it is declared again")
                .len(),
            round
        );
    }
    until_health(&bench.broker, PATIENCE, up).await;
    bench.finish().await;
}

#[tokio::test]
async fn case_h5_an_acknowledgement_from_before_the_cut_never_reaches_the_new_delivery() {
    let proxy = passing();
    let bench = behind(&proxy).await;
    let mut consumer = bench.broker.consume(1).await.unwrap();
    publish(&*bench.broker, vec![job("turn")]).await;
    let before = next(&mut *consumer).await;
    proxy.cut();
    // The first delivery of its channel again, and so under the same tag.
    let after = next(&mut *consumer).await;
    assert_eq!((&after.body, after.came_before), (&before.body, 1));
    before.acknowledge().await;
    drop(after);
    let again = next(&mut *consumer).await;
    assert_eq!((again.body.as_slice(), again.came_before), (&b"turn"[..], 2));
    again.acknowledge().await;
    bench.finish().await;
}

#[tokio::test]
async fn an_outage_is_said_once_and_its_end_once() {
    let overheard = Overheard::listen();
    let proxy = passing();
    let bench = behind(&proxy).await;
    let mut consumer = consuming(&bench, 1).await;
    proxy.set(Mode::Refuse);
    proxy.cut();
    until_health(&bench.broker, PATIENCE, down).await;
    // Some attempts fail meanwhile.
    let refused = bench.broker.publish(vec![job("meanwhile")]).await;
    assert!(
        matches!(refused[..], [Err(PublishError::Unconfirmed(_))]),
        "{refused:?}"
    );
    proxy.set(Mode::Pass);
    until_health(&bench.broker, PATIENCE, up).await;
    for text in ["broker link lost", "broker link is back"] {
        let lines = overheard.lines(text);
        assert_eq!(lines.len(), 2, "once for each connection: {lines:?}");
    }
    publish(&*bench.broker, vec![job("after")]).await;
    assert_eq!(next(&mut *consumer).await.body, b"after");
    bench.finish().await;
}

#[tokio::test]
async fn case_h6_a_memory_alarm_blocks_publishing_and_not_consuming() {
    let settings = RabbitMqSettings {
        confirm_timeout: Duration::from_secs(2),
        heartbeat: HEARTBEAT,
        ..settings()
    };
    let bench = RealBench::new(settings).await;
    let mut consumer = consuming(&bench, 1).await;
    publish(&*bench.broker, vec![job("before"), job("then")]).await;
    command("RABBITMQ_CTL", &["set_vm_memory_high_watermark", "0.00001"]).await;
    let waiting: Vec<_> = (0..5).map(|number| job(&format!("waiting {number}"))).collect();
    let unconfirmed = |results: Vec<Result<(), PublishError>>| {
        results
            .iter()
            .all(|result| matches!(result, Err(PublishError::Unconfirmed(_))))
    };
    // The broker blocks at the first publish, which may still get through.
    eventually("the broker to block", RESTARTED, || async {
        bench.broker.publish(vec![job("probe")]).await;
        blocked(&bench.broker.health().borrow()).then_some(())
    })
    .await;
    let began = Instant::now();
    assert!(unconfirmed(bench.broker.publish(waiting.clone()).await));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    // It stays blocked beyond the heartbeats, and consuming goes on.
    assert!(unconfirmed(bench.broker.publish(waiting.clone()).await));
    assert!(unconfirmed(bench.broker.publish(waiting.clone()).await));
    until_health(&bench.broker, PATIENCE, blocked).await;
    for body in ["before", "then"] {
        let delivery = next(&mut *consumer).await;
        assert_eq!(delivery.body, body.as_bytes());
        delivery.acknowledge().await;
    }
    command("RABBITMQ_CTL", &["set_vm_memory_high_watermark", "0.6"]).await;
    publish_stubbornly(&*bench.broker, waiting.clone()).await;
    until_health(&bench.broker, PATIENCE, up).await;
    let mut missing: HashSet<_> = waiting.iter().map(|job| job.id.to_string()).collect();
    while !missing.is_empty() {
        let delivery = next(&mut *consumer).await;
        missing.remove(delivery.message_id.as_deref().unwrap());
        delivery.acknowledge().await;
    }
    bench.finish().await;
}

#[tokio::test]
async fn case_h7_a_cut_with_1500_publishes_under_way_loses_no_event() {
    let proxy = passing();
    let bench = behind(&proxy).await;
    let events: Vec<_> = (0..1_500)
        .map(|number| {
            message(
                Destination::Events("run.approved"),
                &format!("{{\"n\":{number}}}"),
            )
        })
        .collect();
    // About 200 bytes each: the line breaks in the midst of the batch.
    proxy.cut_after(100_000);
    let results = bench.broker.publish(events.clone()).await;
    let confirmed: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert!(confirmed.contains(&false), "the cut came too late");
    let open = events
        .iter()
        .zip(&confirmed)
        .filter(|(_, confirmed)| !**confirmed);
    publish_stubbornly(&*bench.broker, open.map(|(event, _)| event.clone()).collect()).await;
    let mut missing: HashSet<_> = events.iter().map(|event| event.id.to_string()).collect();
    let tap = bench.admin.tap_events().await;
    while let Some(event) = bench.admin.get(&tap).await {
        missing.remove(event.delivery.properties.message_id().as_ref().unwrap().as_str());
    }
    assert!(missing.is_empty(), "{} are lost", missing.len());
    bench.finish().await;
}

#[tokio::test]
async fn case_h15_a_message_beyond_the_brokers_own_maximum_never_reaches_the_channel() {
    let overheard = Overheard::listen();
    let bench = RealBench::new(settings()).await;
    let limit = settings().max_message_bytes;
    let huge = message(Destination::Events("run.completed"), &"x".repeat(limit + 1));
    let results = bench.broker.publish(vec![job("a"), huge, job("b")]).await;
    assert_eq!(
        results,
        [
            Ok(()),
            Err(PublishError::TooLarge {
                bytes: limit + 1,
                limit
            }),
            Ok(())
        ]
    );
    assert!(overheard.lines("broker link lost").is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn case_g20_a_restart_in_mid_load_loses_no_job() {
    let settings = settings();
    let topology = settings.topology.clone();
    let broker = RabbitMq::connect(settings).await.unwrap();
    let jobs: Vec<_> = (0..400).map(|number| job(&number.to_string())).collect();
    let ids: HashSet<_> = jobs.iter().map(|job| job.id.to_string()).collect();
    let mut consumer = broker.consume(20).await.unwrap();
    let publishing = tokio::spawn({
        let broker = Arc::clone(&broker);
        async move {
            for batch in jobs.chunks(10) {
                publish_stubbornly(&*broker, batch.to_vec()).await;
            }
        }
    });
    let mut missing = ids.clone();
    let mut restarting = None;
    let deadline = Instant::now() + RESTARTED * 2;
    while !missing.is_empty() {
        assert!(Instant::now() < deadline, "{} are missing", missing.len());
        let Ok(delivery) = tokio::time::timeout(RESTARTED, consumer.next()).await else {
            panic!("{} never came", missing.len());
        };
        let delivery = delivery.unwrap();
        missing.remove(delivery.message_id.as_deref().unwrap());
        delivery.acknowledge().await;
        if missing.len() < 300 && restarting.is_none() {
            restarting = Some(tokio::spawn(command("RABBITMQ_RESTART", &[])));
        }
    }
    publishing.await.unwrap();
    restarting.unwrap().await.unwrap();
    until_health(&broker, RESTARTED, up).await;
    broker.close().await;
    let admin = Admin::connect(topology.clone()).await;
    assert!(
        admin.get(&topology.dead).await.is_none(),
        "a job was dead-lettered"
    );
    admin.tap_events().await;
    admin.clean_up().await;
}
