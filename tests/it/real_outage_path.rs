//! The path while its services go away and come back: nothing is lost, nothing is dead-lettered, nothing runs twice.
//! These tests stop and restart the services, so they run alone.

use std::sync::Arc;

use countersign::model::{RunStatus, Verdict};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::system::{Kind, System, Waiting, play};

const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);
const TAG: (&str, &str, &str) = ("c1", "tag", "{}");

/// Runs one of the wrappers that the runner of the tests gives.
async fn wrapper(variable: &str, words: &[&str]) {
    let output = Command::new(crate::system::service(variable))
        .args(words)
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{variable} {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs that wait, and their decisions under way.
async fn decided(
    system: &Arc<System>,
    runs: usize,
    call: (&'static str, &'static str, &'static str),
) -> (Vec<Waiting>, JoinSet<()>) {
    let mut waiting = Vec::new();
    for _ in 0..runs {
        waiting.push(system.waiting("support", &[call]).await);
    }
    let mut deciding = JoinSet::new();
    for waiting in waiting.clone() {
        let system = Arc::clone(system);
        deciding.spawn(async move {
            system.decide(&waiting, Verdict::Approve, "user:ada").await;
        });
    }
    (waiting, deciding)
}

async fn all_settled_once(system: &System, waiting: &[Waiting]) {
    for waiting in waiting {
        system.reaches(waiting.run, RunStatus::Completed).await;
    }
    let mut keys = system.tools.effects().await;
    let effects = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(
        (effects, keys.len()),
        (waiting.len(), waiting.len()),
        "each took effect once"
    );
    assert_eq!(
        crate::listener::depth(&system.topology.dead).await,
        0,
        "nothing is dead-lettered"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_g2_a_decision_is_taken_while_the_broker_is_down() {
    play(Kind::Real, |system| async move {
        let working = system.start();
        let waiting = system.waiting("support", &[WRITE]).await;
        system.published().await;
        wrapper("RABBITMQ_CTL", &["stop_app"]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        wrapper("RABBITMQ_CTL", &["start_app"]).await;
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["refund"]);
        working.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_g20_the_broker_restarts_in_mid_load() {
    play(Kind::Real, |system| async move {
        let workers = [system.start(), system.start()];
        let (waiting, deciding) = decided(&system, 100, WRITE).await;
        system.tools.calls_at_least(10).await;
        wrapper("RABBITMQ_RESTART", &["term"]).await;
        deciding.join_all().await;
        all_settled_once(&system, &waiting).await;
        for worker in workers {
            worker.end().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_g19_the_database_restarts_in_mid_load() {
    play(Kind::Real, |system| async move {
        let (waiting, deciding) = decided(&system, 100, TAG).await;
        deciding.join_all().await;
        let workers = [system.start(), system.start()];
        system.tools.calls_at_least(10).await;
        wrapper("PG_CTL", &["restart", "-m", "fast"]).await;
        all_settled_once(&system, &waiting).await;
        for worker in workers {
            worker.end().await;
        }
    })
    .await;
}
