//! The nouns of a resume job, and the one function that may change a run's status.
//!
//! Everything here is pure: no clock, no network, no database, no async. A value of this room can be
//! written to a row, a message or a page, and means the same in each. The room depends on no other.

mod actor;
mod call;
mod decision;
mod event;
mod ids;
mod job;
mod lease;
mod principal;
mod reconciliation;
mod run;
mod state;
mod transcript;
mod turn;
mod visible;

pub use actor::{Actor, InvalidActor};
pub use call::{CallOutcome, CallRecord, CallStatus};
pub use decision::{Decision, DecisionRequest, DecisionStatus, InvalidDecision, MAX_COMMENT_CHARS, Verdict};
pub use event::{Event, EventKind, NewEvent, Route};
pub use ids::{DecisionId, EventId, RunId};
pub use job::{InvalidJob, Job, MAX_JOB_BYTES};
pub use lease::{ClaimedRun, Lease, SegmentKind, WorkerName};
pub use principal::{Principal, Scope, UserGrant};
pub use reconciliation::{ActualOutcome, NotReconcilable, reconcile, unknown_outcome, write_under_way};
pub use run::{Failure, FailureCode, IllegalTransition, Run, RunStatus, Transition, next};
pub use state::{CorruptState, DeniedCall, RunState, SealedState};
pub use transcript::{Message, Transcript};
pub use turn::{CallId, Effect, PendingCall, ToolName, Turn, TurnDigest, TurnOrdinal};
pub use visible::{Visible, visible};
