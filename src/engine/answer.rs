//! What the model is told of a call that was not executed, or failed. Each text begins with the plain fact, so that
//! none can be read as success.

use crate::model::{Actor, CallOutcome, CallStatus, ToolName, visible};

fn not_executed(status: CallStatus, why: String) -> CallOutcome {
    CallOutcome {
        status,
        content: format!("NOT EXECUTED: {why}"),
    }
}

/// Somebody denied the turn.
pub(crate) fn denied(by: &Actor, comment: Option<&str>) -> CallOutcome {
    let reason = match comment.map(str::trim).filter(|comment| !comment.is_empty()) {
        Some(comment) => format!(" The reason given: {comment}"),
        None => " No reason was given.".to_owned(),
    };
    not_executed(
        CallStatus::Denied,
        format!(
            "the call was denied by {by}, and nothing was done.{reason} Do not ask for the same call again."
        ),
    )
}

/// The same call was denied before in this run.
pub(super) fn denied_before() -> CallOutcome {
    not_executed(
        CallStatus::Denied,
        "this very call was denied before in this run, and the denial stands. Do not ask for it again."
            .to_owned(),
    )
}

/// The owner's policy refused the call.
pub(super) fn refused(tool: &ToolName, reason: &str) -> CallOutcome {
    not_executed(
        CallStatus::Refused,
        format!("the owner of this run may not call `{tool}` ({reason})."),
    )
}

/// The owner's policy refused to repeat a call that was begun before its worker was lost.
pub(super) fn not_repeated(tool: &ToolName, reason: &str) -> CallOutcome {
    CallOutcome {
        status: CallStatus::Failed,
        content: format!(
            "BEGUN, NOT REPEATED: the call was begun before its worker was lost, and the owner of this run may not \
             call `{tool}` any more ({reason}). Whether it took effect is not known."
        ),
    }
}

/// The arguments are not JSON.
pub(super) fn unreadable_arguments(error: &serde_json::Error) -> CallOutcome {
    not_executed(
        CallStatus::Refused,
        format!(
            "the arguments are not valid JSON (line {}, column {}). Send one complete JSON value.",
            error.line(),
            error.column()
        ),
    )
}

/// The tool answered more than is kept. The call itself was made.
pub(super) fn result_too_large(bytes: usize, limit: usize) -> CallOutcome {
    CallOutcome {
        status: CallStatus::Failed,
        content: format!(
            "CALLED, RESULT NOT KEPT: the tool answered {bytes} bytes; at most {limit} are kept \
             (`limits.result_bytes`). Ask for less."
        ),
    }
}

/// The tool said that it failed.
pub(super) fn failed(text: &str) -> CallOutcome {
    CallOutcome {
        status: CallStatus::Failed,
        content: format!("FAILED: {text}"),
    }
}

/// How an id from the model is shown in a failure's detail.
pub(super) fn shown(text: &str) -> String {
    visible(&text.chars().take(80).collect::<String>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_d9_no_denial_reads_as_success() {
        let by = Actor::User("ada".to_owned());
        for outcome in [
            denied(&by, None),
            denied(&by, Some("too much")),
            denied_before(),
            refused(&"t".into(), "x"),
        ] {
            assert!(outcome.content.starts_with("NOT EXECUTED"), "{}", outcome.content);
        }
        assert!(denied(&by, Some("too much")).content.contains("too much"));
    }
}
