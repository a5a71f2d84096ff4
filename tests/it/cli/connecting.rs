//! What the program says of a database or of settings that cannot be used, and what needs neither.

use std::path::Path;

use serde_json::Value;

use super::{Desk, Program};

#[tokio::test]
async fn a_database_without_our_tables_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program {
        url: format!("sqlite://{}", folder.path().join("new.db").display()),
    };
    let said = program.run(&["runs", "list"]).await.ended(1);
    assert!(
        said.err.starts_with("error: ") && said.err.contains("run `countersign migrate` first"),
        "{said:?}"
    );
    assert_eq!(said.out, "");
    program.run(&["migrate"]).await.ended(0);
    program.run(&["migrate"]).await.ended(0);
    assert_eq!(program.run(&["runs", "list"]).await.ended(0).out, "No runs.\n");
}

#[tokio::test]
async fn a_database_of_a_younger_build_is_refused() {
    use sqlx::Connection as _;
    let desk = Desk::new().await;
    let mut connection = sqlx::SqliteConnection::connect(&desk.program.url).await.unwrap();
    sqlx::raw_sql(
        "INSERT INTO countersign_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'later', TRUE, x'00', 0)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    connection.close().await.unwrap();
    for words in [["runs", "list"].as_slice(), &["migrate"]] {
        let said = desk.run(words).await.ended(1);
        assert!(
            said.err
                .contains("migration 9999, which is newer than this build"),
            "{said:?}"
        );
    }
}

#[tokio::test]
async fn an_address_that_is_wrong_is_told_without_its_password() {
    for url in [
        "mysql://root:hunter2@localhost/x",
        "postgres://cs:hunter2@127.0.0.1:1/x",
        "nonsense hunter2",
    ] {
        let program = Program { url: url.to_owned() };
        let said = program
            .run(&["runs", "list", "--connect-timeout", "1s"])
            .await
            .ended(1);
        assert!(
            said.err.contains("\nerror: ") || said.err.starts_with("error: "),
            "{said:?}"
        );
        assert!(said.err.contains("\nhelp: "), "{said:?}");
        assert!(
            !said.err.contains("hunter2") && !said.out.contains("hunter2"),
            "{said:?}"
        );
    }
}

#[tokio::test]
async fn help_and_completions_need_no_database() {
    let nowhere = Program {
        url: "nonsense".to_owned(),
    };
    for shell in ["bash", "zsh", "fish"] {
        let said = nowhere.run(&["completions", shell]).await.ended(0);
        assert!(
            said.out.contains("countersign") && said.out.contains("decide"),
            "{shell}"
        );
    }
    nowhere.run(&["--version"]).await.ended(0);
    nowhere.run(&["completions", "cmd"]).await.ended(2);
    nowhere.run(&[]).await.ended(2);
    let help = nowhere.run(&["decide", "approve", "--help"]).await.ended(0).out;
    assert!(help.contains("already hold the database's credentials"), "{help}");
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/demo/catalogue.toml");
    nowhere
        .run(&["catalogue", "check", &check.display().to_string()])
        .await
        .ended(0);
}

#[tokio::test]
async fn an_error_is_json_where_a_machine_reads() {
    let desk = Desk::new().await;
    let said = desk
        .run(&["runs", "show", "01890000-0000-7000-8000-000000000001", "--json"])
        .await
        .ended(4);
    let error: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["error"]["code"], "not_found");
    assert_eq!(said.out, "");
}
