//! The command line, as a process of its own: what it prints, how it ends, and what it leaves in the database.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use countersign::clock::{Clock as _, SystemClock};
use countersign::model::{
    EventKind, Message, NewEvent, Run, RunId, RunState, RunStatus, Transcript, TurnDigest, TurnOrdinal,
};
use countersign::store::{Migration, NewRun, SharedStore, StoreSettings, connect};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// It ended so; returns what it printed.
    #[track_caller]
    pub fn ended(self, code: i32) -> Said {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The program on one database.
pub struct Program {
    pub url: String,
}

impl Program {
    /// Runs a command to its end.
    pub async fn run(&self, words: &[&str]) -> Said {
        self.run_with(words, "").await
    }

    /// Runs a command with this on its standard input.
    pub async fn run_with(&self, words: &[&str], input: &str) -> Said {
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(words)
            .env_clear()
            .env("COUNTERSIGN_DATABASE_URL", &self.url)
            .env(
                "COUNTERSIGN_BROKER_URL",
                if self.url.starts_with("sqlite:") {
                    "embedded"
                } else {
                    "amqp://x"
                },
            )
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // A command that does not read may have ended before this is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
        let output = child.wait_with_output().await.unwrap();
        Said {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

const CATALOGUE: &str = include_str!("../../src/cli/demo/catalogue.toml");
const DIRECTORY: &str = include_str!("../../src/cli/demo/directory.toml");

/// A migrated SQLite file, with the demo's people and catalogue.
struct Desk {
    program: Program,
    store: SharedStore,
    folder: TempDir,
}

impl Desk {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Program {
            url: format!("sqlite://{}", folder.path().join("desk.db").display()),
        };
        program.run(&["migrate"]).await.ended(0);
        let settings = StoreSettings {
            url: program.url.clone(),
            max_connections: 2,
            connect_timeout: std::time::Duration::from_secs(5),
        };
        let store = connect(&settings, Migration::Require).await.unwrap().store;
        let desk = Self {
            program,
            store,
            folder,
        };
        let (catalogue, directory) = (desk.file("c.toml", CATALOGUE), desk.file("d.toml", DIRECTORY));
        desk.program
            .run(&["catalogue", "apply", &catalogue, "--as", "user:ada"])
            .await
            .ended(0);
        desk.program
            .run(&["directory", "apply", &directory])
            .await
            .ended(0);
        desk
    }

    async fn run(&self, words: &[&str]) -> Said {
        self.program.run(words).await
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A run of olga that waits on turn 1 with one call.
    async fn waiting(&self, tool: &str, arguments: &str) -> (RunId, TurnDigest) {
        let (id, now) = (RunId::from(SystemClock.new_id()), SystemClock.now());
        let call =
            json!({ "id": "c1", "type": "function", "function": { "name": tool, "arguments": arguments } });
        let asks = json!({ "role": "assistant", "content": null, "tool_calls": [call] }).to_string();
        let transcript = Transcript::new(vec![Message::plain("user", "x"), Message::parse(asks).unwrap()]);
        let mut state = RunState::new(id, "user:olga".parse().unwrap(), transcript);
        state.turn = TurnOrdinal(1);
        let run = Run {
            id,
            owner: state.owner.clone(),
            configuration: "support".to_owned(),
            status: RunStatus::WaitingForApproval,
            turn: state.turn,
            failure: None,
            claimed_by: None,
            epoch: 0,
            requeues: 0,
            created_at: now,
            updated_at: now,
            deadline: Some(now + time::Duration::hours(1)),
        };
        let event = NewEvent {
            id: SystemClock.new_id().into(),
            run: Some(id),
            kind: EventKind::RunWaiting,
            actor: None,
            at: now,
            data: json!({}),
        };
        let digest = state.pending_turn().unwrap().unwrap().digest();
        self.store
            .create_run(&NewRun {
                run,
                state: state.seal(),
                events: vec![event],
            })
            .await
            .unwrap();
        (id, digest)
    }
}

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
    let desk = Arc::new(Desk::new().await);
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
