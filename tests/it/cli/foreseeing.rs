//! What would happen, asked before anything does: `simulate` and `who-can`, and that asking leaves the database as it was.

use serde_json::{Value, json};

use super::Desk;

fn row<'v>(answer: &'v Value, axis: &str) -> &'v Value {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().find(|row| row["axis"] == axis).unwrap()
}

#[tokio::test]
async fn a_call_is_foreseen_rule_by_rule() {
    let desk = Desk::new().await;
    let ask = async |tool: &str, actor: &str| {
        let words = [
            "simulate",
            "--json",
            "--configuration",
            "support",
            "--tool",
            tool,
            "--as",
            actor,
        ];
        desk.run(&words).await.ended(0).json()
    };
    let refund = ask("ledger_refund", "user:olga").await;
    assert_eq!(refund["verdict"], "allow_with_approval");
    assert_eq!(refund["rows"].as_array().unwrap().len(), 5);
    assert_eq!(row(&refund, "approval")["fix"][0], "tools.ledger_refund.effect");
    assert_eq!(row(&refund, "routing")["detail"], "`demo-model` is asked");
    assert_eq!(ask("ledger_list", "user:olga").await["verdict"], "allow");

    let gina = ask("ledger_refund", "user:gina").await;
    assert_eq!(gina["verdict"], "block");
    let gate = row(&gina, "tool_gate");
    assert_eq!(
        (&gate["outcome"], &gate["reason"]),
        (&json!("refused"), &json!("requires_membership"))
    );
    assert_eq!(gate["scope"], "actor");
    assert_eq!(
        row(&gina, "approval")["outcome"],
        "approval_needed",
        "asked after the refusal, too"
    );

    let nobody = ask("ledger_list", "user:ghost").await;
    assert_eq!(
        (&nobody["verdict"], &nobody["asked_as"]),
        (&json!("block"), &json!("nobody"))
    );
    assert_eq!(row(&nobody, "configuration_access")["reason"], "unresolved");
    let unknown = ask("no_such_tool", "service:sweeper").await;
    assert_eq!(row(&unknown, "tool_gate")["reason"], "not_registered");
    assert!(!unknown["not_covered"].as_array().unwrap().is_empty());

    let said = desk
        .run(&[
            "simulate",
            "--configuration",
            "suport",
            "--tool",
            "x",
            "--as",
            "user:olga",
        ])
        .await
        .ended(4);
    assert!(said.err.contains("support, support-two-eyes"), "{}", said.err);
}

#[tokio::test]
async fn the_matrix_has_every_tool_and_every_enabled_person() {
    let desk = Desk::new().await;
    desk.run(&["directory", "disable", "user:ada"]).await.ended(0);
    let words = ["simulate", "--configuration", "support", "--matrix"];
    let csv = desk.run(&[&words[..], &["--csv"]].concat()).await.ended(0);
    assert_eq!(
        csv.out,
        "tool,user:gina,user:olga\r\nledger_list,allow,allow\r\n\
         ledger_read,allow_with_approval,allow_with_approval\r\nledger_refund,block,allow_with_approval\r\n"
    );
    let json = desk
        .run(&[&words[..], &["--json"]].concat())
        .await
        .ended(0)
        .json();
    assert_eq!(json["rows"][2]["verdicts"]["user:gina"], "block");
}

#[tokio::test]
async fn who_could_release_a_turn_is_said_with_the_reasons_of_the_others() {
    let desk = Desk::new().await;
    let (run, _) = desk
        .waiting("ledger_refund", r#"{"payment":"P-1001","amount_cents":1}"#)
        .await;
    let run = run.to_string();
    let answer = desk.run(&["who-can", &run, "--json"]).await.ended(0).json();
    let refused = |actor: &str| {
        let actors = answer["actors"].as_array().unwrap();
        let found = actors.iter().find(|it| it["actor"] == actor).unwrap();
        found["refusal"]["code"].as_str().map(str::to_owned)
    };
    assert_eq!(refused("user:ada"), None);
    assert_eq!(refused("user:olga"), None);
    assert_eq!(refused("user:gina").as_deref(), Some("approver_not_permitted"));
    assert_eq!(
        refused("service:sweeper").as_deref(),
        Some("service_account_write")
    );
    assert_eq!(answer["nobody"], false);

    desk.run(&["directory", "disable", "user:ada"]).await.ended(0);
    desk.run(&["directory", "disable", "user:olga"]).await.ended(0);
    let said = desk.run(&["who-can", &run]).await.ended(0);
    assert!(said.out.starts_with("Nobody can release turn 1"), "{}", said.out);
    desk.run(&["runs", "cancel", &run, "--as", "user:gina"])
        .await
        .ended(0);
    desk.run(&["who-can", &run]).await.ended(6);
}

#[tokio::test]
async fn asking_writes_nothing() {
    let desk = Desk::new().await;
    let (run, _) = desk.waiting("ledger_refund", "{}").await;
    let run = run.to_string();
    let before = contents(&desk).await;
    for words in [
        &[
            "simulate",
            "--configuration",
            "support",
            "--tool",
            "ledger_refund",
            "--as",
            "user:gina",
        ][..],
        &["simulate", "--configuration", "support", "--matrix"],
        &["who-can", &run],
    ] {
        desk.run(words).await.ended(0);
    }
    assert_eq!(contents(&desk).await, before);
}

/// Every table of the database, row by row.
async fn contents(desk: &Desk) -> Vec<(String, Vec<String>)> {
    use sqlx::{Connection as _, Row as _};
    let mut connection = sqlx::SqliteConnection::connect(&desk.program.url).await.unwrap();
    let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let mut all = Vec::new();
    for table in tables {
        let name: String = table.get(0);
        let columns = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT name FROM pragma_table_info('{name}')"
        )))
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let columns: Vec<String> = columns
            .iter()
            .map(|row| format!("quote({})", row.get::<String, _>(0)))
            .collect();
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {} FROM {name}",
            columns.join(" || ',' || ")
        )))
        .fetch_all(&mut connection)
        .await
        .unwrap();
        all.push((name, rows.iter().map(|row| row.get(0)).collect()));
    }
    all
}
