//! A tool behind a URL is called once per attempt, under one key, with the bytes the model sent; and what
//! came of the call is never told better or worse than it is known.

use std::sync::Arc;
use std::time::Duration;

use countersign::catalogue::{CredentialSource, DataClass, HttpTool, Tool, ToolKind};
use countersign::clock::SystemClock;
use countersign::engine::tools::{Call, CallEnd, Caller as _, HttpCaller};
use countersign::model::{Actor, Effect, PendingCall, RunId};
use serde_json::value::RawValue;
use tokio::net::TcpListener;

use crate::servers::ToolServer;

const RUN: u128 = 0x0192_0000_0000_7000_8000_0000_0000_0001;

/// One call, as a test varies it.
struct Attempted {
    url: String,
    effect: Effect,
    arguments: String,
    bearer: Option<CredentialSource>,
    max_response_bytes: usize,
    result_limit: usize,
    timeout: Duration,
}

impl Attempted {
    fn new(url: String, effect: Effect) -> Self {
        Self {
            url,
            effect,
            arguments: "{}".to_owned(),
            bearer: None,
            max_response_bytes: 1 << 20,
            result_limit: 1 << 20,
            timeout: Duration::from_secs(20),
        }
    }

    async fn end(self) -> CallEnd {
        rustls::crypto::ring::default_provider().install_default().ok();
        let tool = Tool {
            name: "refund".into(),
            description: String::new(),
            kind: ToolKind::Http(HttpTool {
                url: self.url,
                bearer: self.bearer,
                max_response_bytes: self.max_response_bytes,
            }),
            effect: self.effect,
            data_class: DataClass::Internal,
            enabled: true,
            requires_admin: false,
            groups: Vec::new(),
            requires_approval: false,
            parameters: RawValue::from_string("{}".to_owned()).unwrap(),
            timeout: self.timeout,
        };
        let call = PendingCall {
            id: "c1".into(),
            tool: "refund".into(),
            arguments: self.arguments,
        };
        let owner: Actor = "user:olga".parse().unwrap();
        let caller = HttpCaller::new(Arc::new(SystemClock)).unwrap();
        caller
            .call(Call {
                run: RunId::from(uuid::Uuid::from_u128(RUN)),
                owner: &owner,
                call: &call,
                tool: &tool,
                idempotency_key: "cs-0123",
                result_limit: self.result_limit,
                timeout: self.timeout,
            })
            .await
    }
}

fn failed(end: CallEnd) -> String {
    match end {
        CallEnd::Failed(text) => text,
        other => panic!("not failed: {other:?}"),
    }
}

fn succeeded(end: CallEnd) -> String {
    match end {
        CallEnd::Succeeded(text) => text,
        other => panic!("not succeeded: {other:?}"),
    }
}

fn unknown(end: CallEnd) -> String {
    match end {
        CallEnd::Unknown(text) => text,
        other => panic!("not unknown: {other:?}"),
    }
}

#[tokio::test]
async fn case_e3_and_e11_arguments_arrive_as_the_model_sent_them() {
    let server = ToolServer::start().await;
    for arguments in [
        r#"{"id":9007199254740993}"#,
        "1e400",
        "-0",
        "1.0",
        r#"{"n":5,"b":false}"#,
        r#"{ "a" : [ 1.00, "\u0041\/é" ],  "a":2 }"#,
    ] {
        let call = Attempted {
            arguments: arguments.to_owned(),
            ..Attempted::new(server.url("/echo"), Effect::NonIdempotentWrite)
        };
        let run = uuid::Uuid::from_u128(RUN);
        let expected = format!(
            r#"{{"call_id":"c1","tool":"refund","arguments":{arguments},"owner":"user:olga","run":"{run}"}}"#
        );
        assert_eq!(succeeded(call.end().await), expected);
    }
    let calls = server.calls().await;
    let first = &calls[0];
    assert_eq!((first.method.as_str(), first.path.as_str()), ("POST", "/echo"));
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!(first.header("idempotency-key"), "cs-0123");
    assert_eq!(first.header("content-length"), first.body.len().to_string());
    assert_eq!(
        first.header("user-agent"),
        concat!("countersign/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(first.header("authorization"), "");
}

#[tokio::test]
async fn a_bearer_is_read_at_each_use_and_its_lack_stops_the_call() {
    let server = ToolServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let call = || Attempted {
        bearer: Some(CredentialSource::File(path.to_str().unwrap().to_owned())),
        ..Attempted::new(server.url("/echo"), Effect::ReadOnly)
    };
    let text = failed(call().end().await);
    assert!(
        text.contains("the call was not made") && text.contains("token` cannot be read"),
        "{text}"
    );
    for token in ["first", "second"] {
        std::fs::write(&path, format!("{token}\n")).unwrap();
        succeeded(call().end().await);
    }
    let calls = server.calls().await;
    let sent: Vec<_> = calls.iter().map(|call| call.header("authorization")).collect();
    assert_eq!(sent, ["Bearer first", "Bearer second"]);
}

#[tokio::test]
async fn what_may_be_repeated_is_repeated_under_the_same_key() {
    for (path, effect) in [
        ("/flaky?fail=2&status=503", Effect::ReadOnly),
        ("/flaky?fail=2&status=429", Effect::IdempotentWrite),
        ("/drop?fail=2", Effect::IdempotentWrite),
    ] {
        let server = ToolServer::start().await;
        assert_eq!(
            succeeded(Attempted::new(server.url(path), effect).end().await),
            r#"{"effect": 1}"#
        );
        let calls = server.calls().await;
        assert_eq!(calls.len(), 3, "{path}");
        assert!(
            calls
                .iter()
                .all(|call| call.header("idempotency-key") == "cs-0123"),
            "{path}"
        );
        assert!(calls.iter().all(|call| call.body == calls[0].body), "{path}");
        assert_eq!(server.effects().await, ["cs-0123"], "{path}");
    }
}

#[tokio::test]
async fn attempts_are_bounded() {
    let server = ToolServer::start().await;
    let call = Attempted::new(server.url("/flaky?fail=9&status=503"), Effect::ReadOnly);
    assert_eq!(failed(call.end().await), "the tool answered 503: not now");
    assert_eq!(server.calls().await.len(), 3);
}

#[tokio::test]
async fn retry_after_is_honoured_within_the_deadline_only() {
    let server = ToolServer::start().await;
    let began = std::time::Instant::now();
    let patient = Attempted::new(
        server.url("/flaky?fail=1&status=503&retry_after=1"),
        Effect::ReadOnly,
    );
    succeeded(patient.end().await);
    assert!(began.elapsed() >= Duration::from_secs(1));
    let hasty = Attempted {
        timeout: Duration::from_secs(30),
        ..Attempted::new(
            server.url("/flaky?fail=9&status=503&retry_after=60"),
            Effect::ReadOnly,
        )
    };
    assert_eq!(failed(hasty.end().await), "the tool answered 503: not now");
    assert_eq!(server.calls().await.len(), 3, "two and one");
}

#[tokio::test]
async fn a_write_that_must_not_happen_twice_is_sent_once() {
    let server = ToolServer::start().await;
    let call = |path: &str| Attempted::new(server.url(path), Effect::NonIdempotentWrite);
    for path in ["/status/500", "/status/503", "/status/429", "/status/404"] {
        let text = failed(call(path).end().await);
        assert_eq!(text, format!("the tool answered {}: so it is", &path[8..]));
    }
    for path in ["/drop?fail=9", "/cut"] {
        let text = unknown(call(path).end().await);
        assert!(
            text.contains("connection was lost") && text.contains("not known"),
            "{text}"
        );
    }
    assert_eq!(server.calls().await.len(), 6);
}

#[tokio::test]
async fn an_answer_is_waited_for_within_the_deadline() {
    let server = ToolServer::start().await;
    let call = Attempted::new(server.url("/hold"), Effect::NonIdempotentWrite);
    let (end, ()) = tokio::join!(call.end(), async {
        server.calls_at_least(1).await;
        server.release().await;
    });
    assert_eq!(succeeded(end), r#"{"effect": 1}"#);
}

#[tokio::test]
async fn a_late_answer_leaves_a_write_unknown_and_a_read_failed() {
    let server = ToolServer::start().await;
    let call = |effect| Attempted {
        timeout: Duration::from_millis(1500),
        ..Attempted::new(server.url("/hold"), effect)
    };
    let text = unknown(call(Effect::NonIdempotentWrite).end().await);
    assert!(text.contains("did not answer within 1.5s"), "{text}");
    assert_eq!(server.effects().await, ["cs-0123"], "it took effect all the same");
    assert_eq!(
        failed(call(Effect::ReadOnly).end().await),
        "the tool did not answer within 1.5s"
    );
    assert_eq!(server.calls().await.len(), 2);
}

#[tokio::test]
async fn what_was_never_sent_certainly_took_no_effect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // A TLS handshake that nobody answers: connected, and yet nothing of the call is on its way.
    let silent = Attempted {
        timeout: Duration::from_millis(1500),
        ..Attempted::new(format!("https://{address}/"), Effect::NonIdempotentWrite)
    };
    let text = failed(silent.end().await);
    assert!(
        text.contains("no connection was made within 1.5s; nothing was sent"),
        "{text}"
    );
    drop(listener);
    for url in [
        format!("http://{address}/"),
        "http://no-such-host.invalid/".to_owned(),
    ] {
        let text = failed(Attempted::new(url, Effect::NonIdempotentWrite).end().await);
        assert!(
            text.contains("no connection could be made; nothing was sent"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn redirects_are_followed_to_the_same_origin_only() {
    let (server, other) = (ToolServer::start().await, ToolServer::start().await);
    let call = |status: u16, to: &str| {
        let path = format!("/redirect?status={status}&to={to}");
        Attempted::new(server.url(&path), Effect::NonIdempotentWrite)
    };
    let made_there = succeeded(call(307, "/echo").end().await);
    assert!(made_there.contains(r#""call_id":"c1""#), "{made_there}");
    assert_eq!(succeeded(call(303, "/answers/1").end().await), "fetched");
    let seen: Vec<_> = server
        .calls()
        .await
        .into_iter()
        .map(|call| (call.method, call.body.is_empty()))
        .collect();
    let post = || ("POST".to_owned(), false);
    assert_eq!(seen, [post(), post(), post(), ("GET".to_owned(), true)]);

    for status in [302, 307, 308] {
        let text = failed(call(status, &other.url("/echo")).end().await);
        let origin = other.url("");
        assert!(
            text.contains(&format!("answered {status} and points to {origin},")),
            "{text}"
        );
    }
    assert!(other.calls().await.is_empty());
    let before = server.calls().await.len();
    let around = Attempted::new(server.url("/around"), Effect::ReadOnly);
    assert!(failed(around.end().await).contains("too many redirects"));
    assert_eq!(server.calls().await.len() - before, 6);
}

#[tokio::test]
async fn case_e9_an_answer_beyond_the_limit_is_refused_whole_with_the_limit_named() {
    let server = ToolServer::start().await;
    for path in [
        "/large?bytes=10485760",
        "/large?bytes=10485760&chunked=1",
        "/large?bytes=1025",
    ] {
        for (most, kept) in [(1024, 1 << 20), (1 << 20, 1024)] {
            let call = |effect| Attempted {
                max_response_bytes: most,
                result_limit: kept,
                ..Attempted::new(server.url(path), effect)
            };
            let text = failed(call(Effect::ReadOnly).end().await);
            assert!(
                text.contains("the limit of 1024 bytes, so nothing of it was kept"),
                "{text}"
            );
            let text = succeeded(call(Effect::NonIdempotentWrite).end().await);
            assert!(
                text.contains("did the call") && text.contains("limit of 1024 bytes"),
                "{text}"
            );
        }
    }
    let exact = Attempted {
        result_limit: 1024,
        ..Attempted::new(server.url("/large?bytes=1024&chunked=1"), Effect::ReadOnly)
    };
    assert_eq!(succeeded(exact.end().await).len(), 1024);
    let fault = Attempted::new(server.url("/status/400?bytes=1000000"), Effect::ReadOnly);
    assert!(failed(fault.end().await).ends_with("x… (cut after 2000 characters)"));
}

#[tokio::test]
async fn an_answer_that_is_no_text_is_said_to_be_none() {
    let server = ToolServer::start().await;
    let text = failed(
        Attempted::new(server.url("/binary"), Effect::ReadOnly)
            .end()
            .await,
    );
    assert_eq!(
        text,
        "the tool answered 200, but its answer is not UTF-8 text, so nothing of it was kept"
    );
    let nothing = Attempted::new(server.url("/status/204"), Effect::ReadOnly);
    assert_eq!(succeeded(nothing.end().await), "");
}
