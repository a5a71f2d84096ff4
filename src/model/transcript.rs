//! The conversation, as OpenAI chat-completions messages, kept losslessly: each message is the very text
//! that came, so unknown members survive and numbers keep their bytes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{CallId, CorruptState, PendingCall};

/// One message, as the text that came.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(Box<RawValue>);

impl Message {
    /// A message from the text of a JSON object.
    ///
    /// # Errors
    /// The text is no JSON.
    pub fn parse(json: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(json).map(Self)
    }

    /// The message that came inside another document.
    #[must_use]
    pub fn from_raw(raw: Box<RawValue>) -> Self {
        Self(raw)
    }

    /// The text of the message.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// The tool message that answers a call.
    #[must_use]
    pub fn tool(call: &CallId, content: &str) -> Self {
        #[derive(Serialize)]
        struct Tool<'a> {
            role: &'static str,
            tool_call_id: &'a str,
            content: &'a str,
        }
        Self::written(&Tool {
            role: "tool",
            tool_call_id: call.as_str(),
            content,
        })
    }

    /// A message of the system or of the user.
    #[must_use]
    pub fn plain(role: &'static str, content: &str) -> Self {
        #[derive(Serialize)]
        struct Plain<'a> {
            role: &'static str,
            content: &'a str,
        }
        Self::written(&Plain { role, content })
    }

    fn written(message: &impl Serialize) -> Self {
        Self(serde_json::value::to_raw_value(message).expect("strings always serialise"))
    }

    /// The calls that the message asks for: empty unless it is an assistant's with tool calls.
    ///
    /// # Errors
    /// An entry cannot be read. No entry is ever dropped.
    pub fn calls(&self) -> Result<Vec<PendingCall>, CorruptState> {
        #[derive(Deserialize)]
        struct Assistant {
            role: String,
            #[serde(default)]
            tool_calls: Option<Vec<Entry>>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: String,
            function: Function,
        }
        #[derive(Deserialize)]
        struct Function {
            name: String,
            arguments: String,
        }
        let unreadable =
            |error: serde_json::Error| CorruptState(format!("a message cannot be read: {error}"));
        let message: Assistant = serde_json::from_str(self.0.get()).map_err(unreadable)?;
        if message.role != "assistant" {
            return Ok(Vec::new());
        }
        let calls = message.tool_calls.unwrap_or_default().into_iter();
        Ok(calls
            .map(|entry| PendingCall {
                id: entry.id.into(),
                tool: entry.function.name.into(),
                arguments: entry.function.arguments,
            })
            .collect())
    }

    /// The text content of the message, if it has any.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Content {
            content: Option<String>,
        }
        serde_json::from_str::<Content>(self.0.get()).ok()?.content
    }

    /// The role of the message, if it names one.
    #[must_use]
    pub fn role(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Role {
            role: String,
        }
        serde_json::from_str::<Role>(self.0.get())
            .ok()
            .map(|message| message.role)
    }
}

/// The messages of a run, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Transcript(Vec<Message>);

impl Transcript {
    /// A transcript of these messages.
    #[must_use]
    pub fn new(messages: Vec<Message>) -> Self {
        Self(messages)
    }

    /// The messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.0
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        self.0.push(message);
    }

    /// The calls that wait to be answered: those of the last message.
    ///
    /// # Errors
    /// An entry cannot be read.
    pub fn pending(&self) -> Result<Vec<PendingCall>, CorruptState> {
        self.0.last().map_or(Ok(Vec::new()), Message::calls)
    }

    /// The size of all messages, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|message| message.as_json().len() + 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_bytes() {
        let text = r#"{"role":"assistant", "x_unknown":1e400,"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{\"id\":9007199254740993}"}}]}"#;
        let transcript = Transcript::new(vec![Message::parse(text.to_owned()).unwrap()]);
        let stored = serde_json::to_string(&transcript).unwrap();
        let read: Transcript = serde_json::from_str(&stored).unwrap();
        assert_eq!(read.messages()[0].as_json(), text);
        assert_eq!(read.pending().unwrap()[0].arguments, r#"{"id":9007199254740993}"#);
    }

    #[test]
    fn an_entry_that_cannot_be_read_spoils_the_whole() {
        for entry in [
            r#"{"id":"c"}"#,
            r#"{"id":1,"function":{"name":"t","arguments":""}}"#,
            r#"{"id":"c","function":{"name":"t","arguments":{}}}"#,
        ] {
            let good = r#"{"id":"g","function":{"name":"t","arguments":"{}"}}"#;
            let text = format!(r#"{{"role":"assistant","tool_calls":[{good},{entry}]}}"#);
            assert!(Message::parse(text).unwrap().calls().is_err(), "{entry}");
        }
    }

    #[test]
    fn only_the_assistant_asks() {
        let text = r#"{"role":"user","content":"x","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]}"#;
        assert!(
            Message::parse(text.to_owned())
                .unwrap()
                .calls()
                .unwrap()
                .is_empty()
        );
    }
}
