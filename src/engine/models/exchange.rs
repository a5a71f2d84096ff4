//! One request to a provider and its answer, over HTTP: posted again, within bounds, while the fault may pass. What
//! is in the request and how an answer is read is each protocol's own.
//!
//! A provider's error message is never passed on, since providers quote the transcript in it; of an error
//! only the status and its short `type` or `code` are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, StatusCode};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument as _;

use super::completion::error_code;
use super::{Answer, ModelError, Question};
use crate::catalogue::{Endpoint, Model};
use crate::clock::Clock;
use crate::engine::tools::NoHttpClient;
use crate::engine::tools::wire::{BodyEnd, Connections, cause, client, read_up_to, retry_after};
use crate::retry::Pauses;

/// The largest answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// The longest `Retry-After` that is waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// A request, ready to be sent any number of times.
pub(super) struct Request {
    pub url: String,
    /// What it carries besides its content type.
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// How it reads the body of a success; the error says what is wrong with it, and quotes nothing.
    pub read: fn(&[u8]) -> Result<Answer, String>,
}

/// Posts requests over its own connections.
pub(super) struct Exchange {
    client: Client,
    clock: Arc<dyn Clock>,
}

impl Exchange {
    /// The clock is for a `Retry-After` that is a date.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Result<Self, NoHttpClient> {
        Ok(Self {
            client: client(Connections::Kept)?,
            clock,
        })
    }

    /// The answer, retries included. `write` makes the request or says why there can be none.
    pub(super) async fn ask(
        &self,
        question: &Question<'_>,
        write: impl FnOnce(&Endpoint) -> Result<Request, String>,
    ) -> Result<Answer, ModelError> {
        let model = || question.model.name.clone();
        let unusable = |reason| ModelError::Unusable {
            model: model(),
            reason,
        };
        let Some(endpoint) = question.provider.kind.endpoint() else {
            return Err(unusable("its provider is not asked over HTTP".to_owned()));
        };
        let request = write(endpoint).map_err(unusable)?;
        let body = Bytes::from(request.body.clone());
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut retries = 0;
        let span = tracing::info_span!("model", run = %question.run, model = question.model.name);
        loop {
            let attempt = self.attempt(endpoint.timeout, &request, body.clone());
            let (reason, not_before) = match attempt.instrument(span.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(Fault::Lasting(reason)) => return Err(unusable(reason)),
                Err(Fault::Passing { reason, not_before }) => (reason, not_before),
            };
            if retries == endpoint.max_retries {
                return Err(ModelError::Unavailable {
                    model: model(),
                    reason,
                });
            }
            retries += 1;
            let asked = not_before.unwrap_or_default().min(LONGEST_RETRY_AFTER);
            let pause = pauses.next_pause().max(asked);
            span.in_scope(|| tracing::info!(retries, ?pause, reason, "model is asked again"));
            sleep(pause).await;
        }
    }

    async fn attempt(&self, timeout: Duration, request: &Request, body: Bytes) -> Result<Answer, Fault> {
        let deadline = Instant::now() + timeout;
        let too_late = || Fault::passing(format!("it did not answer within {timeout:?}"));
        let post = self
            .client
            .post(&request.url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .headers(request.headers.clone());
        let response = match timeout_at(deadline, post.body(body).send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_builder() => {
                return Err(Fault::Lasting("its URL cannot be used".to_owned()));
            }
            Ok(Err(error)) => {
                let reason = if error.is_connect() {
                    "it cannot be reached"
                } else {
                    "the connection was lost"
                };
                tracing::warn!(cause = cause(error), "no answer from the provider");
                return Err(Fault::passing(reason.to_owned()));
            }
            Err(_) => return Err(too_late()),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_up_to(MAX_ANSWER_BYTES, response, deadline).await;
        if !status.is_success() {
            let code = error_code(&body.bytes).map_or_else(String::new, |code| format!(" ({code})"));
            let reason = format!("it answered {}{code}", status.as_u16());
            return Err(if is_passing(status) {
                Fault::Passing {
                    reason,
                    not_before: retry_after(&headers, self.clock.now()),
                }
            } else {
                Fault::Lasting(reason)
            });
        }
        match body.end {
            BodyEnd::Whole => (request.read)(&body.bytes).map_err(Fault::Lasting),
            BodyEnd::Lost => Err(Fault::passing("the connection was lost".to_owned())),
            BodyEnd::TimedOut => Err(too_late()),
            BodyEnd::OverLimit => Err(Fault::Lasting(format!(
                "its answer is larger than {MAX_ANSWER_BYTES} bytes"
            ))),
        }
    }
}

/// Why an attempt brought no answer; no content.
enum Fault {
    /// It may pass, not before the time that the provider asks for.
    Passing {
        reason: String,
        not_before: Option<Duration>,
    },
    /// The same request will meet it again.
    Lasting(String),
}

impl Fault {
    fn passing(reason: String) -> Self {
        Self::Passing {
            reason,
            not_before: None,
        }
    }
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        )
}

/// The parameters that the catalogue declares for a model, none of which may be `reserved`.
pub(super) fn parameters(
    model: &Model,
    reserved: &[&str],
) -> Result<BTreeMap<String, Box<RawValue>>, String> {
    let parameters: BTreeMap<String, Box<RawValue>> = match &model.parameters {
        Some(text) => {
            serde_json::from_str(text).map_err(|_| "its parameters are not a JSON object".to_owned())?
        }
        None => BTreeMap::new(),
    };
    match reserved.iter().find(|name| parameters.contains_key(**name)) {
        Some(name) => Err(format!("its parameters must not set `{name}`")),
        None => Ok(parameters),
    }
}

/// The request as bytes.
pub(super) fn written(body: &impl serde::Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(body).map_err(|_| "the request cannot be written".to_owned())
}
