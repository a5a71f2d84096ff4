//! Executes one cleared turn, call by call, as the owner. Every call ends with exactly one tool message, in order.
//!
//! A write is durable as started before it leaves (the fence), and its result is durable before anything else
//! is called; the next write's start may share that commit. Reads are made durable with what comes next.

use super::{Place, Progress, World, answer};
use crate::catalogue::ToolKind;
use crate::engine::tools::{Call, CallEnd};
use crate::engine::{Halt, News};
use crate::gate::{Catalogued, Clearance, Cleared};
use crate::model::{
    CallOutcome, CallRecord, CallStatus, DeniedCall, Effect, EventKind, Failure, FailureCode, Message,
    PendingCall, RunState, Turn,
};
use crate::policy::{self, DenyReason};

/// How often a denied call may be asked for again before the run ends.
const DENIED_REPEATS: u32 = 3;

/// The journal rows of a turn that has just been cleared.
pub(super) fn journal(at: &Catalogued, cleared: &Cleared) -> Vec<CallRecord> {
    let turn = cleared.turn();
    (0..)
        .zip(&turn.calls)
        .map(|(position, call)| {
            let effect = at.catalogue.effect_of(&call.tool);
            CallRecord::pending(cleared.run(), turn.ordinal, position, call, effect)
        })
        .collect()
}

/// Executes the turn, or answers it as denied, and adds the tool messages to the state.
///
/// The inner error is the end of the run; the outer one lets the run go.
pub(super) async fn execute(
    place: &Place<'_>,
    world: &mut dyn World,
    cleared: &Cleared,
    mut journal: Vec<CallRecord>,
    state: &mut RunState,
    unsaved: &mut Progress,
) -> Result<Result<(), Failure>, Halt> {
    // A result of a write that is not durable yet.
    let mut owed = false;
    for (record, call) in journal.iter_mut().zip(&cleared.turn().calls) {
        if record.status.is_finished() {
            continue;
        }
        if let Some(outcome) = answered_by_denial(cleared) {
            finish(world, record, outcome, unsaved);
            continue;
        }
        world.check().await?;
        let begun_before =
            record.status == CallStatus::Started && *cleared.clearance() == Clearance::Continued;
        if begun_before && record.effect == Effect::NonIdempotentWrite {
            return Ok(Err(outcome_unknown(record, "its worker was lost")));
        }
        match refused(place, world, call, unsaved).await? {
            Some(Refused::ByPolicy(reason)) if begun_before => {
                finish(world, record, answer::not_repeated(&call.tool, reason), unsaved);
            }
            Some(refused) => finish(world, record, refused.outcome(call), unsaved),
            None if record.effect.is_write() => {
                // The first write's start was committed with the claim; a repeated one's, before its worker was lost.
                if record.status != CallStatus::Started {
                    start(world, record, unsaved);
                    world.save(std::mem::take(unsaved)).await?;
                }
                match make(place, world, call, record).await? {
                    Ok(outcome) => finish(world, record, outcome, unsaved),
                    Err(failure) => return Ok(Err(failure)),
                }
                owed = true;
            }
            None => {
                if std::mem::take(&mut owed) {
                    world.save(std::mem::take(unsaved)).await?;
                }
                start(world, record, unsaved);
                match make(place, world, call, record).await? {
                    Ok(outcome) => finish(world, record, outcome, unsaved),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
        }
    }
    conclude(cleared, &journal, state);
    if owed {
        unsaved.state = Some(state.clone());
        world.save(std::mem::take(unsaved)).await?;
    }
    Ok(Ok(()))
}

/// Closes the rows of a turn whose run ends before any more of it is called: a first write was fenced with the claim.
pub(super) fn refuse_rest(
    world: &mut dyn World,
    cleared: &Cleared,
    mut journal: Vec<CallRecord>,
    reason: &str,
    unsaved: &mut Progress,
) {
    let unfinished = journal.iter_mut().filter(|record| !record.status.is_finished());
    for record in unfinished {
        let begun_before =
            record.status == CallStatus::Started && *cleared.clearance() == Clearance::Continued;
        let outcome = if begun_before {
            answer::not_repeated(&record.tool, reason)
        } else {
            answer::refused(&record.tool, reason)
        };
        finish(world, record, outcome, unsaved);
    }
}

/// Adds one tool message for each call, in order, and remembers what was denied.
fn conclude(cleared: &Cleared, journal: &[CallRecord], state: &mut RunState) {
    for record in journal {
        let content = record.result.as_deref().unwrap_or_default();
        state.transcript.push(Message::tool(&record.call, content));
    }
    for (record, call) in journal.iter().zip(&cleared.turn().calls) {
        let known = state
            .denied
            .iter()
            .any(|denied| (&denied.tool, &denied.arguments) == (&call.tool, &call.arguments));
        if record.status == CallStatus::Denied && !known {
            let denied = DeniedCall {
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                repeats: 0,
            };
            state.denied.push(denied);
        }
    }
}

/// Counts that the model asked again for calls that were denied.
pub(super) fn count_repeats(state: &mut RunState, turn: &Turn) -> Result<(), Failure> {
    for call in &turn.calls {
        let same =
            |denied: &&mut DeniedCall| (&denied.tool, &denied.arguments) == (&call.tool, &call.arguments);
        if let Some(denied) = state.denied.iter_mut().find(same) {
            denied.repeats += 1;
            if denied.repeats > DENIED_REPEATS {
                let detail = format!(
                    "the model asked for a denied call of `{}` again and again",
                    call.tool
                );
                return Err(Failure::new(FailureCode::DeniedCallRepeated, detail));
            }
        }
    }
    Ok(())
}

fn answered_by_denial(cleared: &Cleared) -> Option<CallOutcome> {
    match cleared.clearance() {
        Clearance::Denied { by, comment } => Some(answer::denied(by, comment.as_deref())),
        Clearance::DeniedBefore => Some(answer::denied_before()),
        Clearance::Approved { .. } | Clearance::Unattended | Clearance::Continued => None,
    }
}

/// Why a call is not made.
enum Refused {
    /// The owner may not make it; or there is no owner, and nothing runs under a ghost.
    ByPolicy(&'static str),
    /// Its arguments cannot be read.
    Unreadable(serde_json::Error),
}

impl Refused {
    fn outcome(&self, call: &PendingCall) -> CallOutcome {
        match self {
            Self::ByPolicy(reason) => answer::refused(&call.tool, reason),
            Self::Unreadable(error) => answer::unreadable_arguments(error),
        }
    }
}

/// Asks the policy with what the owner is right now, and looks at the arguments.
async fn refused(
    place: &Place<'_>,
    world: &mut dyn World,
    call: &PendingCall,
    unsaved: &mut Progress,
) -> Result<Option<Refused>, Halt> {
    let owner = world.owner().await?;
    let reason = match &owner {
        None => Some("owner_unresolved"),
        Some(_) => policy::decide(
            &place.at.catalogue,
            &call.tool,
            place.configuration,
            owner.as_ref(),
        )
        .denied()
        .map(DenyReason::as_str),
    };
    if let Some(reason) = reason {
        let data = serde_json::json!({ "call": call.id, "tool": call.tool, "reason": reason });
        unsaved.news.push(News {
            kind: EventKind::ToolDenied,
            data,
        });
        return Ok(Some(Refused::ByPolicy(reason)));
    }
    let readable = serde_json::from_str::<&serde_json::value::RawValue>(&call.arguments);
    Ok(readable.err().map(Refused::Unreadable))
}

/// Makes the call and waits for its end, unless the run must be let go meanwhile.
async fn make(
    place: &Place<'_>,
    world: &mut dyn World,
    call: &PendingCall,
    record: &CallRecord,
) -> Result<Result<CallOutcome, Failure>, Halt> {
    let Some(tool) = place.at.catalogue.tool(&call.tool) else {
        return Ok(Ok(answer::refused(
            &call.tool,
            DenyReason::NotRegistered.as_str(),
        )));
    };
    let caller = match &tool.kind {
        ToolKind::Builtin { .. } => &place.engine.builtin,
        ToolKind::Http(_) => &place.engine.http,
    };
    let limit = place.engine.limits.result_bytes;
    let key = record.idempotency_key();
    let making = caller.call(Call {
        run: place.run.id,
        owner: &place.run.owner,
        call,
        tool,
        idempotency_key: &key,
        result_limit: limit,
        timeout: tool.timeout,
    });
    let end = tokio::select! {
        end = making => end,
        halt = world.abandoned() => return Err(match halt {
            Halt::Stopping => Halt::UnderWay,
            halt => halt,
        }),
    };
    Ok(match end {
        CallEnd::Succeeded(text) | CallEnd::Failed(text) if text.len() > limit => {
            Ok(answer::result_too_large(text.len(), limit))
        }
        CallEnd::Succeeded(content) => Ok(CallOutcome {
            status: CallStatus::Succeeded,
            content,
        }),
        CallEnd::Failed(text) => Ok(answer::failed(&text)),
        CallEnd::Unknown(why) if record.effect == Effect::NonIdempotentWrite => {
            Err(outcome_unknown(record, &why))
        }
        CallEnd::Unknown(why) => Ok(answer::failed(&why)),
    })
}

fn outcome_unknown(record: &CallRecord, why: &str) -> Failure {
    let detail = format!(
        "whether `{}` (call `{}`) took effect is not known: {why}",
        record.tool, record.call
    );
    Failure::new(FailureCode::WriteOutcomeUnknown, detail)
}

fn start(world: &mut dyn World, record: &mut CallRecord, unsaved: &mut Progress) {
    record.status = CallStatus::Started;
    record.started_at = Some(world.now());
    put(record, unsaved);
    unsaved.news.push(call_started(record));
}

/// The news that a call began.
pub(crate) fn call_started(record: &CallRecord) -> News {
    let data = serde_json::json!({
        "turn": record.turn, "call": record.call, "tool": record.tool, "effect": record.effect,
    });
    News {
        kind: EventKind::CallStarted,
        data,
    }
}

fn finish(world: &mut dyn World, record: &mut CallRecord, outcome: CallOutcome, unsaved: &mut Progress) {
    record.status = outcome.status;
    record.result = Some(outcome.content);
    record.finished_at = Some(world.now());
    put(record, unsaved);
    let data = serde_json::json!({
        "turn": record.turn, "call": record.call, "tool": record.tool, "status": record.status.as_str(),
    });
    unsaved.news.push(News {
        kind: EventKind::CallFinished,
        data,
    });
}

fn put(record: &CallRecord, unsaved: &mut Progress) {
    // A statement must not touch the same row twice.
    unsaved
        .calls
        .retain(|other| (other.turn, other.position) != (record.turn, record.position));
    unsaved.calls.push(record.clone());
}
