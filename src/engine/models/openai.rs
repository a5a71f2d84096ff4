//! Asks a provider that speaks OpenAI's chat completions. The transcript is sent byte for byte as it is
//! stored, and the answer is kept as the text that came: no member of a message is lost, no number changes.
//! Only what another protocol added to a message for itself is left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::Serialize;
use serde_json::value::RawValue;

use super::anthropic::without_blocks;
use super::completion::read_answer;
use super::exchange::{Exchange, Request, parameters, written};
use super::{Answer, ChatModel, ModelError, Question};
use crate::catalogue::{Endpoint, Model, Tool};
use crate::clock::Clock;
use crate::engine::tools::{NoHttpClient, bearer};
use crate::model::Message;

/// Members of a request that are not the catalogue's to set.
const RESERVED: [&str; 4] = ["messages", "model", "stream", "tools"];

/// Asks OpenAI-compatible providers.
pub struct OpenAi(Exchange);

impl OpenAi {
    /// Asks over its own connections. The clock is for a `Retry-After` that is a date.
    ///
    /// # Errors
    /// TLS cannot be set up: no provider is installed, or the machine's certificates cannot be read.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, NoHttpClient> {
        Exchange::new(clock).map(Self)
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    async fn ask(&self, question: Question<'_>) -> Result<Answer, ModelError> {
        self.0
            .ask(&question, |endpoint| request(endpoint, &question))
            .await
    }
}

fn request(endpoint: &Endpoint, question: &Question<'_>) -> Result<Request, String> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &endpoint.key {
        headers.insert(AUTHORIZATION, bearer(key).map_err(|missing| missing.to_string())?);
    }
    Ok(Request {
        url: format!("{}/chat/completions", endpoint.base_url.trim_end_matches('/')),
        headers,
        body: body(question.model, question.messages, question.tools)?,
        read: read_answer,
    })
}

fn body(model: &Model, messages: &[Message], tools: &[&Tool]) -> Result<Vec<u8>, String> {
    #[derive(Serialize)]
    struct Body<'q> {
        model: &'q str,
        messages: Vec<Cow<'q, Message>>,
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
    let parameters = parameters(model, &RESERVED)?;
    let tools = tools.iter().map(|tool| Offer {
        r#type: "function",
        function: Function {
            name: tool.name.as_str(),
            description: &tool.description,
            parameters: &tool.parameters,
        },
    });
    written(&Body {
        model: &model.remote_name,
        messages: messages.iter().map(without_blocks).collect(),
        tools: tools.collect(),
        parameters,
    })
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
