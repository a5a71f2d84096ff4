//! What happened. An event is written in the transaction of the change it tells of; the events of a run are
//! its timeline, its audit trail and the outbox that feeds the broker.

use serde_json::Value;
use time::OffsetDateTime;

use super::{Actor, EventId, RunId};

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal => $route:ident,)*) => {
        /// What kind of thing happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The stored name, which is also the routing key where the event is published.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// Where the relay sends it.
            #[must_use]
            pub fn route(self) -> Route {
                match self {
                    $(Self::$kind => Route::$route,)*
                }
            }
        }
    };
}

/// Where the relay sends an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Nowhere: it is kept for the timeline only.
    Kept,
    /// To the events exchange.
    Published,
    /// To the jobs exchange, as a job.
    Job,
    /// To both.
    PublishedAndJob,
}

impl Route {
    /// Whether the event goes to the events exchange.
    #[must_use]
    pub fn is_published(self) -> bool {
        matches!(self, Self::Published | Self::PublishedAndJob)
    }

    /// Whether the event becomes a job.
    #[must_use]
    pub fn is_job(self) -> bool {
        matches!(self, Self::Job | Self::PublishedAndJob)
    }
}

event_kinds! {
    /// A run, or the rest of one, waits for a worker.
    RunQueued = "run.queued" => PublishedAndJob,
    /// A turn waits for a decision; also said again after a refusal.
    RunWaiting = "run.waiting_for_approval" => Published,
    /// An approval stood.
    RunApproved = "run.approved" => Published,
    /// A denial stood.
    RunDenied = "run.denied" => Published,
    /// A decision did not stand.
    RunRefused = "run.refused" => Published,
    /// The model gave its answer.
    RunCompleted = "run.completed" => Published,
    /// The run ended without an answer.
    RunFailed = "run.failed" => Published,
    /// Somebody cancelled the run.
    RunCancelled = "run.cancelled" => Published,
    /// Nobody decided in time.
    RunExpired = "run.expired" => Published,
    /// A decision was made; the resume job comes from this.
    DecisionMade = "decision.made" => Job,
    /// A decision was taken back before its claim.
    DecisionRevoked = "decision.revoked" => Kept,
    /// A call began; for a write, the fence.
    CallStarted = "call.started" => Kept,
    /// A call has its result.
    CallFinished = "call.finished" => Kept,
    /// The owner's policy refused a call at execution.
    ToolDenied = "tool_denied" => Kept,
    /// What the run would have been given is too secret for the zone that its model can reach.
    ContextBlocked = "context_blocked" => Kept,
    /// The owner may not use the configuration.
    AccessDenied = "access_denied" => Kept,
    /// A lease ran out and the run was taken from its worker.
    LeaseExpired = "lease.expired" => Kept,
    /// An operator stated what an unknown outcome really was.
    CallReconciled = "call.reconciled" => Kept,
    /// A catalogue version was applied.
    CatalogueApplied = "catalogue.applied" => Kept,
    /// The directory was changed.
    DirectoryChanged = "directory.changed" => Kept,
}

impl EventKind {
    /// The kind of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}

/// An event that is about to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// Its id, minted before it is written, so that a retry writes the same one.
    pub id: EventId,
    /// The run it is about, if any.
    pub run: Option<RunId>,
    /// What kind of thing happened.
    pub kind: EventKind,
    /// Who made it happen; nobody where time or the machine did.
    pub actor: Option<Actor>,
    /// When it happened.
    pub at: OffsetDateTime,
    /// The particulars: an object of ids, names and codes; never arguments, results or transcripts.
    pub data: Value,
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its place among all events; of one run's events, a later one has a larger position.
    pub position: i64,
    /// The event itself.
    pub event: NewEvent,
    /// When the outbox was done with it; nothing while it waits there.
    pub published_at: Option<OffsetDateTime>,
    /// How often it was put back into the outbox, since nobody had acted on it.
    pub wakes: u32,
}

impl NewEvent {
    /// The body of the published message.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "v": 1,
            "id": self.id,
            "kind": self.kind.as_str(),
            "run_id": self.run,
            "actor": self.actor,
            "at": self.at.format(&time::format_description::well_known::Rfc3339).unwrap_or_default(),
            "data": self.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_once() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::parse(kind.as_str()), Some(*kind));
        }
    }
}
