//! Reads what an OpenAI-compatible provider sent: the message of the first choice, as the text that came, or
//! the short code of an error. What cannot be read is told by its place, never quoted.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Answer;
use crate::model::Message;

/// The longest error code that is passed on.
const MAX_CODE_CHARS: usize = 64;

/// Reads a completion. The error says what is wrong with it.
pub(super) fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    #[derive(Deserialize)]
    struct Completion<'a> {
        #[serde(borrow, default)]
        choices: Option<Vec<Choice<'a>>>,
        #[serde(borrow, default)]
        usage: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let completion: Completion<'_> = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "its answer is no chat completion (line {}, column {})",
            error.line(),
            error.column()
        )
    })?;
    let Some(choice) = completion.choices.unwrap_or_default().into_iter().next() else {
        let code = error_code(bytes).map_or_else(String::new, |code| format!(" ({code})"));
        return Err(format!("its answer has no choices{code}"));
    };
    let message = Message::from_raw(choice.message.to_owned());
    if !message.as_json().starts_with('{') {
        return Err("its message is no object".to_owned());
    }
    match message.role().as_deref() {
        Some("assistant") => {}
        Some(_) => return Err("its message has another role than `assistant`".to_owned()),
        None => return Err("its message has no role".to_owned()),
    }
    let usage = completion
        .usage
        .and_then(|usage| serde_json::from_str::<Value>(usage.get()).ok());
    let tokens = |name: &str| usage.as_ref()?.get(name)?.as_u64();
    Ok(Answer {
        message,
        prompt_tokens: tokens("prompt_tokens"),
        completion_tokens: tokens("completion_tokens"),
    })
}

/// The `code` of an error, else its `type`, if it is short and plain enough to be one.
pub(super) fn error_code(bytes: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(bytes).ok()?;
    let error = body.get("error")?;
    ["code", "type"]
        .into_iter()
        .find_map(|member| match error.get(member)? {
            Value::String(code) if is_code(code) => Some(code.clone()),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        })
}

fn is_code(text: &str) -> bool {
    (1..=MAX_CODE_CHARS).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_the_text_that_came() {
        let message = r#"{"role":"assistant",  "content":null, "x":[1e400, -0, 1.0], "refusal":null}"#;
        let body = format!(
            r#"{{"id":"z","choices":[{{"index":0,"message":{message},"finish_reason":"length"}},{{"message":{{}}}}],
            "usage":{{"prompt_tokens":7,"completion_tokens":"many"}}}}"#
        );
        let answer = read_answer(body.as_bytes()).unwrap();
        assert_eq!(answer.message.as_json(), message);
        assert_eq!((answer.prompt_tokens, answer.completion_tokens), (Some(7), None));
    }

    #[test]
    fn usage_may_be_anything() {
        for usage in ["null", "[]", "1e400", "{\"prompt_tokens\":-1}"] {
            let body = format!(r#"{{"choices":[{{"message":{{"role":"assistant"}}}}],"usage":{usage}}}"#);
            assert_eq!(
                read_answer(body.as_bytes()).unwrap().prompt_tokens,
                None,
                "{usage}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_without_quoting_it() {
        for (body, reason) in [
            ("SECRET", "its answer is no chat completion (line 1, column 1)"),
            (
                r#"{"choices":"SECRET"}"#,
                "its answer is no chat completion (line 1, column 19)",
            ),
            (r#"{"choices":[]}"#, "its answer has no choices"),
            (r#"{"choices":null}"#, "its answer has no choices"),
            (
                r#"{"error":{"code":"overloaded","message":"SECRET"}}"#,
                "its answer has no choices (overloaded)",
            ),
            (
                r#"{"choices":[{"message":"SECRET"}]}"#,
                "its message is no object",
            ),
            (
                r#"{"choices":[{"message":{"content":"SECRET"}}]}"#,
                "its message has no role",
            ),
            (
                r#"{"choices":[{"message":{"role":"user"}}]}"#,
                "its message has another role than `assistant`",
            ),
        ] {
            assert_eq!(read_answer(body.as_bytes()).unwrap_err(), reason, "{body}");
        }
    }

    #[test]
    fn only_a_plain_short_code_is_passed_on() {
        let code = |error: &str| error_code(format!(r#"{{"error":{error}}}"#).as_bytes());
        assert_eq!(code(r#"{"code":"a_b","type":"t"}"#).as_deref(), Some("a_b"));
        assert_eq!(code(r#"{"code":null,"type":"t"}"#).as_deref(), Some("t"));
        assert_eq!(code(r#"{"code":503}"#).as_deref(), Some("503"));
        assert_eq!(code(r#"{"code":"refund the customer","message":"m"}"#), None);
        assert_eq!(code(r#""text""#), None);
        assert_eq!(error_code(b"<html>"), None);
    }
}
