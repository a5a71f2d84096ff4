//! A transcript as the Messages API wants it: what the system says apart, and the rest as turns of user and
//! assistant, in which the answers to calls stand at the head of the user's turn that follows.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::kept;
use crate::model::Message;

/// The members of a request that hold the conversation.
#[derive(Debug, Default, Serialize)]
pub(super) struct Conversation {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Box<RawValue>>,
    messages: Vec<Said>,
}

/// Everything that one side says before the other does.
#[derive(Debug, Serialize)]
struct Said {
    role: &'static str,
    content: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
    },
}

impl Block<'_> {
    fn raw(&self) -> Result<Box<RawValue>, String> {
        to_raw_value(self).map_err(|_| "a block cannot be written".to_owned())
    }
}

impl Conversation {
    /// The conversation of these messages.
    ///
    /// # Errors
    /// A message is none, or holds what the Messages API cannot be given; its place is named, nothing is quoted.
    pub(super) fn of(messages: &[Message]) -> Result<Self, String> {
        let mut conversation = Self::default();
        for (place, message) in messages.iter().enumerate() {
            conversation
                .add(message)
                .map_err(|what| format!("message {place} of the transcript {what}"))?;
        }
        Ok(conversation)
    }

    fn add(&mut self, message: &Message) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Read {
            role: String,
            #[serde(default)]
            content: Option<Content>,
            tool_call_id: Option<String>,
        }
        let read: Read = serde_json::from_str(message.as_json()).map_err(|_| "cannot be read".to_owned())?;
        let texts = read.content.map_or(Ok(Vec::new()), Content::texts)?;
        match read.role.as_str() {
            "system" | "developer" => {
                for text in &texts {
                    self.system.push(Block::Text { text }.raw()?);
                }
            }
            "assistant" => {
                let blocks = match kept::blocks(message) {
                    Some(blocks) => {
                        serde_json::from_str(blocks.get()).map_err(|_| "cannot be read".to_owned())?
                    }
                    None => translated(message, &texts)?,
                };
                self.say("assistant", blocks);
            }
            "tool" => {
                let tool_use_id = &read.tool_call_id.ok_or("answers no call")?;
                let content = &texts.concat();
                self.say("user", vec![Block::ToolResult { tool_use_id, content }.raw()?]);
            }
            "user" => {
                let blocks = texts.iter().map(|text| Block::Text { text }.raw());
                self.say("user", blocks.collect::<Result<_, _>>()?);
            }
            _ => return Err("has a role that the Messages API does not know".to_owned()),
        }
        Ok(())
    }

    /// Said by that side, together with what it said just before. An empty message is none: the API refuses it.
    fn say(&mut self, role: &'static str, blocks: Vec<Box<RawValue>>) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => self.messages.push(Said {
                role,
                content: blocks,
            }),
        }
    }
}

/// What a message says: a text, or parts of which only texts can be passed on.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

impl Content {
    /// The texts that are not empty.
    fn texts(self) -> Result<Vec<String>, String> {
        let texts = match self {
            Self::Text(text) => vec![text],
            Self::Parts(parts) => parts
                .into_iter()
                .map(|part| match (part.r#type.as_str(), part.text) {
                    ("text", Some(text)) => Ok(text),
                    _ => Err("has a part that is no text".to_owned()),
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
    }
}

/// An assistant's message that another protocol's model wrote.
fn translated(message: &Message, texts: &[String]) -> Result<Vec<Box<RawValue>>, String> {
    let calls = message.calls().map_err(|_| "has calls that cannot be read")?;
    let texts = texts.iter().map(|text| Block::Text { text }.raw());
    let calls = calls.iter().map(|call| {
        Block::ToolUse {
            id: call.id.as_str(),
            name: call.tool.as_str(),
            input: input(&call.arguments)?,
        }
        .raw()
    });
    texts.chain(calls).collect()
}

/// The input of a call must be an object. Arguments that are none were refused as they stand, and are shown to the
/// model as what they are.
fn input(arguments: &str) -> Result<Box<RawValue>, String> {
    #[derive(Serialize)]
    struct Unreadable<'a> {
        unreadable_arguments: &'a str,
    }
    match RawValue::from_string(arguments.trim().to_owned()) {
        Ok(object) if object.get().starts_with('{') => Ok(object),
        _ => to_raw_value(&Unreadable {
            unreadable_arguments: arguments,
        })
        .map_err(|_| "has arguments that cannot be written".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(messages: &[&str]) -> Result<String, String> {
        let messages: Vec<_> = messages
            .iter()
            .map(|text| Message::parse((*text).to_owned()).unwrap())
            .collect();
        Conversation::of(&messages).map(|conversation| serde_json::to_string(&conversation).unwrap())
    }

    #[test]
    fn answers_to_calls_are_one_turn_of_the_user_with_what_the_user_says_next() {
        let written = conversation(&[
            r#"{"role":"system","content":"Be kind."}"#,
            r#"{"role":"user","content":[{"type":"text","text":"Go"}]}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"t","arguments":"{\"n\": 1e400}"}},{"id":"b","function":{"name":"t","arguments":"{\"a\":"}}]}"#,
            r#"{"role":"tool","tool_call_id":"a","content":"1"}"#,
            r#"{"role":"tool","tool_call_id":"b","content":"NOT EXECUTED: x"}"#,
            r#"{"role":"user","content":"And?"}"#,
        ]);
        assert_eq!(
            written.unwrap(),
            concat!(
                r#"{"system":[{"type":"text","text":"Be kind."}],"messages":["#,
                r#"{"role":"user","content":[{"type":"text","text":"Go"}]},"#,
                r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":{"n": 1e400}},"#,
                r#"{"type":"tool_use","id":"b","name":"t","input":{"unreadable_arguments":"{\"a\":"}}]},"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},"#,
                r#"{"type":"tool_result","tool_use_id":"b","content":"NOT EXECUTED: x"},{"type":"text","text":"And?"}]}]}"#
            )
        );
    }

    #[test]
    fn kept_blocks_go_back_in_their_very_bytes() {
        let kept =
            r#"[{"type":"thinking","signature":"c2ln", "thinking":""},{"type":"text","text":"x", "n":1.0}]"#;
        let message = format!(r#"{{"role":"assistant","content":"x","anthropic_content":{kept}}}"#);
        let written = conversation(&[r#"{"role":"user","content":"Go"}"#, &message]).unwrap();
        assert!(written.contains(kept), "{written}");
    }

    #[test]
    fn what_cannot_be_passed_on_is_named_by_its_place() {
        let user = r#"{"role":"user","content":"Go"}"#;
        for (message, reason) in [
            (
                r#"{"role":"user","content":[{"type":"image_url"}]}"#,
                "message 1 of the transcript has a part that is no text",
            ),
            (
                r#"{"role":"critic","content":"x"}"#,
                "message 1 of the transcript has a role that the Messages API does not know",
            ),
            (
                r#"{"role":"tool","content":"x"}"#,
                "message 1 of the transcript answers no call",
            ),
        ] {
            assert_eq!(conversation(&[user, message]).unwrap_err(), reason);
        }
    }
}
