//! `countersign serve` and `demo` as processes of their own: how they start, how they wait, how they end.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::model::{RunStatus, Verdict};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::chaos_proxy::{ChaosProxy, Mode};
use crate::system::{Kind, System, eventually, on_both, play, service};

/// A process of the product, killed when it is dropped.
struct Served {
    child: Child,
    said: Arc<std::sync::Mutex<String>>,
    http: SocketAddr,
}

/// A port that nobody has, for a process that will take it.
fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

impl Served {
    /// Starts `serve` with these variables and words.
    fn start(variables: &[(&str, String)], words: &[&str]) -> Self {
        let http = free_address();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .arg("serve")
            .args(words)
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (*name, value.as_str())))
            .env("COUNTERSIGN_HTTP_LISTEN", http.to_string())
            .env("COUNTERSIGN_RELAY_POLL", "50ms")
            .env("COUNTERSIGN_REAPER_EVERY", "1s")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = Arc::new(std::sync::Mutex::new(String::new()));
        let (mut lines, heard) = (
            BufReader::new(child.stderr.take().unwrap()).lines(),
            Arc::clone(&said),
        );
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Self { child, said, http }
    }

    /// All roles, on the system's database and queues.
    fn on(system: &System, words: &[&str]) -> Self {
        Self::start(&variables(system), words)
    }

    /// What `/readyz` answers; nothing while nobody listens.
    async fn readiness(&self) -> Option<(u16, String)> {
        let answer = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = answer
            .get(format!("http://{}/readyz", self.http))
            .send()
            .await
            .ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    async fn is_ready(&self) {
        eventually("the process is ready", || async {
            self.readiness().await.filter(|(status, _)| *status == 200)
        })
        .await;
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    async fn says(&self, text: &str) {
        eventually(&format!("the process says {text:?}"), || async {
            self.said().contains(text).then_some(())
        })
        .await;
    }

    async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .await
                .unwrap()
                .success()
        );
    }

    /// How it ended, within 15 s.
    async fn ends(&mut self) -> i32 {
        let ended = tokio::time::timeout(Duration::from_secs(15), self.child.wait()).await;
        ended
            .expect("the process ends within 15 s")
            .unwrap()
            .code()
            .unwrap_or(-1)
    }
}

/// How a process finds the system's database and queues.
fn variables(system: &System) -> Vec<(&'static str, String)> {
    let mut variables = vec![("COUNTERSIGN_DATABASE_URL", system.url.clone())];
    if system.kind == Kind::Real {
        variables.push(("COUNTERSIGN_BROKER_URL", service("AMQP_URL")));
        variables.push((
            "COUNTERSIGN_BROKER_PREFIX",
            system.topology.events.replace(".events", ""),
        ));
    }
    variables
}

const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1","amount_cents":4000}"#);

on_both! {
    async fn case_g1_a_decision_is_taken_up_by_the_next_process(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let mut first = Served::on(&system, &[]);
        first.is_ready().await;
        system.published().await;
        first.child.kill().await.unwrap();
        // Nobody is there when it is decided.
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let mut second = Served::on(&system, &[]);
        system.reaches(waiting.run, RunStatus::Completed).await;
        assert_eq!(system.called().await, ["refund"]);
        let metrics = reqwest::get(format!("http://{}/metrics", second.http)).await.unwrap().text().await.unwrap();
        assert!(metrics.contains("countersign_jobs_total"), "{metrics}");
        second.signal("-TERM").await;
        assert_eq!(second.ends().await, 0);
    }

    async fn sigterm_lets_a_running_turn_end(system) {
        system.apply_catalogue(&system.catalogue().replace("/effect", "/hold")).await;
        let waiting = system.waiting("support", &[WRITE]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let mut served = Served::on(&system, &[]);
        system.tools.calls_at_least(1).await;
        served.signal("-TERM").await;
        system.tools.release().await;
        assert_eq!(served.ends().await, 0);
        assert_eq!(system.run(waiting.run).await.status, RunStatus::Completed);
        assert!(served.said().contains("every turn that ran came to an end"), "{}", served.said());
    }

    async fn a_second_signal_ends_at_once(system) {
        system.apply_catalogue(&system.catalogue().replace("/effect", "/hold")).await;
        let waiting = system.waiting("support", &[WRITE]).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let mut served = Served::on(&system, &[]);
        system.tools.calls_at_least(1).await;
        served.signal("-INT").await;
        // The relay's duty is let go of only after the slots; the first signal is seen by nothing outside. A second
        // one may come at any time, so it is sent until the process has ended.
        let begun = Instant::now();
        while served.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(15));
            served.signal("-INT").await;
        }
        assert_eq!(served.ends().await, 130);
        system.tools.release().await;
    }
}

#[tokio::test]
async fn the_demos_script_comes_out_as_it_must() {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["demo", "--script"])
        .env_clear()
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(said.matches("    ok  ").count(), 11, "{said}");
}

#[tokio::test]
async fn what_cannot_work_ends_the_start_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let no_database = folder.path().join("text.db");
    std::fs::write(
        &no_database,
        "this is no database, though it is long enough to be one".repeat(100),
    )
    .unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sqlite = format!("sqlite://{}", folder.path().join("x.db").display());
    let url = |url: &str| vec![("COUNTERSIGN_DATABASE_URL", url.to_owned())];
    let with =
        |name: &'static str, value: String| vec![("COUNTERSIGN_DATABASE_URL", sqlite.clone()), (name, value)];
    for (variables, words, named) in [
        (url("mysql://u:sesame@x/y"), vec![], "database.url"),
        (url("sqlite:///no/such/folder/x.db"), vec![], "/no/such/folder"),
        (
            url(&format!("sqlite://{}", no_database.display())),
            vec![],
            "text.db",
        ),
        (
            with("COUNTERSIGN_WORKER_SLOTZ", "3".to_owned()),
            vec![],
            "COUNTERSIGN_WORKER_SLOTS",
        ),
        (
            with("COUNTERSIGN_WORKER_SLOTS", "many".to_owned()),
            vec![],
            "WORKER_SLOTS",
        ),
        (
            with("COUNTERSIGN_BROKER_URL", "amqp://u:sesame@h/".to_owned()),
            vec![],
            "broker",
        ),
        (
            with("COUNTERSIGN_LOG_LEVEL", "=loud=".to_owned()),
            vec![],
            "log.level",
        ),
        (
            with("X", taken.local_addr().unwrap().to_string()),
            vec!["--roles", "worker"],
            "embedded",
        ),
    ] {
        let mut served = Served::start(&variables, &words);
        let begun = Instant::now();
        let code = served.ends().await;
        assert!(begun.elapsed() < Duration::from_secs(10));
        served.says("error: ").await;
        let said = served.said();
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(named), "{named}: {said}");
        assert!(!said.contains("sesame"), "{said}");
    }
}

mod real_services_only {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn case_h1_a_process_that_is_there_before_the_broker_waits_for_it() {
        play(Kind::Real, |system| async move {
            let mut url = url::Url::parse(&service("AMQP_URL")).unwrap();
            let behind = format!("127.0.0.1:{}", url.port().unwrap()).parse().unwrap();
            let proxy = ChaosProxy::start(behind, Mode::Refuse);
            url.set_port(Some(proxy.address.port())).unwrap();
            let mut variables = variables(&system);
            variables.retain(|(name, _)| *name != "COUNTERSIGN_BROKER_URL");
            variables.push(("COUNTERSIGN_BROKER_URL", url.to_string()));
            let waiting = system.waiting("support", &[WRITE]).await;
            system.decide(&waiting, Verdict::Approve, "user:ada").await;
            let served = Served::start(&variables, &[]);
            eventually("it says that it is not ready", || async {
                served
                    .readiness()
                    .await
                    .filter(|(status, why)| *status == 503 && why.contains("broker"))
            })
            .await;
            eventually("each attempt is a line", || async {
                (served.said().matches("WARN").count() >= 2).then_some(())
            })
            .await;
            proxy.set(Mode::Pass);
            served.is_ready().await;
            system.reaches(waiting.run, RunStatus::Completed).await;
            assert!(!served.said().contains("guest:guest"));
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn case_h1_it_gives_up_when_it_was_told_to() {
        play(Kind::Real, |system| async move {
            let mut variables = variables(&system);
            variables.retain(|(name, _)| *name != "COUNTERSIGN_BROKER_URL");
            variables.push((
                "COUNTERSIGN_BROKER_URL",
                format!("amqp://guest:sesame@{}/%2f", free_address()),
            ));
            let mut served = Served::start(&variables, &["--connect-timeout", "2s"]);
            assert_eq!(served.ends().await, 1);
            served.says("could not be reached").await;
            assert!(!served.said().contains("sesame"));
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_wrong_password_is_told_at_once_and_not_shown() {
        play(Kind::Real, |system| async move {
            for (name, scheme) in [
                ("COUNTERSIGN_BROKER_URL", "AMQP_URL"),
                ("COUNTERSIGN_DATABASE_URL", "DATABASE_URL"),
            ] {
                let mut url = url::Url::parse(&service(scheme)).unwrap();
                url.set_password(Some("sesame")).unwrap();
                let mut variables = variables(&system);
                variables.retain(|(known, _)| *known != name);
                variables.push((name, url.to_string()));
                let begun = Instant::now();
                let mut served = Served::start(&variables, &[]);
                assert_eq!(served.ends().await, 1, "{}", served.said());
                assert!(begun.elapsed() < Duration::from_secs(10));
                served.says("error: ").await;
                assert!(!served.said().contains("sesame"), "{}", served.said());
            }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_database_at_another_migration_is_refused() {
        play(Kind::Real, |system| async move {
            for (statement, says) in [
                ("DELETE FROM countersign_migrations WHERE version = 3", "countersign migrate"),
                (
                    "INSERT INTO countersign_migrations (version, description, success, checksum, execution_time) \
                     VALUES (9000, 'later', true, '', 0)",
                    "newer",
                ),
            ] {
                system.sql(statement).await;
                let mut served = Served::on(&system, &[]);
                assert_eq!(served.ends().await, 1, "{}", served.said());
                served.says(says).await;
            }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn roles_may_be_split_over_processes() {
        play(Kind::Real, |system| async move {
            let worker = Served::on(&system, &["--roles", "worker"]);
            let rest = Served::on(&system, &["--roles", "relay,reaper,web"]);
            worker.is_ready().await;
            rest.is_ready().await;
            let waiting = system.waiting("support", &[WRITE]).await;
            system.decide(&waiting, Verdict::Approve, "user:ada").await;
            let run = system.reaches(waiting.run, RunStatus::Completed).await;
            assert_eq!(run.epoch, 1);
            system.published().await;
        })
        .await;
    }
}
