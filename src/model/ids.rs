//! Identifiers. Each is a UUID with a type of its own, so that a decision is never taken for a run.
//!
//! They are minted by the clock (`crate::clock`), never here: this room knows no time and no randomness.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl $name {
            /// The bare UUID, for a row or a message header.
            #[must_use]
            pub fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// One agent run.
    RunId
}
uuid_id! {
    /// One decision of one turn by one actor.
    DecisionId
}
uuid_id! {
    /// One event. It is also the message id under which the event is published, every time it is.
    EventId
}
