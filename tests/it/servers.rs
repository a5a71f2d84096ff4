//! Servers that tests talk to, each a process of its own that ends with the test: a tool server and an
//! OpenAI-compatible one (`tests/servers`). What they can do is said at the head of their scripts.

use std::process::Stdio;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// One request that a server saw.
#[derive(Clone, Debug, Deserialize)]
pub struct Seen {
    /// The method; of chat requests, none is told.
    #[serde(default)]
    pub method: String,
    /// The path with its query; of chat requests, none is told.
    #[serde(default)]
    pub path: String,
    /// Headers, with lower-case names.
    pub headers: std::collections::BTreeMap<String, String>,
    /// The body, as it came.
    pub body: String,
}

impl Seen {
    /// The header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

struct Process {
    // Killed when it is dropped; its standard input is closed with it, which ends it, too, if the test itself
    // is killed.
    _child: Child,
    url: String,
    client: reqwest::Client,
}

impl Process {
    async fn start(script: &str) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let path = format!("{}/tests/servers/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new("python3")
            .args(["-B", &path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 is needed for the test servers");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .next_line()
            .await
            .unwrap()
            .expect("a server prints its port first");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            _child: child,
            url: format!("http://127.0.0.1:{port}"),
            client,
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        let response = self
            .client
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap();
        response.error_for_status().unwrap().json().await.unwrap()
    }

    async fn post(&self, path: &str, body: &Value) {
        let response = self
            .client
            .post(format!("{}{path}", self.url))
            .json(body)
            .send()
            .await
            .unwrap();
        response.error_for_status().unwrap();
    }
}

/// A tool server.
pub struct ToolServer(Process);

impl ToolServer {
    /// Starts one.
    pub async fn start() -> Self {
        Self(Process::start("tool_server.py").await)
    }

    /// The address of one of its tools.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0.url)
    }

    /// What was called so far.
    pub async fn calls(&self) -> Vec<Seen> {
        self.0.get("/_calls").await
    }

    /// What was called, once there are that many calls.
    pub async fn calls_at_least(&self, count: usize) -> Vec<Seen> {
        let calls: Vec<Seen> = self.0.get(&format!("/_calls?at_least={count}")).await;
        assert!(
            calls.len() >= count,
            "{} calls came within 30 s, {count} were awaited",
            calls.len()
        );
        calls
    }

    /// The idempotency keys that took effect, in order.
    pub async fn effects(&self) -> Vec<String> {
        self.0.get("/_effects").await
    }

    /// Lets every call go that waits in `/hold`, now and later.
    pub async fn release(&self) {
        self.0.post("/_release", &Value::Null).await;
    }
}

/// An OpenAI-compatible server with a strict eye on transcripts.
pub struct ChatServer(Process);

impl ChatServer {
    /// Starts one.
    pub async fn start() -> Self {
        Self(Process::start("chat_server.py").await)
    }

    /// What is declared as `base_url`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.0.url)
    }

    /// Sets what it answers from now on.
    pub async fn scenario(&self, scenario: &Value) {
        self.0.post("/_scenario", scenario).await;
    }

    /// The requests so far.
    pub async fn requests(&self) -> Vec<Seen> {
        self.0.get("/_requests").await
    }

    /// The requests, once there are that many.
    pub async fn requests_at_least(&self, count: usize) -> Vec<Seen> {
        let requests: Vec<Seen> = self.0.get(&format!("/_requests?at_least={count}")).await;
        assert!(
            requests.len() >= count,
            "{} requests came within 30 s, {count} were awaited",
            requests.len()
        );
        requests
    }

    /// What was wrong with the transcripts that it was sent.
    pub async fn violations(&self) -> Vec<String> {
        let verdict: Value = self.0.get("/_verdict").await;
        serde_json::from_value(verdict["violations"].clone()).unwrap()
    }

    /// Lets every request go that is held.
    pub async fn release(&self) {
        self.0.post("/_release", &Value::Null).await;
    }
}
