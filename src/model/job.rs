//! A job: a wake-up call that names a run. It grants nothing; the decision it names is a row that an authenticated surface wrote.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{DecisionId, Event, EventKind, RunId};

/// The largest job that is read, in bytes. A real one has about 130.
pub const MAX_JOB_BYTES: usize = 4_096;

/// What a worker is woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// A queued run waits for a worker.
    Start {
        /// The run.
        run: RunId,
    },
    /// A decision was made on a waiting run.
    Resume {
        /// The run.
        run: RunId,
        /// The decision.
        decision: DecisionId,
    },
}

/// The message is no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidJob(pub String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    v: u32,
    kind: String,
    run_id: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision_id: Option<DecisionId>,
}

impl Job {
    /// The run that the job is about.
    #[must_use]
    pub fn run(&self) -> RunId {
        match self {
            Self::Start { run } | Self::Resume { run, .. } => *run,
        }
    }

    /// What its attempts are counted under: the decision, or the run.
    #[must_use]
    pub fn key(&self) -> Uuid {
        match self {
            Self::Start { run } => run.uuid(),
            Self::Resume { decision, .. } => decision.uuid(),
        }
    }

    /// Reads `{"v":1,"kind":"resume","run_id":…,"decision_id":…}` or `{"v":1,"kind":"start","run_id":…}`.
    ///
    /// # Errors
    /// The message is too large, is not of that form, or has further members. The error holds no text of the message.
    pub fn parse(body: &[u8]) -> Result<Self, InvalidJob> {
        if body.len() > MAX_JOB_BYTES {
            return Err(InvalidJob(format!(
                "the message has {} bytes; a job has at most {MAX_JOB_BYTES}",
                body.len()
            )));
        }
        let wire: Wire = serde_json::from_slice(body).map_err(|error| {
            InvalidJob(format!(
                "not a job of version 1 (line {}, column {})",
                error.line(),
                error.column()
            ))
        })?;
        match (wire.v, wire.kind.as_str(), wire.decision_id) {
            (1, "start", None) => Ok(Self::Start { run: wire.run_id }),
            (1, "resume", Some(decision)) => Ok(Self::Resume {
                run: wire.run_id,
                decision,
            }),
            (1, "resume", None) => Err(InvalidJob("a resume job names its `decision_id`".to_owned())),
            (1, "start", Some(_)) => Err(InvalidJob("a start job names no `decision_id`".to_owned())),
            (1, _, _) => Err(InvalidJob("`kind` must be \"start\" or \"resume\"".to_owned())),
            (v, _, _) => Err(InvalidJob(format!(
                "job version {v} is not known; this build knows 1"
            ))),
        }
    }

    /// The message body.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let (kind, decision_id) = match self {
            Self::Start { .. } => ("start", None),
            Self::Resume { decision, .. } => ("resume", Some(decision)),
        };
        let wire = Wire {
            v: 1,
            kind: kind.to_owned(),
            run_id: self.run(),
            decision_id,
        };
        serde_json::to_vec(&wire).expect("ids and numbers always serialise")
    }

    /// The job that an event becomes, if it becomes one.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        let run = event.event.run?;
        match event.event.kind {
            EventKind::RunQueued => Some(Self::Start { run }),
            EventKind::DecisionMade => {
                let decision = event.event.data.get("decision_id")?.as_str()?.parse().ok()?;
                Some(Self::Resume { run, decision })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "01890000-0000-7000-8000-000000000001";

    #[test]
    fn a_job_reads_as_it_is_written() {
        let run = RUN.parse().unwrap();
        for job in [
            Job::Start { run },
            Job::Resume {
                run,
                decision: RUN.parse().unwrap(),
            },
        ] {
            assert_eq!(Job::parse(&job.to_bytes()), Ok(job));
        }
    }

    #[test]
    fn case_f2_what_is_beyond_the_contract_is_refused() {
        for body in [
            String::new(),
            "\u{0}\u{1}".to_owned(),
            "null".to_owned(),
            format!(r#"{{"v":1,"kind":"resume","run_id":"{RUN}"}}"#),
            format!(r#"{{"v":2,"kind":"start","run_id":"{RUN}"}}"#),
            format!(r#"{{"v":1,"kind":"approve","run_id":"{RUN}"}}"#),
            format!(
                r#"{{"v":1,"kind":"resume","run_id":"{RUN}","decision_id":"{RUN}","actor":"user:root"}}"#
            ),
            format!(r#"{{"v":1,"kind":"start","run_id":"{RUN}","verdict":"approve"}}"#),
            format!(
                r#"{{"v":1,"kind":"start","run_id":"{RUN}"{}}}"#,
                " ".repeat(MAX_JOB_BYTES)
            ),
        ] {
            assert!(Job::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
