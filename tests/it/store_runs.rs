//! What the store promises of runs: created once, read back exactly, listed, counted, cancelled; and what it says of a row
//! that it cannot read.

use countersign::model::{Actor, EventKind, Failure, FailureCode, RunId, RunStatus};
use countersign::store::{Cancelled, End, Guarded, RunFilter, Step, StoreError};
use time::OffsetDateTime;

use crate::store_fixture::{event, new_run, olga, on_both_databases, state};

on_both_databases! {
    async fn a_run_reads_back_exactly(db) {
        let mut new = new_run(RunStatus::WaitingForApproval);
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_764_570_687_123_457_000).unwrap();
        (new.run.created_at, new.run.updated_at, new.run.deadline) = (at, at, Some(at));
        new.state = state("{\"a\":\"\\u0000\\ud83d \\u00e9 \u{1f600}\",  \"a\":1.10, \"b\":1e400}\n");
        new.state.bytes.extend([0, 0xff, 0xfe, b'\'']);
        db.store.create_run(&new).await.unwrap();
        assert_eq!(db.store.run(new.run.id).await.unwrap().as_ref(), Some(&new.run));
        let (run, stored) = db.store.run_with_state(new.run.id).await.unwrap().unwrap();
        assert_eq!((run, stored), (new.run.clone(), new.state.clone()));
        assert_eq!(db.events(new.run.id).await[0].event, new.events[0]);
    }

    async fn a_run_is_created_once(db) {
        let new = new_run(RunStatus::Queued);
        db.store.create_run(&new).await.unwrap();
        let mut again = new.clone();
        again.run.configuration = "another".to_owned();
        again.state = state("another");
        db.store.create_run(&again).await.unwrap();
        let (run, stored) = db.store.run_with_state(new.run.id).await.unwrap().unwrap();
        assert_eq!((run, stored), (new.run.clone(), new.state));
        assert_eq!(db.kinds(new.run.id).await, [EventKind::RunQueued]);
    }

    async fn what_is_not_there_is_nothing(db) {
        let nobody = new_run(RunStatus::Queued).run.id;
        assert_eq!(db.store.run(nobody).await.unwrap(), None);
        assert!(db.store.run_with_state(nobody).await.unwrap().is_none());
        assert!(db.store.calls(nobody, None).await.unwrap().is_empty());
        assert!(db.store.decisions(nobody).await.unwrap().is_empty());
        assert!(db.claim(nobody, RunStatus::Queued, "w").await.is_none());
    }

    async fn runs_are_listed_by_filter_and_page(db) {
        let ada: Actor = "user:ada".parse().unwrap();
        let mut ids: Vec<RunId> = Vec::new();
        for place in 0..6 {
            let mut new = new_run(if place % 2 == 0 { RunStatus::Queued } else { RunStatus::WaitingForApproval });
            if place < 2 {
                new.run.owner = ada.clone();
            }
            db.store.create_run(&new).await.unwrap();
            ids.insert(0, new.run.id);
        }
        let list = async |filter: RunFilter| -> Vec<RunId> {
            db.store.runs(&filter).await.unwrap().iter().map(|run| run.id).collect()
        };
        let page = RunFilter { limit: 4, ..RunFilter::default() };
        assert_eq!(list(page.clone()).await, ids[..4]);
        assert_eq!(list(RunFilter { before: Some(ids[3]), ..page.clone() }).await, ids[4..]);
        assert_eq!(list(RunFilter { before: Some(ids[5]), ..page.clone() }).await, []);
        let queued = RunFilter { status: Some(RunStatus::Queued), ..page.clone() };
        assert_eq!(list(queued).await, [ids[1], ids[3], ids[5]]);
        let hers = RunFilter { owner: Some(ada.clone()), ..page.clone() };
        assert_eq!(list(hers.clone()).await, ids[4..]);
        let one = RunFilter { status: Some(RunStatus::Queued), before: Some(ids[4]), ..hers };
        assert_eq!(list(one).await, [ids[5]]);
        let mut counts = db.store.count_runs().await.unwrap();
        counts.sort();
        assert_eq!(counts, [(RunStatus::Queued, 3), (RunStatus::WaitingForApproval, 3)]);
    }

    async fn a_run_that_waits_is_cancelled_at_once(db) {
        for status in [RunStatus::Queued, RunStatus::WaitingForApproval] {
            let run = db.created(status).await;
            let told = event(run, EventKind::RunCancelled);
            assert_eq!(db.store.cancel(run, &olga(), &told).await.unwrap(), Cancelled::Now);
            assert_eq!(db.status(run).await, RunStatus::Cancelled);
            let again = db.store.cancel(run, &olga(), &told).await.unwrap();
            assert_eq!(again, Cancelled::TooLate(RunStatus::Cancelled));
            assert_eq!(db.kinds(run).await.iter().filter(|kind| **kind == EventKind::RunCancelled).count(), 1);
        }
        let nobody = new_run(RunStatus::Queued).run.id;
        let told = event(nobody, EventKind::RunCancelled);
        assert_eq!(db.store.cancel(nobody, &olga(), &told).await.unwrap(), Cancelled::NoSuchRun);
        assert!(db.kinds(nobody).await.is_empty());
    }

    async fn a_running_run_is_marked_to_be_cancelled(db) {
        let (run, lease) = db.running().await;
        let told = event(run, EventKind::RunCancelled);
        assert_eq!(db.store.cancel(run, &olga(), &told).await.unwrap(), Cancelled::Requested);
        assert_eq!(db.status(run).await, RunStatus::Running);
        assert_eq!(db.kinds(run).await, [EventKind::RunQueued]);
        let failure = Failure::new(FailureCode::ModelFailed, "gone");
        let step = Step { end: Some(End::Fail(failure.clone())), ..Step::default() };
        assert_eq!(db.store.step(run, &lease, &step).await.unwrap(), Guarded::Done);
        let late = db.store.cancel(run, &olga(), &told).await.unwrap();
        assert_eq!(late, Cancelled::TooLate(RunStatus::Failed));
        assert_eq!(db.store.run(run).await.unwrap().unwrap().failure, Some(failure));
    }

    /// While the cancel waits for the row, the run goes from its worker back to the queue. It has not ended, so it is
    /// cancelled, not "too late".
    async fn a_run_that_is_requeued_meanwhile_is_cancelled_all_the_same(db) {
        let (run, lease) = db.running().await;
        let request = Step { end: Some(End::Release), ..Step::default() };
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(2));
        let release = tokio::spawn({
            let (db, barrier) = (db.clone(), barrier.clone());
            async move {
                barrier.wait().await;
                db.store.step(run, &lease, &request).await.unwrap()
            }
        });
        barrier.wait().await;
        let told = event(run, EventKind::RunCancelled);
        let cancelled = db.store.cancel(run, &olga(), &told).await.unwrap();
        assert_eq!(release.await.unwrap(), Guarded::Done);
        assert!(matches!(cancelled, Cancelled::Now | Cancelled::Requested), "{cancelled:?}");
    }

    async fn a_row_that_cannot_be_read_is_named(db) {
        let run = db.created(RunStatus::Queued).await;
        db.set(run, "owner", "'nobody at all'").await;
        match db.store.run(run).await {
            Err(error @ StoreError::CorruptRow { .. }) => {
                let text = error.to_string();
                for part in ["`runs`", "`owner`", &run.to_string()] {
                    assert!(text.contains(part), "{part} is not in {text}");
                }
                assert!(!text.contains("nobody at all"), "{text}");
                assert!(!error.is_transient());
            }
            other => panic!("{other:?}"),
        }
    }

    async fn a_status_that_no_build_knows_is_named(db) {
        let run = db.created(RunStatus::WaitingForApproval).await;
        let decision = db.decided(run).await;
        match db.kind {
            // The table's checks would refuse the text.
            crate::system::Kind::Embedded => {
                db.sql(&format!(
                    "PRAGMA ignore_check_constraints = ON; UPDATE decisions SET status = 'odd' WHERE id = '{decision}'; \
                     UPDATE runs SET status = 'odd' WHERE id = '{run}'"
                )).await;
            }
            crate::system::Kind::Real => {
                db.sql(&format!(
                    "ALTER TABLE decisions DROP CONSTRAINT decisions_status_check; \
                     ALTER TABLE runs DROP CONSTRAINT runs_status_check; \
                     UPDATE decisions SET status = 'odd' WHERE id = '{decision}'; \
                     UPDATE runs SET status = 'odd' WHERE id = '{run}'"
                )).await;
            }
        }
        let error = db.store.run(run).await.unwrap_err().to_string();
        assert!(error.contains("`runs`") && error.contains("`status`") && error.contains(&run.to_string()), "{error}");
        let error = db.store.decision(decision).await.unwrap_err().to_string();
        assert!(
            error.contains("`decisions`") && error.contains("`status`") && error.contains(&decision.to_string()),
            "{error}"
        );
    }
}
