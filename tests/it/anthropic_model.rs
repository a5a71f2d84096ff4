//! A run goes on with a model of Anthropic's Messages API as with any other, and what such a model thought, signed and
//! asked for comes back to it in the bytes that it wrote. The server refuses a conversation that the API would refuse.

use countersign::model::{RunStatus, Verdict};
use serde_json::{Value, json};

use crate::system::{System, on_both};

const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);
/// What the model answers: a thought with its signature, a text, and a write with a number that no float holds.
const THOUGHT: &str =
    r#"{"type":"thinking","thinking":"one more is due", "signature":"c2lnbmVk","x_new":[1.0, -0]}"#;
const SAID: &str = r#"{"type":"text","text":"One more."}"#;
const ASKED: &str = r#"{"type":"tool_use","id":"toolu_2","name":"refund","input":{"payment": "P-2", "amount_cents":9007199254740993}}"#;

/// The catalogue of the tests with its provider as one of the Messages API.
async fn speaks_messages(system: &System) {
    let catalogue = system.catalogue();
    let changed = catalogue.replace("kind = \"openai\"", "kind = \"anthropic\"");
    assert_ne!(catalogue, changed);
    system.apply_catalogue(&changed).await;
}

on_both! {
    async fn a_turn_of_blocks_is_suspended_approved_and_sent_back_as_it_came(system) {
        speaks_messages(&system).await;
        let blocks = format!("[{THOUGHT},{SAID},{ASKED}]");
        system.chat.scenario(&json!({ "replies": [{ "content": blocks }] })).await;
        // The first turn was asked for by a model of another protocol.
        let first = system.waiting("support", &[WRITE]).await;
        system.decide(&first, Verdict::Approve, "user:ada").await;
        let working = system.start();
        let second = system.waits_on(first.run, 8).await;
        system.decide(&second, Verdict::Approve, "user:ada").await;
        system.reaches(first.run, RunStatus::Completed).await;

        let calls = system.tools.calls().await;
        assert_eq!(calls.len(), 2);
        assert!(calls[1].body.contains(r#"{"payment": "P-2", "amount_cents":9007199254740993}"#), "{}", calls[1].body);
        let requests = system.chat.requests().await;
        for part in [THOUGHT, SAID, ASKED] {
            assert!(requests[1].body.contains(part), "{part} is not in {}", requests[1].body);
        }
        assert_eq!(requests[0].header("anthropic-version"), "2023-06-01");
        assert_eq!(system.chat.violations().await, Vec::<String>::new());
        working.end().await;
    }

    async fn a_denial_answers_every_block_that_asks(system) {
        speaks_messages(&system).await;
        let other = ASKED.replace("toolu_2", "toolu_3");
        let blocks = format!("[{ASKED},{other}]");
        system.chat.scenario(&json!({ "replies": [{ "content": blocks }] })).await;
        let run = system.queued("support", "refund P-2 twice").await;
        let working = system.start();
        let waiting = system.waits_on(run, 1).await;
        system.decide(&waiting, Verdict::Deny, "user:gina").await;
        system.reaches(run, RunStatus::Completed).await;
        assert!(system.tools.calls().await.is_empty());
        let asked = system.asked().await;
        let answers = asked[1].last().unwrap()["content"].as_array().unwrap();
        let ids: Vec<_> = answers.iter().map(|answer| &answer["tool_use_id"]).collect();
        assert_eq!(ids, ["toolu_2", "toolu_3"]);
        assert!(answers.iter().all(|answer| answer["content"].as_str().unwrap().starts_with("NOT EXECUTED")));
        assert_eq!(system.chat.violations().await, Vec::<String>::new());
        working.end().await;
    }

    async fn a_model_of_another_protocol_gets_the_messages_without_the_blocks(system) {
        let blocks = format!("[{THOUGHT},{SAID},{ASKED}]");
        let catalogue = system.catalogue();
        speaks_messages(&system).await;
        system.chat.scenario(&json!({ "replies": [{ "content": blocks }] })).await;
        let run = system.queued("support", "refund P-2").await;
        let working = system.start();
        let waiting = system.waits_on(run, 1).await;
        system.apply_catalogue(&catalogue).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        system.reaches(run, RunStatus::Completed).await;
        let request: Value = serde_json::from_str(&system.chat.requests().await[1].body).unwrap();
        let asked = request["messages"].as_array().unwrap().iter().find(|m| m["role"] == "assistant").unwrap();
        let members: Vec<_> = asked.as_object().unwrap().keys().collect();
        assert_eq!(members, ["content", "role", "tool_calls"]);
        assert_eq!(system.chat.violations().await, Vec::<String>::new());
        working.end().await;
    }
}
