//! What the store promises of a claim: guarded, nobody's before its commit, one winner; and of the decision that it stands on.

use std::sync::Arc;
use std::time::Duration;

use countersign::model::{
    DecisionStatus, Effect, EventKind, Failure, FailureCode, NewEvent, RunStatus, TurnOrdinal,
};
use countersign::store::{ClaimRequest, Guarded};
use tokio::sync::Barrier;

use crate::store_fixture::{call, event, new_run, olga, on_both_databases, state, worker};

const WAITING: RunStatus = RunStatus::WaitingForApproval;

fn refused(code: &str) -> DecisionStatus {
    DecisionStatus::Refused(code.to_owned())
}

on_both_databases! {
    async fn a_claim_gives_the_run_its_state_and_a_lease(db) {
        let new = new_run(RunStatus::Queued);
        db.store.create_run(&new).await.unwrap();
        let scope = db.claim(new.run.id, RunStatus::Queued, "w").await.unwrap();
        let claimed = scope.claimed().clone();
        assert_eq!(claimed.state, new.state);
        assert_eq!(claimed.run.status, RunStatus::Running);
        assert_eq!((claimed.lease.holder.as_str(), claimed.lease.epoch), ("w", 1));
        assert_eq!(scope.commit(None, &[]).await.unwrap(), Guarded::Done);
        let run = db.store.run(new.run.id).await.unwrap().unwrap();
        assert_eq!((run.claimed_by, run.epoch), (Some(worker("w")), 1));
    }

    async fn a_claim_names_the_status_it_comes_from(db) {
        let queued = db.created(RunStatus::Queued).await;
        let waiting = db.created(WAITING).await;
        let (running, _) = db.running().await;
        assert!(db.claim(queued, WAITING, "w").await.is_none());
        assert!(db.claim(waiting, RunStatus::Queued, "w").await.is_none());
        for from in [RunStatus::Queued, WAITING] {
            assert!(db.claim(running, from, "other").await.is_none());
        }
    }

    async fn after_the_deadline_nothing_is_claimed(db) {
        let run = db.created(WAITING).await;
        db.set(run, "deadline", &db.time_from_now(-1)).await;
        assert!(db.claim(run, WAITING, "w").await.is_none());
        // A queued run has no deadline that counts: its turn has been decided.
        let queued = db.created(RunStatus::Queued).await;
        db.set(queued, "deadline", &db.time_from_now(-1)).await;
        assert!(db.claim(queued, RunStatus::Queued, "w").await.is_some());
    }

    async fn what_is_to_be_cancelled_is_not_claimed(db) {
        for from in [RunStatus::Queued, WAITING] {
            let run = db.created(from).await;
            db.set(run, "cancel_requested_by", "'user:olga'").await;
            assert!(db.claim(run, from, "w").await.is_none());
        }
    }

    async fn of_two_claims_at_once_one_wins(db) {
        for _ in 0..5 {
            let run = db.created(WAITING).await;
            let barrier = Arc::new(Barrier::new(4));
            let mut claims = tokio::task::JoinSet::new();
            for place in 0..4 {
                let (db, barrier) = (db.clone(), barrier.clone());
                claims.spawn(async move {
                    barrier.wait().await;
                    match db.claim(run, WAITING, &format!("w{place}")).await {
                        Some(scope) => scope.commit(None, &[]).await.unwrap() == Guarded::Done,
                        None => false,
                    }
                });
            }
            let won = claims.join_all().await.into_iter().filter(|won| *won).count();
            assert_eq!(won, 1);
            assert_eq!(db.store.run(run).await.unwrap().unwrap().epoch, 1);
        }
    }

    async fn a_dropped_claim_changes_nothing(db) {
        let run = db.created(WAITING).await;
        let before = db.store.run_with_state(run).await.unwrap();
        let mut scope = db.claim(run, WAITING, "w").await.unwrap();
        scope.record(&event(run, EventKind::RunApproved)).await.unwrap();
        drop(scope);
        // Claimable at once, and by the same epoch: the dropped one never was.
        let scope = db.claim(run, WAITING, "w2").await.unwrap();
        assert_eq!(scope.claimed().lease.epoch, 1);
        drop(scope);
        let written = db.claim(run, WAITING, "w3").await.map(drop);
        assert!(written.is_some());
        assert_eq!(db.store.run_with_state(run).await.unwrap(), before);
        assert_eq!(db.kinds(run).await, [EventKind::RunWaiting]);
    }

    async fn epochs_count_the_claims(db) {
        let run = db.created(WAITING).await;
        for epoch in 1..=3 {
            let decision = db.decided(run).await;
            let scope = db.claim(run, WAITING, "w").await.unwrap();
            assert_eq!(scope.claimed().lease.epoch, epoch);
            let handed = scope.hand_back(decision, "stale_turn", &[]).await.unwrap();
            assert_eq!(handed, Guarded::Done);
        }
    }

    async fn a_committed_claim_stands_on_its_decision(db) {
        let run = db.created(WAITING).await;
        let decision = db.decided(run).await;
        let mut scope = db.claim(run, WAITING, "w").await.unwrap();
        scope.record(&event(run, EventKind::RunApproved)).await.unwrap();
        let calls = [call(run, 0, Effect::ReadOnly), call(run, 1, Effect::NonIdempotentWrite)];
        assert_eq!(scope.commit(Some(decision), &calls).await.unwrap(), Guarded::Done);
        assert_eq!(db.status(run).await, RunStatus::Running);
        assert_eq!(db.decision_status(decision).await, DecisionStatus::Standing);
        let standing = db.store.standing(run, TurnOrdinal(3)).await.unwrap().unwrap();
        assert_eq!(standing.id, decision);
        assert!(db.store.standing(run, TurnOrdinal(4)).await.unwrap().is_none());
        assert_eq!(db.store.calls(run, None).await.unwrap(), calls);
        assert_eq!(db.store.calls(run, Some(TurnOrdinal(3))).await.unwrap(), calls);
        assert!(db.store.calls(run, Some(TurnOrdinal(2))).await.unwrap().is_empty());
        assert_eq!(
            db.kinds(run).await,
            [EventKind::RunWaiting, EventKind::DecisionMade, EventKind::RunApproved]
        );
    }

    async fn one_decision_of_a_turn_stands(db) {
        let run = db.created(WAITING).await;
        let (first, second) = (db.decided(run).await, db.decided(run).await);
        let scope = db.claim(run, WAITING, "w").await.unwrap();
        assert_eq!(scope.commit(Some(first), &[]).await.unwrap(), Guarded::Done);
        db.run_out(run).await;
        db.store.reap(10, 3, &crate::store_fixture::TestMint).await.unwrap();
        let mut scope = db.claim(run, RunStatus::Queued, "w").await.unwrap();
        scope.record(&event(run, EventKind::RunApproved)).await.unwrap();
        let lost = scope.commit(Some(second), &[call(run, 0, Effect::ReadOnly)]).await.unwrap();
        assert_eq!(lost, Guarded::Lost);
        assert_eq!(db.status(run).await, RunStatus::Queued);
        assert_eq!(db.decision_status(second).await, DecisionStatus::Pending);
        assert!(db.store.calls(run, None).await.unwrap().is_empty());
        assert!(!db.kinds(run).await.contains(&EventKind::RunApproved));
    }

    async fn a_revoked_decision_carries_no_claim(db) {
        let run = db.created(WAITING).await;
        let decision = db.decided(run).await;
        let revoked = event(run, EventKind::DecisionRevoked);
        assert_eq!(db.store.revoke(decision, &revoked).await.unwrap(), Guarded::Done);
        assert_eq!(db.store.revoke(decision, &event(run, EventKind::DecisionRevoked)).await.unwrap(), Guarded::Lost);
        assert_eq!(db.decision_status(decision).await, DecisionStatus::Revoked);
        let scope = db.claim(run, WAITING, "w").await.unwrap();
        assert_eq!(scope.commit(Some(decision), &[]).await.unwrap(), Guarded::Lost);
        assert_eq!(db.status(run).await, WAITING);
        assert_eq!(
            db.kinds(run).await,
            [EventKind::RunWaiting, EventKind::DecisionMade, EventKind::DecisionRevoked]
        );
    }

    async fn a_run_that_is_handed_back_is_as_it_was(db) {
        let mut new = new_run(WAITING);
        new.state = state("{\"odd\": \"\\u0000\"}  ");
        db.store.create_run(&new).await.unwrap();
        let run = new.run.id;
        let decision = db.decided(run).await;
        let scope = db.claim(run, WAITING, "w").await.unwrap();
        let told = [event(run, EventKind::RunRefused), event(run, EventKind::RunWaiting)];
        assert_eq!(scope.hand_back(decision, "not_permitted", &told).await.unwrap(), Guarded::Done);
        let (after, stored) = db.store.run_with_state(run).await.unwrap().unwrap();
        assert_eq!(stored, new.state);
        assert_eq!((after.status, after.claimed_by, after.deadline), (WAITING, None, new.run.deadline));
        assert_eq!(db.decision_status(decision).await, refused("not_permitted"));
        // Refused once: the same decision is not handed back again.
        let scope = db.claim(run, WAITING, "w").await.unwrap();
        let again = [event(run, EventKind::RunRefused)];
        assert_eq!(scope.hand_back(decision, "another", &again).await.unwrap(), Guarded::Lost);
        assert_eq!(db.decision_status(decision).await, refused("not_permitted"));
        assert_eq!(db.kinds(run).await.iter().filter(|kind| **kind == EventKind::RunRefused).count(), 1);
    }

    async fn a_claim_that_fails_ends_the_run(db) {
        let run = db.created(WAITING).await;
        let before = db.store.run_with_state(run).await.unwrap().unwrap().1;
        let decision = db.decided(run).await;
        let scope = db.claim(run, WAITING, "w").await.unwrap();
        let failure = Failure::new(FailureCode::ConfigurationGone, "`support` is gone");
        scope.fail(Some(decision), &failure, &[event(run, EventKind::RunFailed)]).await.unwrap();
        let (after, stored) = db.store.run_with_state(run).await.unwrap().unwrap();
        assert_eq!((after.status, after.failure, after.claimed_by), (RunStatus::Failed, Some(failure), None));
        assert_eq!(stored, before);
        assert_eq!(db.decision_status(decision).await, refused("configuration_gone"));
        assert!(db.kinds(run).await.contains(&EventKind::RunFailed));
    }

    /// The table of events refuses one kind, as a full disk or a constraint of an operator would.
    async fn a_record_that_fails_leaves_the_claim_as_it_was(db) {
        let run = db.created(WAITING).await;
        let decision = db.decided(run).await;
        match db.kind {
            crate::system::Kind::Embedded => db.sql(
                "CREATE TRIGGER no_such BEFORE INSERT ON events WHEN new.kind = 'run.denied' \
                 BEGIN SELECT RAISE(ABORT, 'refused'); END"
            ).await,
            crate::system::Kind::Real => {
                db.sql("ALTER TABLE events ADD CONSTRAINT no_such CHECK (kind <> 'run.denied')").await;
            }
        }
        let mut scope = db.claim(run, WAITING, "w").await.unwrap();
        scope.record(&event(run, EventKind::RunApproved)).await.unwrap();
        scope.record(&event(run, EventKind::RunDenied)).await.unwrap_err();
        assert!(scope.calls().await.unwrap().is_empty());
        assert_eq!(scope.current_version().await.unwrap(), None);
        assert_eq!(scope.commit(Some(decision), &[]).await.unwrap(), Guarded::Done);
        assert_eq!(db.status(run).await, RunStatus::Running);
        let kinds = db.kinds(run).await;
        assert!(kinds.contains(&EventKind::RunApproved) && !kinds.contains(&EventKind::RunDenied), "{kinds:?}");
    }

    async fn what_the_gates_ask_is_read_inside_the_claim(db) {
        let run = db.created(WAITING).await;
        let decision = db.decided(run).await;
        let mut scope = db.claim(run, WAITING, "w").await.unwrap();
        assert_eq!(scope.directory_entry(&olga()).await.unwrap(), None);
        assert_eq!(scope.catalogue(1).await.unwrap(), None);
        assert_eq!(scope.commit(Some(decision), &[call(run, 0, Effect::ReadOnly)]).await.unwrap(), Guarded::Done);
        db.run_out(run).await;
        db.store.reap(10, 3, &crate::store_fixture::TestMint).await.unwrap();
        let mut scope = db.claim(run, RunStatus::Queued, "w").await.unwrap();
        assert_eq!(scope.calls().await.unwrap(), [call(run, 0, Effect::ReadOnly)]);
    }

    async fn a_decision_is_refused_once_and_its_events_are_told(db) {
        let run = db.created(WAITING).await;
        let decision = db.decided(run).await;
        let told = [event(run, EventKind::RunRefused)];
        assert_eq!(db.store.refuse(decision, "stale_turn", &told).await.unwrap(), Guarded::Done);
        assert_eq!(db.store.refuse(decision, "another", &told).await.unwrap(), Guarded::Lost);
        assert_eq!(db.decision_status(decision).await, refused("stale_turn"));
        let later = [NewEvent { ..event(run, EventKind::RunRefused) }];
        assert_eq!(db.store.refuse(decision, "another", &later).await.unwrap(), Guarded::Lost);
        assert_eq!(db.kinds(run).await.iter().filter(|kind| **kind == EventKind::RunRefused).count(), 2);
        let second = db.decided(run).await;
        let ids: Vec<_> = db.store.decisions(run).await.unwrap().iter().map(|decision| decision.id).collect();
        assert_eq!(ids, [decision, second]);
    }

    async fn a_lease_is_as_long_as_was_asked(db) {
        let run = db.created(RunStatus::Queued).await;
        let request = ClaimRequest { run, from: RunStatus::Queued, worker: worker("w"), ttl: Duration::ZERO };
        let scope = db.store.claim(&request).await.unwrap().unwrap();
        assert_eq!(scope.commit(None, &[]).await.unwrap(), Guarded::Done);
        crate::system::eventually("the lease runs out", || async {
            let reaped = db.store.reap(10, 3, &crate::store_fixture::TestMint).await.unwrap();
            (reaped.len() == 1).then_some(())
        }).await;
    }
}
