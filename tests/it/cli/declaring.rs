//! The catalogue and the directory, checked, applied, shown and compared.

use serde_json::json;

use super::{CATALOGUE, DIRECTORY, Desk};

#[tokio::test]
async fn case_c8_a_misspelt_key_is_refused_and_named() {
    let desk = Desk::new().await;
    let misspelt = CATALOGUE.replace("requires_approval = true", "requires_aproval = true");
    let file = desk.file("bad.toml", &misspelt);
    for verb in ["check", "apply"] {
        let said = desk.run(&["catalogue", verb, &file]).await.ended(1);
        assert!(
            said.err
                .contains("unknown key `requires_aproval` in tools.ledger_read"),
            "{said:?}"
        );
        assert!(said.err.contains("did you mean `requires_approval`?"), "{said:?}");
    }
    let said = desk.run(&["catalogue", "check", &file, "--json"]).await.ended(1);
    assert_eq!(said.json()["problems"][0]["suggestion"], "requires_approval");
    assert_eq!(
        desk.store.current_version().await.unwrap(),
        Some(1),
        "nothing was applied"
    );

    let settings = desk.file("settings.toml", "[worker]\nslot = 3\n");
    let said = desk.run(&["runs", "list", "--config", &settings]).await.ended(1);
    assert!(
        said.err.contains("slot") && said.err.contains("did you mean `slots`?"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_catalogue_is_applied_once_shown_as_it_is_and_compared() {
    let desk = Desk::new().await;
    let file = desk.file("c.toml", CATALOGUE);
    assert_eq!(
        desk.run(&["catalogue", "apply", &file, "--json"])
            .await
            .ended(0)
            .json()["applied"],
        false
    );
    let other = desk.file("other.toml", &CATALOGUE.replace("\"internal\"", "\"public\""));
    let said = desk.run(&["catalogue", "diff", &other]).await.ended(0);
    assert!(
        said.out
            .contains("~ tools.ledger_list.data_class: internal → public\n"),
        "{said:?}"
    );
    let said = desk.run(&["catalogue", "apply", &other, "--json"]).await.ended(0);
    assert_eq!(said.json()["version"], 2);
    assert_eq!(
        desk.run(&["catalogue", "show", "--version", "1"])
            .await
            .ended(0)
            .out,
        CATALOGUE
    );
    let said = desk
        .run(&["catalogue", "diff", "1", "2", "--json"])
        .await
        .ended(0);
    assert_eq!(said.json()["changes"].as_array().unwrap().len(), 1);
    desk.run(&["catalogue", "show", "--version", "9"]).await.ended(4);
}

#[tokio::test]
async fn a_directory_becomes_what_the_file_says() {
    let desk = Desk::new().await;
    desk.run(&["directory", "disable", "user:gina", "--as", "user:ada"])
        .await
        .ended(0);
    let file = desk.file(
        "d.toml",
        &DIRECTORY.replace("name = \"Ada (admin)\"\nadmin = true", "name = \"Ada\""),
    );
    let said = desk
        .run(&["directory", "apply", &file, "--dry-run"])
        .await
        .ended(0);
    assert!(
        said.out
            .contains("~ user:ada  name Ada (admin) → Ada, admin yes → no\n"),
        "{said:?}"
    );
    assert_eq!(
        desk.run(&["directory", "apply", &file, "--json"])
            .await
            .ended(0)
            .json()["applied"],
        true
    );
    assert!(
        desk.run(&["directory", "apply", &file])
            .await
            .ended(0)
            .out
            .contains("nothing to change")
    );
    let people = desk.run(&["directory", "show", "--json"]).await.ended(0).json();
    assert_eq!(
        people["users"][0],
        json!({
            "id": "ada", "name": "Ada", "admin": false, "enabled": true, "groups": ["finance"],
        })
    );
    assert_eq!(
        people["users"][1]["enabled"], false,
        "an entry that does not say it stays as it was"
    );
    desk.run(&["directory", "enable", "user:gina"]).await.ended(0);
    desk.run(&["directory", "disable", "user:nobody"]).await.ended(4);
    let said = desk
        .run(&[
            "directory",
            "apply",
            &desk.file("e.toml", "[[user]]\nid = \"x\"\n"),
        ])
        .await
        .ended(1);
    assert!(said.err.contains("did you mean `users`?"), "{said:?}");
}
