//! How one call is made. A tool is called as the owner of the run, under an idempotency key that is the
//! same on every attempt; what comes back is bounded. Nothing here asks whether the call may be made: that
//! has been decided before.

mod credential;
mod exchange;
mod http;
mod judgement;
pub(super) mod wire;

use std::time::Duration;

use async_trait::async_trait;

pub use credential::{CredentialFault, MissingCredential, Secret, read_credential};
pub(super) use credential::{api_key, bearer};
pub use http::HttpCaller;
pub use wire::NoHttpClient;

use crate::catalogue::Tool;
use crate::model::{Actor, PendingCall, RunId};

/// One call, about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The run.
    pub run: RunId,
    /// As whom.
    pub owner: &'c Actor,
    /// What the model asked for. The arguments are JSON, checked before; they are sent as they are.
    pub call: &'c PendingCall,
    /// The tool as it is declared.
    pub tool: &'c Tool,
    /// The same on every attempt.
    pub idempotency_key: &'c str,
    /// The largest result that is kept, in bytes.
    pub result_limit: usize,
    /// The tool's own deadline.
    pub timeout: Duration,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The tool answered.
    Succeeded(String),
    /// The tool said that it failed, or the call certainly took no effect; the text is for the model.
    Failed(String),
    /// The call was sent and its answer was lost: whether it took effect is not known.
    Unknown(String),
}

/// Calls tools of one kind.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Makes the call. A future that is dropped stops waiting; what was sent may still take effect.
    async fn call(&self, call: Call<'_>) -> CallEnd;
}
