//! The card of a waiting turn: all that a person sees before they decide. It shows the very text that the
//! digest covers and would run, each character of it, and marks what cannot be seen.
//!
//! The arguments stand behind a gutter, so that no line of theirs can pass for a line of the card: `│` begins a
//! line of the text, `┊` goes on with one that was too long.

use time::OffsetDateTime;

use super::layout::{cut, size};
use super::moment::{relative, stamp};
use super::paint::{Paint, Style};
use crate::catalogue::Catalogue;
use crate::model::{Effect, PendingCall, Turn, visible};

/// How wide arguments are shown, in cells.
const ARGUMENT_CELLS: usize = 96;
/// How much of one call's arguments is shown unless all is asked for, in bytes.
const SHOWN_BYTES: usize = 8 << 10;

/// How much of long arguments is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The beginning, and how much more there is.
    Beginning,
    /// All.
    Whole,
}

/// What a card is made of, besides the turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'s> {
    /// The current catalogue, if there is one.
    pub catalogue: Option<&'s Catalogue>,
    /// Until when the turn waits.
    pub deadline: Option<OffsetDateTime>,
    /// The time.
    pub now: OffsetDateTime,
    /// How much of the arguments is shown.
    pub extent: Extent,
}

/// The card, each line ended.
pub(super) fn card(turn: &Turn, around: Surroundings<'_>, paint: Paint) -> String {
    let mut text = paint.apply(
        Style::Yellow,
        &format!("Turn {} waits for a decision", turn.ordinal),
    );
    if let Some(deadline) = around.deadline {
        let until = format!("  until {} ({})", stamp(deadline), relative(deadline, around.now));
        text.push_str(&paint.dim(&until));
    }
    text.push_str(&format!("\n{} {}\n", paint.dim("digest"), turn.digest()));
    for (index, call) in turn.calls.iter().enumerate() {
        text.push('\n');
        text.push_str(&of_call(index + 1, turn.calls.len(), call, around, paint));
    }
    text
}

fn of_call(number: usize, of: usize, call: &PendingCall, around: Surroundings<'_>, paint: Paint) -> String {
    let label = |name: &str| paint.dim(&format!("  {name:<11}"));
    let mut text = format!(
        "{} {}  {}\n",
        paint.dim(&format!("{number}/{of}")),
        paint.bold(&call.tool.to_string()),
        paint.dim(&format!("call {}", call.id))
    );
    let (effect, data) = declared(call, around.catalogue, paint);
    text.push_str(&format!("{}{effect}\n{}{data}\n", label("effect"), label("data")));
    text.push_str(&format!("{}{}\n", label("arguments"), size(call.arguments.len())));
    text.push_str(&of_arguments(&call.arguments, around.extent, paint));
    if hides_something(call) {
        let warning = "  ! holds characters that cannot be seen; they are shown as \\u{…}. Look twice.";
        text.push_str(&paint.apply(Style::Red, warning));
        text.push('\n');
    }
    text
}

fn declared(call: &PendingCall, catalogue: Option<&Catalogue>, paint: Paint) -> (String, String) {
    let Some(catalogue) = catalogue else {
        let unknown = || paint.dim("not known: no catalogue has been applied");
        return (unknown(), unknown());
    };
    let (style, meaning) = match catalogue.effect_of(&call.tool) {
        Effect::ReadOnly => (Style::Green, "changes nothing"),
        Effect::IdempotentWrite => (Style::Yellow, "writes; may be repeated"),
        Effect::NonIdempotentWrite => (Style::Red, "writes; must not happen twice"),
    };
    let effect = paint.apply(style, catalogue.effect_of(&call.tool).as_str());
    match catalogue.tool(&call.tool) {
        Some(tool) => (
            format!("{effect} ({meaning})"),
            tool.data_class.as_str().to_owned(),
        ),
        None => (
            format!("{effect} (no such tool in the catalogue; counted as the worst)"),
            paint.dim("not declared"),
        ),
    }
}

fn of_arguments(arguments: &str, extent: Extent, paint: Paint) -> String {
    let shown = match extent {
        Extent::Whole => arguments,
        Extent::Beginning => &arguments[..arguments.floor_char_boundary(SHOWN_BYTES)],
    };
    let mut text = String::new();
    for line in shown.split('\n') {
        let line = visible(line).to_string();
        for (index, piece) in cut(&line, ARGUMENT_CELLS).into_iter().enumerate() {
            let gutter = if index == 0 { "│" } else { "┊" };
            text.push_str(&format!("  {} {piece}\n", paint.dim(gutter)));
        }
    }
    let hidden = arguments.len() - shown.len();
    if hidden > 0 {
        let note = format!(
            "  … {} more, not shown. See all of it with --full before you decide.",
            size(hidden)
        );
        text.push_str(&paint.apply(Style::Red, &note));
        text.push('\n');
    }
    text
}

/// Whether a call holds characters that cannot be seen. Line breaks and tabs are usual in arguments and alone
/// are no reason to be careful; they are shown all the same.
pub(super) fn hides_something(call: &PendingCall) -> bool {
    let arguments = call.arguments.split(['\n', '\t']);
    [call.id.as_str(), call.tool.as_str()]
        .into_iter()
        .chain(arguments)
        .any(|text| visible(text).is_suspicious())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;
    use crate::model::TurnOrdinal;
    use time::macros::datetime;

    fn shown(tool: &str, arguments: &str, extent: Extent) -> String {
        let call = PendingCall {
            id: "c1".into(),
            tool: tool.into(),
            arguments: arguments.to_owned(),
        };
        let catalogue = sample::catalogue();
        let now = datetime!(2026-12-01 05:10:03 UTC);
        let deadline = Some(now + time::Duration::days(7));
        let around = Surroundings {
            catalogue: Some(&catalogue),
            deadline,
            now,
            extent,
        };
        card(
            &Turn {
                ordinal: TurnOrdinal(2),
                calls: vec![call],
            },
            around,
            Paint::PLAIN,
        )
    }

    #[test]
    fn a_card_shows_what_would_run() {
        let text = shown(
            "refund",
            r#"{"id":9007199254740993,"n":1e400,"z":-0,"f":1.0}"#,
            Extent::Beginning,
        );
        let (head, rest) = text.split_once('\n').unwrap();
        assert_eq!(
            head,
            "Turn 2 waits for a decision  until 2026-12-08 05:10:03Z (in 7 d)"
        );
        assert!(rest.starts_with("digest sha256:"), "{text}");
        assert!(text.contains("1/1 refund  call c1\n"), "{text}");
        assert!(
            text.contains("  │ {\"id\":9007199254740993,\"n\":1e400,\"z\":-0,\"f\":1.0}\n"),
            "{text}"
        );
        assert!(!text.contains('!'), "{text}");
    }

    #[test]
    fn case_e6_what_cannot_be_seen_is_shown_and_flagged() {
        let text = shown(
            "re\u{200b}fund",
            "{\"to\":\"\u{202e}\u{2028}\u{1b}[2K\"}",
            Extent::Beginning,
        );
        assert!(text.contains("re\\u{200b}fund"), "{text}");
        assert!(text.contains(r#"{"to":"\u{202e}\u{2028}\u{1b}[2K"}"#), "{text}");
        assert!(text.contains("  ! holds characters"), "{text}");
        assert!(text.contains("no such tool in the catalogue"), "{text}");
    }

    #[test]
    fn no_line_of_the_arguments_can_pass_for_the_card() {
        let forged = format!("{{\n}}{}digest sha256:0000\n", " ".repeat(200));
        let text = shown("read", &forged, Extent::Beginning);
        let lines = text
            .lines()
            .skip_while(|line| !line.contains("arguments"))
            .skip(1);
        for line in lines {
            assert!(line.starts_with("  │ ") || line.starts_with("  ┊ "), "{line:?}");
        }
    }

    #[test]
    fn long_arguments_are_cut_aloud() {
        let long = "é".repeat(20_000);
        let beginning = shown("read", &long, Extent::Beginning);
        assert!(beginning.contains("more, not shown"), "{beginning}");
        assert!(!shown("read", &long, Extent::Whole).contains("not shown"));
        assert_eq!(shown("read", &long, Extent::Whole).matches('é').count(), 20_000);
    }
}
