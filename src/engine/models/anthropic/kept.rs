//! The blocks of an answer, kept in its message as the text that came. They are what goes back to the provider that
//! wrote them, and are for nobody else: another protocol gets the message without them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::model::Message;

/// The member of a stored message that holds the blocks.
pub(super) const MEMBER: &str = "anthropic_content";

/// The message without the blocks; a message that has none is passed on as it is.
pub(in crate::engine::models) fn without_blocks(message: &Message) -> Cow<'_, Message> {
    if !message.as_json().contains(MEMBER) {
        return Cow::Borrowed(message);
    }
    let members: Result<BTreeMap<&str, &RawValue>, _> = serde_json::from_str(message.as_json());
    // One that cannot be read so has members with escaped names, and none of them was written here.
    let Ok(mut members) = members else {
        return Cow::Borrowed(message);
    };
    match members.remove(MEMBER).map(|_| to_raw_value(&members)) {
        Some(Ok(raw)) => Cow::Owned(Message::from_raw(raw)),
        _ => Cow::Borrowed(message),
    }
}

/// The blocks of a message, if they ask for exactly the calls that the message asks for. Where they do not, somebody
/// changed one and not the other, and the message counts.
pub(super) fn blocks(message: &Message) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Kept {
        anthropic_content: Box<RawValue>,
    }
    #[derive(Deserialize)]
    struct Block {
        r#type: String,
        id: Option<String>,
    }
    let Kept { anthropic_content } = serde_json::from_str(message.as_json()).ok()?;
    let blocks: Vec<Block> = serde_json::from_str(anthropic_content.get()).ok()?;
    let asked = blocks
        .into_iter()
        .filter(|block| block.r#type == "tool_use")
        .map(|block| block.id);
    let calls = message.calls().ok()?;
    asked
        .eq(calls.iter().map(|call| Some(call.id.as_str().to_owned())))
        .then_some(anthropic_content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn only_the_blocks_are_left_out() {
        let kept = message(r#"{"role":"assistant","content":"x","anthropic_content":[],"x_n":1e400}"#);
        assert_eq!(
            without_blocks(&kept).as_json(),
            r#"{"content":"x","role":"assistant","x_n":1e400}"#
        );
        let other = message(r#"{"role":"user", "content":"about anthropic_content"}"#);
        assert_eq!(without_blocks(&other).as_json(), other.as_json());
    }

    #[test]
    fn blocks_that_ask_for_other_calls_do_not_count() {
        let asks = |id: &str| {
            message(&format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","function":{{"name":"t","arguments":"{{}}"}}}}],
                "anthropic_content":[{{"type":"thinking","thinking":""}},{{"type":"tool_use","id":"{id}"}}]}}"#
            ))
        };
        assert!(blocks(&asks("c1")).is_some());
        assert!(blocks(&asks("c2")).is_none());
        assert!(blocks(&message(r#"{"role":"assistant","content":"x"}"#)).is_none());
    }
}
