//! `demo --script`: plays the steps through the very path that a person's decision takes, and checks each against what the
//! store and the ledger say after it.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::script::{Expected, Named, STEPS, Step};
use super::seed::{Story, WaitingRun};
use crate::cli::exit::{Exit, Fault};
use crate::cli::paint::Style;
use crate::cli::screen::Screen;
use crate::clock::Clock;
use crate::model::{
    Actor, Decision, DecisionId, DecisionStatus, EventId, EventKind, NewEvent, RunStatus, TurnDigest, Verdict,
};
use crate::store::Opened;

/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Plays all steps. The first that comes out otherwise fails the demo.
pub(super) async fn play(
    opened: &Opened,
    clock: &dyn Clock,
    runs: &[WaitingRun],
    screen: &Screen,
) -> anyhow::Result<Exit> {
    for (number, step) in STEPS.iter().enumerate() {
        let outcome = take(opened, clock, runs, step).await;
        let came_out = outcome.is_ok();
        let said = match &outcome {
            Ok(said) => said.clone(),
            Err(error) => format!("{error:#}"),
        };
        screen.answer(
            || json!({ "step": number + 1, "title": step.title, "outcome": said, "proves": step.proves, "as_expected": came_out }),
            |paint| {
                let mark = if came_out { paint.apply(Style::Green, "ok") } else { paint.apply(Style::Red, "DIFFERS") };
                format!(
                    "{:>2}. {}\n    {mark}  {said}\n    {}\n\n",
                    number + 1,
                    paint.bold(step.title),
                    paint.dim(&format!("proves: {}", step.proves)),
                )
            },
        )?;
        outcome
            .map_err(|error| Fault::new(Exit::Failed, format!("step {} differs: {error:#}", number + 1)))?;
    }
    screen.answer(
        || json!({ "steps": STEPS.len(), "as_expected": true }),
        |paint| {
            format!(
                "{}\n",
                paint.bold(&format!("All {} steps came out as they must.", STEPS.len()))
            )
        },
    )?;
    Ok(Exit::Done)
}

async fn take(
    opened: &Opened,
    clock: &dyn Clock,
    runs: &[WaitingRun],
    step: &Step,
) -> anyhow::Result<String> {
    let run = find(runs, step.on)?;
    let digest = match step.names {
        Named::Seeded => run.turn.digest(),
        Named::WithDigestOf(story) => find(runs, story)?.turn.digest(),
    };
    let before = opened
        .store
        .run_with_state(run.id())
        .await?
        .context("the run is gone")?
        .1;
    let id = decide(opened, clock, run, digest, step.verdict, step.who.parse()?).await?;
    let status = concluded(opened, id).await?;
    let said = match step.expected {
        Expected::Completed => {
            anyhow::ensure!(
                status == DecisionStatus::Standing,
                "the decision is {}",
                shown(&status)
            );
            settled(opened, run).await?
        }
        Expected::Refused { code, reason } => {
            anyhow::ensure!(
                status == DecisionStatus::Refused(code.to_owned()),
                "the decision is {}",
                shown(&status)
            );
            let (waiting, state) = opened
                .store
                .run_with_state(run.id())
                .await?
                .context("the run is gone")?;
            anyhow::ensure!(
                waiting.status == RunStatus::WaitingForApproval,
                "the run is {}",
                waiting.status
            );
            anyhow::ensure!(state == before, "the refusal changed the state");
            let told = refusal_of(opened, run, id).await?;
            anyhow::ensure!(
                told["reason"].as_str() == reason,
                "the reason is {}",
                told["reason"]
            );
            format!(
                "refused: {code} - {}",
                told["message"].as_str().unwrap_or_default()
            )
        }
        Expected::StoodBefore | Expected::OtherStands => {
            let late = DecisionStatus::Refused("already_decided".to_owned());
            anyhow::ensure!(status == late, "the decision is {}", shown(&status));
            match step.expected {
                Expected::StoodBefore => "already decided so; nothing happens again".to_owned(),
                _ => format!(
                    "refused: {}",
                    refusal_of(opened, run, id).await?["message"]
                        .as_str()
                        .unwrap_or_default()
                ),
            }
        }
    };
    let refunds = opened.ledger.refunds().await?;
    anyhow::ensure!(
        refunds == step.refunds,
        "the ledger has {refunds} refunds, not {}",
        step.refunds
    );
    Ok(said)
}

fn find(runs: &[WaitingRun], story: Story) -> anyhow::Result<&WaitingRun> {
    runs.iter()
        .find(|run| run.story == story)
        .context("the demo has no such run")
}

async fn decide(
    opened: &Opened,
    clock: &dyn Clock,
    run: &WaitingRun,
    digest: TurnDigest,
    verdict: Verdict,
    actor: Actor,
) -> anyhow::Result<DecisionId> {
    let decision = Decision {
        id: clock.new_id().into(),
        run: run.id(),
        turn: Some(run.turn.ordinal),
        digest: Some(digest),
        verdict,
        actor: actor.clone(),
        comment: None,
        status: DecisionStatus::Pending,
        decided_at: clock.now(),
    };
    let event = NewEvent {
        id: EventId::from(decision.id.uuid()),
        run: Some(run.id()),
        kind: EventKind::DecisionMade,
        actor: Some(actor),
        at: decision.decided_at,
        data: json!({ "decision_id": decision.id, "turn": decision.turn, "digest": decision.digest, "verdict": verdict.as_str() }),
    };
    opened.store.record_decision(&decision, &event).await?;
    Ok(decision.id)
}

async fn concluded(opened: &Opened, id: DecisionId) -> anyhow::Result<DecisionStatus> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let decision = opened.store.decision(id).await?.context("the decision is gone")?;
        if decision.status != DecisionStatus::Pending {
            return Ok(decision.status);
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "nobody took the decision within {} s",
            PATIENCE.as_secs()
        );
        sleep(Duration::from_millis(20)).await;
    }
}

/// The run has completed; what the model was given and said last.
async fn settled(opened: &Opened, run: &WaitingRun) -> anyhow::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = opened.store.run(run.id()).await?.context("the run is gone")?;
        match now.status {
            RunStatus::Completed => break,
            status if status.is_final() || status == RunStatus::Failed => {
                anyhow::bail!(
                    "the run is {status}: {}",
                    now.failure.map(|failure| failure.to_string()).unwrap_or_default()
                )
            }
            _ => {}
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "the run was not settled within {} s",
            PATIENCE.as_secs()
        );
        sleep(Duration::from_millis(20)).await;
    }
    let calls = opened.store.calls(run.id(), None).await?;
    let calls: Vec<_> = calls
        .iter()
        .map(|call| format!("{} {}", call.tool, call.status.as_str()))
        .collect();
    Ok(format!(
        "stands; as {}: {}; the run is completed",
        run.new.run.owner,
        calls.join(", ")
    ))
}

async fn refusal_of(opened: &Opened, run: &WaitingRun, id: DecisionId) -> anyhow::Result<serde_json::Value> {
    let events = opened.store.events(Some(run.id()), 0, 1_000).await?;
    let told = events.into_iter().find(|event| {
        event.event.kind == EventKind::RunRefused && event.event.data["decision_id"] == json!(id)
    });
    Ok(told.context("the refusal was not told")?.event.data)
}

fn shown(status: &DecisionStatus) -> String {
    match status {
        DecisionStatus::Refused(code) => format!("refused ({code})"),
        other => other.as_str().to_owned(),
    }
}
