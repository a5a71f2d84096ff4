//! The desk for writes whose outcome nobody knows: what an admin states becomes the call's result, once, and no machine
//! makes the call again.

use countersign::config::Role;
use countersign::model::{
    ActualOutcome, CallStatus, EventKind, RunStatus, TurnOrdinal, Verdict, reconcile, unknown_outcome,
};
use countersign::store::Guarded;
use serde_json::json;

use crate::cli::{Program, Said};
use crate::system::{System, Waiting, Working, on_both};

const REFUND: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);
const TAG: (&str, &str, &str) = ("c2", "tag", "{}");

/// A run whose worker was lost while its first call, a write, was under way. A second call waits behind it.
async fn unknown(system: &System) -> (Waiting, Working) {
    let url = system.tools.url("/hold");
    let holding = system.catalogue().replace(
        &format!(
            "[tools.refund]\nkind = \"http\"\nurl = \"{}\"",
            system.tools.url("/effect")
        ),
        &format!("[tools.refund]\nkind = \"http\"\nurl = \"{url}\""),
    );
    assert!(holding.contains("/hold"));
    system.apply_catalogue(&holding).await;
    let waiting = system.waiting("support", &[REFUND, TAG]).await;
    system.decide(&waiting, Verdict::Approve, "user:ada").await;
    let first = Working::start(system.impatient("first"), &Role::ALL);
    system.tools.calls_at_least(1).await;
    first.kill().await;
    system.tools.release().await;
    let second = Working::start(system.impatient("second"), &Role::ALL);
    system.reaches(waiting.run, RunStatus::Failed).await;
    (waiting, second)
}

async fn state(system: &System, waiting: &Waiting, words: &[&str]) -> Said {
    let run = waiting.run.to_string();
    let program = Program {
        url: system.url.clone(),
    };
    program
        .run(&[&["runs", "reconcile", &run, "--json"], words].concat())
        .await
}

/// What the model was told of each call, in order.
async fn told(system: &System) -> Vec<String> {
    let messages = system.asked().await.pop().unwrap();
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

on_both! {
    async fn what_was_done_becomes_the_result_and_the_turn_goes_on(system) {
        let (waiting, working) = unknown(&system).await;
        let result = r#"{"refund":"R-7", "exact": 1.0}"#;
        let words = ["--call", "c1", "--outcome", "done", "--result", result, "--as", "user:ada"];
        let said = state(&system, &waiting, &words).await.ended(0).json();
        assert_eq!(said["call"]["status"], "succeeded");
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["refund", "tag"], "the refund was not made again");
        assert_eq!(told(&system).await[0], result, "byte for byte");
        let events = system.events(waiting.run).await;
        let stated = events.iter().find(|event| event.event.kind == EventKind::CallReconciled).unwrap();
        assert_eq!(stated.event.actor, Some("user:ada".parse().unwrap()));
        assert_eq!(stated.event.data["outcome"], "done");
        assert!(!stated.event.data.to_string().contains("R-7"), "an event holds no result");
        assert!(system.chat.violations().await.is_empty());
        working.end().await;
    }

    async fn what_was_not_done_is_an_error_and_is_not_made_again(system) {
        let (waiting, working) = unknown(&system).await;
        let words = ["--call", "c1", "--outcome", "not-done", "--as", "user:ada"];
        state(&system, &waiting, &words).await.ended(0);
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["refund", "tag"], "the refund was not made again");
        let told = told(&system).await;
        assert!(told[0].starts_with("NOT EXECUTED: ") && told[0].contains("user:ada"), "{}", told[0]);
        let calls = system.store.calls(waiting.run, Some(TurnOrdinal(7))).await.unwrap();
        assert_eq!(calls[0].status, CallStatus::Failed);
        assert_eq!(calls[1].status, CallStatus::Succeeded);
        working.end().await;
    }

    async fn what_cannot_be_stated_changes_nothing(system) {
        let (waiting, working) = unknown(&system).await;
        let before = (system.run(waiting.run).await, system.events(waiting.run).await);
        let done = ["--call", "c1", "--outcome", "done", "--as"];
        for (actor, code) in [("user:gina", 3), ("user:olga", 3), ("service:sweeper", 3), ("user:nobody", 3)] {
            state(&system, &waiting, &[&done[..], &[actor]].concat()).await.ended(code);
        }
        let as_ada = ["--as", "user:ada"];
        for (words, code, why) in [
            (&["--call", "c2", "--outcome", "done"][..], 6, "that of `c1` is"),
            (&["--call", "c1", "--outcome", "maybe"], 2, "not-done"),
            (&["--call", "c1", "--outcome", "done", "--result", "{"], 2, "no JSON"),
            (&["--call", "c1", "--outcome", "not-done", "--result", "{}"], 2, "has no result"),
        ] {
            let said = state(&system, &waiting, &[words, &as_ada].concat()).await.ended(code);
            assert!(said.err.contains(why), "{}", said.err);
        }
        assert_eq!((system.run(waiting.run).await, system.events(waiting.run).await), before);
        let program = Program { url: system.url.clone() };
        let listed = program.run(&["runs", "unknown", "--json"]).await.ended(0).json();
        assert_eq!(listed["unknown"][0]["run"]["id"], json!(waiting.run));
        assert_eq!(listed["unknown"][0]["call"]["call_id"], "c1");
        let key = listed["unknown"][0]["idempotency_key"].as_str().unwrap().to_owned();
        assert_eq!(system.tools.calls().await[0].header("idempotency-key"), key);
        state(&system, &waiting, &[&done[..], &["user:ada"]].concat()).await.ended(0);
        let again = state(&system, &waiting, &[&done[..], &["user:ada"]].concat()).await.ended(6);
        assert!(again.err.contains("no call of the run has an unknown outcome"), "{}", again.err);
        assert_eq!(program.run(&["runs", "unknown"]).await.ended(0).out, "No call has an unknown outcome.\n");
        system.reaches(waiting.run, RunStatus::Completed).await;
        working.end().await;
    }

    async fn of_two_who_state_it_at_once_one_is_too_late(system) {
        let (waiting, working) = unknown(&system).await;
        let run = system.run(waiting.run).await;
        let journal = system.store.calls(waiting.run, Some(run.turn)).await.unwrap();
        let open = unknown_outcome(&run, &journal).unwrap().call.clone();
        let ada = "user:ada".parse().unwrap();
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(2));
        let mut both = tokio::task::JoinSet::new();
        for actual in [ActualOutcome::Done(None), ActualOutcome::NotDone] {
            let settled = reconcile(&run, &journal, &open, &actual, &ada, system.clock.now()).unwrap();
            let (store, barrier) = (system.store.clone(), barrier.clone());
            both.spawn(async move {
                barrier.wait().await;
                (settled.status, store.reconcile(&settled, &[]).await.unwrap())
            });
        }
        let stated = both.join_all().await;
        let stood: Vec<_> = stated.iter().filter(|(_, guarded)| *guarded == Guarded::Done).collect();
        assert_eq!(stood.len(), 1, "{stated:?}");
        let calls = system.store.calls(waiting.run, Some(run.turn)).await.unwrap();
        assert_eq!(calls[0].status, stood[0].0);
        working.end().await;
    }
}
