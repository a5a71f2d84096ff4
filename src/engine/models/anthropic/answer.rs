//! Reads what a provider of the Messages API sent, as a chat-completions message: its text, its calls with the very
//! text of their input, and the blocks as they came. What cannot be read is told by its place, never quoted.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::kept::MEMBER;
use crate::engine::models::Answer;
use crate::model::Message;

/// Reads a message. The error says what is wrong with it.
pub(super) fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        role: String,
        #[serde(borrow)]
        content: &'a RawValue,
        stop_reason: Option<String>,
        #[serde(default)]
        usage: serde_json::Value,
    }
    let unreadable = |what: &str, error: serde_json::Error| {
        format!("{what} (line {}, column {})", error.line(), error.column())
    };
    let reply: Reply<'_> = serde_json::from_slice(bytes)
        .map_err(|error| unreadable("its answer is no message of the Messages API", error))?;
    if reply.role != "assistant" {
        return Err("its message has another role than `assistant`".to_owned());
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(reply.content.get())
        .map_err(|error| unreadable("the blocks of its message cannot be read", error))?;
    let calls = calls(&blocks)?;
    match reply.stop_reason.as_deref() {
        Some("max_tokens") if !calls.is_empty() => {
            return Err("it reached `max_tokens` while it asked for a call".to_owned());
        }
        Some(reason @ ("refusal" | "pause_turn" | "model_context_window_exceeded")) => {
            return Err(format!("it gave no whole answer (`{reason}`)"));
        }
        _ => {}
    }
    let tokens = |name: &str| reply.usage.get(name)?.as_u64();
    // What was read from a cache or written to it is not in `input_tokens`.
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    Ok(Answer {
        message: message(&blocks, calls, reply.content)?,
        prompt_tokens: tokens("input_tokens")
            .map(|fresh| fresh + cached.into_iter().filter_map(tokens).sum::<u64>()),
        completion_tokens: tokens("output_tokens"),
    })
}

/// A block, with the members that are of use here.
#[derive(Deserialize)]
struct Block<'a> {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A call, as chat completions write it.
#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// Every block that asks for a tool of ours; one without id, name or input spoils the whole.
fn calls<'b>(blocks: &'b [Block<'_>]) -> Result<Vec<Call<'b>>, String> {
    let asks = blocks.iter().filter(|block| block.r#type == "tool_use");
    asks.map(|block| match (&block.id, &block.name, block.input) {
        (Some(id), Some(name), Some(input)) => Ok(Call {
            id,
            r#type: "function",
            function: Function {
                name,
                arguments: input.get(),
            },
        }),
        _ => Err("it asks for a call without id, name or input".to_owned()),
    })
    .collect()
}

fn message(blocks: &[Block<'_>], calls: Vec<Call<'_>>, content: &RawValue) -> Result<Message, String> {
    let text: String = blocks
        .iter()
        .filter(|block| block.r#type == "text")
        .filter_map(|block| block.text.as_deref())
        .collect();
    let text = if text.is_empty() && !calls.is_empty() {
        None
    } else {
        Some(text)
    };
    #[derive(Serialize)]
    struct Assistant<'a> {
        role: &'static str,
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        #[serde(flatten)]
        kept: std::collections::BTreeMap<&'static str, &'a RawValue>,
    }
    let message = Assistant {
        role: "assistant",
        content: text,
        tool_calls: calls,
        kept: [(MEMBER, content)].into(),
    };
    to_raw_value(&message)
        .map(Message::from_raw)
        .map_err(|_| "its message cannot be kept".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: &str = r#"[ {"type":"thinking","thinking":"hm","signature":"c2ln", "x":1e400},{"type":"text","text":"I will."},
        {"type":"tool_use","id":"toolu_1","name":"refund","input":{"id": 9007199254740993}}]"#;

    fn body(blocks: &str, stop: &str) -> String {
        format!(
            r#"{{"type":"message","role":"assistant","content":{blocks},"stop_reason":"{stop}",
            "usage":{{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":3}}}}"#
        )
    }

    #[test]
    fn a_call_keeps_the_text_of_its_input_and_the_blocks_are_kept_as_they_came() {
        let answer = read_answer(body(BLOCKS, "tool_use").as_bytes()).unwrap();
        assert_eq!(answer.message.text().as_deref(), Some("I will."));
        let calls = answer.message.calls().unwrap();
        assert_eq!(
            (
                calls[0].id.as_str(),
                calls[0].tool.as_str(),
                calls[0].arguments.as_str()
            ),
            ("toolu_1", "refund", r#"{"id": 9007199254740993}"#)
        );
        assert!(answer.message.as_json().contains(BLOCKS));
        assert_eq!(
            (answer.prompt_tokens, answer.completion_tokens),
            (Some(12), Some(3))
        );
    }

    #[test]
    fn half_an_answer_is_none() {
        for (blocks, stop, reason) in [
            (
                BLOCKS,
                "max_tokens",
                "it reached `max_tokens` while it asked for a call",
            ),
            ("[]", "refusal", "it gave no whole answer (`refusal`)"),
            ("[]", "pause_turn", "it gave no whole answer (`pause_turn`)"),
            (
                r#"[{"type":"tool_use","id":"t"}]"#,
                "tool_use",
                "it asks for a call without id, name or input",
            ),
            (
                r#"["SECRET"]"#,
                "end_turn",
                "the blocks of its message cannot be read (line 1, column 9)",
            ),
        ] {
            assert_eq!(read_answer(body(blocks, stop).as_bytes()).unwrap_err(), reason);
        }
        assert_eq!(
            read_answer(b"SECRET").unwrap_err(),
            "its answer is no message of the Messages API (line 1, column 1)"
        );
    }

    #[test]
    fn text_that_ends_at_the_limit_is_an_answer() {
        let blocks = r#"[{"type":"text","text":"So"},{"type":"text","text":" far"}]"#;
        let answer = read_answer(body(blocks, "max_tokens").as_bytes()).unwrap();
        assert_eq!(answer.message.text().as_deref(), Some("So far"));
        assert!(answer.message.calls().unwrap().is_empty());
    }
}
