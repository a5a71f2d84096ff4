//! The room as its users see it: a file and variables in, settings or what is wrong with them out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use super::settings::SETTINGS;
use super::{BrokerAddress, DatabaseKind, LogFormat, Role, Settings, SettingsError};

/// Settings from the text of a file and from variables.
fn load(text: &str, variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::load(Some(file.path()), variables)
}

/// What is said, a line each, about settings that are refused.
fn refused(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    match load(text, variables) {
        Err(SettingsError::Invalid { problems, .. }) => problems.iter().map(ToString::to_string).collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("taken: {text} {variables:?}"),
    }
}

const SQLITE: &str = "[database]\nurl = \"sqlite:///tmp/state.db\"\n";

#[test]
fn what_is_not_set_has_its_default() {
    let settings = load(SQLITE, &[("HOSTNAME", "box"), ("PATH", "/bin")]).unwrap();
    assert_eq!(settings.database.kind, DatabaseKind::Sqlite);
    assert_eq!(settings.database.max_connections, 16);
    assert_eq!(settings.broker.address, BrokerAddress::Embedded);
    assert_eq!((settings.worker.slots, settings.broker.prefetch), (8, 8));
    assert_eq!(settings.worker.name, "box");
    assert_eq!(settings.lease.renew_every, Duration::from_secs(10));
    assert_eq!(settings.limits.transcript_bytes, 16 << 20);
    assert_eq!(settings.http.listen.unwrap().to_string(), "127.0.0.1:8080");
    assert_eq!(
        (settings.log.format, settings.log.level.as_str()),
        (LogFormat::Text, "info")
    );
    assert!(
        SETTINGS
            .iter()
            .all(|row| row.default.is_none_or(|text| row.kind.read(text).is_ok()))
    );
}

#[test]
fn a_variable_stands_over_the_file_and_the_file_over_the_default() {
    let text = format!("{SQLITE}[worker]\nslots = 3\nname = \"w\"\n[http]\nlisten = \"off\"");
    let settings = load(
        &text,
        &[("COUNTERSIGN_WORKER_SLOTS", "5"), ("COUNTERSIGN_WORKER_NAME", "")],
    )
    .unwrap();
    assert_eq!((settings.worker.slots, settings.worker.name.as_str()), (5, "w"));
    assert_eq!(settings.http.listen, None);
}

#[test]
fn each_setting_can_be_set_in_either_way() {
    for row in SETTINGS.iter().filter(|row| row.default.is_some()) {
        let text = row.default.unwrap();
        assert!(load(SQLITE, &[(&row.variable(), text)]).is_ok(), "{}", row.path);
        let (section, key) = row.section_and_key();
        let written = if text.bytes().all(|b| b.is_ascii_digit()) {
            text.to_owned()
        } else {
            format!("{text:?}")
        };
        let file = format!("{section}.{key} = {written}\n");
        assert!(
            load(&file, &[("COUNTERSIGN_DATABASE_URL", "sqlite:///tmp/a.db")]).is_ok(),
            "{file}"
        );
    }
}

#[test]
fn case_c8_a_misspelt_setting_is_refused_and_the_nearest_known_one_named() {
    assert_eq!(
        refused(&format!("{SQLITE}[worker]\nslot = 3\n[laese]\nttl = \"1s\""), &[]),
        [
            "error: unknown key `slot` in worker, line 4, column 1: did you mean `slots`?",
            "error: unknown key `laese` in the text, line 5, column 2: did you mean `lease`?",
        ]
    );
    assert_eq!(
        refused(
            SQLITE,
            &[
                ("COUNTERSIGN_WORKER_SLOT", "3"),
                ("COUNTERSIGN_CONFIG", "x"),
                ("COUNTERSIGN_TEST_X", "")
            ]
        ),
        ["error: unknown variable `COUNTERSIGN_WORKER_SLOT`: did you mean `COUNTERSIGN_WORKER_SLOTS`?"]
    );
}

#[test]
fn a_wrong_value_is_refused_by_name() {
    let numbers = "must be a whole number from 1 to 1024";
    assert_eq!(
        refused(SQLITE, &[("COUNTERSIGN_WORKER_SLOTS", "many")]),
        [format!("error: COUNTERSIGN_WORKER_SLOTS {numbers}")]
    );
    for (text, expected) in [
        (
            "[worker]\nslots = 0",
            "worker.slots must be from 1 to 1024, line 4, column 1",
        ),
        (
            "[lease]\nttl = 30",
            "lease.ttl must be a duration in quotes, such as \"30s\", not a whole number, line 4, column 1",
        ),
        (
            "[log]\nformat = \"jsn\"",
            "log.format must be one of `text`, `json`, line 4, column 1: did you mean `json`?",
        ),
        (
            "[log]\nlevel = \"=;=\"",
            "log.level must be a level such as `info`, or directives such as `info,countersign=debug`",
        ),
        (
            "[http]\nlisten = \"localhost\"",
            "http.listen must be an address and a port as numbers, such as \"127.0.0.1:8080\", or \"off\"",
        ),
    ] {
        assert_eq!(
            refused(&format!("{SQLITE}{text}"), &[]),
            [format!("error: {expected}")]
        );
    }
}

#[test]
fn what_cannot_work_together_is_refused() {
    let postgres = "[database]\nurl = \"postgres://app@db/app\"\n";
    let starts = |text: &str, expected: &str| {
        let problems = refused(text, &[]);
        assert!(
            problems.len() == 1 && problems[0].starts_with(expected),
            "{problems:?}"
        );
    };
    starts("", "error: database.url is not set");
    starts(
        "[database]\nurl = \"mysql://db\"",
        "error: database.url must be `sqlite:",
    );
    starts(
        "[database]\nurl = \"sqlite::memory:\"",
        "error: database.url is in memory",
    );
    starts(postgres, "error: broker.url is not set: with PostgreSQL");
    starts(
        &format!("{SQLITE}[broker]\nurl = \"amqp://mq\""),
        "error: broker.url names RabbitMQ, but database.url",
    );
    starts(
        &format!("{postgres}[broker]\nurl = \"redis://mq\""),
        "error: broker.url must be `embedded`",
    );
    starts(
        &format!("{SQLITE}[broker]\nprefetch = 2"),
        "error: broker.prefetch must be at least worker.slots",
    );
    starts(
        &format!("{SQLITE}[lease]\nrenew_every = \"20s\""),
        "error: lease.renew_every must be at most half",
    );
    starts(
        &format!("{SQLITE}[limits]\ntranscript_bytes = 9\nargument_bytes = 1"),
        "error: limits.result_bytes",
    );
    assert!(load(&format!("{postgres}[broker]\nurl = \"embedded\""), &[]).is_ok());
    assert!(load(&format!("{postgres}[broker]\nurl = \"amqps://u:p@mq/%2f\""), &[]).is_ok());
}

#[test]
fn an_embedded_broker_needs_all_roles_in_its_process() {
    let embedded = load(SQLITE, &[]).unwrap();
    assert!(embedded.allow(&Role::ALL.into()).is_ok());
    let problems = embedded
        .allow(&BTreeSet::from([Role::Web, Role::Worker]))
        .unwrap_err()
        .to_string();
    assert!(problems.ends_with("it lacks relay, reaper"), "{problems}");

    let apart = "database.url = \"postgres://db/app\"\nbroker.url = \"amqp://mq\"\nhttp.listen = \"off\"";
    let apart = load(apart, &[]).unwrap();
    assert!(apart.allow(&BTreeSet::from([Role::Worker])).is_ok());
    assert!(apart.allow(&BTreeSet::from([Role::Web])).is_err());
    assert!(apart.allow(&BTreeSet::new()).is_err());
}

#[test]
fn a_secret_may_come_from_a_file_and_is_shown_nowhere() {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    writeln!(secret, "postgres://app:hunter2@db/app").unwrap();
    let path = secret.path().to_str().unwrap();
    let settings = load(
        "",
        &[
            ("COUNTERSIGN_DATABASE_URL_FILE", path),
            ("COUNTERSIGN_BROKER_URL", "amqp://u:hunter2@mq"),
        ],
    )
    .unwrap();
    assert_eq!(settings.database.url.expose(), "postgres://app:hunter2@db/app");
    assert!(!format!("{settings:?}").contains("hunter2"));

    for text in [
        "[database]\nurl = \"mysql://app:hunter2@db\"",
        "[database]\nurl = \"postgres://app:hunter2@db\nslots = 1",
        "[database]\nurl = [\"postgres://app:hunter2@db\"]",
    ] {
        assert!(
            !load(text, &[]).unwrap_err().to_string().contains("hunter2"),
            "{text}"
        );
    }
    let both = format!("{SQLITE}url_file = \"x\"");
    assert_eq!(
        refused(&both, &[]),
        ["error: database.url_file and database.url are both set; one source must be named"]
    );
    // A variable replaces whichever source the file names.
    assert!(load(&both, &[("COUNTERSIGN_DATABASE_URL", "sqlite:///tmp/b.db")]).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = std::path::Path::new("/nowhere/settings.toml");
    let error = Settings::load(Some(missing), std::iter::empty()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the settings cannot be read from /nowhere/settings.toml"
    );
    let error = load("[database]\nurl_file = \"/nowhere/url\"", &[]).unwrap_err();
    assert_eq!(error.to_string(), "database.url cannot be read from /nowhere/url");
}

#[test]
fn the_documented_table_is_the_one_in_the_code() {
    let mut table = String::new();
    for row in &SETTINGS {
        let default = row
            .default
            .map_or_else(|| row.otherwise.to_owned(), |text| format!("`{text}`"));
        let (path, variable, about) = (row.path, row.variable(), row.about);
        writeln!(table, "| `{path}` | `{variable}` | {default} | {about} |").unwrap();
    }
    let documented = include_str!("../../docs/settings.md");
    assert!(
        documented.contains(&table),
        "docs/settings.md should hold this table:\n{table}"
    );
}
