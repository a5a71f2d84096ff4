//! The time-limited right to go on with a run.

use std::fmt;

/// Who holds a run: `<host>:<pid>:<boot id>`, so that a worker restarted under the same name is another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerName(String);

impl WorkerName {
    /// The name of this process. `boot` is random for each start.
    #[must_use]
    pub fn new(host: &str, pid: u32, boot: &str) -> Self {
        Self(format!("{host}:{pid}:{boot}"))
    }

    /// The stored name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for WorkerName {
    fn from(name: String) -> Self {
        Self(name)
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right of one worker to go on with one run. Every write of a segment is guarded by both members; a
/// write that counts no row has lost the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it.
    pub holder: WorkerName,
    /// Counts the claims of the run; an old epoch never comes back.
    pub epoch: i64,
}

/// A run as it was read by the guarded update that claimed it.
#[derive(Clone, Debug)]
pub struct ClaimedRun {
    /// The run, already `running` under the lease.
    pub run: super::Run,
    /// The right to go on with it.
    pub lease: Lease,
    /// Its state, read with the claim.
    pub state: super::SealedState,
}
