//! Decisions by the command line on a system that works: what it says of what became of them, and how it ends.

use super::{Program, Said};
use crate::system::{System, Waiting, eventually, on_both};

async fn decide(system: &System, verdict: &str, waiting: &Waiting, actor: &str, more: &[&str]) -> Said {
    let (run, turn, digest) = (
        waiting.run.to_string(),
        waiting.turn.to_string(),
        waiting.digest.to_string(),
    );
    let words = [
        "decide", verdict, &run, "--turn", &turn, "--digest", &digest, "--as", actor,
    ];
    let program = Program {
        url: system.url.clone(),
    };
    program.run(&[words.as_slice(), more].concat()).await
}

on_both! {
    /// Who could not run the write is told why and who can; then somebody who could releases it, once.
    async fn a_refusal_is_explained_and_the_turn_can_be_decided_again(system) {
        let working = system.start();
        let waiting = system.waiting("support", &[("c1", "refund", "{\"n\":1}")]).await;
        let said = decide(&system, "approve", &waiting, "user:gina", &[]).await.ended(3);
        for part in [
            "Refused: approver_not_permitted\n",
            "why the approver could not run `refund` themselves (requires_membership)\n",
            "next ask somebody who could run this tool themselves",
            "Nothing was executed because of this decision.\n",
            "Turn 7 waits for a decision",
            waiting.digest.as_str(),
        ] {
            assert!(said.out.contains(part), "{part}: {}", said.out);
        }
        let said = decide(&system, "approve", &waiting, "user:ada", &["--json"]).await.ended(0);
        assert_eq!(said.json()["outcome"], "standing");
        assert_eq!(said.json()["run"]["status"], "completed");
        assert_eq!(said.json()["calls"][0]["status"], "succeeded");
        assert_eq!(system.called().await, ["refund"]);

        let said = decide(&system, "approve", &waiting, "user:ada", &[]).await.ended(0);
        assert!(said.out.starts_with("Decided before, with the same verdict: approve."), "{}", said.out);
        let said = decide(&system, "deny", &waiting, "user:gina", &["--json"]).await.ended(3);
        let refusal = &said.json()["refusal"];
        assert_eq!((&refusal["code"], &refusal["stands"]), (&"already_decided".into(), &"approve".into()));
        assert_eq!(refusal["who_can_act"], "nobody");
        assert_eq!(system.called().await, ["refund"]);
        working.end().await;
    }

    /// A denial executes nothing and the run goes on to its end.
    async fn a_denial_stands(system) {
        let working = system.start();
        let waiting = system.waiting("support", &[("c1", "refund", "{}")]).await;
        let said = decide(&system, "deny", &waiting, "user:gina", &["--comment", "too much"]).await.ended(0);
        assert!(said.out.starts_with("Denied by user:gina: none of the calls was executed.\n"), "{}", said.out);
        assert!(said.out.contains(" is completed\n"), "{}", said.out);
        assert!(system.called().await.is_empty());
        working.end().await;
    }

    /// The timeline is followed while it grows, each event once.
    async fn events_are_followed_as_they_come(system) {
        let waiting = system.waiting("support", &[("c1", "guarded_look", "{}")]).await;
        let run = waiting.run.to_string();
        let mut follower = tokio::process::Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["events", "follow", &run, "--json"])
            .env("COUNTERSIGN_DATABASE_URL", &system.url)
            .env("COUNTERSIGN_BROKER_URL", if system.url.starts_with("sqlite:") { "embedded" } else { "amqp://x" })
            .stdout(std::fs::File::create(system.folder().join("followed")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let working = system.start();
        decide(&system, "approve", &waiting, "service:sweeper", &[]).await.ended(0);
        let expected = system.kinds(waiting.run).await;
        let followed = || async {
            let text = std::fs::read_to_string(system.folder().join("followed")).unwrap();
            let kind = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].clone();
            let kinds: Vec<_> = text.lines().map(kind).collect();
            (kinds.len() >= expected.len()).then_some(kinds)
        };
        assert_eq!(eventually("all events were shown", followed).await, expected);
        follower.kill().await.unwrap();
        working.end().await;
    }
}
