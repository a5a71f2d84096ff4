//! Cases of the kind "bound to the wrong thing": a decision is about one turn of one run, by ordinal and digest.

use countersign::model::{FailureCode, RunStatus, TurnOrdinal, Verdict};
use serde_json::{Value, json};

use crate::system::{asks, on_both};

const REFUND: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);

on_both! {
    async fn case_b1_arguments_that_changed_after_the_card_are_not_what_was_decided(system) {
        let waiting = system.waiting("support", &[("c1", "refund", r#"{"payment":"P-1","amount_cents":1}"#)]).await;
        let shown = system.waiting("support", &[REFUND]).await;
        let digest = Some(shown.digest.clone());
        let decision =
            system.decide_so(waiting.run, Some(waiting.turn), digest, Verdict::Approve, "user:ada", None).await;
        let working = system.start();
        system.refused(&waiting, decision, "stale_turn").await;
        working.end().await;
    }

    async fn a_decision_that_names_no_turn_or_another_is_stale(system) {
        let working = system.start();
        for verdict in Verdict::ALL {
            for (turn, with_digest) in [(None, true), (Some(TurnOrdinal(7)), false), (Some(TurnOrdinal(8)), true)] {
                let waiting = system.waiting("support", &[REFUND]).await;
                let digest = with_digest.then(|| waiting.digest.clone());
                let decision = system.decide_so(waiting.run, turn, digest, verdict, "user:ada", None).await;
                system.refused(&waiting, decision, "stale_turn").await;
            }
        }
        working.end().await;
    }

    async fn case_b6_a_decision_for_one_run_leaves_the_other_alone(system) {
        let one = system.waiting("support", &[REFUND]).await;
        let two = system.waiting("support", &[REFUND]).await;
        system.decide(&two, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(two.run, RunStatus::Completed).await;
        assert_eq!(system.run(one.run).await.status, RunStatus::WaitingForApproval);
        assert_eq!(system.state(one.run).await, one.sealed);
        assert_eq!(system.kinds(one.run).await, ["run.waiting_for_approval"]);
        working.end().await;
    }

    async fn case_b9_one_call_id_for_two_tools_is_never_approvable(system) {
        let reply = json!({ "message": asks(&[("x", "refund", "{}"), ("x", "look", "{}")]) });
        system.chat.scenario(&json!({ "replies": [reply] })).await;
        let run = system.queued("support", "please").await;
        let working = system.start();
        let failed = system.reaches(run, RunStatus::Failed).await;
        assert_eq!(failed.failure.unwrap().code, FailureCode::AmbiguousTurn);
        assert!(system.tools.calls().await.is_empty());
        working.end().await;
    }

    async fn case_b11_two_calls_of_one_tool_are_two_executions(system) {
        let calls = [
            ("c1", "refund", r#"{"payment":"P-1","amount_cents":1}"#),
            ("c2", "refund", r#"{"payment":"P-2","amount_cents":2}"#),
        ];
        let waiting = system.waiting("support", &calls).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        let bodies: Vec<Value> =
            system.tools.calls().await.iter().map(|call| serde_json::from_str(&call.body).unwrap()).collect();
        assert_eq!(bodies.len(), 2);
        assert_eq!((&bodies[0]["call_id"], &bodies[0]["arguments"]["payment"]), (&json!("c1"), &json!("P-1")));
        assert_eq!((&bodies[1]["call_id"], &bodies[1]["arguments"]["payment"]), (&json!("c2"), &json!("P-2")));
        assert_eq!(system.tools.effects().await.len(), 2, "each under its own key");
        let last = system.asked().await.pop().unwrap();
        let answered: Vec<_> = last.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        assert_eq!(answered, ["c1", "c2"]);
        working.end().await;
    }
}
