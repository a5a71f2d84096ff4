//! `countersign runs show`: a run as a person needs it who is about to decide: the turn that waits, then who
//! decided what, what was called, and what happened.

use clap::Args;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::style_of;
use crate::cli::card::{Extent, Surroundings, card};
use crate::cli::exit::Exit;
use crate::cli::forms;
use crate::cli::layout::{Cell, Table};
use crate::cli::moment::relative;
use crate::cli::paint::{Paint, Style};
use crate::cli::session::{Session, no_such_run};
use crate::cli::timeline::{OfRun, line};
use crate::gate::Catalogued;
use crate::model::{
    CallRecord, CallStatus, Decision, DecisionStatus, Event, Run, RunId, RunState, RunStatus, Turn, Verdict,
    visible,
};

/// The most events that are shown; `events follow` shows all.
const EVENTS: u32 = 200;
/// How much of a call's result is shown, in characters.
const RESULT_CHARS: usize = 100;

/// What `runs show` takes.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The run.
    run: RunId,
    /// Show all of long arguments.
    #[arg(long)]
    full: bool,
}

/// A run and what its state says of it.
pub(in crate::cli) struct View {
    /// The run.
    pub run: Run,
    /// The turn that waits, if one does.
    pub waiting: Option<Turn>,
    /// The model's answer, if the run is completed.
    pub answer: Option<String>,
    /// Why the state cannot be read, if it cannot.
    pub state_error: Option<String>,
    /// The catalogue of the moment, if it can be read.
    pub at: Option<Catalogued>,
}

/// Looks at a run.
///
/// # Errors
/// There is no such run, or the database could not be read.
pub(in crate::cli) async fn view(session: &Session, id: RunId) -> anyhow::Result<View> {
    let (run, sealed) = session
        .store
        .run_with_state(id)
        .await?
        .ok_or_else(|| no_such_run(id))?;
    // A catalogue that cannot be read must not hide the run.
    let at = session.current_catalogue().await.unwrap_or_default();
    let mut view = View {
        run,
        waiting: None,
        answer: None,
        state_error: None,
        at,
    };
    match RunState::open(&sealed, id, &view.run.owner, view.run.turn) {
        Ok(state) if view.run.status == RunStatus::WaitingForApproval => match state.pending_turn() {
            Ok(turn) => view.waiting = turn,
            Err(corrupt) => view.state_error = Some(corrupt.to_string()),
        },
        Ok(state) if view.run.status == RunStatus::Completed => {
            view.answer = state
                .transcript
                .messages()
                .last()
                .and_then(|message| message.text());
        }
        Ok(_) => {}
        Err(corrupt) => view.state_error = Some(corrupt.to_string()),
    }
    Ok(view)
}

impl View {
    /// The turn that waits, for machines.
    pub(in crate::cli) fn waiting_form(&self) -> Option<Value> {
        let catalogue = self.at.as_ref().map(|at| at.catalogue.as_ref());
        self.waiting
            .as_ref()
            .map(|turn| forms::waiting(turn, self.run.deadline, catalogue))
    }

    /// The card of the turn that waits, and the commands that decide it.
    pub(in crate::cli) fn card(&self, session: &Session, extent: Extent, paint: Paint) -> Option<String> {
        let turn = self.waiting.as_ref()?;
        let catalogue = self.at.as_ref().map(|at| at.catalogue.as_ref());
        let around = Surroundings {
            catalogue,
            deadline: self.run.deadline,
            now: session.now(),
            extent,
        };
        let digest = turn.digest();
        let mut text = card(turn, around, paint);
        text.push_str(&format!("\n{}\n", paint.dim("decide it, as yourself:")));
        for verdict in [Verdict::Approve, Verdict::Deny] {
            let command = session
                .program
                .decide(verdict, self.run.id, turn.ordinal, &digest, "user:YOU");
            text.push_str(&format!("  {}\n", paint.apply(Style::Cyan, &command)));
        }
        Some(text)
    }
}

pub(super) async fn run(session: &Session, arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let view = view(session, arguments.run).await?;
    let history = History {
        decisions: session.store.decisions(arguments.run).await?,
        calls: session.store.calls(arguments.run, None).await?,
        events: session.store.events(Some(arguments.run), 0, EVENTS).await?,
    };
    let extent = if arguments.full {
        Extent::Whole
    } else {
        Extent::Beginning
    };
    session.screen.answer(
        || history.form(&view),
        |paint| {
            let mut text = heading(&view, session.now(), paint);
            if let Some(card) = view.card(session, extent, paint) {
                text.push_str(&format!("\n{card}"));
            }
            text.push_str(&history.text(session.now(), paint));
            text
        },
    )?;
    Ok(Exit::Done)
}

fn heading(view: &View, now: OffsetDateTime, paint: Paint) -> String {
    let run = &view.run;
    let mut text = format!(
        "{}  {}\n{} {}  {} {}  {} {}\n",
        paint.bold(&format!("Run {}", run.id)),
        paint.apply(style_of(run.status), run.status.as_str()),
        paint.dim("owner"),
        run.owner,
        paint.dim("configuration"),
        visible(&run.configuration),
        paint.dim("created"),
        relative(run.created_at, now),
    );
    if let Some(failure) = &run.failure {
        let told = visible(&failure.to_string()).to_string();
        text.push_str(&format!("{}\n", paint.apply(Style::Red, &told)));
    }
    if let Some(problem) = &view.state_error {
        let told = format!("its state cannot be read: {}", visible(problem));
        text.push_str(&format!("{}\n", paint.apply(Style::Red, &told)));
    }
    if let Some(answer) = &view.answer {
        text.push_str(&format!("\n{}\n", paint.dim("answer")));
        for line in answer.split('\n') {
            text.push_str(&format!("  {} {}\n", paint.dim("│"), visible(line)));
        }
    }
    text
}

/// What has happened to a run.
struct History {
    decisions: Vec<Decision>,
    calls: Vec<CallRecord>,
    events: Vec<Event>,
}

impl History {
    fn form(&self, view: &View) -> Value {
        json!({
            "run": forms::run(&view.run),
            "waiting": view.waiting_form(),
            "answer": view.answer,
            "state_error": view.state_error,
            "decisions": self.decisions.iter().map(forms::decision).collect::<Vec<Value>>(),
            "calls": self.calls.iter().map(forms::call).collect::<Vec<Value>>(),
            "events": self.events.iter().map(forms::event).collect::<Vec<Value>>(),
        })
    }

    fn text(&self, now: OffsetDateTime, paint: Paint) -> String {
        let mut text = String::new();
        if !self.decisions.is_empty() {
            text.push_str(&format!(
                "\n{}\n{}",
                paint.bold("Decisions"),
                decisions(&self.decisions, now, paint)
            ));
        }
        if !self.calls.is_empty() {
            text.push_str(&format!(
                "\n{}\n{}",
                paint.bold("Calls"),
                calls(&self.calls, paint)
            ));
        }
        text.push_str(&format!("\n{}\n", paint.bold("Timeline")));
        for event in &self.events {
            text.push_str(&format!("{}\n", line(event, OfRun::Known, paint)));
        }
        if self.events.len() == EVENTS as usize {
            text.push_str("… and more: `countersign events follow RUN --once` shows all\n");
        }
        text
    }
}

fn decisions(decisions: &[Decision], now: OffsetDateTime, paint: Paint) -> String {
    let mut table = Table::with_headings(["TURN", "VERDICT", "BY", "STATUS", "WHEN", "COMMENT"]);
    for decision in decisions {
        let (style, status) = match &decision.status {
            DecisionStatus::Refused(code) => (Style::Red, format!("refused ({})", visible(code))),
            DecisionStatus::Standing => (Style::Green, "standing".to_owned()),
            DecisionStatus::Pending => (Style::Yellow, format!("pending ({})", decision.id)),
            DecisionStatus::Revoked => (Style::Dim, "revoked".to_owned()),
        };
        table.row([
            decision
                .turn
                .map_or_else(|| "none".to_owned(), |turn| turn.to_string())
                .into(),
            decision.verdict.as_str().into(),
            decision.actor.to_string().into(),
            Cell::new(style, status),
            relative(decision.decided_at, now).into(),
            visible(decision.comment.as_deref().unwrap_or_default())
                .to_string()
                .into(),
        ]);
    }
    table.render(paint)
}

/// The calls of a turn and what came of each.
pub(in crate::cli) fn calls(calls: &[CallRecord], paint: Paint) -> String {
    let mut table = Table::with_headings(["TURN", "CALL", "TOOL", "STATUS", "RESULT"]);
    for call in calls {
        let style = match call.status {
            CallStatus::Succeeded => Style::Green,
            CallStatus::Pending | CallStatus::Started => Style::Cyan,
            CallStatus::Failed | CallStatus::Refused | CallStatus::Denied => Style::Red,
        };
        table.row([
            call.turn.to_string().into(),
            call.call.to_string().into(),
            call.tool.to_string().into(),
            Cell::new(style, call.status.as_str()),
            beginning(call.result.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table.render(paint)
}

/// The beginning of a text, in one line.
fn beginning(text: &str) -> String {
    let end = text
        .char_indices()
        .nth(RESULT_CHARS)
        .map_or(text.len(), |(at, _)| at);
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", visible(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Actor, DecisionId, TurnOrdinal};
    use time::macros::datetime;

    #[test]
    fn case_e6_a_comment_is_shown_in_one_line() {
        let now = datetime!(2026-12-01 05:10:03 UTC);
        let decision = Decision {
            id: DecisionId::from(uuid::Uuid::from_u128(1)),
            run: RunId::from(uuid::Uuid::from_u128(2)),
            turn: Some(TurnOrdinal(1)),
            digest: None,
            verdict: Verdict::Deny,
            actor: Actor::User("ada".to_owned()),
            comment: Some("no\u{202e}\nstanding".to_owned()),
            status: DecisionStatus::Refused("stale_turn".to_owned()),
            decided_at: now,
        };
        let shown = decisions(&[decision], now, Paint::PLAIN);
        assert_eq!(shown.lines().count(), 2);
        assert!(
            shown.ends_with("refused (stale_turn)  just now  no\\u{202e}\\nstanding\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_long_result_is_cut() {
        assert_eq!(beginning("short\n"), "short\\n");
        assert_eq!(beginning(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
    }
}
