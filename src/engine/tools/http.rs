//! Calls a tool behind a URL: one POST of the call, as JSON, with the arguments as the very text the model
//! sent. The call and all its attempts end within the tool's deadline.
//!
//! | what happens | read, idempotent write | non-idempotent write |
//! | --- | --- | --- |
//! | 2xx | succeeded | succeeded |
//! | 2xx, larger than the limit or not UTF-8 | a read failed, a write succeeded; the text says what is missing | succeeded, likewise |
//! | 4xx, or a redirect to another origin | failed | failed |
//! | 408, 429, 5xx | tried again, then failed | failed: it is an answer |
//! | nothing could be sent | tried again, then failed | tried again, then failed |
//! | sent, and the answer was lost or late | tried again, then failed | unknown |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::Client;
use reqwest::header::HeaderValue;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;
use url::Url;

use super::credential::bearer;
use super::exchange::{Request, exchange};
use super::judgement::{Declared, Judgement, judge};
use super::wire::{Connections, NoHttpClient, client};
use super::{Call, CallEnd, Caller};
use crate::catalogue::ToolKind;
use crate::clock::Clock;
use crate::model::{Actor, Effect, RunId};
use crate::retry::Pauses;

/// How often a call is attempted at most.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Calls HTTP tools.
pub struct HttpCaller {
    kept: Client,
    fresh: Client,
    clock: Arc<dyn Clock>,
}

impl HttpCaller {
    /// A caller with its own connections. The clock is for a `Retry-After` that is a date.
    ///
    /// # Errors
    /// TLS cannot be set up: no provider is installed, or the machine's certificates cannot be read.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, NoHttpClient> {
        Ok(Self {
            kept: client(Connections::Kept)?,
            fresh: client(Connections::Fresh)?,
            clock,
        })
    }
}

#[async_trait]
impl Caller for HttpCaller {
    async fn call(&self, call: Call<'_>) -> CallEnd {
        let deadline = Instant::now() + call.timeout;
        let request = match request(&call) {
            Ok(request) => request,
            Err(reason) => return CallEnd::Failed(format!("the call was not made: {reason}")),
        };
        let declared = Declared {
            effect: call.tool.effect,
            timeout: call.timeout,
            limit: request.limit,
        };
        let client = if declared.effect == Effect::NonIdempotentWrite {
            &self.fresh
        } else {
            &self.kept
        };
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut attempt = 1;
        let span = tracing::info_span!("tool_call", run = %call.run, tool = %call.tool.name);
        loop {
            let exchange = exchange(client, &request, deadline)
                .instrument(span.clone())
                .await;
            let (otherwise, not_before) = match judge(declared, exchange, self.clock.now()) {
                Judgement::Done(end) => return end,
                Judgement::Again {
                    otherwise,
                    not_before,
                } => (otherwise, not_before),
            };
            let pause = pauses.next_pause().max(not_before.unwrap_or_default());
            if attempt == ATTEMPTS || pause >= deadline.saturating_duration_since(Instant::now()) {
                return otherwise;
            }
            span.in_scope(|| tracing::info!(attempt, ?pause, "tool call is tried again"));
            sleep(pause).await;
            attempt += 1;
        }
    }
}

/// What a tool is sent.
#[derive(Serialize)]
struct CallBody<'c> {
    call_id: &'c str,
    tool: &'c str,
    arguments: &'c RawValue,
    owner: &'c Actor,
    run: RunId,
}

fn request(call: &Call<'_>) -> Result<Request, String> {
    let ToolKind::Http(tool) = &call.tool.kind else {
        return Err("the tool is not declared with a URL".to_owned());
    };
    let arguments: &RawValue =
        serde_json::from_str(&call.call.arguments).map_err(|_| "the arguments are not JSON".to_owned())?;
    let body = CallBody {
        call_id: call.call.id.as_str(),
        tool: call.call.tool.as_str(),
        arguments,
        owner: call.owner,
        run: call.run,
    };
    Ok(Request {
        url: Url::parse(&tool.url).map_err(|error| format!("the declared URL cannot be read: {error}"))?,
        bearer: tool
            .bearer
            .as_ref()
            .map(bearer)
            .transpose()
            .map_err(|missing| missing.to_string())?,
        idempotency_key: HeaderValue::from_str(call.idempotency_key)
            .map_err(|_| "the idempotency key cannot be sent".to_owned())?,
        body: Bytes::from(serde_json::to_vec(&body).map_err(|_| "the call cannot be written".to_owned())?),
        limit: tool.max_response_bytes.min(call.result_limit),
    })
}
