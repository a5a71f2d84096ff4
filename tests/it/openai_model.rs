//! A model is asked with the transcript as it is stored, and its answer is kept as it came; a provider in
//! trouble is asked again within bounds, and none of its words leak through an error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::catalogue::{
    CredentialSource, DataClass, Endpoint, Model, Provider, ProviderKind, Tool, ToolKind, TrustZone,
};
use countersign::clock::SystemClock;
use countersign::engine::models::{
    Answer, Anthropic, ChatModel as _, ModelError, OpenAi, Question, Scripted,
};
use countersign::model::{Effect, Message, RunId};
use serde_json::json;
use serde_json::value::RawValue;

use crate::servers::ChatServer;

const USER: &str = r#"{"role":"user","content":"refund 17"}"#;

/// One question, as a test varies it.
struct Asked {
    kind: ProviderKind,
    messages: Vec<String>,
    tools: Vec<Tool>,
    parameters: Option<String>,
}

impl Asked {
    fn of(server: &ChatServer) -> Self {
        let (base_url, timeout) = (server.url(), Duration::from_secs(20));
        Self {
            kind: ProviderKind::OpenAi(Endpoint {
                base_url,
                key: None,
                timeout,
                max_retries: 2,
            }),
            messages: vec![USER.to_owned()],
            tools: Vec::new(),
            parameters: None,
        }
    }

    fn endpoint(&mut self) -> &mut Endpoint {
        match &mut self.kind {
            ProviderKind::OpenAi(endpoint) | ProviderKind::Anthropic(endpoint) => endpoint,
            ProviderKind::Scripted { .. } => panic!("a script has no endpoint"),
        }
    }

    fn with_key(mut self, source: CredentialSource) -> Self {
        self.endpoint().key = Some(source);
        self
    }

    fn within(mut self, limit: Duration, retries: u32) -> Self {
        let endpoint = self.endpoint();
        (endpoint.timeout, endpoint.max_retries) = (limit, retries);
        self
    }

    async fn answer(self) -> Result<Answer, ModelError> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let model = small(self.parameters);
        let provider = Provider {
            name: "p".into(),
            kind: self.kind,
        };
        let messages: Vec<_> = self
            .messages
            .into_iter()
            .map(|text| Message::parse(text).unwrap())
            .collect();
        let tools: Vec<_> = self.tools.iter().collect();
        let run = RunId::from(uuid::Uuid::from_u128(1));
        let question = Question {
            run,
            model: &model,
            provider: &provider,
            messages: &messages,
            tools: &tools,
        };
        match &provider.kind {
            ProviderKind::OpenAi(_) => OpenAi::new(Arc::new(SystemClock)).unwrap().ask(question).await,
            ProviderKind::Anthropic(_) => Anthropic::new(Arc::new(SystemClock)).unwrap().ask(question).await,
            ProviderKind::Scripted { .. } => Scripted::new().ask(question).await,
        }
    }

    async fn unusable(self) -> String {
        match self.answer().await {
            Err(ModelError::Unusable { model, reason }) if model == "small" => reason,
            other => panic!("not unusable: {other:?}"),
        }
    }

    async fn unavailable(self) -> String {
        match self.answer().await {
            Err(ModelError::Unavailable { model, reason }) if model == "small" => reason,
            other => panic!("not unavailable: {other:?}"),
        }
    }
}

fn small(parameters: Option<String>) -> Model {
    Model {
        name: "small".into(),
        provider: "p".into(),
        remote_name: "small-2026".into(),
        zone: TrustZone::Local,
        parameters,
    }
}

fn refund() -> Tool {
    Tool {
        name: "refund".into(),
        description: "Pays back.".into(),
        kind: ToolKind::Builtin {
            function: "refund".into(),
        },
        effect: Effect::NonIdempotentWrite,
        data_class: DataClass::Internal,
        enabled: true,
        requires_admin: false,
        groups: Vec::new(),
        requires_approval: false,
        parameters: RawValue::from_string(r#"{"type":"object", "maximum":9007199254740993}"#.into()).unwrap(),
        timeout: Duration::from_secs(1),
    }
}

#[tokio::test]
async fn case_e3_the_request_and_the_answer_keep_every_byte() {
    let server = ChatServer::start().await;
    let reply = r#"{"role":"assistant", "content":null,"x_reasoning":{"n":1e400,"z":-0},"refusal":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"refund","arguments":"{\"id\":9007199254740993}"},"x":1.0}]}"#;
    server
        .scenario(&json!({"replies": [{"message": reply, "finish_reason": "length"}]}))
        .await;
    let messages = [
        USER.to_owned(),
        r#"{"role":"assistant","content":null, "x_unknown":[1e400, 1.0],"tool_calls":[{"id":"c1","type":"function","function":{"name":"refund","arguments":"{\"a\":"}}]}"#.to_owned(),
        r#"{"role":"tool","tool_call_id":"c1","content":"not JSON"}"#.to_owned(),
    ];
    let asked = Asked {
        messages: messages.to_vec(),
        tools: vec![refund()],
        parameters: Some(r#"{"temperature":0.10}"#.into()),
        ..Asked::of(&server)
    };
    let answer = asked.answer().await.unwrap();
    assert_eq!(answer.message.as_json(), reply);
    assert_eq!(
        (answer.prompt_tokens, answer.completion_tokens),
        (Some(11), Some(7))
    );
    assert_eq!(
        answer.message.calls().unwrap()[0].arguments,
        r#"{"id":9007199254740993}"#
    );

    let requests = server.requests().await;
    let tool = r#"{"type":"function","function":{"name":"refund","description":"Pays back.","parameters":{"type":"object", "maximum":9007199254740993}}}"#;
    let expected = format!(
        r#"{{"model":"small-2026","messages":[{}],"tools":[{tool}],"temperature":0.10}}"#,
        messages.join(",")
    );
    assert_eq!(requests[0].body, expected);
    assert_eq!(requests[0].header("authorization"), "");
    assert!(server.violations().await.is_empty());
}

#[tokio::test]
async fn a_key_is_sent_and_a_missing_one_is_named_before_anything_is() {
    let server = ChatServer::start().await;
    let unset = CredentialSource::Environment("COUNTERSIGN_TEST_NEVER_SET".into());
    let reason = Asked::of(&server).with_key(unset).unusable().await;
    assert_eq!(
        reason,
        "environment variable `COUNTERSIGN_TEST_NEVER_SET` is not set"
    );
    assert!(server.requests().await.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "sk-1\n").unwrap();
    let key = CredentialSource::File(path.to_str().unwrap().into());
    Asked::of(&server).with_key(key).answer().await.unwrap();
    assert_eq!(server.requests().await[0].header("authorization"), "Bearer sk-1");
}

#[tokio::test]
async fn a_provider_in_trouble_is_asked_again() {
    let server = ChatServer::start().await;
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    for trouble in [
        json!({"status": 429, "headers": {"Retry-After": date}}),
        json!({"status": 500, "body": "<html>"}),
        json!({"drop": true}),
    ] {
        server.scenario(&json!({"replies": [trouble, trouble]})).await;
        Asked::of(&server).answer().await.unwrap();
    }
    let requests = server.requests().await;
    assert_eq!(requests.len(), 9);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let server = ChatServer::start().await;
    server
        .scenario(&json!({"replies": [{"status": 429, "headers": {"Retry-After": "2"}}]}))
        .await;
    let began = Instant::now();
    Asked::of(&server).answer().await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn after_the_last_retry_it_is_unavailable() {
    let server = ChatServer::start().await;
    let overloaded = r#"{"error":{"type":"overloaded_error","message":"SECRET"}}"#;
    server
        .scenario(&json!({"otherwise": {"status": 503, "body": overloaded}}))
        .await;
    assert_eq!(
        Asked::of(&server).unavailable().await,
        "it answered 503 (overloaded_error)"
    );
    assert_eq!(server.requests().await.len(), 3, "one and two retries");
    server.scenario(&json!({"otherwise": {"drop": true}})).await;
    let once = Duration::from_secs(20);
    assert_eq!(
        Asked::of(&server).within(once, 0).unavailable().await,
        "the connection was lost"
    );
    server.scenario(&json!({"otherwise": {"hold": true}})).await;
    let late = Asked::of(&server).within(Duration::from_millis(1500), 0);
    assert_eq!(late.unavailable().await, "it did not answer within 1.5s");
}

#[tokio::test]
async fn an_answer_is_waited_for_and_an_absent_provider_is_not() {
    let server = ChatServer::start().await;
    server.scenario(&json!({"otherwise": {"hold": true}})).await;
    let (answer, ()) = tokio::join!(Asked::of(&server).answer(), async {
        server.requests_at_least(1).await;
        server.release().await;
    });
    assert_eq!(answer.unwrap().message.text().as_deref(), Some("That is all."));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let timeout = Duration::from_secs(20);
    let kind = ProviderKind::OpenAi(Endpoint {
        base_url,
        key: None,
        timeout,
        max_retries: 0,
    });
    let absent = Asked {
        kind,
        ..Asked::of(&server)
    };
    assert_eq!(absent.unavailable().await, "it cannot be reached");
}

#[tokio::test]
async fn a_refusal_is_told_once_and_without_the_provider_s_words() {
    let server = ChatServer::start().await;
    for (reply, reason) in [
        (
            json!({"status": 401, "body": r#"{"error":{"code":"invalid_api_key","message":"SECRET"}}"#}),
            "it answered 401 (invalid_api_key)",
        ),
        (json!({"status": 403, "body": "SECRET"}), "it answered 403"),
        (
            json!({"status": 307, "headers": {"Location": "/v1/other"}}),
            "it answered 307",
        ),
        (
            json!({"status": 200, "body": "SECRET"}),
            "its answer is no chat completion (line 1, column 1)",
        ),
        (
            json!({"status": 200, "body": r#"{"choices":[]}"#}),
            "its answer has no choices",
        ),
    ] {
        server.scenario(&json!({"replies": [reply]})).await;
        assert_eq!(Asked::of(&server).unusable().await, reason);
    }
    assert_eq!(server.requests().await.len(), 5);
}

#[tokio::test]
async fn the_strict_server_refuses_what_providers_refuse() {
    let server = ChatServer::start().await;
    let asks = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"refund","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"refund","arguments":"{}"}}]}"#;
    let answers = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#);
    let bad: [&[String]; 6] = [
        &[asks.to_owned()],
        &[asks.to_owned(), answers("c1")],
        &[asks.to_owned(), answers("c1"), answers("c1")],
        &[asks.to_owned(), answers("c1"), USER.to_owned(), answers("c2")],
        &[asks.to_owned(), answers("c1"), answers("c2"), answers("c3")],
        &[
            asks.to_owned(),
            answers("c1"),
            r#"{"role":"tool","tool_call_id":"c2","content":null}"#.to_owned(),
        ],
    ];
    for tail in bad {
        let mut asked = Asked::of(&server);
        asked.messages.extend(tail.iter().cloned());
        assert_eq!(asked.unusable().await, "it answered 400 (invalid_transcript)");
    }
    assert_eq!(server.violations().await.len(), bad.len());
    let mut good = Asked::of(&server);
    good.messages
        .extend([asks.to_owned(), answers("c1"), answers("c2")]);
    good.answer().await.unwrap();
    assert_eq!(server.violations().await.len(), bad.len());
}

#[tokio::test]
async fn a_script_is_read_at_each_question_and_its_faults_are_placed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    let asked = || Asked {
        kind: ProviderKind::Scripted {
            script: path.to_str().unwrap().to_owned(),
        },
        messages: vec![USER.to_owned()],
        tools: Vec::new(),
        parameters: None,
    };
    let shown = path.display();
    assert_eq!(
        asked().unusable().await,
        format!("script `{shown}` cannot be read: entity not found")
    );
    std::fs::write(&path, "{\n\"othrwise\": []}").unwrap();
    let reason = asked().unusable().await;
    assert!(
        reason.starts_with(&format!("script `{shown}`, line 2: unknown field `othrwise`")),
        "{reason}"
    );
    std::fs::write(
        &path,
        r#"{"otherwise": [{"fail": {"unavailable": "overloaded"}}]}"#,
    )
    .unwrap();
    assert_eq!(asked().unavailable().await, "overloaded");
    let reply = r#"{"role":"assistant", "content":"done", "n":1e400}"#;
    std::fs::write(&path, format!(r#"{{"otherwise": [{reply}]}}"#)).unwrap();
    assert_eq!(asked().answer().await.unwrap().message.as_json(), reply);
}

#[tokio::test]
async fn a_script_may_be_part_of_the_program() {
    let scripted =
        Scripted::new().with_builtin("demo", r#"{"otherwise": [{"role":"assistant","content":"hi"}]}"#);
    let model = small(None);
    let messages = [Message::parse(USER.to_owned()).unwrap()];
    let run = RunId::from(uuid::Uuid::from_u128(1));
    for (script, expected) in [
        ("builtin:demo", Ok("hi")),
        ("builtin:other", Err("there is no script `builtin:other`")),
    ] {
        let provider = Provider {
            name: "p".into(),
            kind: ProviderKind::Scripted {
                script: script.into(),
            },
        };
        let question = Question {
            run,
            model: &model,
            provider: &provider,
            messages: &messages,
            tools: &[],
        };
        match (scripted.ask(question).await, expected) {
            (Ok(answer), Ok(text)) => assert_eq!(answer.message.text().as_deref(), Some(text)),
            (Err(ModelError::Unusable { reason, .. }), Err(text)) => assert_eq!(reason, text),
            (other, _) => panic!("{other:?}"),
        }
    }
}
