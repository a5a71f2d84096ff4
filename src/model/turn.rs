//! A turn, its calls and its digest. One function computes the digest, for whoever shows a turn and for
//! whoever verifies it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The position of a turn in its run: 1 for the first assistant message that asks for tools, then 2, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnOrdinal(pub u32);

impl TurnOrdinal {
    /// The turn after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for TurnOrdinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text as it came; it may hold invisible characters, so show it through `visible`.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                super::visible(&self.0).fmt(f)
            }
        }
    };
}

text_id! {
    /// The id that the model gave to a call; unique within its turn.
    CallId
}
text_id! {
    /// The name of a tool, matched exactly: no folding, no trimming.
    ToolName
}

/// What a call does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    ReadOnly,
    /// A write that may be repeated under the same idempotency key.
    IdempotentWrite,
    /// A write that must not happen twice. Unknown tools count as this.
    NonIdempotentWrite,
}

impl Effect {
    /// Every effect there is.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::IdempotentWrite, Self::NonIdempotentWrite];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::IdempotentWrite => "idempotent_write",
            Self::NonIdempotentWrite => "non_idempotent_write",
        }
    }

    /// The effect of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == name)
    }

    /// Whether the call changes anything.
    #[must_use]
    pub fn is_write(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }
}

/// One call that a turn waits to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// The model's id of the call.
    pub id: CallId,
    /// The tool asked for.
    pub tool: ToolName,
    /// The arguments, exactly the text the model sent; it need not be JSON.
    pub arguments: String,
}

/// The calls of one assistant message, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which turn of the run this is.
    pub ordinal: TurnOrdinal,
    /// The calls, in the order in which the model asked for them.
    pub calls: Vec<PendingCall>,
}

impl Turn {
    /// The digest of the pending calls: SHA-256 over their RFC 8785 canonical JSON. The ordinal, the
    /// transcript and all counters are outside it.
    #[must_use]
    pub fn digest(&self) -> TurnDigest {
        // Members in the order RFC 8785 sorts them; all values are strings, whose canonical form is the one
        // serde_json writes (short escapes, \u00xx in lower case, everything else as it is).
        #[derive(Serialize)]
        struct Canonical<'a> {
            arguments: &'a str,
            id: &'a str,
            tool: &'a str,
        }
        let calls: Vec<_> = self
            .calls
            .iter()
            .map(|call| Canonical {
                arguments: &call.arguments,
                id: call.id.as_str(),
                tool: call.tool.as_str(),
            })
            .collect();
        let canonical = serde_json::to_vec(&calls).expect("strings always serialise");
        TurnDigest(format!("sha256:{}", hex::encode(Sha256::digest(&canonical))))
    }

    /// The first call id that occurs twice, if any does.
    #[must_use]
    pub fn duplicate_id(&self) -> Option<&CallId> {
        let mut seen = std::collections::HashSet::new();
        self.calls
            .iter()
            .map(|call| &call.id)
            .find(|id| !seen.insert(*id))
    }
}

/// `sha256:<64 lower-case hex digits>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnDigest(String);

impl TurnDigest {
    /// The digest as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the text has the form of a digest.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let well_formed = hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        well_formed.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for TurnDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(ordinal: u32, calls: &[(&str, &str, &str)]) -> Turn {
        Turn {
            ordinal: TurnOrdinal(ordinal),
            calls: calls
                .iter()
                .map(|(id, tool, arguments)| PendingCall {
                    id: (*id).into(),
                    tool: (*tool).into(),
                    arguments: (*arguments).to_owned(),
                })
                .collect(),
        }
    }

    #[test]
    fn the_digest_is_the_documented_one() {
        // printf '%s' '[{"arguments":"{\"n\":1}","id":"c1","tool":"refund"}]' | sha256sum
        let digest = turn(1, &[("c1", "refund", r#"{"n":1}"#)]).digest();
        assert_eq!(
            digest.as_str(),
            "sha256:aa6eb045429dd1fd22e18bba300c3027d2669901127fbca126b6af18ff0409cf"
        );
    }

    #[test]
    fn the_digest_covers_each_part_of_each_call_and_nothing_else() {
        let base = turn(1, &[("c1", "refund", "{}"), ("c2", "read", "{}")]).digest();
        assert_eq!(
            base,
            turn(9, &[("c1", "refund", "{}"), ("c2", "read", "{}")]).digest()
        );
        for other in [
            turn(1, &[("c2", "read", "{}"), ("c1", "refund", "{}")]),
            turn(1, &[("c1", "refund", "{ }"), ("c2", "read", "{}")]),
            turn(1, &[("c3", "refund", "{}"), ("c2", "read", "{}")]),
            turn(1, &[("c1", "refund2", "{}"), ("c2", "read", "{}")]),
            turn(1, &[("c1", "refund", "{}")]),
        ] {
            assert_ne!(base, other.digest());
        }
    }

    #[test]
    fn numbers_keep_their_bytes() {
        let texts = [
            r#"{"id":9007199254740993}"#,
            r#"{"id":9007199254740992}"#,
            "1e400",
            "-0",
            "0",
            "1.0",
            "1",
        ];
        let digests: std::collections::HashSet<_> = texts
            .iter()
            .map(|text| turn(1, &[("c", "t", text)]).digest().as_str().to_owned())
            .collect();
        assert_eq!(digests.len(), texts.len());
    }

    #[test]
    fn duplicates_are_found() {
        assert_eq!(
            turn(1, &[("x", "a", ""), ("x", "b", "")])
                .duplicate_id()
                .unwrap()
                .as_str(),
            "x"
        );
        assert!(
            turn(1, &[("x", "a", ""), ("y", "a", "")])
                .duplicate_id()
                .is_none()
        );
    }
}
