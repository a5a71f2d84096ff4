//! A model that answers from a script, for the demo and for tests: no key, no network, no chance.
//!
//! It holds no state. Which conversation is meant is read from the first message of the user, and which of
//! its replies is due from the number of assistant messages so far, so that a run goes on after a restart
//! where it stood.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::script::{Reply, Script};
use super::{Answer, ChatModel, ModelError, Question};
use crate::catalogue::ProviderKind;
use crate::model::Message;

/// How the path of a script begins that is part of the program.
const BUILTIN: &str = "builtin:";

/// Answers from scripts.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    builtin: BTreeMap<String, String>,
}

impl Scripted {
    /// Reads scripts from files, at each question.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows this text as the script `builtin:<name>`, too.
    #[must_use]
    pub fn with_builtin(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.builtin.insert(name.into(), text.into());
        self
    }

    async fn text(&self, path: &str) -> Result<String, String> {
        match path.strip_prefix(BUILTIN) {
            Some(name) => self
                .builtin
                .get(name)
                .cloned()
                .ok_or_else(|| format!("there is no script `{path}`")),
            None => tokio::fs::read_to_string(path)
                .await
                .map_err(|error| format!("script `{path}` cannot be read: {}", error.kind())),
        }
    }
}

#[async_trait]
impl ChatModel for Scripted {
    async fn ask(&self, question: Question<'_>) -> Result<Answer, ModelError> {
        let model = question.model.name.clone();
        let ProviderKind::Scripted { script: path } = &question.provider.kind else {
            return Err(ModelError::Unusable {
                model,
                reason: "its provider has no script".to_owned(),
            });
        };
        let reply = match self.text(path).await {
            Ok(text) => Script::parse(&text)
                .map(|script| script.reply_to(question.messages))
                .map_err(|error| format!("script `{path}`, {error}")),
            Err(reason) => Err(reason),
        };
        match reply {
            Ok(Reply::Message { message, delay }) => {
                tokio::time::sleep(delay).await;
                Ok(answer(message))
            }
            Ok(Reply::Unavailable(reason)) => Err(ModelError::Unavailable { model, reason }),
            Err(reason) => Err(ModelError::Unusable { model, reason }),
        }
    }
}

fn answer(message: Message) -> Answer {
    Answer {
        message,
        prompt_tokens: None,
        completion_tokens: None,
    }
}
