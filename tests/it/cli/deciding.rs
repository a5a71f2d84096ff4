//! Decisions, recorded and taken back, without a worker.

use countersign::model::{EventKind, TurnOrdinal};

use super::Desk;

#[tokio::test]
async fn a_decision_is_recorded_with_its_job_and_can_be_taken_back() {
    let desk = Desk::new().await;
    let (run, digest) = desk.waiting("ledger_refund", "{}").await;
    let run_text = run.to_string();
    let said = desk
        .run(&[
            "decide",
            "approve",
            &run_text,
            "--turn",
            "1",
            "--digest",
            digest.as_str(),
            "--as",
            "user:ada",
            "--comment",
            "-fine-",
            "--no-wait",
            "--json",
        ])
        .await
        .ended(0);
    let told = said.json();
    assert_eq!(told["outcome"], "pending");
    let [decision] = desk.store.decisions(run).await.unwrap().try_into().unwrap();
    assert_eq!(told["decision"]["id"], decision.id.to_string());
    assert_eq!(
        (decision.turn, decision.digest, decision.comment.as_deref()),
        (Some(TurnOrdinal(1)), Some(digest), Some("-fine-"))
    );
    let outbox = desk.store.outbox(10).await.unwrap();
    let made = outbox
        .iter()
        .find(|event| event.event.kind == EventKind::DecisionMade)
        .unwrap();
    assert_eq!(made.event.id.uuid(), decision.id.uuid());

    let id = decision.id.to_string();
    desk.run(&["decide", "revoke", &id, "--as", "user:gina"])
        .await
        .ended(3);
    desk.run(&["decide", "revoke", &id, "--as", "user:ada"])
        .await
        .ended(0);
    desk.run(&["decide", "revoke", &id, "--as", "user:ada"])
        .await
        .ended(6);
    desk.run(&["decide", "revoke", &run_text, "--as", "user:ada"])
        .await
        .ended(4);
}

#[tokio::test]
async fn a_decision_that_no_worker_takes_is_still_pending() {
    let desk = Desk::new().await;
    let (run, digest) = desk.waiting("ledger_read", "{}").await;
    let (run, digest) = (run.to_string(), digest.to_string());
    let words = [
        "decide", "deny", &run, "--turn", "1", "--digest", &digest, "--as", "user:ada", "--wait", "300ms",
    ];
    let said = desk.run(&words).await.ended(5);
    assert!(
        said.out.contains("no worker has taken it yet") && said.out.contains("decide revoke"),
        "{said:?}"
    );
    let nobody = "01890000-0000-7000-8000-000000000001";
    let words = [
        "decide", "deny", nobody, "--turn", "1", "--digest", &digest, "--as", "user:ada",
    ];
    desk.run(&words).await.ended(4);
}

#[tokio::test]
async fn case_c1_and_b8_a_document_that_is_no_decision_records_nothing() {
    let desk = Desk::new().await;
    let (run, digest) = desk.waiting("ledger_refund", "{}").await;
    let run_text = run.to_string();
    let with =
        |verdict: &str, more: &str| format!(r#"{{"verdict":{verdict},"turn":1,"digest":"{digest}"{more}}}"#);
    let mut documents: Vec<String> = ["null", "\"\"", "\"APPROVE \"", "1", "\"false\"", "true"]
        .map(|verdict| with(verdict, ""))
        .to_vec();
    documents.extend([
        format!(r#"{{"turn":1,"digest":"{digest}"}}"#),
        r#"{"approved":"false"}"#.to_owned(),
        with("\"approve\"", r#","edited":true"#),
        with("\"approve\"", r#","calls":["c1"]"#),
        with("\"approve\"", "") + "x",
        String::new(),
        "\u{0}\u{1}".to_owned(),
    ]);
    for document in documents {
        let words = ["decide", "submit", &run_text, "--as", "user:ada", "--file", "-"];
        let said = desk.program.run_with(&words, &document).await.ended(2);
        assert!(
            said.err.starts_with("error: ") && said.err.contains("nothing was recorded"),
            "{document}: {said:?}"
        );
    }
    assert_eq!(desk.store.decisions(run).await.unwrap(), []);
    let words = [
        "decide",
        "submit",
        &run_text,
        "--as",
        "user:ada",
        "--no-wait",
        "--file",
        "-",
    ];
    desk.program
        .run_with(&words, &with("\"deny\"", r#","comment":"no""#))
        .await
        .ended(0);
    assert_eq!(desk.store.decisions(run).await.unwrap().len(), 1);
}
