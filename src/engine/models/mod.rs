//! How a model is asked. A request is the transcript as it is stored, byte for byte, and the tools on offer;
//! an answer is one assistant message, kept as the text that came. A protocol whose messages look otherwise has them
//! translated, and keeps what came beside the translation.

mod anthropic;
mod completion;
mod exchange;
mod openai;
mod script;
mod scripted;

use async_trait::async_trait;

pub use anthropic::Anthropic;
pub use openai::OpenAi;
pub use scripted::Scripted;

use crate::catalogue::{Model, Provider, Tool};
use crate::model::{Message, RunId};

/// One question to a model.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The run, for logs.
    pub run: RunId,
    /// Which model.
    pub model: &'q Model,
    /// Of which provider.
    pub provider: &'q Provider,
    /// The conversation so far.
    pub messages: &'q [Message],
    /// The tools on offer.
    pub tools: &'q [&'q Tool],
}

/// What a model answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The assistant's message, as the text that came.
    pub message: Message,
    /// Tokens read, where the provider says so.
    pub prompt_tokens: Option<u64>,
    /// Tokens written, where the provider says so.
    pub completion_tokens: Option<u64>,
}

/// The model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Not reachable, overloaded or broken, after all retries: another model may do.
    #[error("model `{model}` is not available: {reason}")]
    Unavailable {
        /// The model's name in the catalogue.
        model: String,
        /// What the last attempt said; no content.
        reason: String,
    },
    /// It refused the request, or answered what cannot be read: asking again is no use.
    #[error("model `{model}` cannot be used: {reason}")]
    Unusable {
        /// The model's name in the catalogue.
        model: String,
        /// What is wrong; no content.
        reason: String,
    },
}

/// Asks models of one kind of provider.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Asks once, retries included. A future that is dropped stops asking.
    async fn ask(&self, question: Question<'_>) -> Result<Answer, ModelError>;
}
