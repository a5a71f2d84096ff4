//! Runs, started, listed, shown and cancelled.

use countersign::model::{EventKind, RunState};
use serde_json::{Value, json};

use super::{CATALOGUE, Desk};

#[tokio::test]
async fn a_run_is_started_listed_shown_and_cancelled() {
    let desk = Desk::new().await;
    let start = |configuration: &'static str, owner: &'static str| {
        [
            "runs",
            "start",
            "--json",
            "--configuration",
            configuration,
            "--as",
            owner,
            "--input",
            "-",
        ]
    };
    let said = desk
        .program
        .run_with(&start("support", "user:olga"), "what is P-1001?\n")
        .await
        .ended(0);
    let id = said.json()["run"]["id"].as_str().unwrap().to_owned();
    let (run, sealed) = desk
        .store
        .run_with_state(id.parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    let state = RunState::open(&sealed, run.id, &run.owner, run.turn).unwrap();
    let texts: Vec<_> = state
        .transcript
        .messages()
        .iter()
        .map(|message| message.text().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "You help with payments. Look before you refund.",
            "what is P-1001?\n"
        ]
    );
    let outbox = desk.store.outbox(10).await.unwrap();
    assert!(
        outbox
            .iter()
            .any(|event| event.event.kind == EventKind::RunQueued),
        "its job is on the way"
    );

    let listed = desk
        .run(&["runs", "list", "--json", "--owner", "user:olga"])
        .await
        .ended(0)
        .json();
    assert_eq!(listed["runs"][0]["id"], id.as_str());
    assert_eq!(
        desk.run(&["runs", "list", "--status", "failed"])
            .await
            .ended(0)
            .out,
        "No runs.\n"
    );
    let shown = desk.run(&["runs", "show", &id]).await.ended(0).out;
    assert!(shown.starts_with(&format!("Run {id}  queued\n")), "{shown}");

    desk.program
        .run_with(&start("suport", "user:olga"), "x")
        .await
        .ended(4);
    desk.program
        .run_with(&start("support", "user:nobody"), "x")
        .await
        .ended(3);
    desk.program
        .run_with(&start("support", "user:olga"), " \n")
        .await
        .ended(2);

    desk.run(&["runs", "cancel", &id, "--as", "service:sweeper"])
        .await
        .ended(0);
    desk.run(&["runs", "cancel", &id, "--as", "user:olga"])
        .await
        .ended(6);
    let nobody = "01890000-0000-7000-8000-000000000001";
    desk.run(&["runs", "show", nobody]).await.ended(4);
    desk.run(&["runs", "show", "not-a-run"]).await.ended(2);
    let events = desk
        .run(&["events", "follow", &id, "--once", "--json"])
        .await
        .ended(0)
        .out;
    let kinds: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["run.queued", "run.cancelled"]);
}

#[tokio::test]
async fn who_may_not_use_a_configuration_starts_no_run() {
    let desk = Desk::new().await;
    let closed = CATALOGUE.replace(
        "toolsets = [\"ledger\"]\n\n",
        "toolsets = [\"ledger\"]\ngroups = [\"finance\"]\n\n",
    );
    desk.run(&["catalogue", "apply", &desk.file("closed.toml", &closed)])
        .await
        .ended(0);
    let start = |owner| {
        [
            "runs",
            "start",
            "--configuration",
            "support",
            "--as",
            owner,
            "--input",
            "x",
        ]
    };
    let said = desk.run(&start("user:gina")).await.ended(3);
    assert!(said.err.contains("members of finance"), "{said:?}");
    desk.run(&start("user:olga")).await.ended(0);
}

#[tokio::test]
async fn case_e6_what_cannot_be_seen_is_shown_escaped_and_flagged() {
    let desk = Desk::new().await;
    let arguments = "{\"payment\":\"P\u{202e}1001\u{200b}\u{2028}\"}";
    let (run, digest) = desk.waiting("ledger_re\u{200b}ad", arguments).await;
    let (run, digest) = (run.to_string(), digest.to_string());
    let comment = "no\u{202e}\u{1b}[2K";
    let words = [
        "decide",
        "deny",
        &run,
        "--turn",
        "1",
        "--digest",
        &digest,
        "--as",
        "user:ada",
        "--comment",
        comment,
    ];
    desk.run(&[words.as_slice(), &["--no-wait"]].concat())
        .await
        .ended(0);

    let shown = desk.run(&["runs", "show", &run]).await.ended(0).out;
    assert!(shown.contains("ledger_re\\u{200b}ad"), "{shown}");
    assert!(
        shown.contains("│ {\"payment\":\"P\\u{202e}1001\\u{200b}\\u{2028}\"}"),
        "{shown}"
    );
    assert!(shown.contains("no\\u{202e}\\u{1b}[2K"), "{shown}");
    assert!(
        shown.contains("! holds characters that cannot be seen"),
        "{shown}"
    );
    let approve = format!("countersign decide approve {run} --turn 1 --digest {digest} --as user:YOU");
    assert!(shown.contains(&approve), "{shown}");

    let form = desk.run(&["runs", "show", &run, "--json"]).await.ended(0);
    let hidden = ['\u{202e}', '\u{200b}', '\u{2028}', '\u{1b}'];
    assert!(!shown.contains(hidden) && !form.out.contains(hidden), "{form:?}");
    let call = &form.json()["waiting"]["calls"][0];
    assert_eq!(
        (&call["arguments"], &call["suspicious"]),
        (&json!(arguments), &json!(true))
    );
}
