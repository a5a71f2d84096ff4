//! Cases of the kind "authority": who may decide, who may release, and as whom anything runs.

use std::sync::Arc;

use countersign::model::{EventKind, RunStatus, Verdict};

use crate::system::{System, on_both, people};

const READ: (&str, &str, &str) = ("c1", "guarded_look", "{}");
const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);
const FREE_WRITE: (&str, &str, &str) = ("c1", "tag", "{}");

/// Decides a fresh run, and expects the refusal.
async fn is_refused(
    system: &System,
    configuration: &str,
    call: (&str, &str, &str),
    verdict: Verdict,
    actor: &str,
    code: &str,
) {
    let waiting = system.waiting(configuration, &[call]).await;
    let decision = system.decide(&waiting, verdict, actor).await;
    system.refused(&waiting, decision, code).await;
}

/// Decides a fresh run, and expects it to stand.
async fn stands(
    system: &System,
    configuration: &str,
    call: (&str, &str, &str),
    verdict: Verdict,
    actor: &str,
) {
    let waiting = system.waiting(configuration, &[call]).await;
    system.decide(&waiting, verdict, actor).await;
    system.reaches(waiting.run, RunStatus::Completed).await;
}

on_both! {
    async fn case_f1_somebody_with_neither_grant_nor_ownership_decides_nothing(system) {
        let working = system.start();
        for verdict in Verdict::ALL {
            let waiting = system.waiting("support", &[READ]).await;
            let decision = system.decide(&waiting, verdict, "user:paul").await;
            system.refused(&waiting, decision, "access_denied").await;
            assert_eq!(system.run(waiting.run).await.epoch, 0, "not even claimed");
        }
        working.end().await;
    }

    async fn an_approver_releases_only_what_they_could_run_themselves(system) {
        let working = system.start();
        is_refused(&system, "support", WRITE, Verdict::Approve, "user:gina", "approver_not_permitted").await;
        is_refused(&system, "support", ("c1", "nonsense", "{}"), Verdict::Approve, "user:ada", "approver_not_permitted").await;
        stands(&system, "support", READ, Verdict::Approve, "user:gina").await;
        stands(&system, "support", FREE_WRITE, Verdict::Approve, "user:gina").await;
        stands(&system, "support", WRITE, Verdict::Deny, "user:gina").await;
        working.end().await;
    }

    async fn a_refusal_names_the_tool_and_the_reason(system) {
        let waiting = system.waiting("support", &[READ, ("c2", "refund", "{}")]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:gina").await;
        let working = system.start();
        system.refused(&waiting, decision, "approver_not_permitted").await;
        let events = system.events(waiting.run).await;
        let told = events.iter().find(|event| event.event.kind == EventKind::RunRefused).unwrap();
        assert_eq!(told.event.data["tool"], "refund");
        assert_eq!(told.event.data["reason"], "requires_membership");
        assert_eq!(told.event.actor, Some("user:gina".parse().unwrap()));
        working.end().await;
    }

    async fn case_f3_a_service_account_releases_no_write(system) {
        let working = system.start();
        is_refused(&system, "support", FREE_WRITE, Verdict::Approve, "service:sweeper", "service_account_write").await;
        is_refused(&system, "support", ("c1", "nonsense", "{}"), Verdict::Approve, "service:sweeper", "service_account_write").await;
        stands(&system, "support", READ, Verdict::Approve, "service:sweeper").await;
        working.end().await;
    }

    async fn case_f3b_a_service_account_needs_its_scope(system) {
        let working = system.start();
        is_refused(&system, "support", READ, Verdict::Approve, "service:reader", "access_denied").await;
        working.end().await;
    }

    async fn case_f6_a_second_approver_is_another_person(system) {
        let working = system.start();
        is_refused(&system, "two-eyes", WRITE, Verdict::Approve, "user:olga", "self_approval").await;
        stands(&system, "support", WRITE, Verdict::Approve, "user:olga").await;
        stands(&system, "two-eyes", WRITE, Verdict::Deny, "user:olga").await;
        stands(&system, "two-eyes", WRITE, Verdict::Approve, "user:ada").await;
        // An admin who owns the run is refused like anybody.
        let calls = system.called().await.len();
        let waiting = system.waiting_of("user:ada", "two-eyes", &[WRITE]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let status = system.concluded(decision).await;
        assert_eq!(status, countersign::model::DecisionStatus::Refused("self_approval".to_owned()));
        assert_eq!(system.called().await.len(), calls);
        working.end().await;
    }

    async fn case_f8_nothing_runs_under_a_ghost(system) {
        for gone in [Gone::Disabled, Gone::Deleted] {
            system.apply_directory(&people()).await;
            let waiting = system.waiting("support", &[WRITE, ("c2", "look", "{}")]).await;
            gone.make(&system, "olga").await;
            system.decide(&waiting, Verdict::Approve, "user:ada").await;
            let working = system.start();
            system.reaches(waiting.run, RunStatus::Completed).await;
            assert!(system.tools.calls().await.is_empty());
            let told = system.asked().await.pop().unwrap();
            let answers: Vec<_> = told.iter().filter(|message| message["role"] == "tool").collect();
            assert_eq!(answers.len(), 2);
            for answer in answers {
                assert!(answer["content"].as_str().unwrap().contains("owner_unresolved"), "{answer}");
            }
            working.end().await;
        }
    }

    async fn case_f9_what_holds_at_the_claim_is_what_counts(system) {
        let worse_zone = |text: &str| text.replace("zone = \"local\"", "zone = \"external_global\"")
            .replace("data_class = \"internal\"", "data_class = \"confidential\"");
        let disabled = |text: &str| text.replace("groups = [\"finance\"]", "groups = [\"finance\"]\nenabled = false");
        let before = system.catalogue();
        for (after, reason) in [(worse_zone(&before), "trust_zone"), (disabled(&before), "tool_disabled")] {
            // The change comes after the run suspended, and, the second time, after the decision, too.
            for decided_first in [false, true] {
                system.apply_catalogue(&before).await;
                let waiting = system.waiting("support", &[WRITE]).await;
                let decide = || system.decide(&waiting, Verdict::Approve, "user:ada");
                let decision = if decided_first {
                    let decision = decide().await;
                    system.apply_catalogue(&after).await;
                    decision
                } else {
                    system.apply_catalogue(&after).await;
                    decide().await
                };
                let working = system.start();
                system.refused(&waiting, decision, "approver_not_permitted").await;
                let events = system.events(waiting.run).await;
                let told = events.iter().find(|event| event.event.kind == EventKind::RunRefused).unwrap();
                assert_eq!(told.event.data["reason"], reason);
                working.end().await;
            }
        }
        // The owner has left the group: the approver may, the owner may not.
        system.apply_catalogue(&before).await;
        let waiting = system.waiting("support", &[WRITE]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let mut directory = people();
        directory.people.iter_mut().find(|person| person.id == "olga").unwrap().groups.clear();
        system.apply_directory(&directory).await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert!(system.tools.calls().await.is_empty());
        assert!(system.kinds(waiting.run).await.contains(&"tool_denied"));
        working.end().await;
    }

    async fn case_f10_a_revoked_decision_executes_nothing(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        system.revoke(waiting.run, decision).await;
        let working = system.start();
        system.published().await;
        let _ = system.redeliver(waiting.run, decision).await;
        assert_eq!(system.run(waiting.run).await.status, RunStatus::WaitingForApproval);
        assert_eq!(system.state(waiting.run).await, waiting.sealed);
        assert!(system.tools.calls().await.is_empty());
        let events = system.events(waiting.run).await;
        assert!(events.iter().any(|event| event.event.data["code"] == "revoked"));
        working.end().await;
    }

    async fn case_f13_an_approver_who_is_disabled_meanwhile_is_nobody(system) {
        for gone in [Gone::Disabled, Gone::Deleted] {
            for call in [WRITE, READ] {
                system.apply_directory(&people()).await;
                let waiting = system.waiting("support", &[call]).await;
                let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
                gone.make(&system, "ada").await;
                let working = system.start();
                system.refused(&waiting, decision, "approver_unresolved").await;
                working.end().await;
            }
        }
    }

    async fn case_f15_approval_denial_and_refusal_are_three_kinds(system) {
        let working = system.start();
        let mut published = system.listen().await;
        stands(&system, "support", READ, Verdict::Approve, "user:ada").await;
        stands(&system, "support", READ, Verdict::Deny, "user:ada").await;
        let waiting = system.waiting("support", &[READ]).await;
        let refused = system.decide(&waiting, Verdict::Approve, "user:paul").await;
        system.concluded(refused).await;
        system.published().await;
        for kind in ["run.approved", "run.denied", "run.refused"] {
            published.next_of(kind).await;
        }
        working.end().await;
    }
}

/// How somebody goes away.
#[derive(Clone, Copy)]
enum Gone {
    Disabled,
    Deleted,
}

impl Gone {
    async fn make(self, system: &Arc<System>, id: &str) {
        match self {
            Self::Disabled => system.set_enabled(&format!("user:{id}"), false).await,
            Self::Deleted => {
                let mut directory = people();
                directory.people.retain(|person| person.id != id);
                system.apply_directory(&directory).await;
            }
        }
    }
}
