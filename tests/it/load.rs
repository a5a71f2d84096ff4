//! Two thousand runs decided at once, four workers: each is settled once, and nothing is told twice or not at all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use countersign::broker::RabbitMq;
use countersign::config::Role;
use countersign::model::{EventKind, RunStatus, Verdict};
use countersign::store::LedgerEntry;
use countersign::worker::{Stopped, Works};
use tokio::task::JoinSet;

use crate::system::{Kind, System, Waiting, Working, eventually, play, rabbit};

const RUNS: usize = 2_000;
const WORKERS: usize = 4;

fn catalogue(script: &std::path::Path) -> String {
    format!(
        "[providers.p]\nkind = \"scripted\"\nscript = {:?}\n[models.m]\nprovider = \"p\"\nzone = \"local\"\n\
         [configurations.support]\nmodel = \"m\"\ntoolsets = [\"all\"]\n[toolsets.all]\ntools = [\"refund\"]\n\
         [tools.refund]\nkind = \"builtin\"\nfunction = \"ledger_refund\"\ndescription = \"x\"\n\
         effect = \"non_idempotent_write\"\ndata_class = \"internal\"\n",
        script.display().to_string()
    )
}

/// Does something for every number, eight at a time.
async fn for_each<F, A, T>(count: usize, make: F) -> Vec<T>
where
    F: Fn(usize) -> A,
    A: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let (mut tasks, mut done) = (JoinSet::new(), Vec::new());
    for number in 0..count {
        if tasks.len() == 8 {
            done.push(tasks.join_next().await.unwrap().unwrap());
        }
        tasks.spawn(make(number));
    }
    done.extend(tasks.join_all().await);
    done
}

async fn settle_all(system: Arc<System>) {
    let script = system.folder().join("script.json");
    std::fs::write(&script, r#"{"conversations":[],"otherwise":[]}"#).unwrap();
    system.apply_catalogue(&catalogue(&script)).await;
    let payment = LedgerEntry {
        id: "P-1".to_owned(),
        customer: "Nora".to_owned(),
        amount_cents: 1_000_000,
        refunded_cents: 0,
    };
    system.opened.ledger.put_payment(&payment).await.unwrap();
    let waiting: Vec<Waiting> = for_each(RUNS, |_| {
        let system = Arc::clone(&system);
        async move {
            let arguments = r#"{"payment":"P-1","amount_cents":1}"#;
            system.waiting("support", &[("c1", "refund", arguments)]).await
        }
    })
    .await;
    let mut listener = system.listen().await;
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let broker = RabbitMq::connect(rabbit(&system.topology)).await.unwrap();
        let works = Works {
            broker,
            ..system.works(&format!("worker-{number}"))
        };
        workers.push(Working::start(works, &Role::ALL));
    }
    let begun = Instant::now();
    let runs: Vec<_> = waiting.iter().map(|waiting| waiting.run).collect();
    for_each(RUNS, |number| {
        let (system, waiting) = (Arc::clone(&system), waiting[number].clone());
        async move { system.decide(&waiting, Verdict::Approve, "user:ada").await }
    })
    .await;
    for left in [1_500, 1_000, 500, 0] {
        eventually("more of the runs are settled", || async {
            let counted = system.store.count_runs().await.unwrap();
            (counted.iter().map(|(_, runs)| runs).sum::<i64>() <= left).then_some(())
        })
        .await;
    }
    println!(
        "{RUNS} runs settled by {WORKERS} workers in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    system.published().await;
    let told = ["run.waiting_for_approval", "run.approved", "run.completed"];
    let mut seen: HashMap<String, String> = HashMap::new();
    while seen.len() < RUNS * told.len() {
        let event = listener.next().await;
        seen.insert(event.id, event.kind);
    }
    let mut stored = HashSet::new();
    for run in runs {
        let run_now = system.run(run).await;
        assert_eq!(
            (run_now.status, run_now.epoch),
            (RunStatus::Completed, 1),
            "claimed once"
        );
        let events = system.events(run).await;
        let kinds: Vec<_> = events.iter().map(|event| event.event.kind.as_str()).collect();
        let whole = [
            "run.waiting_for_approval",
            "decision.made",
            "run.approved",
            "call.started",
            "call.finished",
            "run.completed",
        ];
        assert_eq!(kinds, whole);
        let public = events
            .iter()
            .filter(|event| event.event.kind != EventKind::DecisionMade);
        stored.extend(
            public
                .filter(|event| event.event.kind.route().is_published())
                .map(|event| event.event.id.to_string()),
        );
    }
    assert_eq!(
        stored,
        seen.into_keys().collect(),
        "every stored event was published under its own id, and no other"
    );
    assert_eq!(
        system.opened.ledger.refunds().await.unwrap(),
        i64::try_from(RUNS).unwrap()
    );
    for worker in workers {
        assert_eq!(worker.end().await, Stopped::Clean);
    }
}

mod real_services {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn four_workers_settle_two_thousand_runs_once_each() {
        super::play(super::Kind::Real, super::settle_all).await;
    }
}
