//! Cases of the kind "executed twice": a decision is used once, for one turn, by one worker.

use countersign::model::{DecisionStatus, EventKind, FailureCode, RunStatus, TurnOrdinal, Verdict};
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

    async fn case_a2_the_old_job_of_a_used_decision_runs_no_later_turn(system) {
        let other = ("c9", "refund", r#"{"payment":"P-2","amount_cents":1}"#);
        system.chat.scenario(&json!({ "replies": [{ "message": asks(&[other]) }] })).await;
        old_job_runs_nothing(&system).await;
    }

    async fn case_a3_nor_where_the_model_asks_for_the_identical_call_again(system) {
        // The same id, tool and arguments: turn 8 has the digest of turn 7.
        system.chat.scenario(&json!({ "replies": [{ "message": asks(&[C1]) }] })).await;
        let (seven, eight) = old_job_runs_nothing(&system).await;
        assert_eq!(seven, eight, "the digests are the same, and the ordinal alone tells the turns apart");
    }

    async fn case_a6_two_decisions_of_one_verdict_one_stands(system) {
        let waiting = system.waiting("support", &[C1]).await;
        let first = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let second = system.decide(&waiting, Verdict::Approve, "user:olga").await;
        let (one, two) = (system.start(), system.start());
        system.reaches(waiting.run, RunStatus::Completed).await;
        let statuses = [system.concluded(first).await, system.concluded(second).await];
        let late = DecisionStatus::Refused("already_decided".to_owned());
        assert!(statuses.contains(&DecisionStatus::Standing) && statuses.contains(&late), "{statuses:?}");
        assert_eq!(system.called().await, ["refund"]);
        let kinds = system.kinds(waiting.run).await;
        assert!(!kinds.contains(&"run.refused"), "the same verdict again is no fault: {kinds:?}");
        one.end().await;
        two.end().await;
    }

    async fn case_a9_the_old_decision_of_a_finished_run_changes_nothing(system) {
        let waiting = system.waiting("support", &[C1]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        system.published().await;
        let events = system.events(waiting.run).await;
        let redelivered = system.redeliver(waiting.run, decision).await;
        assert_eq!(redelivered, countersign::resume::Disposition::Acknowledge);
        assert_eq!(system.events(waiting.run).await, events, "no new events");
        assert_eq!(system.called().await, ["refund"]);
        working.end().await;
    }

    async fn case_a11_another_verdict_is_told_which_one_stood(system) {
        let waiting = system.waiting("support", &[C1]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        let denial = system.decide(&waiting, Verdict::Deny, "user:gina").await;
        assert_eq!(system.concluded(denial).await, DecisionStatus::Refused("already_decided".to_owned()));
        let events = system.events(waiting.run).await;
        let told = events.iter().find(|event| event.event.kind == EventKind::RunRefused).unwrap();
        assert_eq!(told.event.data["stands"], "approve");
        working.end().await;
    }
}

/// Approves turn 7, waits for turn 8, and delivers the job of turn 7 again. Returns both digests.
async fn old_job_runs_nothing(system: &crate::system::System) -> (String, String) {
    let waiting = system.waiting("support", &[C1]).await;
    let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
    let working = system.start();
    crate::system::eventually("the run waits on turn 8", || async {
        let run = system.run(waiting.run).await;
        (run.status == RunStatus::WaitingForApproval && run.turn == TurnOrdinal(8)).then_some(())
    })
    .await;
    let state = system.state(waiting.run).await;
    let _ = system.redeliver(waiting.run, decision).await;
    let _ = system.redeliver(waiting.run, decision).await;
    let events = system.events(waiting.run).await;
    let told: Vec<_> = events
        .iter()
        .filter(|event| event.event.kind == EventKind::RunRefused)
        .collect();
    assert_eq!(told.len(), 1, "told once, however often it is delivered");
    assert_eq!(told[0].event.data["code"], "stale_turn");
    assert_eq!(
        system.run(waiting.run).await.status,
        RunStatus::WaitingForApproval
    );
    assert_eq!(system.state(waiting.run).await, state);
    assert_eq!(system.called().await, ["refund"], "turn 7, once");
    working.end().await;
    let announced = events
        .iter()
        .rfind(|event| event.event.kind == EventKind::RunWaiting)
        .unwrap();
    (
        waiting.digest.to_string(),
        announced.event.data["digest"].as_str().unwrap().to_owned(),
    )
}
