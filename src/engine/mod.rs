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
use serde_json::Value;
use time::OffsetDateTime;

pub(crate) use answer::denied;
pub use ask::missing_secret;
pub(crate) use turn::call_started;

use crate::gate::{Catalogued, Cleared, Screened, screen};
use crate::model::{Actor, CallRecord, EventKind, Failure, FailureCode, Principal, Run, RunState, Turn};
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
    /// This process stops.
    Stopping,
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
        mut next,
    } = segment;
    let mut unsaved = Progress::default();
    let configuration = match at.configuration(&run.configuration) {
        Ok(configuration) => configuration.clone(),
        Err(gone) => return Ok(failed(FailureCode::ConfigurationGone, gone.to_string(), unsaved)),
    };
    let place = Place {
        engine,
        at: &at,
        configuration: &configuration,
        run: &run,
    };
    loop {
        match next {
            Next::Turn(cleared, journal) => {
                if let Err(failure) =
                    turn::execute(&place, world, &cleared, journal, &mut state, &mut unsaved).await?
                {
                    return Ok(Ended {
                        how: End::Failed(failure),
                        rest: unsaved,
                    });
                }
            }
            Next::Model => {}
            Next::Undecided(turn) => return Ok(suspended(turn, state, unsaved)),
        }
        world.check().await?;
        let turn = match ask::ask(&place, world, &mut state).await? {
            Err(failure) => {
                return Ok(Ended {
                    how: End::Failed(failure),
                    rest: with_state(unsaved, state),
                });
            }
            Ok(None) => {
                return Ok(Ended {
                    how: End::Completed,
                    rest: with_state(unsaved, state),
                });
            }
            Ok(Some(turn)) => turn,
        };
        next = match screen(&at, run.id, turn, &state.denied) {
            Screened::NeedsApproval(turn) => return Ok(suspended(turn, state, unsaved)),
            Screened::Unattended(cleared) => {
                let journal = turn::journal(&at, &cleared);
                unsaved.calls.extend(journal.iter().cloned());
                unsaved.state = Some(state.clone());
                world.save(std::mem::take(&mut unsaved)).await?;
                Next::Turn(cleared, journal)
            }
            Screened::DeniedBefore(cleared) => match turn::count_repeats(&mut state, cleared.turn()) {
                Ok(()) => {
                    let journal = turn::journal(&at, &cleared);
                    Next::Turn(cleared, journal)
                }
                Err(failure) => {
                    return Ok(Ended {
                        how: End::Failed(failure),
                        rest: with_state(unsaved, state),
                    });
                }
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

fn with_state(mut progress: Progress, state: RunState) -> Progress {
    progress.state = Some(state);
    progress
}

fn suspended(turn: Turn, state: RunState, unsaved: Progress) -> Ended {
    Ended {
        how: End::Suspended(turn),
        rest: with_state(unsaved, state),
    }
}

fn failed(code: FailureCode, detail: String, unsaved: Progress) -> Ended {
    Ended {
        how: End::Failed(Failure::new(code, detail)),
        rest: unsaved,
    }
}
