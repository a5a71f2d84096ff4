//! What became of a decision: waited for by asking the store, and told.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::advice::{advice, name_of};
use crate::cli::card::Extent;
use crate::cli::exit::Exit;
use crate::cli::forms;
use crate::cli::paint::{Paint, Style};
use crate::cli::runs::{View, calls, view};
use crate::cli::session::Session;
use crate::model::{CallRecord, Decision, DecisionStatus, EventKind, RunStatus, Verdict, visible};
use crate::store::StoreError;

/// How often the store is asked.
const POLL: Duration = Duration::from_millis(100);
/// How many events are read at a time.
const PAGE: u32 = 500;
/// The code that is no fault where the same verdict stands.
const ALREADY_DECIDED: &str = "already_decided";

/// Tells that the decision is recorded, and that nobody waits for more.
pub(super) fn recorded(session: &Session, decision: &Decision) -> anyhow::Result<Exit> {
    session.screen.answer(
        || json!({ "decision": forms::decision(decision), "outcome": "pending", "refusal": null }),
        |paint| {
            format!(
                "Decision {} is recorded. A worker takes it from here.\n{}\n",
                decision.id,
                paint.dim(&session.program.with(&format!("runs show {}", decision.run)))
            )
        },
    )?;
    Ok(Exit::Done)
}

/// Waits for what becomes of the decision, and, where it stands, of the run. Then tells it.
pub(super) async fn wait(session: &Session, decision: Decision, patience: Duration) -> anyhow::Result<Exit> {
    let until = Instant::now() + patience;
    let recorded = format!(
        "decision {} is recorded, but what became of it could not be read",
        decision.id
    );
    let (decision, view) = watch(session, decision, until).await.context(recorded)?;
    let calls = match (&decision.status, decision.turn) {
        (DecisionStatus::Standing, Some(turn)) => session.store.calls(decision.run, Some(turn)).await?,
        _ => Vec::new(),
    };
    let told = Told {
        refusal: refusal(session, &decision).await?,
        decision,
        calls,
        view,
    };
    session
        .screen
        .answer(|| told.form(), |paint| told.text(session, paint))?;
    Ok(told.exit())
}

async fn watch(
    session: &Session,
    mut decision: Decision,
    until: Instant,
) -> anyhow::Result<(Decision, View)> {
    loop {
        match session.store.decision(decision.id).await {
            Ok(read) => decision = read.unwrap_or(decision),
            Err(error) if error.is_transient() && Instant::now() < until => {}
            Err(error) => return Err(error.into()),
        }
        let settled = match &decision.status {
            DecisionStatus::Pending => false,
            DecisionStatus::Standing => is_at_rest(session, &decision).await?,
            DecisionStatus::Refused(_) | DecisionStatus::Revoked => true,
        };
        if settled || Instant::now() >= until {
            let view = view(session, decision.run).await?;
            return Ok((decision, view));
        }
        sleep(POLL).await;
    }
}

/// Whether the run has come to an end or waits again.
async fn is_at_rest(session: &Session, decision: &Decision) -> Result<bool, StoreError> {
    let run = session.store.run(decision.run).await?;
    Ok(run.is_none_or(|run| !matches!(run.status, RunStatus::Running | RunStatus::Queued)))
}

/// The particulars of a refusal, as the gate kept them.
async fn refusal(session: &Session, decision: &Decision) -> anyhow::Result<Option<Value>> {
    let DecisionStatus::Refused(code) = &decision.status else {
        return Ok(None);
    };
    let id = json!(decision.id);
    let mut after = 0;
    loop {
        let page = session.store.events(Some(decision.run), after, PAGE).await?;
        let of_decision = page
            .iter()
            .map(|event| &event.event)
            .find(|event| event.kind == EventKind::RunRefused && event.data.get("decision_id") == Some(&id));
        if let Some(event) = of_decision {
            return Ok(Some(event.data.clone()));
        }
        match page.last() {
            Some(last) => after = last.position,
            None => return Ok(Some(untold(session, decision, code).await?)),
        }
    }
}

/// A refusal of which no event tells: the same verdict stood, or the event could not be recorded.
async fn untold(session: &Session, decision: &Decision, code: &str) -> Result<Value, StoreError> {
    let mut refusal = json!({ "code": code });
    if let (ALREADY_DECIDED, Some(turn)) = (code, decision.turn) {
        let standing = session.store.standing(decision.run, turn).await?;
        refusal["stands"] = standing.map(|standing| standing.verdict.as_str()).into();
    }
    Ok(refusal)
}

/// A decision, what became of it, and the run.
struct Told {
    decision: Decision,
    /// The calls of its turn, if it stands.
    calls: Vec<CallRecord>,
    refusal: Option<Value>,
    view: View,
}

impl Told {
    fn refusal_text(&self, member: &str) -> Option<&str> {
        self.refusal.as_ref()?.get(member)?.as_str()
    }

    /// Whether what was wanted is so already: the same verdict stands.
    fn is_no_fault(&self) -> bool {
        self.refusal_text("code") == Some(ALREADY_DECIDED)
            && self.refusal_text("stands") == Some(self.decision.verdict.as_str())
    }

    fn exit(&self) -> Exit {
        match &self.decision.status {
            DecisionStatus::Standing => Exit::Done,
            DecisionStatus::Refused(_) if self.is_no_fault() => Exit::Done,
            DecisionStatus::Refused(_) | DecisionStatus::Revoked => Exit::Refused,
            DecisionStatus::Pending => Exit::StillPending,
        }
    }

    fn form(&self) -> Value {
        let refusal = self.refusal.clone().map(|mut refusal| {
            let advice = self.refusal_text("code").and_then(advice);
            refusal["who_can_act"] = advice.map(|advice| name_of(advice.who)).into();
            refusal["next"] = advice.map(|advice| advice.text).into();
            refusal
        });
        json!({
            "decision": forms::decision(&self.decision),
            "outcome": self.decision.status.as_str(),
            "refusal": refusal,
            "calls": self.calls.iter().map(forms::call).collect::<Vec<Value>>(),
            "run": forms::run(&self.view.run),
            "waiting": self.view.waiting_form(),
            "answer": self.view.answer,
        })
    }

    fn text(&self, session: &Session, paint: Paint) -> String {
        let mut text = match &self.decision.status {
            DecisionStatus::Standing => self.stands(paint),
            DecisionStatus::Refused(code) => self.refused(code, paint),
            DecisionStatus::Revoked => {
                format!("{}\n", paint.apply(Style::Red, "The decision was taken back."))
            }
            DecisionStatus::Pending => self.pending(session, paint),
        };
        text.push_str(&self.run_now(paint));
        if let Some(card) = self.view.card(session, Extent::Beginning, paint) {
            text.push_str(&format!("\n{card}"));
        }
        text
    }

    fn stands(&self, paint: Paint) -> String {
        let (actor, owner) = (&self.decision.actor, &self.view.run.owner);
        let (style, done) = match self.decision.verdict {
            Verdict::Approve => (Style::Green, format!("Approved by {actor}, to run as {owner}.")),
            Verdict::Deny => (
                Style::Yellow,
                format!("Denied by {actor}: none of the calls was executed."),
            ),
        };
        let mut text = format!("{}\n", paint.apply(style, &done));
        if self.decision.verdict == Verdict::Approve {
            text.push_str(&calls(&self.calls, paint));
        }
        text
    }

    fn refused(&self, code: &str, paint: Paint) -> String {
        if self.is_no_fault() {
            let same = format!(
                "Decided before, with the same verdict: {}.",
                self.decision.verdict
            );
            return format!("{}\n", paint.apply(Style::Green, &same));
        }
        let mut text = paint.apply(Style::Red, &format!("Refused: {}", visible(code)));
        text.push('\n');
        if let Some(message) = self.refusal_text("message") {
            text.push_str(&format!("{} {}\n", paint.dim("why"), visible(message)));
        }
        if let Some(advice) = advice(code) {
            text.push_str(&format!("{} {}\n", paint.dim("next"), advice.text));
        }
        text.push_str("Nothing was executed because of this decision.\n");
        text
    }

    fn pending(&self, session: &Session, paint: Paint) -> String {
        let revoke = session.program.with(&format!(
            "decide revoke {} --as {}",
            self.decision.id, self.decision.actor
        ));
        format!(
            "{}\n{} is a worker running? `countersign serve` starts one\n{} {revoke}\n",
            paint.apply(Style::Yellow, "Recorded, but no worker has taken it yet."),
            paint.dim("check"),
            paint.dim("undo"),
        )
    }

    fn run_now(&self, paint: Paint) -> String {
        let run = &self.view.run;
        let mut text = format!("{} {} is {}", paint.dim("run"), run.id, run.status);
        if let Some(failure) = &run.failure {
            text.push_str(&format!(": {}", visible(&failure.to_string())));
        }
        text.push('\n');
        for line in self.view.answer.iter().flat_map(|answer| answer.split('\n')) {
            text.push_str(&format!("  {} {}\n", paint.dim("│"), visible(line)));
        }
        text
    }
}
