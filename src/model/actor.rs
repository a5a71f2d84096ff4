//! Who speaks: a user or a service account. An actor is a name, not an authority; what it may do is
//! asked of the resolver each time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who speaks, written `user:<id>` or `service:<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Actor {
    /// A person.
    User(String),
    /// An automation's account.
    Service(String),
}

/// The text names no actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no actor: write `user:<id>` or `service:<id>`, the id 1 to 128 letters, digits or . _ - @ +"
)]
pub struct InvalidActor(pub String);

impl Actor {
    /// The id without its kind.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::User(id) | Self::Service(id) => id,
        }
    }

    /// Whether a person speaks.
    #[must_use]
    pub fn is_user(&self) -> bool {
        matches!(self, Self::User(_))
    }

    /// Whether the text can be an id: 1 to 128 of letters, digits and `. _ - @ +`.
    #[must_use]
    pub fn is_valid_id(id: &str) -> bool {
        (1..=128).contains(&id.len())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'@' | b'+'))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user:{id}"),
            Self::Service(id) => write!(f, "service:{id}"),
        }
    }
}

impl FromStr for Actor {
    type Err = InvalidActor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("user", id)) if Self::is_valid_id(id) => Ok(Self::User(id.to_owned())),
            Some(("service", id)) if Self::is_valid_id(id) => Ok(Self::Service(id.to_owned())),
            _ => Err(InvalidActor(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Actor {
    type Error = InvalidActor;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> Self {
        actor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_reads_as_it_is_written() {
        for text in ["user:olga", "service:sweeper-1", "user:a.b+c@example.org"] {
            assert_eq!(text.parse::<Actor>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_nobody() {
        for text in [
            "",
            "olga",
            "user:",
            "User:olga",
            "user:ol ga",
            "user:olga\u{202e}",
            "group:ops",
            "user:a:b",
        ] {
            assert!(text.parse::<Actor>().is_err(), "{text:?}");
        }
    }
}
