//! The store's promises to workers: steps and leases, the outbox, what is found when a worker is gone; and to those who
//! declare: the directory, the catalogue, the ledger.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign::model::{
    Actor, CallStatus, Effect, EventKind, Failure, FailureCode, Lease, RunStatus, Scope, TurnOrdinal,
    UserGrant,
};
use countersign::store::{
    Account, Cancelled, Directory, DirectoryEntry, End, Group, Guarded, LedgerEntry, LedgerError, Person,
    Renewed, Step, StoreError,
};
use tokio::task::JoinSet;

use crate::store_fixture::{TestMint, call, event, event_of_nobody, on_both_databases, state, worker};

const TERM: Duration = Duration::from_secs(60);

on_both_databases! {
    async fn a_step_is_whole_and_only_its_holders(db) {
        let (run, lease) = db.running().await;
        let mut row = call(run, 0, Effect::IdempotentWrite);
        row.status = CallStatus::Started;
        let step = Step {
            state: Some((TurnOrdinal(4), state("{\"second\": 2}"))),
            calls: vec![row.clone()],
            end: None,
            events: vec![event(run, EventKind::CallStarted)],
        };
        let before = db.store.run_with_state(run).await.unwrap();
        for stranger in [
            Lease { holder: worker("other"), ..lease.clone() },
            Lease { epoch: lease.epoch - 1, ..lease.clone() },
        ] {
            assert_eq!(db.store.step(run, &stranger, &step).await.unwrap(), Guarded::Lost);
            assert_eq!(db.store.renew(run, &stranger, TERM).await.unwrap(), Renewed::Lost);
        }
        assert_eq!(db.store.run_with_state(run).await.unwrap(), before);
        assert!(db.store.calls(run, None).await.unwrap().is_empty());
        assert!(!db.kinds(run).await.contains(&EventKind::CallStarted));
        assert_eq!(db.store.step(run, &lease, &step).await.unwrap(), Guarded::Done);
        let (after, sealed) = db.store.run_with_state(run).await.unwrap().unwrap();
        assert_eq!((after.turn, sealed), (TurnOrdinal(4), state("{\"second\": 2}")));
        assert_eq!(db.store.calls(run, Some(TurnOrdinal(3))).await.unwrap(), vec![row.clone()]);
        // The same row again is changed, not doubled; what was cleared of it stays.
        row.status = CallStatus::Succeeded;
        row.result = Some("done\u{0}".to_owned());
        let step = Step { calls: vec![row.clone()], ..Step::default() };
        assert_eq!(db.store.step(run, &lease, &step).await.unwrap(), Guarded::Done);
        assert_eq!(db.store.calls(run, None).await.unwrap(), vec![row]);
    }

    async fn an_end_gives_the_lease_up(db) {
        let deadline = db_time(3_600);
        for (end, status) in [
            (End::Complete, RunStatus::Completed),
            (End::Suspend { deadline }, RunStatus::WaitingForApproval),
            (End::Fail(Failure::new(FailureCode::ModelFailed, "gone")), RunStatus::Failed),
            (End::Cancel, RunStatus::Cancelled),
            (End::Release, RunStatus::Queued),
        ] {
            let (run, lease) = db.running().await;
            let step = Step { end: Some(end.clone()), ..Step::default() };
            assert_eq!(db.store.step(run, &lease, &step).await.unwrap(), Guarded::Done);
            let now = db.store.run(run).await.unwrap().unwrap();
            assert_eq!((now.status, now.claimed_by), (status, None), "{end:?}");
            assert_eq!(now.failure.is_some(), status == RunStatus::Failed);
            assert_eq!(db.store.step(run, &lease, &Step::default()).await.unwrap(), Guarded::Lost);
            assert_eq!(db.store.renew(run, &lease, TERM).await.unwrap(), Renewed::Lost);
        }
    }

    async fn a_renewal_brings_the_wish_to_cancel(db) {
        let (run, lease) = db.running().await;
        assert_eq!(db.store.renew(run, &lease, TERM).await.unwrap(), Renewed::Held);
        let by: Actor = "user:ada".parse().unwrap();
        let told = event(run, EventKind::RunCancelled);
        assert_eq!(db.store.cancel(run, &by, &told).await.unwrap(), Cancelled::Requested);
        assert_eq!(db.store.renew(run, &lease, TERM).await.unwrap(), Renewed::CancelRequested(by.clone()));
        // The worker lets the run go before it has heard of it.
        let step = Step { end: Some(End::Release), ..Step::default() };
        assert_eq!(db.store.step(run, &lease, &step).await.unwrap(), Guarded::Done);
        assert_eq!(db.store.cancel_requested(10, &TestMint).await.unwrap(), [run]);
        assert_eq!(db.status(run).await, RunStatus::Cancelled);
        assert_eq!(db.events(run).await.last().unwrap().event.actor, Some(by));
        assert!(db.store.cancel_requested(10, &TestMint).await.unwrap().is_empty());
    }

    async fn a_duty_is_one_workers_at_a_time(db) {
        let (one, two) = (worker("one"), worker("two"));
        assert!(db.store.hold_duty("relay", &one, TERM).await.unwrap());
        assert!(!db.store.hold_duty("relay", &two, TERM).await.unwrap());
        assert!(db.store.hold_duty("other", &two, TERM).await.unwrap());
        assert!(db.store.hold_duty("relay", &one, TERM).await.unwrap(), "held again by who holds it");
        assert!(db.store.hold_duty("relay", &one, Duration::ZERO).await.unwrap());
        crate::system::eventually("the duty is free", || async {
            db.store.hold_duty("relay", &two, TERM).await.unwrap().then_some(())
        })
        .await;
        assert!(!db.store.hold_duty("relay", &one, TERM).await.unwrap());
    }

    async fn the_outbox_is_in_order_and_each_event_is_there_once(db) {
        let run = db.created(RunStatus::Queued).await;
        let (published, kept) = (event(run, EventKind::RunFailed), event(run, EventKind::CallFinished));
        let decision = db.decided(run).await;
        let told = [published.clone(), kept.clone()];
        for _ in 0..2 {
            let _ = db.store.refuse(decision, "revoked", &told).await.unwrap();
        }
        let outbox = db.store.outbox(10).await.unwrap();
        let kinds: Vec<_> = outbox.iter().map(|event| event.event.kind).collect();
        assert_eq!(kinds, [EventKind::RunQueued, EventKind::DecisionMade, EventKind::RunFailed]);
        assert!(outbox.is_sorted_by_key(|event| event.position));
        assert_eq!(outbox[2].event, published, "an event reads back as it was written");
        assert_eq!(db.store.outbox_depth().await.unwrap(), 3);
        db.store.mark_published(&[outbox[1].event.id]).await.unwrap();
        let left: Vec<_> = db.store.outbox(10).await.unwrap().iter().map(|event| event.position).collect();
        assert_eq!(left, [outbox[0].position, outbox[2].position]);
        assert_eq!(db.events(run).await.len(), 4);
    }

    async fn what_a_lost_worker_held_is_found(db) {
        let cases = [
            (None, RunStatus::Queued),
            (Some((Effect::ReadOnly, CallStatus::Started)), RunStatus::Queued),
            (Some((Effect::IdempotentWrite, CallStatus::Started)), RunStatus::Queued),
            (Some((Effect::NonIdempotentWrite, CallStatus::Pending)), RunStatus::Queued),
            (Some((Effect::NonIdempotentWrite, CallStatus::Started)), RunStatus::Failed),
        ];
        let (alive, _) = db.running().await;
        let mut lost = Vec::new();
        for (under_way, status) in cases {
            let (run, lease) = db.running().await;
            if let Some((effect, reached)) = under_way {
                let mut row = call(run, 0, effect);
                row.status = reached;
                let step = Step { calls: vec![row], ..Step::default() };
                assert_eq!(db.store.step(run, &lease, &step).await.unwrap(), Guarded::Done);
            }
            db.run_out(run).await;
            lost.push((run, lease, status));
        }
        // Two reapers at once take each run once.
        let mut reaping = JoinSet::new();
        for _ in 0..2 {
            let db = Arc::clone(&db);
            reaping.spawn(async move { db.store.reap(100, 5, &TestMint).await.unwrap() });
        }
        let reaped: Vec<_> = reaping.join_all().await.into_iter().flatten().collect();
        assert_eq!(reaped.len(), lost.len());
        for (run, lease, status) in lost {
            let now = db.store.run(run).await.unwrap().unwrap();
            assert_eq!((now.status, now.requeues, now.claimed_by), (status, 1, None));
            let code = now.failure.map(|failure| failure.code);
            assert_eq!(code, (status == RunStatus::Failed).then_some(FailureCode::WriteOutcomeUnknown));
            assert!(db.kinds(run).await.contains(&EventKind::LeaseExpired));
            assert_eq!(db.store.step(run, &lease, &Step::default()).await.unwrap(), Guarded::Lost);
        }
        assert_eq!(db.status(alive).await, RunStatus::Running, "a lease that holds is left alone");
    }

    async fn workers_are_lost_so_often_and_no_more(db) {
        let run = db.created(RunStatus::Queued).await;
        for round in 0..=2 {
            db.take(run, "w").await;
            db.run_out(run).await;
            assert_eq!(db.store.reap(10, 2, &TestMint).await.unwrap().len(), 1, "round {round}");
        }
        let now = db.store.run(run).await.unwrap().unwrap();
        assert_eq!(now.failure.unwrap().code, FailureCode::RetriesExhausted);
    }

    async fn what_nobody_decided_in_time_expires_once(db) {
        let (late, early) = (db.created(RunStatus::WaitingForApproval).await, db.created(RunStatus::WaitingForApproval).await);
        db.set(late, "deadline", &db.time_from_now(-1)).await;
        assert_eq!(db.store.expire(10, &TestMint).await.unwrap(), [late]);
        assert!(db.store.expire(10, &TestMint).await.unwrap().is_empty());
        assert_eq!((db.status(late).await, db.status(early).await), (RunStatus::Expired, RunStatus::WaitingForApproval));
        assert_eq!(db.events(late).await.last().unwrap().event.actor, None);
    }

    async fn a_job_is_woken_while_its_run_waits_for_it_and_less_often_each_time(db) {
        let queued = db.created(RunStatus::Queued).await;
        let waiting = db.created(RunStatus::WaitingForApproval).await;
        let decision = db.decided(waiting).await;
        let done = db.created(RunStatus::WaitingForApproval).await;
        let concluded = db.decided(done).await;
        assert_eq!(db.store.refuse(concluded, "revoked", &[]).await.unwrap(), Guarded::Done);
        db.publish_all().await;
        assert_eq!(db.store.rewake(TERM, 10).await.unwrap(), 0, "they were published a moment ago");
        assert_eq!(db.store.rewake(Duration::ZERO, 10).await.unwrap(), 2);
        let woken: Vec<_> = db.store.outbox(10).await.unwrap();
        let runs: BTreeSet<_> = woken.iter().filter_map(|event| event.event.run).collect();
        assert_eq!(runs, BTreeSet::from([queued, waiting]));
        assert!(woken.iter().any(|event| event.event.id.uuid() == decision.uuid()), "under its old id");
        db.publish_all().await;
        // Ninety seconds are enough for the first time, and not for the second.
        db.sql(&format!("UPDATE events SET published_at = {} WHERE wakes > 0", db.time_from_now(-90))).await;
        assert_eq!(db.store.rewake(TERM, 10).await.unwrap(), 0);
        db.sql(&format!("UPDATE events SET published_at = {} WHERE wakes > 0", db.time_from_now(-130))).await;
        assert_eq!(db.store.rewake(TERM, 10).await.unwrap(), 2);
    }

    async fn the_directory_is_replaced_whole_and_read_for_one(db) {
        let ada: Actor = "user:ada".parse().unwrap();
        let bot: Actor = "service:bot".parse().unwrap();
        let directory = Directory {
            people: vec![Person {
                id: "ada".to_owned(),
                name: "Ada".to_owned(),
                admin: true,
                enabled: true,
                groups: BTreeSet::from(["ops".to_owned(), "finance".to_owned()]),
            }],
            groups: vec![
                Group { id: "finance".to_owned(), grants: BTreeSet::new() },
                Group { id: "ops".to_owned(), grants: BTreeSet::from([UserGrant::AgentApprove]) },
            ],
            accounts: vec![Account {
                id: "bot".to_owned(),
                name: "Bot".to_owned(),
                enabled: false,
                scopes: BTreeSet::from([Scope::AgentApprove, Scope::ConfigurationUse]),
            }],
        };
        let changed = || event_of_nobody(EventKind::DirectoryChanged);
        db.store.replace_directory(&directory, &changed()).await.unwrap();
        assert_eq!(db.store.directory().await.unwrap(), directory);
        let entry = db.store.directory_entry(&ada).await.unwrap().unwrap();
        let grants = BTreeSet::from([UserGrant::AgentApprove]);
        assert_eq!(entry, DirectoryEntry::Person(directory.people[0].clone(), grants));
        let entry = db.store.directory_entry(&bot).await.unwrap().unwrap();
        assert_eq!(entry, DirectoryEntry::Account(directory.accounts[0].clone()));
        assert_eq!(db.store.directory_entry(&"user:bot".parse().unwrap()).await.unwrap(), None);
        assert_eq!(db.store.set_enabled(&bot, true, &changed()).await.unwrap(), Guarded::Done);
        let nobody: Actor = "user:nobody".parse().unwrap();
        assert_eq!(db.store.set_enabled(&nobody, true, &changed()).await.unwrap(), Guarded::Lost);
        assert!(db.store.directory().await.unwrap().accounts[0].enabled);
        db.store.replace_directory(&Directory::default(), &changed()).await.unwrap();
        assert_eq!(db.store.directory().await.unwrap(), Directory::default());
    }

    async fn catalogue_versions_count_from_one_and_never_change(db) {
        assert_eq!(db.store.current_version().await.unwrap(), None);
        let applied = || event_of_nobody(EventKind::CatalogueApplied);
        assert_eq!(db.store.apply_catalogue("first", None, &applied()).await.unwrap(), 1);
        let mut applying = JoinSet::new();
        for number in 0..8 {
            let db = Arc::clone(&db);
            applying.spawn(async move {
                let event = event_of_nobody(EventKind::CatalogueApplied);
                loop {
                    match db.store.apply_catalogue(&format!("text {number}"), None, &event).await {
                        Ok(version) => return version,
                        // Somebody else has taken the number meanwhile.
                        Err(StoreError::Failed(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        let mut versions = applying.join_all().await;
        versions.sort_unstable();
        assert_eq!(versions, (2..=9).collect::<Vec<i64>>());
        assert_eq!(db.store.current_version().await.unwrap(), Some(9));
        assert_eq!(db.store.catalogue(1).await.unwrap().unwrap().source, "first");
        assert_eq!(db.store.catalogue(10).await.unwrap(), None);
    }

    async fn a_refund_is_made_once_for_each_key_and_never_beyond_the_payment(db) {
        let ledger = &db.opened.ledger;
        let entry = LedgerEntry { id: "P-1".to_owned(), customer: "Nora".to_owned(), amount_cents: 100, refunded_cents: 0 };
        ledger.put_payment(&entry).await.unwrap();
        for _ in 0..3 {
            assert_eq!(ledger.refund("P-1", 60, "key").await.unwrap().refunded_cents, 60);
        }
        assert!(matches!(ledger.refund("P-1", 60, "other").await, Err(LedgerError::TooMuch { left_cents: 40, .. })));
        assert!(matches!(ledger.refund("P-2", 1, "third").await, Err(LedgerError::NoSuchPayment(_))));
        assert!(matches!(ledger.refund("P-1", 0, "fourth").await, Err(LedgerError::Nothing)));
        assert_eq!(ledger.refunds().await.unwrap(), 1);
    }

    async fn case_g14_several_processes_write_at_once_and_nobody_is_locked_out(db) {
        let mut writing = JoinSet::new();
        for process in 0..4 {
            let store = db.another(4).await.store;
            writing.spawn(async move {
                for number in 0..50 {
                    let duty = format!("{process} {number}");
                    assert!(store.hold_duty(&duty, &worker("w"), TERM).await.unwrap());
                }
            });
        }
        writing.join_all().await;
    }
}

/// So many seconds from now, to the microsecond.
fn db_time(seconds: u64) -> time::OffsetDateTime {
    use countersign::clock::Clock as _;
    countersign::clock::SystemClock.now() + Duration::from_secs(seconds)
}
