//! Cases of the kind "executed twice": a decision is used once, for one turn, by one worker.

use countersign::model::{DecisionStatus, FailureCode, RunStatus, Verdict};
use serde_json::json;

use crate::system::{asks, on_both};

const C1: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);
const C2: (&str, &str, &str) = ("c2", "look", "{}");

on_both! {
    /// The main job: the approved turn runs once, in order, as the owner, and the run is settled.
    async fn an_approved_turn_runs_once_as_its_owner(system) {
        let waiting = system.waiting("support", &[C1, C2]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.decision(decision).await.status, DecisionStatus::Standing);
        assert_eq!(system.called().await, ["refund", "look"]);
        assert_eq!(system.tools.effects().await.len(), 2);
        for call in system.tools.calls().await {
            assert!(call.body.contains(r#""owner":"user:olga""#), "{}", call.body);
            assert!(!call.header("idempotency-key").is_empty());
        }
        assert_eq!(
            system.kinds(waiting.run).await,
            [
                "run.waiting_for_approval", "decision.made", "run.approved", "call.started", "call.finished",
                "call.started", "call.finished", "run.completed",
            ]
        );
        assert!(system.chat.violations().await.is_empty());
        system.published().await;
        working.end().await;
    }

    async fn case_a1_the_same_call_id_twice_is_never_approvable(system) {
        for second in [C1, ("c1", "look", "{}")] {
            let reply = json!({ "message": asks(&[C1, second]) });
            system.chat.scenario(&json!({ "replies": [reply] })).await;
            let run = system.queued("support", "please").await;
            let working = system.start();
            let failed = system.reaches(run, RunStatus::Failed).await;
            assert_eq!(failed.failure.unwrap().code, FailureCode::AmbiguousTurn);
            assert!(system.tools.calls().await.is_empty());
            assert!(!system.kinds(run).await.contains(&"run.waiting_for_approval"));
            working.end().await;
        }
    }
}
