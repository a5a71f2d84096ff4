//! Asks a provider that speaks OpenAI's chat completions. The transcript is sent byte for byte as it is
//! stored, and the answer is kept as the text that came: no member of a message is lost, no number changes.
//!
//! A provider's error message is never passed on, since providers quote the transcript in it; of an error
//! only the status and its short `type` or `code` are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument as _;

use super::completion::{error_code, read_answer};
use super::{Answer, ChatModel, ModelError, Question};
use crate::catalogue::{Model, ProviderKind, Tool};
use crate::clock::Clock;
use crate::engine::tools::wire::{BodyEnd, Connections, cause, client, read_up_to, retry_after};
use crate::engine::tools::{NoHttpClient, bearer};
use crate::model::Message;
use crate::retry::Pauses;

/// The largest answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// The longest `Retry-After` that is waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Members of a request that are not the catalogue's to set.
const RESERVED: [&str; 4] = ["messages", "model", "stream", "tools"];

/// Asks OpenAI-compatible providers.
pub struct OpenAi {
    client: Client,
    clock: Arc<dyn Clock>,
}

impl OpenAi {
    /// Asks over its own connections. The clock is for a `Retry-After` that is a date.
    ///
    /// # Errors
    /// TLS cannot be set up: no provider is installed, or the machine's certificates cannot be read.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, NoHttpClient> {
        Ok(Self {
            client: client(Connections::Kept)?,
            clock,
        })
    }

    async fn attempt(&self, request: &Request) -> Result<Answer, Fault> {
        let deadline = Instant::now() + request.timeout;
        let too_late = || Fault::passing(format!("it did not answer within {:?}", request.timeout));
        let mut post = self
            .client
            .post(&request.url)
            .header(CONTENT_TYPE, "application/json");
        if let Some(bearer) = &request.bearer {
            post = post.header(AUTHORIZATION, bearer);
        }
        let response = match timeout_at(deadline, post.body(request.body.clone()).send()).await {
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
            BodyEnd::Whole => read_answer(&body.bytes).map_err(Fault::Lasting),
            BodyEnd::Lost => Err(Fault::passing("the connection was lost".to_owned())),
            BodyEnd::TimedOut => Err(too_late()),
            BodyEnd::OverLimit => Err(Fault::Lasting(format!(
                "its answer is larger than {MAX_ANSWER_BYTES} bytes"
            ))),
        }
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    async fn ask(&self, question: Question<'_>) -> Result<Answer, ModelError> {
        let model = || question.model.name.clone();
        let request = request(&question).map_err(|reason| ModelError::Unusable {
            model: model(),
            reason,
        })?;
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut retries = 0;
        let span = tracing::info_span!("model", run = %question.run, model = question.model.name);
        loop {
            let (reason, not_before) = match self.attempt(&request).instrument(span.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(Fault::Lasting(reason)) => {
                    return Err(ModelError::Unusable {
                        model: model(),
                        reason,
                    });
                }
                Err(Fault::Passing { reason, not_before }) => (reason, not_before),
            };
            if retries == request.max_retries {
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

/// A request, ready to be sent any number of times.
struct Request {
    url: String,
    bearer: Option<HeaderValue>,
    body: Bytes,
    timeout: Duration,
    max_retries: u32,
}

fn request(question: &Question<'_>) -> Result<Request, String> {
    let ProviderKind::OpenAi {
        base_url,
        key,
        timeout,
        max_retries,
    } = &question.provider.kind
    else {
        return Err("its provider is not asked over HTTP".to_owned());
    };
    Ok(Request {
        url: format!("{}/chat/completions", base_url.trim_end_matches('/')),
        bearer: key
            .as_ref()
            .map(bearer)
            .transpose()
            .map_err(|missing| missing.to_string())?,
        body: Bytes::from(body(question.model, question.messages, question.tools)?),
        timeout: *timeout,
        max_retries: *max_retries,
    })
}

fn body(model: &Model, messages: &[Message], tools: &[&Tool]) -> Result<Vec<u8>, String> {
    #[derive(Serialize)]
    struct Body<'q> {
        model: &'q str,
        messages: &'q [Message],
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<Offer<'q>>,
        #[serde(flatten)]
        parameters: BTreeMap<String, Box<RawValue>>,
    }
    #[derive(Serialize)]
    struct Offer<'q> {
        r#type: &'static str,
        function: Function<'q>,
    }
    #[derive(Serialize)]
    struct Function<'q> {
        name: &'q str,
        description: &'q str,
        parameters: &'q RawValue,
    }
    let parameters: BTreeMap<String, Box<RawValue>> = match &model.parameters {
        Some(text) => {
            serde_json::from_str(text).map_err(|_| "its parameters are not a JSON object".to_owned())?
        }
        None => BTreeMap::new(),
    };
    if let Some(name) = RESERVED.into_iter().find(|name| parameters.contains_key(*name)) {
        return Err(format!("its parameters must not set `{name}`"));
    }
    let tools = tools.iter().map(|tool| Offer {
        r#type: "function",
        function: Function {
            name: tool.name.as_str(),
            description: &tool.description,
            parameters: &tool.parameters,
        },
    });
    let body = Body {
        model: &model.remote_name,
        messages,
        tools: tools.collect(),
        parameters,
    };
    serde_json::to_vec(&body).map_err(|_| "the request cannot be written".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::TrustZone;

    fn model(parameters: Option<&str>) -> Model {
        Model {
            name: "m".into(),
            provider: "p".into(),
            remote_name: "remote-m".into(),
            zone: TrustZone::Local,
            parameters: parameters.map(str::to_owned),
        }
    }

    #[test]
    fn messages_and_parameters_keep_their_bytes() {
        let message = r#"{ "role":"user","content":"x", "x_unknown":1e400 }"#;
        let messages = [Message::parse(message.to_owned()).unwrap()];
        let body = body(
            &model(Some(r#"{"temperature":0.10, "seed":9007199254740993}"#)),
            &messages,
            &[],
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(body).unwrap(),
            format!(
                r#"{{"model":"remote-m","messages":[{message}],"seed":9007199254740993,"temperature":0.10}}"#
            )
        );
    }

    #[test]
    fn parameters_do_not_set_what_is_not_theirs() {
        for parameters in [r#"{"stream":true}"#, r#"{"messages":[]}"#, "[]", "{"] {
            assert!(body(&model(Some(parameters)), &[], &[]).is_err(), "{parameters}");
        }
    }
}
