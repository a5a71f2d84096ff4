//! A line of the timeline: when, what, by whom, and the particulars. The particulars are shown as they are kept,
//! so that an event of a younger build is shown too.

use serde_json::Value;

use super::moment::stamp;
use super::paint::{Paint, Style};
use crate::model::{Event, EventKind, visible};

/// Whether a line names its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfRun {
    /// All lines are of one run, known from elsewhere.
    Known,
    /// It is to be said.
    Named,
}

/// The line, without its end.
pub(super) fn line(event: &Event, of_run: OfRun, paint: Paint) -> String {
    let mut parts = vec![paint.dim(&stamp(event.event.at))];
    let kind = format!("{:<24}", event.event.kind.as_str());
    parts.push(paint.apply(style(event.event.kind), &kind));
    if let (OfRun::Named, Some(run)) = (of_run, event.event.run) {
        parts.push(run.to_string());
    }
    if let Some(actor) = &event.event.actor {
        parts.push(format!("by {actor}"));
    }
    // The decision is named where it is made; from there on the timeline tells whose it is.
    let known = if event.event.kind == EventKind::DecisionMade {
        ""
    } else {
        "decision_id"
    };
    parts.extend(particulars(&event.event.data, known).map(|text| paint.dim(&text)));
    parts.join("  ").trim_end().to_owned()
}

fn style(kind: EventKind) -> Style {
    match kind {
        EventKind::RunWaiting => Style::Yellow,
        EventKind::RunApproved | EventKind::RunCompleted => Style::Green,
        EventKind::RunRefused
        | EventKind::RunFailed
        | EventKind::RunExpired
        | EventKind::ToolDenied
        | EventKind::ContextBlocked
        | EventKind::AccessDenied
        | EventKind::LeaseExpired => Style::Red,
        EventKind::RunQueued | EventKind::CallStarted | EventKind::CallFinished => Style::Cyan,
        _ => Style::Plain,
    }
}

/// `name=value` for each particular but the one that is known; the one for people comes last and bare.
fn particulars(data: &Value, known: &str) -> Option<String> {
    let members = data.as_object()?;
    let mut words: Vec<String> = members
        .iter()
        .filter(|(name, value)| *name != "message" && *name != known && !says_nothing(value))
        .map(|(name, value)| format!("{}={}", visible(name), value_of(value)))
        .collect();
    words.extend(
        members
            .get("message")
            .and_then(Value::as_str)
            .map(|message| format!("({})", visible(message))),
    );
    (!words.is_empty()).then(|| words.join(" "))
}

fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn value_of(value: &Value) -> String {
    match value {
        Value::String(text) => match text.strip_prefix("sha256:") {
            Some(hex) if hex.len() == 64 => {
                format!("sha256:{}…", visible(&hex.chars().take(8).collect::<String>()))
            }
            _ => visible(text).to_string(),
        },
        Value::Array(items) => items.iter().map(value_of).collect::<Vec<_>>().join(","),
        // A call is known by its tool.
        Value::Object(members) if members.contains_key("tool") => value_of(&members["tool"]),
        other => visible(&other.to_string()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Actor, EventId, NewEvent, RunId};
    use serde_json::json;
    use time::macros::datetime;

    fn event(data: Value) -> Event {
        let event = NewEvent {
            id: EventId::from(uuid::Uuid::from_u128(1)),
            run: Some(RunId::from(uuid::Uuid::from_u128(2))),
            kind: EventKind::RunRefused,
            actor: Some(Actor::User("gina".to_owned())),
            at: datetime!(2026-12-01 05:10:03 UTC),
            data,
        };
        Event {
            position: 7,
            event,
            published_at: None,
            wakes: 0,
        }
    }

    #[test]
    fn a_line_says_when_what_by_whom_and_why() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let data = json!({ "code": "stale_turn", "digest": digest, "calls": [{"id": "1", "tool": "a"}, {"tool": "b"}], "message": "too late", "x": null, "y": [] });
        assert_eq!(
            line(&event(data.clone()), OfRun::Known, Paint::PLAIN),
            "2026-12-01 05:10:03Z  run.refused               by user:gina  \
             calls=a,b code=stale_turn digest=sha256:abababab… (too late)"
        );
        assert!(
            line(&event(data), OfRun::Named, Paint::PLAIN).contains("00000000-0000-0000-0000-000000000002")
        );
    }

    #[test]
    fn case_e6_a_line_stays_one_line() {
        let shown = line(
            &event(json!({ "tool": "re\u{200b}fund\nrun.approved" })),
            OfRun::Known,
            Paint::PLAIN,
        );
        assert!(shown.ends_with("tool=re\\u{200b}fund\\nrun.approved"), "{shown}");
    }
}
