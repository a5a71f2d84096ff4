//! Runs a run: the cleared calls as its owner, then the model, until it answers, asks for something that needs a
//! decision, or cannot go on.
//!
//! [`go_on`] is the loop. A turn is executed only against a [`Cleared`], which only the gates make; there is
//! no other way from here to a tool. What has happened is told to the [`World`], which makes it durable; the engine knows
//! nothing of stores, leases, queues and clocks. reqwest is used nowhere else.

mod answer;
mod ask;
pub mod models;
pub mod tools;
mod turn;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use time::OffsetDateTime;

pub(crate) use answer::denied;
pub use ask::missing_secret;
pub(crate) use turn::call_started;

use crate::gate::{Catalogued, Cleared, Screened, screen};
use crate::model::{Actor, CallRecord, EventKind, Failure, FailureCode, Principal, Run, RunState, Turn};
use crate::policy;
use models::ChatModel;
use tools::Caller;

/// The sizes that are refused, each a setting of the section `limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of one call, in bytes.
    pub argument_bytes: usize,
    /// Calls of one turn.
    pub calls_per_turn: usize,
    /// The result of one call, in bytes.
    pub result_bytes: usize,
    /// All messages of a run, in bytes.
    pub transcript_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            argument_bytes: 1 << 20,
            calls_per_turn: 128,
            result_bytes: 1 << 20,
            transcript_bytes: 16 << 20,
        }
    }
}

/// What reaches tools and models.
#[derive(Clone)]
pub struct Engine {
    /// Calls tools behind a URL.
    pub http: Arc<dyn Caller>,
    /// Calls tools that are part of the product.
    pub builtin: Arc<dyn Caller>,
    /// Asks OpenAI-compatible endpoints.
    pub openai: Arc<dyn ChatModel>,
    /// Asks endpoints of Anthropic's Messages API.
    pub anthropic: Arc<dyn ChatModel>,
    /// Answers from a script.
    pub scripted: Arc<dyn ChatModel>,
    /// What is refused for its size.
    pub limits: Limits,
}

/// Something that happened, for the run's timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct News {
    /// What kind of thing.
    pub kind: EventKind,
    /// The particulars: ids, names and codes.
    pub data: Value,
}

/// What is to be made durable, all at once.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The new state, if it changed.
    pub state: Option<RunState>,
    /// Journal rows, new or changed.
    pub calls: Vec<CallRecord>,
    /// What to tell.
    pub news: Vec<News>,
}

/// Why a segment stops without an end: somebody else goes on, or nobody may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The lease is another's. Nothing more may be written or called.
    LeaseLost,
    /// Somebody asked for the run to be cancelled.
    Cancelled(Actor),
    /// This process stops, and nothing is under way.
    Stopping,
    /// This process stops while a call is under way: only the lease can tell how it ended.
    UnderWay,
    /// What has happened could not be made durable, and waiting does not help.
    NotDurable(String),
}

/// What a segment needs of the world around it.
#[async_trait]
pub trait World: Send {
    /// What the owner is right now.
    async fn owner(&mut self) -> Result<Option<Principal>, Halt>;

    /// The progress is durable, and the run is still this worker's.
    async fn save(&mut self, progress: Progress) -> Result<(), Halt>;

    /// The run is still this worker's, and nobody wants it cancelled.
    async fn check(&mut self) -> Result<(), Halt>;

    /// Resolves when what is under way must be abandoned. Safe to cancel.
    async fn abandoned(&mut self) -> Halt;

    /// The time.
    fn now(&self) -> OffsetDateTime;
}

/// A piece of a run, from a claim to the next end.
#[derive(Debug)]
pub struct Segment {
    /// The catalogue that was current at the claim.
    pub at: Catalogued,
    /// The run.
    pub run: Run,
    /// Its state.
    pub state: RunState,
    /// What comes first.
    pub next: Next,
}

/// What a segment begins with.
#[derive(Debug)]
pub enum Next {
    /// A cleared turn, with its rows in the journal.
    Turn(Cleared, Vec<CallRecord>),
    /// The model.
    Model,
    /// A turn that nobody has cleared.
    Undecided(Turn),
}

/// How a segment ends. What is not durable yet goes with it.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub how: End,
    /// To be made durable together with the end.
    pub rest: Progress,
}

/// How a segment ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The model gave its answer.
    Completed,
    /// The turn needs a decision.
    Suspended(Turn),
    /// It cannot go on.
    Failed(Failure),
    /// Somebody asked for it to be cancelled.
    Cancelled(Actor),
    /// This process stops between two steps: another is to go on.
    Released,
}

/// Goes on with a run until it ends, needs a decision, or must be let go.
///
/// # Errors
/// Why the segment was let go. What was saved until then is durable, and nothing else.
pub async fn go_on(engine: &Engine, world: &mut dyn World, segment: Segment) -> Result<Ended, Halt> {
    let Segment {
        at,
        run,
        mut state,
        next,
    } = segment;
    let mut rest = Progress::default();
    let how = match at.configuration(&run.configuration) {
        Err(gone) => Ok(End::Failed(Failure::new(
            FailureCode::ConfigurationGone,
            gone.to_string(),
        ))),
        Ok(configuration) => {
            let place = Place {
                engine,
                at: &at,
                configuration,
                run: &run,
            };
            match access(&place, world, &mut rest).await? {
                Some(failure) => {
                    if let Next::Turn(cleared, journal) = next {
                        turn::refuse_rest(world, &cleared, journal, failure.code.as_str(), &mut rest);
                    }
                    Ok(End::Failed(failure))
                }
                None => advance(&place, world, next, &mut state, &mut rest).await,
            }
        }
    };
    let how = match how {
        Ok(end) => end,
        // Between two steps nothing is under way: what was done is kept, and the run is ended or handed on.
        Err(Halt::Cancelled(by)) => End::Cancelled(by),
        Err(Halt::Stopping) => End::Released,
        Err(halt) => return Err(halt),
    };
    rest.state = Some(state);
    Ok(Ended { how, rest })
}

/// Why the owner may not go on with the configuration: somebody left a group while the run waited.
///
/// An owner who resolves to nothing is not refused here, where the configuration is for everybody: that owner's calls
/// are, one by one.
async fn access(
    place: &Place<'_>,
    world: &mut dyn World,
    rest: &mut Progress,
) -> Result<Option<Failure>, Halt> {
    let (owner, configuration) = (&place.run.owner, place.configuration);
    if configuration.groups.is_empty() || policy::may_use(configuration, world.owner().await?.as_ref()) {
        return Ok(None);
    }
    rest.news.push(News {
        kind: EventKind::AccessDenied,
        data: json!({ "owner": owner, "configuration": configuration.name }),
    });
    let detail = format!("{owner} may not use the configuration `{}`", configuration.name);
    Ok(Some(Failure::new(FailureCode::AccessDenied, detail)))
}

/// The loop: a cleared turn, the model, its answer.
async fn advance(
    place: &Place<'_>,
    world: &mut dyn World,
    mut next: Next,
    state: &mut RunState,
    unsaved: &mut Progress,
) -> Result<End, Halt> {
    loop {
        match next {
            Next::Turn(cleared, journal) => {
                let executed = turn::execute(place, world, &cleared, journal, state, unsaved).await?;
                if let Err(failure) = executed {
                    return Ok(End::Failed(failure));
                }
            }
            Next::Model => {}
            Next::Undecided(turn) => return Ok(End::Suspended(turn)),
        }
        world.check().await?;
        let turn = match ask::ask(place, world, state).await? {
            Err(failure) => return Ok(End::Failed(failure)),
            Ok(None) => return Ok(End::Completed),
            Ok(Some(turn)) => turn,
        };
        next = match screen(place.at, place.run.id, turn, &state.denied) {
            Screened::NeedsApproval(turn) => return Ok(End::Suspended(turn)),
            Screened::Unattended(cleared) => {
                let journal = turn::journal(place.at, &cleared);
                unsaved.calls.extend(journal.iter().cloned());
                unsaved.state = Some(state.clone());
                world.save(std::mem::take(unsaved)).await?;
                Next::Turn(cleared, journal)
            }
            Screened::DeniedBefore(cleared) => match turn::count_repeats(state, cleared.turn()) {
                Ok(()) => {
                    let journal = turn::journal(place.at, &cleared);
                    Next::Turn(cleared, journal)
                }
                Err(failure) => return Ok(End::Failed(failure)),
            },
        };
    }
}

/// Where a segment runs: what its parts share.
struct Place<'p> {
    engine: &'p Engine,
    at: &'p Catalogued,
    configuration: &'p crate::catalogue::Configuration,
    run: &'p Run,
}
