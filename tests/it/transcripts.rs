//! Cases of the kind "a transcript the provider accepts": every declared call is answered exactly once, in order,
//! whatever became of it. The model server refuses anything else.

use countersign::model::{RunStatus, Verdict};
use serde_json::{Value, json};

use crate::system::{asks, on_both};

const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);
const READ: (&str, &str, &str) = ("c2", "look", "{}");

/// The tool messages of a request: (id, content).
fn tool_messages(request: &[Value]) -> Vec<(String, String)> {
    request
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| {
            let text = |member: &str| message[member].as_str().unwrap().to_owned();
            (text("tool_call_id"), text("content"))
        })
        .collect()
}

on_both! {
    async fn case_d1_a_denied_turn_is_answered_call_by_call(system) {
        let waiting = system.waiting("support", &[WRITE, READ]).await;
        let comment = Some("the customer called back");
        let (turn, digest) = (Some(waiting.turn), Some(waiting.digest.clone()));
        system.decide_so(waiting.run, turn, digest, Verdict::Deny, "user:gina", comment).await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert!(system.tools.calls().await.is_empty(), "a denial executes nothing");
        let asked = system.asked().await;
        let told = tool_messages(&asked[0]);
        assert_eq!(told.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["c1", "c2"]);
        for (_, content) in told {
            assert!(content.starts_with("NOT EXECUTED"), "{content}");
            assert!(content.contains("user:gina") && content.contains("the customer called back"), "{content}");
        }
        assert_eq!(system.chat.violations().await, Vec::<String>::new());
        assert!(system.kinds(waiting.run).await.contains(&"run.denied"));
        assert!(!system.kinds(waiting.run).await.contains(&"run.approved"));
        working.end().await;
    }

    async fn a_denial_stands_though_its_worker_is_lost(system) {
        system.chat.scenario(&json!({ "replies": [{ "hold": true }] })).await;
        let waiting = system.waiting("support", &[WRITE, READ]).await;
        system.decide(&waiting, Verdict::Deny, "user:gina").await;
        let first = crate::system::Working::start(system.impatient("first"), &countersign::config::Role::ALL);
        system.chat.requests_at_least(1).await;
        first.kill().await;
        system.chat.release().await;
        let second = crate::system::Working::start(system.impatient("second"), &countersign::config::Role::ALL);
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert!(system.tools.calls().await.is_empty(), "denied is denied, after a crash, too");
        for (_, content) in tool_messages(&system.asked().await[1]) {
            assert!(content.starts_with("NOT EXECUTED") && content.contains("user:gina"), "{content}");
        }
        second.end().await;
    }

    async fn case_d2_a_call_that_the_owner_may_not_make_is_answered_beside_one_that_is_done(system) {
        // `purge` needs an admin: ada may release it, olga may not run it.
        let calls = [("c1", "purge", "{}"), READ, ("c3", "tag", "{}")];
        let waiting = system.waiting("support", &calls).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["look", "tag"]);
        let told = tool_messages(&system.asked().await[0]);
        assert_eq!(told.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
        assert!(told[0].1.starts_with("NOT EXECUTED") && told[0].1.contains("requires_admin"), "{}", told[0].1);
        assert!(!told[1].1.starts_with("NOT EXECUTED"));
        assert_eq!(system.chat.violations().await, Vec::<String>::new());
        assert!(system.kinds(waiting.run).await.contains(&"tool_denied"));
        working.end().await;
    }

    async fn case_d6_a_denied_call_is_answered_without_a_new_card_three_times(system) {
        let again = json!({ "message": asks(&[WRITE]) });
        system.chat.scenario(&json!({ "otherwise": again })).await;
        let waiting = system.waiting("support", &[WRITE]).await;
        system.decide(&waiting, Verdict::Deny, "user:gina").await;
        let working = system.start();
        let failed = system.reaches(waiting.run, RunStatus::Failed).await;
        assert_eq!(failed.failure.unwrap().code.as_str(), "denied_call_repeated");
        assert_eq!(system.asked().await.len(), 4, "the denial, and three times more");
        let cards = system.kinds(waiting.run).await.iter().filter(|kind| **kind == "run.waiting_for_approval").count();
        assert_eq!(cards, 1);
        assert!(system.tools.calls().await.is_empty());
        assert_eq!(system.chat.violations().await, Vec::<String>::new());
        working.end().await;
    }

    async fn what_the_model_said_comes_back_to_it_byte_for_byte(system) {
        let said = r#"{"role":"assistant", "content":null,"x_reasoning":{"n":1.0,"big":9007199254740993},"tool_calls":[{"id":"c1","type":"function","function":{"name":"guarded_look","arguments":"{\"id\":9007199254740993}"}}]}"#;
        system.chat.scenario(&json!({ "replies": [{ "message": said }] })).await;
        let run = system.queued("support", "please").await;
        let working = system.start();
        let waits = system.reaches(run, RunStatus::WaitingForApproval).await;
        let events = system.events(run).await;
        let digest = events.last().unwrap().event.data["digest"].as_str().unwrap().to_owned();
        let digest = countersign::model::TurnDigest::parse(&digest);
        system.decide_so(run, Some(waits.turn), digest, Verdict::Approve, "service:sweeper", None).await;
        system.reaches(run, RunStatus::Completed).await;
        let last = system.chat.requests().await.pop().unwrap();
        assert!(last.body.contains(said), "{}", last.body);
        let call = system.tools.calls().await.pop().unwrap();
        assert!(call.body.contains(r#""arguments":{"id":9007199254740993}"#), "{}", call.body);
        working.end().await;
    }

    async fn case_e2_arguments_that_are_no_json_are_answered_and_not_executed(system) {
        let calls = [("c1", "refund", "{\"a\":"), ("c2", "refund", ""), ("c3", "refund", "{\"{\\\"tagIds\\\":")];
        let waiting = system.waiting("support", &calls).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert!(system.tools.calls().await.is_empty());
        let told = tool_messages(&system.asked().await[0]);
        assert_eq!(told.len(), 3);
        assert!(told.iter().all(|(_, content)| content.contains("not valid JSON")), "{told:?}");
        working.end().await;
    }

    async fn case_e3_arguments_leave_as_they_came(system) {
        let texts = [r#"{"id":9007199254740993}"#, "1e400", "-0", "1.0", r#"{"n":5,"b":false}"#];
        let calls: Vec<_> = texts.iter().map(|text| (*text, "refund", *text)).collect();
        let waiting = system.waiting("support", &calls).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        let made = system.tools.calls().await;
        for (call, text) in made.iter().zip(texts) {
            assert!(call.body.contains(&format!(r#""arguments":{text},"#)), "{text}: {}", call.body);
        }
        assert_eq!(made.len(), texts.len());
        working.end().await;
    }

    async fn the_iteration_limit_ends_the_run(system) {
        system.chat.scenario(&json!({ "otherwise": { "message": asks(&[READ]) } })).await;
        let run = system.queued("brief", "please").await;
        let working = system.start();
        let failed = system.reaches(run, RunStatus::Failed).await;
        assert_eq!(failed.failure.unwrap().code.as_str(), "max_iterations");
        assert_eq!(system.asked().await.len(), 2);
        working.end().await;
    }

    async fn case_e9_what_is_too_large_is_refused_when_the_run_would_suspend(system) {
        let large = "x".repeat((1 << 20) + 1);
        let many: Vec<_> = (0..129).map(|n| format!("c{n}")).collect();
        let many: Vec<_> = many.iter().map(|id| (id.as_str(), "refund", "{}")).collect();
        let working = system.start();
        for (calls, setting) in [
            (vec![("c1", "refund", large.as_str())], "limits.argument_bytes"),
            (many, "limits.calls_per_turn"),
        ] {
            system.chat.scenario(&json!({ "replies": [{ "message": asks(&calls) }] })).await;
            let run = system.queued("support", "please").await;
            let failure = system.reaches(run, RunStatus::Failed).await.failure.unwrap();
            assert_eq!(failure.code.as_str(), "limit_exceeded");
            assert!(failure.detail.contains(setting), "{failure}");
        }
        let other = system.waiting("support", &[WRITE]).await;
        system.decide(&other, Verdict::Approve, "user:ada").await;
        system.reaches(other.run, RunStatus::Completed).await;
        working.end().await;
    }
}
