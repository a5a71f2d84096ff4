//! The command line, as a process of its own: what it prints, how it ends, and what it leaves in the database.

mod connecting;
mod deciding;
mod declaring;
mod foreseeing;
mod runs;
mod working;

use std::process::Stdio;

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

const CATALOGUE: &str = include_str!("../../../src/cli/demo/catalogue.toml");
const DIRECTORY: &str = include_str!("../../../src/cli/demo/directory.toml");

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
