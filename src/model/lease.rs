//! The time-limited right to go on with a run.

use std::fmt;

/// Who works: `<host>:<pid>:<boot id>`, so that a worker restarted under the same name is another one. Who holds a run says
/// what for as well: `resume:<host>:<pid>:<boot id>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerName(String);

impl WorkerName {
    /// The name of this process. `boot` is random for each start.
    #[must_use]
    pub fn new(host: &str, pid: u32, boot: &str) -> Self {
        Self(format!("{host}:{pid}:{boot}"))
    }

    /// The name under which this worker holds a run for a segment of that kind.
    #[must_use]
    pub fn holding_for(&self, segment: SegmentKind) -> Self {
        Self(format!("{}:{}", segment.as_str(), self.0))
    }

    /// The stored name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a run is claimed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A decision about its turn.
    Resume,
    /// To begin, or to go on after its worker was lost.
    Start,
}

impl SegmentKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Start => "start",
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_says_what_for_and_where() {
        let worker = WorkerName::new("host-1", 77, "b00t");
        assert_eq!(
            worker.holding_for(SegmentKind::Resume).as_str(),
            "resume:host-1:77:b00t"
        );
        assert_eq!(
            worker.holding_for(SegmentKind::Start).as_str(),
            "start:host-1:77:b00t"
        );
        assert_ne!(
            worker,
            WorkerName::new("host-1", 77, "b007"),
            "another start is another worker"
        );
    }
}
