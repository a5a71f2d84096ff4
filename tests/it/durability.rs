//! Cases of the kind "durability, queue, links": what is decided takes effect once, whatever goes away meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use countersign::clock::Clock;
use countersign::config::Role;
use countersign::model::{DecisionStatus, EventKind, Job, RunStatus, SealedState, TurnOrdinal, Verdict};
use countersign::resume::{Disposition, Path, Taken};
use countersign::worker::{Handler, Stopped};
use serde_json::json;

use crate::system::{System, Waiting, Working, eventually, on_both, people};

const READ: (&str, &str, &str) = ("c1", "guarded_look", "{}");
const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);

/// Panics at every job of one run, and hands the others on.
struct Poisoned {
    run: countersign::model::RunId,
    path: Path,
    panics: AtomicUsize,
}

#[async_trait]
impl Handler for Poisoned {
    async fn handle(&self, body: &[u8], taken: &dyn Taken) -> Disposition {
        if String::from_utf8_lossy(body).contains(&self.run.to_string()) {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!("this job is poison");
        }
        self.path.handle(body, taken).await
    }
}

/// A clock that panics the first times it is asked.
struct Cursed {
    inner: Arc<dyn Clock>,
    left: AtomicUsize,
}

impl Clock for Cursed {
    fn now(&self) -> time::OffsetDateTime {
        let cursed = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(cursed.is_err(), "this clock is cursed");
        self.inner.now()
    }

    fn new_id(&self) -> uuid::Uuid {
        self.inner.new_id()
    }
}

/// A message that came before.
struct Again;

#[async_trait]
impl Taken for Again {
    fn came_before(&self) -> bool {
        true
    }

    async fn acknowledge(&self) {}
}

/// Works on the jobs of one run with a cursed clock, on the others with a good one.
struct Cursing {
    run: countersign::model::RunId,
    cursed: Path,
    path: Path,
}

#[async_trait]
impl Handler for Cursing {
    async fn handle(&self, body: &[u8], taken: &dyn Taken) -> Disposition {
        let of_run = String::from_utf8_lossy(body).contains(&self.run.to_string());
        let path = if of_run { &self.cursed } else { &self.path };
        path.handle(body, taken).await
    }
}

/// Makes the event table refuse every insert, or only those of one kind.
async fn refuse_events(system: &System, kind: Option<&str>) {
    let condition = kind.map_or_else(String::new, |kind| format!("WHEN (NEW.kind = '{kind}')"));
    system
        .sql(&match system.kind {
            crate::system::Kind::Embedded => format!(
                "CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW {condition} \
                 BEGIN SELECT RAISE(ABORT, 'the table is sealed'); END"
            ),
            crate::system::Kind::Real => format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                 $$BEGIN RAISE EXCEPTION 'the table is sealed'; END$$; \
                 CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW {condition} EXECUTE FUNCTION refuse()"
            ),
        })
        .await;
}

async fn corrupted(system: &System, how: &str) -> Waiting {
    let waiting = system.waiting("support", &[WRITE]).await;
    let other = system.waiting("support", &[READ]).await;
    let mut state: SealedState = waiting.sealed.clone();
    match how {
        "text" => state.bytes = b"this is no state".to_vec(),
        "another run's" => state = other.sealed,
        _ => state.bytes[40] ^= 1,
    }
    system.put_state(waiting.run, &state).await;
    Waiting {
        sealed: state,
        ..waiting
    }
}

on_both! {
    async fn case_g1_what_waits_survives_every_process(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let first = system.start();
        system.published().await;
        first.kill().await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let second = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["refund"]);
        second.end().await;
    }

    async fn case_g4_what_is_missing_is_named_before_the_claim(system) {
        let before = system.catalogue();
        let without_configuration = before.replace("[configurations.support]", "[configurations.other]");
        let without_secret = before.replace("max_retries = 1", "max_retries = 1\nkey_env = \"NO_SUCH_KEY_IS_SET\"");
        let working = system.start();
        for (after, missing) in [(without_configuration, "support"), (without_secret, "NO_SUCH_KEY_IS_SET")] {
            system.apply_catalogue(&before).await;
            let waiting = system.waiting("support", &[WRITE]).await;
            system.apply_catalogue(&after).await;
            let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
            system.refused(&waiting, decision, "configuration_gone").await;
            assert_eq!(system.run(waiting.run).await.epoch, 0, "not even claimed");
            let events = system.events(waiting.run).await;
            let told = events.iter().find(|event| event.event.kind == EventKind::RunRefused).unwrap();
            assert!(told.event.data["missing"].as_str().unwrap().contains(missing), "{:?}", told.event.data);
        }
        working.end().await;
    }

    async fn case_g8_a_job_that_panics_goes_to_the_dead_letters_and_others_flow(system) {
        let poison = system.waiting("support", &[WRITE]).await;
        let handler = Arc::new(Poisoned { run: poison.run, path: system.path("worker"), panics: AtomicUsize::new(0) });
        let working = Working::start(system.works_with(handler.clone()), &Role::ALL);
        system.decide(&poison, Verdict::Approve, "user:ada").await;
        let dead = system.dead_letter().await;
        assert!(dead.contains(&poison.run.to_string()));
        let panics = handler.panics.load(Ordering::SeqCst);
        assert!(panics > 1, "tried {panics} times");
        let other = system.waiting("support", &[WRITE]).await;
        system.decide(&other, Verdict::Approve, "user:ada").await;
        system.reaches(other.run, RunStatus::Completed).await;
        assert_eq!(system.run(poison.run).await.status, RunStatus::WaitingForApproval);
        working.end().await;
    }

    async fn case_h8_a_job_that_ends_its_worker_three_times_is_quarantined(system) {
        let poison = system.waiting("support", &[WRITE]).await;
        let clock = Arc::new(Cursed { inner: system.clock.clone(), left: AtomicUsize::new(3) });
        let cursed = Path { clock: clock.clone(), ..system.path("worker") };
        let handler = Cursing { run: poison.run, cursed, path: system.path("worker") };
        let working = Working::start(system.works_with(Arc::new(handler)), &Role::ALL);
        let decision = system.decide(&poison, Verdict::Approve, "user:ada").await;
        let letter = system.dead_letter_reason().await;
        assert!(letter.contains("quarantined"), "{letter}");
        assert_eq!(clock.left.load(Ordering::SeqCst), 0, "three attempts were ended");
        system.refused(&poison, decision, "quarantined").await;
        let other = system.waiting("support", &[WRITE]).await;
        system.decide(&other, Verdict::Approve, "user:ada").await;
        system.reaches(other.run, RunStatus::Completed).await;
        // The cause is mended: a new decision is as good as the first.
        system.decide(&poison, Verdict::Approve, "user:ada").await;
        system.reaches(poison.run, RunStatus::Completed).await;
        working.end().await;
    }

    async fn case_h8_a_start_job_that_ends_its_worker_fails_its_run(system) {
        let run = system.queued("support", "please").await;
        let job = Job::Start { run };
        // Two workers began it and are gone; the first delivery is not counted.
        for attempt in 1..=2 {
            assert_eq!(system.store.begin_attempt(&job).await.unwrap(), attempt);
        }
        let again = countersign::resume::handle(&system.path("third"), &job.to_bytes(), &Again).await;
        assert!(matches!(again, Disposition::DeadLetter(why) if why.contains("quarantined")));
        let run = system.run(run).await;
        assert_eq!(run.failure.unwrap().code.as_str(), "retries_exhausted");
        assert!(system.asked().await.is_empty());
    }

    async fn an_attempt_that_ends_is_not_counted(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let decision = system.decide(&waiting, Verdict::Deny, "user:nobody").await;
        let job = Job::Resume { run: waiting.run, decision };
        for _ in 0..5 {
            let again = countersign::resume::handle(&system.path("worker"), &job.to_bytes(), &Again).await;
            assert_eq!(again, Disposition::Acknowledge);
        }
        assert_eq!(system.store.begin_attempt(&job).await.unwrap(), 1);
    }

    async fn case_c1_garbage_on_the_queue_is_a_dead_letter_with_its_reason(system) {
        let working = system.start();
        let waiting = system.waiting("support", &[WRITE]).await;
        let forged = json!({
            "v": 1, "kind": "resume", "run_id": waiting.run, "decision_id": waiting.run, "actor": "user:ada",
        });
        let unknown = json!({ "v": 1, "kind": "resume", "run_id": waiting.run, "decision_id": waiting.run });
        for (body, reason) in [
            (b"garbage".to_vec(), "not a job"),
            (Vec::new(), "not a job"),
            (vec![b' '; 100_000], "bytes"),
            (br#"{"v":9,"kind":"start","run_id":"01890000-0000-7000-8000-000000000001"}"#.to_vec(), "version 9"),
            (forged.to_string().into_bytes(), "not a job"),
            (unknown.to_string().into_bytes(), "does not exist"),
        ] {
            system.publish_job(body).await;
            let letter = system.dead_letter_reason().await;
            assert!(letter.contains(reason), "{letter}");
        }
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        assert_eq!(system.concluded(decision).await, DecisionStatus::Standing, "the consumer goes on");
        system.reaches(waiting.run, RunStatus::Completed).await;
        working.end().await;
    }

    async fn case_f2_a_job_that_names_another_runs_decision_executes_nothing(system) {
        let working = system.start();
        let (one, two) = (system.waiting("support", &[WRITE]).await, system.waiting("support", &[WRITE]).await);
        let decision = system.decide(&one, Verdict::Approve, "user:ada").await;
        system.reaches(one.run, RunStatus::Completed).await;
        let forged = json!({ "v": 1, "kind": "resume", "run_id": two.run, "decision_id": decision });
        system.publish_job(forged.to_string().into_bytes()).await;
        let letter = system.dead_letter_reason().await;
        assert!(letter.contains("does not exist"), "{letter}");
        assert_eq!(system.state(two.run).await, two.sealed);
        assert_eq!(system.kinds(two.run).await, ["run.waiting_for_approval"]);
        assert_eq!(system.called().await, ["refund"], "the first run's");
        working.end().await;
    }

    async fn case_c2_that_a_turn_waits_is_read_from_the_run(system) {
        let waiting = system.waiting("support", &[READ]).await;
        system.apply_catalogue(&system.catalogue().replace("requires_approval = true", "")).await;
        system.decide(&waiting, Verdict::Deny, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert!(system.tools.calls().await.is_empty(), "denied is denied, whatever today's rule says");
        working.end().await;
    }

    async fn case_g10_siblings_decided_at_once_resume_once_each(system) {
        let mut waiting = Vec::new();
        for _ in 0..200 {
            waiting.push(system.waiting("support", &[WRITE]).await);
        }
        let workers: Vec<_> = (0..8).map(|_| system.start()).collect();
        let barrier = Arc::new(tokio::sync::Barrier::new(8));
        let mut deciding = tokio::task::JoinSet::new();
        for some in waiting.chunks(25) {
            let (system, barrier, some) = (Arc::clone(&system), Arc::clone(&barrier), some.to_vec());
            deciding.spawn(async move {
                barrier.wait().await;
                for waiting in some {
                    system.decide(&waiting, Verdict::Approve, "user:ada").await;
                }
            });
        }
        deciding.join_all().await;
        for waiting in &waiting {
            system.reaches(waiting.run, RunStatus::Completed).await;
            assert_eq!(system.run(waiting.run).await.epoch, 1, "claimed once");
        }
        assert_eq!(system.tools.calls().await.len(), 200);
        for worker in workers {
            assert_eq!(worker.end().await, Stopped::Clean);
        }
    }

    async fn case_g15_a_state_that_cannot_be_read_is_kept_for_repair(system) {
        let working = system.start();
        for how in ["text", "another run's", "a flipped bit"] {
            let waiting = corrupted(&system, how).await;
            for verdict in Verdict::ALL {
                let decision = system.decide(&waiting, verdict, "user:ada").await;
                system.refused(&waiting, decision, "corrupt_state").await;
            }
        }
        working.end().await;
    }

    async fn case_f14_the_approval_of_a_write_that_cannot_be_recorded_executes_nothing(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let calls = system.called().await.len();
        refuse_events(&system, Some("run.approved")).await;
        let working = system.start();
        assert_eq!(system.concluded(decision).await, DecisionStatus::Refused("not_auditable".to_owned()));
        assert_eq!(system.run(waiting.run).await.status, RunStatus::WaitingForApproval);
        assert_eq!(system.state(waiting.run).await, waiting.sealed);
        assert_eq!(system.called().await.len(), calls);
        working.end().await;
    }

    async fn case_f14_a_sealed_event_table_stops_writes_but_not_reads_and_denials(system) {
        let write = system.waiting("support", &[WRITE]).await;
        let read = system.waiting("support", &[READ]).await;
        let denied = system.waiting("support", &[WRITE]).await;
        let of_write = system.decide(&write, Verdict::Approve, "user:ada").await;
        let of_read = system.decide(&read, Verdict::Approve, "user:ada").await;
        let of_denied = system.decide(&denied, Verdict::Deny, "user:ada").await;
        refuse_events(&system, None).await;
        let working = system.start();
        assert_eq!(system.concluded(of_write).await, DecisionStatus::Refused("not_auditable".to_owned()));
        system.reaches(read.run, RunStatus::Completed).await;
        system.reaches(denied.run, RunStatus::Completed).await;
        assert_eq!(system.concluded(of_read).await, DecisionStatus::Standing);
        assert_eq!(system.concluded(of_denied).await, DecisionStatus::Standing);
        assert_eq!(system.run(write.run).await.status, RunStatus::WaitingForApproval);
        assert_eq!(system.state(write.run).await, write.sealed);
        assert_eq!(system.called().await, ["guarded_look"]);
        working.end().await;
    }

    async fn case_c6_what_nobody_decides_in_time_expires_by_nobody(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        system.set_deadline(waiting.run, -1).await;
        let late = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        let expired = system.reaches(waiting.run, RunStatus::Expired).await;
        assert_eq!(expired.failure.unwrap().code.as_str(), "approval_expired");
        assert_eq!(system.concluded(late).await, DecisionStatus::Refused("not_waiting".to_owned()));
        assert!(system.tools.calls().await.is_empty());
        let events = system.events(waiting.run).await;
        let told = events.iter().find(|event| event.event.kind == EventKind::RunExpired).unwrap();
        assert_eq!(told.event.actor, None);
        working.end().await;
    }

    async fn a_job_that_was_lost_on_the_way_is_woken_again(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        // A relay publishes the job, and the queue is gone before anybody has read it.
        let relay = Working::start(system.works("relay"), &[Role::Relay]);
        system.published().await;
        relay.end().await;
        system.lose_jobs().await;
        let mut works = system.works("worker");
        works.pace.wake_after = std::time::Duration::from_millis(200);
        let working = Working::start(works, &Role::ALL);
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.concluded(decision).await, DecisionStatus::Standing);
        assert_eq!(system.called().await, ["refund"]);
        working.end().await;
    }

    async fn every_event_of_a_run_is_published_in_order_under_its_own_id(system) {
        let mut listener = system.listen().await;
        let waiting = system.waiting("support", &[WRITE, ("c2", "look", "{}")]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.reaches(waiting.run, RunStatus::Completed).await;
        let mut published = Vec::new();
        while published.last() != Some(&"run.completed".to_owned()) {
            let event = listener.next().await;
            let stored = system.events(waiting.run).await;
            let stored = stored.iter().find(|row| row.event.id.to_string() == event.id).unwrap();
            assert_eq!(stored.event.kind.as_str(), event.kind);
            assert_eq!(event.body["id"], event.id);
            assert_eq!(event.body["run_id"], json!(waiting.run));
            published.push(event.kind);
        }
        assert_eq!(published, ["run.waiting_for_approval", "run.approved", "run.completed"]);
        working.end().await;
    }

    async fn a_run_that_is_cancelled_while_it_waits_cannot_be_approved(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        system.cancel(waiting.run).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        assert_eq!(system.concluded(decision).await, DecisionStatus::Refused("not_waiting".to_owned()));
        assert_eq!(system.run(waiting.run).await.status, RunStatus::Cancelled);
        assert!(system.tools.calls().await.is_empty());
        working.end().await;
    }

    async fn a_running_run_is_cancelled_at_its_next_step(system) {
        system.apply_catalogue(&system.catalogue().replace("/effect", "/hold")).await;
        let waiting = system.waiting("support", &[WRITE, ("c2", "tag", "{}")]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = Working::start(system.impatient("worker"), &Role::ALL);
        system.tools.calls_at_least(1).await;
        assert_eq!(system.cancel(waiting.run).await, countersign::store::Cancelled::Requested);
        // The lease is renewed beside the call; the renewal brings the request.
        system.renewed(waiting.run).await;
        system.tools.release().await;
        let run = system.reaches(waiting.run, RunStatus::Cancelled).await;
        assert_eq!(run.claimed_by, None);
        assert_eq!(system.called().await, ["refund"], "what ran came to its end; nothing else began");
        let events = system.events(waiting.run).await;
        assert!(events.iter().any(|event| event.event.kind == EventKind::CallFinished));
        let told = events.iter().find(|event| event.event.kind == EventKind::RunCancelled).unwrap();
        assert_eq!(told.event.actor, Some("user:olga".parse().unwrap()));
        working.end().await;
    }

    async fn case_g5_a_run_whose_worker_is_gone_goes_on_elsewhere(system) {
        let hold = system.catalogue().replace("/effect", "/hold");
        system.apply_catalogue(&hold).await;
        let waiting = system.waiting("support", &[READ]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let first = Working::start(system.impatient("first"), &Role::ALL);
        system.tools.calls_at_least(1).await;
        first.kill().await;
        system.tools.release().await;
        let second = Working::start(system.impatient("second"), &Role::ALL);
        let run = system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!((run.requeues, run.epoch), (1, 2));
        assert!(system.kinds(waiting.run).await.contains(&"lease.expired"));
        second.end().await;
    }

    async fn case_a4_a_write_that_was_under_way_is_never_run_again(system) {
        system.apply_catalogue(&system.catalogue().replace("/effect", "/hold")).await;
        let waiting = system.waiting("support", &[WRITE]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let first = Working::start(system.impatient("first"), &Role::ALL);
        system.tools.calls_at_least(1).await;
        first.kill().await;
        system.tools.release().await;
        let second = Working::start(system.impatient("second"), &Role::ALL);
        let run = system.reaches(waiting.run, RunStatus::Failed).await;
        assert_eq!(run.failure.unwrap().code.as_str(), "write_outcome_unknown");
        assert_eq!(system.tools.effects().await.len(), 1, "it took effect once");
        let kinds = system.kinds(waiting.run).await;
        assert!(kinds.contains(&"call.started") && !kinds.contains(&"call.finished"), "{kinds:?}");
        second.end().await;
    }

    async fn the_journal_keeps_what_was_done_before_a_worker_was_lost(system) {
        // The first write is done, the second is held; it is idempotent, so it may run again, under the same key.
        let url = system.tools.url("/hold");
        let catalogue = system.catalogue().replace(
            &format!("[tools.tag]\nkind = \"http\"\nurl = \"{}\"", system.tools.url("/effect")),
            &format!("[tools.tag]\nkind = \"http\"\nurl = \"{url}\""),
        );
        system.apply_catalogue(&catalogue).await;
        let waiting = system.waiting("support", &[WRITE, ("c2", "tag", "{}")]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let first = Working::start(system.impatient("first"), &Role::ALL);
        system.tools.calls_at_least(2).await;
        first.kill().await;
        system.tools.release().await;
        let second = Working::start(system.impatient("second"), &Role::ALL);
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["refund", "tag", "tag"]);
        assert_eq!(system.tools.effects().await.len(), 2);
        let answered = system.asked().await.pop().unwrap();
        assert_eq!(answered.iter().filter(|message| message["role"] == "tool").count(), 2);
        assert_eq!(system.run(waiting.run).await.turn, TurnOrdinal(7));
        second.end().await;
    }

    async fn nobody_is_somebody_again_after_the_directory_is_replaced(system) {
        let mut directory = people();
        directory.people.retain(|person| person.id != "ada");
        system.apply_directory(&directory).await;
        let waiting = system.waiting("support", &[READ]).await;
        let decision = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        system.refused(&waiting, decision, "approver_unresolved").await;
        system.apply_directory(&people()).await;
        let again = system.decide(&waiting, Verdict::Approve, "user:ada").await;
        assert_eq!(system.concluded(again).await, DecisionStatus::Standing);
        eventually("the run is settled", || async {
            (system.run(waiting.run).await.status == RunStatus::Completed).then_some(())
        })
        .await;
        working.end().await;
    }
}
