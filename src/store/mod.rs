//! What is durable: runs, decisions, calls, events, the directory and the catalogue versions. One trait,
//! two databases.
//!
//! The docs of [`Store`] are the crash contract: each verb says what is true once it has returned `Ok`. A
//! verb that returned `Err` may have happened or not; every verb can be called again with the same ids.
//! Status changes are guarded updates that count their rows. The room knows nothing of brokers, models,
//! policies and gates; it is the only one that knows SQL.

mod connect;
mod directory;
mod ledger;
mod row;

mod postgres;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;

pub use connect::{ConnectError, Migration, Opened, StoreSettings, connect};
pub use directory::{Account, Directory, DirectoryEntry, Group, Person};
pub use ledger::{Ledger, LedgerEntry, LedgerError};

use crate::model::{
    Actor, CallRecord, ClaimedRun, Decision, DecisionId, Event, EventId, Failure, Job, Lease, NewEvent, Run,
    RunId, RunStatus, SealedState, TurnOrdinal, WorkerName,
};

/// A database, as the rest of the product sees it.
pub type SharedStore = Arc<dyn Store>;

/// The database could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is away, or the connection broke: to be tried again.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// A row cannot be read as what it should be.
    #[error("row {id} of `{table}` cannot be read: column `{column}` {problem}")]
    CorruptRow {
        /// The table.
        table: &'static str,
        /// The row's key.
        id: String,
        /// The column.
        column: &'static str,
        /// What is wrong with it; no content.
        problem: String,
    },
    /// A statement failed in a way that waiting does not mend.
    #[error("a statement failed")]
    Failed(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether trying again later can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// The result of a store verb.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Whether a guarded write found the row in the expected state.
#[must_use = "a guarded write that found nothing did nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// It did what it says.
    Done,
    /// The row was not as expected: somebody else was first. Nothing was written.
    Lost,
}

/// A run about to be created.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The run: `queued`, or `waiting_for_approval` with its deadline for one handed over from elsewhere.
    pub run: Run,
    /// Its state.
    pub state: SealedState,
    /// Its first events.
    pub events: Vec<NewEvent>,
}

/// Which runs to list; newest first.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Only in this status.
    pub status: Option<RunStatus>,
    /// Only of this owner.
    pub owner: Option<Actor>,
    /// Only those created before this run; for the next page.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: u32,
}

/// What a worker wants to claim.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The run.
    pub run: RunId,
    /// From which status: `queued` or `waiting_for_approval`.
    pub from: RunStatus,
    /// Who claims.
    pub worker: WorkerName,
    /// For how long the lease is taken.
    pub ttl: Duration,
}

/// How a segment of a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The model gave its answer.
    Complete,
    /// A turn waits for a decision until the deadline.
    Suspend {
        /// Until when.
        deadline: OffsetDateTime,
    },
    /// It cannot go on.
    Fail(Failure),
    /// Somebody cancelled it.
    Cancel,
    /// Another worker is to go on.
    Release,
}

/// One durable step of a running segment. All of it is committed at once, or none.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// The new state and its turn, if it changed.
    pub state: Option<(TurnOrdinal, SealedState)>,
    /// Journal rows, new or changed.
    pub calls: Vec<CallRecord>,
    /// The end of the segment, if it ends; this gives the lease up.
    pub end: Option<End>,
    /// What to tell.
    pub events: Vec<NewEvent>,
}

/// What a worker learns when it renews its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease is the worker's for another term.
    Held,
    /// The lease is the worker's, and somebody asked for the run to be cancelled.
    CancelRequested(Actor),
    /// The lease is another's, or the run has ended.
    Lost,
}

/// What cancelling did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The run is cancelled.
    Now,
    /// The run is running; its worker cancels it at the next step.
    Requested,
    /// The run had ended before.
    TooLate(RunStatus),
    /// There is no such run.
    NoSuchRun,
}

/// What became of a run whose lease ran out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// The run.
    pub run: RunId,
    /// Who had held it.
    pub holder: WorkerName,
    /// `queued`, or `failed`.
    pub status: RunStatus,
}

/// A catalogue version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueVersion {
    /// Its number: 1, 2, …
    pub version: i64,
    /// The TOML text.
    pub source: String,
    /// Who applied it.
    pub applied_by: Option<Actor>,
    /// When.
    pub applied_at: OffsetDateTime,
}

/// Everything durable. See the room's docs for what `Ok` and `Err` mean.
#[async_trait]
pub trait Store: Send + Sync {
    /// The database answers.
    async fn ping(&self) -> Result<()>;

    /// Rung after a commit of this process that put something into the outbox: a hint, never a promise.
    fn bell(&self) -> Arc<tokio::sync::Notify>;

    // Runs -------------------------------------------------------------------------------------------

    /// The run, its state and its first events are durable.
    async fn create_run(&self, new: &NewRun) -> Result<()>;

    /// The run, without its state.
    async fn run(&self, id: RunId) -> Result<Option<Run>>;

    /// The run with its state, read at one moment.
    async fn run_with_state(&self, id: RunId) -> Result<Option<(Run, SealedState)>>;

    /// Runs, newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>>;

    /// How many runs are queued, running and waiting. Ended ones are not counted: there is no end of them.
    async fn count_runs(&self) -> Result<Vec<(RunStatus, i64)>>;

    /// The journal of one turn, or of all turns, in order.
    async fn calls(&self, run: RunId, turn: Option<TurnOrdinal>) -> Result<Vec<CallRecord>>;

    /// A queued or waiting run is cancelled, with its event; a running one is marked to be.
    async fn cancel(&self, run: RunId, by: &Actor, event: &NewEvent) -> Result<Cancelled>;

    /// Up to `limit` runs that failed because the outcome of a write is unknown, newest first, each with that call; only
    /// those created before the run `before`, for the next page.
    async fn unknown_outcomes(&self, before: Option<RunId>, limit: u32) -> Result<Vec<(Run, CallRecord)>>;

    /// `Done`: the run had failed as `write_outcome_unknown` with this call under way; the call has this end now and the
    /// run is queued, with the events. `Lost`: it was not so any more, and nothing was written.
    async fn reconcile(&self, call: &CallRecord, events: &[NewEvent]) -> Result<Guarded>;

    // Decisions --------------------------------------------------------------------------------------

    /// The decision and the event that becomes its job are durable. Nothing else is decided by this. The event's id is the
    /// decision's: by it a job that was lost is found again.
    async fn record_decision(&self, decision: &Decision, event: &NewEvent) -> Result<()>;

    /// A decision.
    async fn decision(&self, id: DecisionId) -> Result<Option<Decision>>;

    /// All decisions of a run, oldest first.
    async fn decisions(&self, run: RunId) -> Result<Vec<Decision>>;

    /// The decision that stands for a turn.
    async fn standing(&self, run: RunId, turn: TurnOrdinal) -> Result<Option<Decision>>;

    /// `Done`: the decision was pending and is refused with this code. `Lost`: it was not pending any more.
    /// Either way the events are durable, each id once.
    async fn refuse(&self, decision: DecisionId, code: &str, events: &[NewEvent]) -> Result<Guarded>;

    /// `Done`: the decision was pending and is revoked, with its event.
    async fn revoke(&self, decision: DecisionId, event: &NewEvent) -> Result<Guarded>;

    // The path ---------------------------------------------------------------------------------------

    /// Begins a claim: the guarded update has won the run, but nothing is durable before
    /// [`ClaimScope::commit`]. Nothing where the run is not in the status any more, its deadline has
    /// passed, or somebody else claims it at this moment. A scope that is dropped claims nothing.
    async fn claim(&self, request: &ClaimRequest) -> Result<Option<Box<dyn ClaimScope>>>;

    /// `Done`: the whole step is durable. `Lost`: the lease is not this worker's any more, and nothing was written.
    async fn step(&self, run: RunId, lease: &Lease, step: &Step) -> Result<Guarded>;

    /// The lease holds for `ttl` from now, by the database's clock, unless it is lost.
    async fn renew(&self, run: RunId, lease: &Lease, ttl: Duration) -> Result<Renewed>;

    /// One more attempt at the job is counted, and with it there are so many that were begun and did not end.
    async fn begin_attempt(&self, job: &Job) -> Result<u32>;

    /// The job ended, one way or the other: no attempt at it is counted any more.
    async fn end_attempts(&self, job: &Job) -> Result<()>;

    // Workers ----------------------------------------------------------------------------------------

    /// Whether this worker has the duty of that name for `ttl` from now. At most one worker has it at a time.
    async fn hold_duty(&self, duty: &str, worker: &WorkerName, ttl: Duration) -> Result<bool>;

    /// The oldest events that wait to be published, in order.
    async fn outbox(&self, limit: u32) -> Result<Vec<Event>>;

    /// How many events wait to be published.
    async fn outbox_depth(&self) -> Result<i64>;

    /// The events are marked published.
    async fn mark_published(&self, events: &[EventId]) -> Result<()>;

    /// Up to `limit` runs whose lease ran out are taken from their workers: failed as
    /// `write_outcome_unknown` where a non-idempotent write is under way, failed as `retries_exhausted` after
    /// `max_requeues`, else queued. `new_event` makes the ids and times of the events.
    async fn reap(&self, limit: u32, max_requeues: u32, mint: &dyn Mint) -> Result<Vec<Reaped>>;

    /// Up to `limit` waiting runs whose deadline passed are expired, with their events.
    async fn expire(&self, limit: u32, mint: &dyn Mint) -> Result<Vec<RunId>>;

    /// Up to `limit` queued or waiting runs that somebody asked to be cancelled while they ran are cancelled, with
    /// their events.
    async fn cancel_requested(&self, limit: u32, mint: &dyn Mint) -> Result<Vec<RunId>>;

    /// Up to `limit` job events that were published longer than `after` ago, and whose run still waits for them,
    /// are put back into the outbox under their old ids; each time a job is put back, it is next
    /// put back only after twice as long. Returns how many.
    async fn rewake(&self, after: Duration, limit: u32) -> Result<u64>;

    // Events -----------------------------------------------------------------------------------------

    /// Events after a position, oldest first; of one run or of all.
    async fn events(&self, run: Option<RunId>, after: i64, limit: u32) -> Result<Vec<Event>>;

    // The directory and the catalogue ------------------------------------------------------------------

    /// Everybody, at one moment.
    async fn directory(&self) -> Result<Directory>;

    /// The directory is this one, with its event.
    async fn replace_directory(&self, directory: &Directory, event: &NewEvent) -> Result<()>;

    /// `Done`: the actor was there and is enabled or disabled now, with the event.
    async fn set_enabled(&self, actor: &Actor, enabled: bool, event: &NewEvent) -> Result<Guarded>;

    /// What is written of one actor.
    async fn directory_entry(&self, actor: &Actor) -> Result<Option<DirectoryEntry>>;

    /// The text is durable as the next version, which is current from now on.
    async fn apply_catalogue(&self, source: &str, by: Option<&Actor>, event: &NewEvent) -> Result<i64>;

    /// The newest version's number.
    async fn current_version(&self) -> Result<Option<i64>>;

    /// One version.
    async fn catalogue(&self, version: i64) -> Result<Option<CatalogueVersion>>;
}

/// A claim in the making. Everything it does is one transaction.
#[async_trait]
pub trait ClaimScope: Send {
    /// The run as claimed, with the state read by the same statement.
    fn claimed(&self) -> &ClaimedRun;

    /// What is written of an actor at this moment.
    async fn directory_entry(&mut self, actor: &Actor) -> Result<Option<DirectoryEntry>>;

    /// The newest catalogue version at this moment.
    async fn current_version(&mut self) -> Result<Option<i64>>;

    /// One catalogue version.
    async fn catalogue(&mut self, version: i64) -> Result<Option<CatalogueVersion>>;

    /// The journal of the run's newest turn.
    async fn calls(&mut self) -> Result<Vec<CallRecord>>;

    /// The event is part of the claim. Behind a savepoint: where it cannot be written the claim is as it was.
    async fn record(&mut self, event: &NewEvent) -> Result<()>;

    /// The decision stands, the journal rows are written, and with the commit the run is this worker's.
    /// `Lost`: another decision has come to stand for the turn; nothing is durable.
    async fn commit(self: Box<Self>, decision: Option<DecisionId>, calls: &[CallRecord]) -> Result<Guarded>;

    /// The decision is refused with this code, the events are durable, and the run waits again, its state
    /// untouched. `Lost`: the decision was not pending any more; nothing is durable.
    async fn hand_back(
        self: Box<Self>,
        decision: DecisionId,
        code: &str,
        events: &[NewEvent],
    ) -> Result<Guarded>;

    /// The run has failed, with the events; the decision is refused with the failure's code, if there is one.
    async fn fail(
        self: Box<Self>,
        decision: Option<DecisionId>,
        failure: &Failure,
        events: &[NewEvent],
    ) -> Result<()>;
}

/// A duration as the statements take it.
fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

/// Makes the ids and times of events that the store writes by itself.
pub trait Mint: Send + Sync {
    /// An event of the run, happening now, by nobody.
    fn event(&self, run: RunId, kind: crate::model::EventKind, data: serde_json::Value) -> NewEvent;
}
