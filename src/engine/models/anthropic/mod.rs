//! Asks a provider that speaks Anthropic's Messages API (version 2023-06-01, <https://docs.anthropic.com/en/api/messages>).
//!
//! A transcript is kept as chat-completions messages whoever answers, so a request is translated from them and an
//! answer into one. Nothing is lost by that: the blocks of an answer are kept in its message as the text that came
//! (`kept`), thinking and its signatures included, and go back in these very bytes.

mod answer;
mod conversation;
mod kept;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;

pub(super) use kept::without_blocks;

use super::exchange::{Exchange, Request, parameters, written};
use super::{Answer, ChatModel, ModelError, Question};
use crate::catalogue::{Endpoint, Model, Tool};
use crate::clock::Clock;
use crate::engine::tools::{NoHttpClient, api_key};
use crate::model::Message;
use answer::read_answer;
use conversation::Conversation;

const VERSION: &str = "2023-06-01";
/// Members of a request that are not the catalogue's to set.
const RESERVED: [&str; 5] = ["messages", "model", "stream", "system", "tools"];
/// What a model may write where the catalogue's parameters do not set `max_tokens`, which the API demands.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// Asks providers of Anthropic's Messages API.
pub struct Anthropic(Exchange);

impl Anthropic {
    /// Asks over its own connections. The clock is for a `Retry-After` that is a date.
    ///
    /// # Errors
    /// TLS cannot be set up: no provider is installed, or the machine's certificates cannot be read.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, NoHttpClient> {
        Exchange::new(clock).map(Self)
    }
}

#[async_trait]
impl ChatModel for Anthropic {
    async fn ask(&self, question: Question<'_>) -> Result<Answer, ModelError> {
        self.0
            .ask(&question, |endpoint| request(endpoint, &question))
            .await
    }
}

fn request(endpoint: &Endpoint, question: &Question<'_>) -> Result<Request, String> {
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    if let Some(key) = &endpoint.key {
        headers.insert("x-api-key", api_key(key).map_err(|missing| missing.to_string())?);
    }
    Ok(Request {
        url: format!("{}/messages", endpoint.base_url.trim_end_matches('/')),
        headers,
        body: body(question.model, question.messages, question.tools)?,
        read: read_answer,
    })
}

fn body(model: &Model, messages: &[Message], tools: &[&Tool]) -> Result<Vec<u8>, String> {
    #[derive(Serialize)]
    struct Body<'q> {
        model: &'q str,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
        #[serde(flatten)]
        conversation: Conversation,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<Offer<'q>>,
        #[serde(flatten)]
        parameters: BTreeMap<String, Box<RawValue>>,
    }
    #[derive(Serialize)]
    struct Offer<'q> {
        name: &'q str,
        description: &'q str,
        input_schema: &'q RawValue,
    }
    let parameters = parameters(model, &RESERVED)?;
    let tools = tools.iter().map(|tool| Offer {
        name: tool.name.as_str(),
        description: &tool.description,
        input_schema: &tool.parameters,
    });
    written(&Body {
        model: &model.remote_name,
        max_tokens: (!parameters.contains_key("max_tokens")).then_some(DEFAULT_MAX_TOKENS),
        conversation: Conversation::of(messages)?,
        tools: tools.collect(),
        parameters,
    })
}
