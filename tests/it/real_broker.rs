//! RabbitMQ keeps every promise of the suite, and a broker that is not as it should be is said at the start.

use std::time::{Duration, Instant};

use countersign::broker::{
    Broker as _, BrokerError, Destination, Health, PublishError, RabbitMq, RabbitMqSettings,
};
use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};

use crate::broker_suite::{DELIVERY_LIMIT, MAX_MESSAGE_BYTES, PATIENCE, conformance, job, message, publish};
use crate::eventually::eventually;
use crate::rabbitmq::{Admin, RealBench, service, settings};

async fn bench() -> RealBench {
    RealBench::new(RabbitMqSettings {
        delivery_limit: DELIVERY_LIMIT,
        max_message_bytes: MAX_MESSAGE_BYTES,
        ..settings()
    })
    .await
}

conformance!(bench, RealBench::finish);

/// The text with which a start is refused, within ten seconds.
async fn refused(settings: RabbitMqSettings) -> String {
    let began = Instant::now();
    let error = RabbitMq::connect(settings).await.expect_err("connected");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    match error {
        BrokerError::Misconfigured(text) => text,
        other => panic!("taken for something that passes: {other}"),
    }
}

fn at(change: impl FnOnce(&mut url::Url)) -> RabbitMqSettings {
    let mut url: url::Url = service("AMQP_URL").parse().unwrap();
    change(&mut url);
    RabbitMqSettings {
        url: url.into(),
        ..settings()
    }
}

#[tokio::test]
async fn a_wrong_password_stops_the_start_and_is_not_shown() {
    let text = refused(at(|url| url.set_password(Some("hunter2")).unwrap())).await;
    assert!(text.contains("password") && text.contains("guest"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_vhost_that_is_not_there_stops_the_start() {
    let text = refused(at(|url| url.set_path("/nowhere"))).await;
    assert!(text.contains("rabbitmqctl add_vhost 'nowhere'"), "{text}");
}

#[tokio::test]
async fn a_malformed_address_stops_the_start() {
    let text = refused(RabbitMqSettings::new("amqp://guest:hunter2@host:port/")).await;
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_given_up_at_the_timeout() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let settings = RabbitMqSettings {
        connect_timeout: Duration::from_secs(1),
        ..RabbitMqSettings::new(format!("amqp://guest:hunter2@{address}/%2f"))
    };
    let error = RabbitMq::connect(settings)
        .await
        .expect_err("connected")
        .to_string();
    assert!(error.contains(&address) && error.contains("refused"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_queue_with_other_arguments_stops_the_start_and_is_explained() {
    let settings = settings();
    let topology = settings.topology.clone();
    RealBench::new(settings.clone()).await.broker.close().await;
    let text = refused(RabbitMqSettings {
        delivery_limit: 7,
        ..settings
    })
    .await;
    for part in [
        topology.jobs.as_str(),
        "x-delivery-limit",
        "'7'",
        "'20'",
        "--if-empty",
    ] {
        assert!(text.contains(part), "{text}");
    }
    Admin::connect(topology).await.clean_up().await;
}

#[tokio::test]
async fn a_classic_queue_under_our_name_stops_the_start_and_is_explained() {
    let settings = settings();
    let admin = Admin::connect(settings.topology.clone()).await;
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let jobs = settings.topology.jobs.as_str();
    admin
        .channel()
        .queue_declare(jobs.into(), options, FieldTable::default())
        .await
        .unwrap();
    let text = refused(settings.clone()).await;
    assert!(
        text.contains(&format!("the queue {jobs} exists with another x-")),
        "{text}"
    );
    admin.clean_up().await;
}

#[tokio::test]
async fn an_exchange_of_another_kind_stops_the_start_and_is_explained() {
    let settings = settings();
    let admin = Admin::connect(settings.topology.clone()).await;
    let events = settings.topology.events.as_str();
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    admin
        .channel()
        .exchange_declare(
            events.into(),
            ExchangeKind::Direct,
            options,
            FieldTable::default(),
        )
        .await
        .unwrap();
    let text = refused(settings.clone()).await;
    assert!(
        text.contains(&format!("the exchange {events} exists with another type")),
        "{text}"
    );
    assert!(text.contains("rabbit_exchange:delete"), "{text}");
    admin.clean_up().await;
}

#[tokio::test]
async fn a_job_that_no_queue_takes_is_told_and_the_queue_made_again() {
    let bench = bench().await;
    bench.admin.delete_jobs().await;
    let jobs = (0..20).map(|number| job(&number.to_string())).collect();
    let mut messages: Vec<_> = jobs;
    // Events are not mandatory: they must not be taken for the jobs that come back.
    messages.insert(3, message(Destination::Events("run.queued"), "{}"));
    let results = bench.broker.publish(messages.clone()).await;
    for (place, result) in results.iter().enumerate() {
        let expected = if place == 3 {
            Ok(())
        } else {
            Err(PublishError::Unroutable)
        };
        assert_eq!(*result, expected, "{place}");
    }
    // Nobody consumes here, so the queue is made again from this side, once it has been missing for a while.
    crate::eventually::eventually("all of it is taken", PATIENCE, || async {
        let results = bench.broker.publish(messages.clone()).await;
        results.iter().all(Result::is_ok).then_some(())
    })
    .await;
    assert_eq!(*bench.broker.health().borrow(), Health::Up);
    bench.finish().await;
}

#[tokio::test]
async fn messages_are_persistent_and_named() {
    let bench = bench().await;
    let event = message(Destination::Events("run.queued"), "{}");
    publish(&*bench.broker, vec![event.clone()]).await;
    let tap = bench.admin.tap_events().await;
    let seen = eventually("the event", PATIENCE, || bench.admin.get(&tap)).await;
    let properties = seen.delivery.properties;
    let text = |value: &Option<lapin::types::ShortString>| value.as_ref().map(ToString::to_string);
    assert_eq!(properties.delivery_mode(), &Some(2));
    assert_eq!(
        text(properties.content_type()).as_deref(),
        Some("application/json")
    );
    assert_eq!(text(properties.message_id()), Some(event.id.to_string()));
    assert_eq!(text(properties.app_id()).as_deref(), Some("countersign"));
    bench.finish().await;
}

#[tokio::test]
async fn a_foreign_message_without_an_id_is_delivered_and_can_be_dead_lettered() {
    let bench = bench().await;
    let mut headers = FieldTable::default();
    headers.insert("x-delivery-count".into(), AMQPValue::LongString("many".into()));
    let properties = lapin::BasicProperties::default().with_headers(headers);
    let jobs = bench.admin.topology().jobs.clone();
    let options = lapin::options::BasicPublishOptions::default();
    let channel = bench.admin.channel();
    channel
        .basic_publish(
            "".into(),
            jobs.as_str().into(),
            options,
            &[0xff, 0xfe],
            properties,
        )
        .await
        .unwrap();
    let mut consumer = bench.broker.consume(1).await.unwrap();
    let delivery = crate::broker_suite::next(&mut *consumer).await;
    assert_eq!((delivery.message_id.as_deref(), delivery.came_before), (None, 0));
    delivery.dead_letter("invalid_job").await;
    let dead = eventually("a dead letter", PATIENCE, || {
        crate::broker_suite::Bench::next_dead(&bench)
    })
    .await;
    assert_eq!((dead.message_id, dead.body.as_slice()), (None, &[0xff, 0xfe][..]));
    bench.finish().await;
}
