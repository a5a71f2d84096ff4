//! `countersign decide …`: writes a decision, as every surface does, and waits for what becomes of it.
//!
//! What is written is a row and the event that becomes its job, in one transaction; the event's id is the
//! decision's. Whether the decision stands is judged by a worker at the claim, never here.

mod advice;
mod outcome;
mod revoke;
mod submit;
mod verdict;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::Globals;
use super::exit::Exit;
use super::session::{Session, no_such_run};
use crate::declaration::parse_duration;
use crate::model::{
    Actor, Decision, DecisionId, DecisionRequest, DecisionStatus, EventId, EventKind, NewEvent, RunId,
    Verdict,
};

/// What can be done about a turn.
#[derive(Debug, Subcommand)]
pub enum DecideCommand {
    /// Release the calls of the turn that waits. They run as the run's owner.
    Approve(verdict::VerdictArguments),
    /// Refuse the calls of the turn that waits. None of them runs; the model is told.
    Deny(verdict::VerdictArguments),
    /// Decide as a JSON document says.
    Submit(submit::SubmitArguments),
    /// Take a decision back that nobody has used yet.
    Revoke(revoke::RevokeArguments),
}

/// Said below the help of every command that takes `--as`.
pub(super) const ABOUT_AS: &str = "--as is for operators who already hold the database's credentials: the actor is \
    believed, not checked. What the actor may decide is checked by the gates, as everywhere.\n\n\
    Exit codes: 0 the decision stands (or the same verdict stood before), 1 failed, 2 usage, 3 refused, 4 not found, \
    5 recorded but not taken by a worker in time, 6 too late.";

/// How long to wait for what becomes of a decision.
#[derive(Debug, Args)]
pub struct Waiting {
    /// Wait so long for what becomes of the decision.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    wait: Duration,
    /// Do not wait: the decision is recorded, and that is all.
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
}

pub(super) async fn run(globals: &Globals, command: &DecideCommand) -> anyhow::Result<Exit> {
    match command {
        DecideCommand::Approve(arguments) => verdict::run(globals, Verdict::Approve, arguments).await,
        DecideCommand::Deny(arguments) => verdict::run(globals, Verdict::Deny, arguments).await,
        DecideCommand::Submit(arguments) => submit::run(globals, arguments).await,
        DecideCommand::Revoke(arguments) => revoke::run(globals, arguments).await,
    }
}

/// Records a decision and, unless told otherwise, waits for its outcome and shows it.
async fn decide(
    session: &Session,
    run: RunId,
    request: DecisionRequest,
    actor: &Actor,
    waiting: &Waiting,
) -> anyhow::Result<Exit> {
    session.store.run(run).await?.ok_or_else(|| no_such_run(run))?;
    let decision = Decision {
        id: DecisionId::from(session.clock.new_id()),
        run,
        turn: Some(request.turn),
        digest: Some(request.digest),
        verdict: request.verdict,
        actor: actor.clone(),
        comment: request.comment,
        status: DecisionStatus::Pending,
        decided_at: session.now(),
    };
    session.store.record_decision(&decision, &made(&decision)).await?;
    if waiting.no_wait {
        return outcome::recorded(session, &decision);
    }
    outcome::wait(session, decision, waiting.wait).await
}

/// The event that becomes the decision's job.
fn made(decision: &Decision) -> NewEvent {
    NewEvent {
        id: EventId::from(decision.id.uuid()),
        run: Some(decision.run),
        kind: EventKind::DecisionMade,
        actor: Some(decision.actor.clone()),
        at: decision.decided_at,
        data: json!({
            "decision_id": decision.id,
            "turn": decision.turn,
            "digest": decision.digest,
            "verdict": decision.verdict.as_str(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Event, Job};
    use time::macros::datetime;

    #[test]
    fn the_event_of_a_decision_becomes_its_job() {
        let decision = Decision {
            id: DecisionId::from(uuid::Uuid::from_u128(1)),
            run: RunId::from(uuid::Uuid::from_u128(2)),
            turn: None,
            digest: None,
            verdict: Verdict::Approve,
            actor: Actor::User("ada".to_owned()),
            comment: Some("not for the queue".to_owned()),
            status: DecisionStatus::Pending,
            decided_at: datetime!(2026-12-01 05:10:03 UTC),
        };
        let event = made(&decision);
        assert_eq!(event.id.uuid(), decision.id.uuid());
        assert!(!event.data.to_string().contains("not for the queue"));
        let event = Event {
            position: 1,
            event,
            published_at: None,
            wakes: 0,
        };
        assert_eq!(
            Job::of(&event),
            Some(Job::Resume {
                run: decision.run,
                decision: decision.id
            })
        );
    }
}
