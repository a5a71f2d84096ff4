//! The text of a script, and which of its replies is due. Pure; every reply is checked when the script is
//! read, so that a mistake is found at the first question and not at the last.
//!
//! ```json
//! {"conversations": [{"when": "part of the first user message", "replies": [
//!     {"role": "assistant", "content": "hello"},
//!     {"delay_ms": 50, "message": {"role": "assistant", "content": "hello, later"}},
//!     {"fail": {"unavailable": "overloaded"}}]}],
//!  "otherwise": [{"role": "assistant", "content": "I know nothing of this."}]}
//! ```

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::Message;

/// A script that has been read.
#[derive(Debug)]
pub(super) struct Script {
    conversations: Vec<(String, Vec<Reply>)>,
    otherwise: Vec<Reply>,
}

/// One reply.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// This message, after a while.
    Message { message: Message, delay: Duration },
    /// No answer, for this reason.
    Unavailable(String),
}

/// The script cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnreadableScript {
    line: usize,
    fault: String,
}

impl fmt::Display for UnreadableScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    #[serde(borrow, default)]
    conversations: Vec<Conversation<'a>>,
    #[serde(borrow, default)]
    otherwise: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Conversation<'a> {
    when: String,
    #[serde(borrow)]
    replies: Vec<&'a RawValue>,
}

impl Script {
    pub(super) fn parse(text: &str) -> Result<Self, UnreadableScript> {
        let written: Written<'_> = serde_json::from_str(text).map_err(|error| unreadable(0, &error))?;
        let replies = |raw: Vec<&RawValue>| -> Result<Vec<Reply>, _> {
            raw.into_iter().map(|raw| reply(text, raw)).collect()
        };
        let conversations = written.conversations.into_iter();
        Ok(Self {
            conversations: conversations
                .map(|conversation| Ok((conversation.when, replies(conversation.replies)?)))
                .collect::<Result<_, _>>()?,
            otherwise: replies(written.otherwise)?,
        })
    }

    /// The reply that is due; past the last one, a closing message.
    pub(super) fn reply_to(&self, messages: &[Message]) -> Reply {
        let has_role = |role: &'static str| move |message: &&Message| message.role().as_deref() == Some(role);
        let opening = messages
            .iter()
            .find(has_role("user"))
            .and_then(Message::text)
            .unwrap_or_default();
        let conversation = self.conversations.iter().find(|(when, _)| opening.contains(when));
        let replies = conversation.map_or(&self.otherwise, |(_, replies)| replies);
        let due = messages.iter().filter(has_role("assistant")).count();
        replies.get(due).cloned().unwrap_or_else(|| Reply::Message {
            message: Message::plain("assistant", "The script ends here."),
            delay: Duration::ZERO,
        })
    }
}

fn reply(script: &str, raw: &RawValue) -> Result<Reply, UnreadableScript> {
    #[derive(Deserialize)]
    struct Kind {
        role: Option<String>,
        fail: Option<serde::de::IgnoredAny>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Failing {
        fail: Fail,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fail {
        unavailable: String,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Delayed<'a> {
        #[serde(default)]
        delay_ms: u64,
        #[serde(borrow)]
        message: &'a RawValue,
    }
    // A reply is a piece of the script's text, so its place in it is a difference of addresses.
    let lines_before = |raw: &RawValue| {
        let start = raw.get().as_ptr() as usize - script.as_ptr() as usize;
        script[..start].matches('\n').count()
    };
    let unreadable = |error: serde_json::Error| unreadable(lines_before(raw), &error);
    let kind: Kind = serde_json::from_str(raw.get()).map_err(unreadable)?;
    if kind.fail.is_some() {
        let failing: Failing = serde_json::from_str(raw.get()).map_err(unreadable)?;
        return Ok(Reply::Unavailable(failing.fail.unavailable));
    }
    let (message, delay_ms) = if kind.role.is_some() {
        (raw, 0)
    } else {
        let delayed: Delayed<'_> = serde_json::from_str(raw.get()).map_err(unreadable)?;
        (delayed.message, delayed.delay_ms)
    };
    let parsed = Message::from_raw(message.to_owned());
    if parsed.role().as_deref() != Some("assistant") {
        let fault = "a reply is a message of the role `assistant`".to_owned();
        return Err(UnreadableScript {
            line: lines_before(message) + 1,
            fault,
        });
    }
    Ok(Reply::Message {
        message: parsed,
        delay: Duration::from_millis(delay_ms),
    })
}

fn unreadable(lines_before: usize, error: &serde_json::Error) -> UnreadableScript {
    let told = error.to_string();
    let fault = told
        .rsplit_once(" at line ")
        .map_or(told.as_str(), |(fault, _)| fault);
    UnreadableScript {
        line: lines_before + error.line().max(1),
        fault: fault.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"{"conversations": [{"when": "refund", "replies": [
        {"role":"assistant",  "content":null, "x":1e400},
        {"fail":{"unavailable":"overloaded"}},
        {"delay_ms":50,"message":{"role":"assistant","content":"done"}}]}],
        "otherwise": [{"role":"assistant","content":"what?"}]}"#;

    fn transcript(opening: &str, replies: usize) -> Vec<Message> {
        let mut messages = vec![
            Message::plain("system", "refund"),
            Message::plain("user", opening),
        ];
        for _ in 0..replies {
            messages.push(Message::plain("assistant", "…"));
            messages.push(Message::plain("user", "go on"));
        }
        messages
    }

    #[test]
    fn the_transcript_alone_says_which_reply_is_due() {
        let script = Script::parse(SCRIPT).unwrap();
        let due = |opening, replies| match script.reply_to(&transcript(opening, replies)) {
            Reply::Message { message, delay } => format!("{} {delay:?}", message.as_json()),
            Reply::Unavailable(reason) => reason,
        };
        assert_eq!(
            due("please refund", 0),
            r#"{"role":"assistant",  "content":null, "x":1e400} 0ns"#
        );
        assert_eq!(due("please refund", 1), "overloaded");
        assert_eq!(
            due("please refund", 2),
            r#"{"role":"assistant","content":"done"} 50ms"#
        );
        assert!(due("please refund", 3).contains("The script ends here."));
        assert!(due("hello", 0).contains("what?"));
        assert!(due("hello", 1).contains("The script ends here."));
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, line, part) in [
            ("", 1, "EOF"),
            ("{\n\"otherwise\": [\n{]}", 3, "key must be a string"),
            ("{\n\"othrwise\": []}", 2, "unknown field `othrwise`"),
            (
                "{\"otherwise\": [\n\n{\"fail\":\n{\"unavailble\":\"x\"}}]}",
                4,
                "unknown field `unavailble`",
            ),
            ("{\"otherwise\": [\n{\"role\":\"user\"}]}", 2, "role `assistant`"),
            ("{\"otherwise\": [\n\"text\"]}", 2, "invalid type"),
            (
                "{\"otherwise\": [\n{\"delay_ms\":1}]}",
                2,
                "missing field `message`",
            ),
            (
                "{\"otherwise\": [{\"message\":\n{\"role\":1}}]}",
                2,
                "role `assistant`",
            ),
        ] {
            let error = Script::parse(text).unwrap_err();
            assert!(
                error.line == line && error.fault.contains(part),
                "{text}: {error}"
            );
        }
    }
}
