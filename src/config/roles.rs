//! What a process does, and which roles its settings let it play.

use std::collections::BTreeSet;

use super::{BrokerAddress, Settings};
use crate::declaration::{Problem, Problems};

/// One thing that a process can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The API and the pages.
    Web,
    /// Runs what was decided.
    Worker,
    /// Publishes events.
    Relay,
    /// Finds lost runs and passed deadlines.
    Reaper,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Web, Self::Worker, Self::Relay, Self::Reaper];

    /// Its name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Worker => "worker",
            Self::Relay => "relay",
            Self::Reaper => "reaper",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl Settings {
    /// Whether a process with these settings can play these roles and no others.
    ///
    /// # Errors
    ///
    /// When the broker is embedded and a role is left to another process, which would never see its jobs; when
    /// `web` is asked for and `http.listen` is off; when there is no role. A process that has to play all roles may
    /// still have `http.listen` off: it then serves no pages.
    pub fn allow(&self, roles: &BTreeSet<Role>) -> Result<(), Problems> {
        let mut problems = Vec::new();
        if roles.is_empty() {
            problems.push(Problem::elsewhere("", "a process needs at least one role"));
        }
        let missing = Role::ALL.into_iter().filter(|role| !roles.contains(role));
        let missing: Vec<_> = missing.map(Role::as_str).collect();
        if self.broker.address == BrokerAddress::Embedded && !missing.is_empty() {
            let message = format!(
                "broker.url is `embedded`, which no other process can reach, so this one needs all roles; \
                 it lacks {}",
                missing.join(", ")
            );
            problems.push(Problem::elsewhere("broker.url", message));
        }
        if self.http.listen.is_none()
            && roles.contains(&Role::Web)
            && self.broker.address != BrokerAddress::Embedded
        {
            problems.push(Problem::elsewhere(
                "http.listen",
                "http.listen is `off`, but the role `web` is asked for",
            ));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.into())
        }
    }
}
