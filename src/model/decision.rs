//! A decision: approve or deny, of one turn, by one actor. Single use, and revocable until it is claimed.

use std::fmt;

use serde::Deserialize;
use time::OffsetDateTime;

use super::{Actor, DecisionId, RunId, TurnDigest, TurnOrdinal};

/// The longest comment, in characters.
pub const MAX_COMMENT_CHARS: usize = 2_000;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// The calls may run.
    Approve,
    /// The calls must not run.
    Deny,
}

impl Verdict {
    /// Both verdicts.
    pub const ALL: [Self; 2] = [Self::Approve, Self::Deny];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// The verdict of exactly that name; nothing else is one, in no other case and with no blanks.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == name)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionStatus {
    /// Not used yet.
    Pending,
    /// It claimed the run and passed the gates. At most one decision of a turn stands.
    Standing,
    /// It did not stand; the refusal's code says why.
    Refused(String),
    /// Its actor, or an admin, took it back before it was claimed.
    Revoked,
}

impl DecisionStatus {
    /// The stored name.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Standing => "standing",
            Self::Refused(_) => "refused",
            Self::Revoked => "revoked",
        }
    }

    /// The status of that name; `code` is the refusal's.
    #[must_use]
    pub fn parse(name: &str, code: Option<&str>) -> Option<Self> {
        match (name, code) {
            ("pending", None) => Some(Self::Pending),
            ("standing", None) => Some(Self::Standing),
            ("revoked", None) => Some(Self::Revoked),
            ("refused", Some(code)) => Some(Self::Refused(code.to_owned())),
            _ => None,
        }
    }
}

/// One decision, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its id; a job names it.
    pub id: DecisionId,
    /// The run it is about.
    pub run: RunId,
    /// The turn it names. A decision that names none is stale.
    pub turn: Option<TurnOrdinal>,
    /// The digest it names. A decision that names none is stale.
    pub digest: Option<TurnDigest>,
    /// What was decided.
    pub verdict: Verdict,
    /// By whom.
    pub actor: Actor,
    /// What the actor had to say; the model is given a denial's comment.
    pub comment: Option<String>,
    /// What became of it.
    pub status: DecisionStatus,
    /// When it was made.
    pub decided_at: OffsetDateTime,
}

/// A decision as a surface is told it: which run and by whom are known from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRequest {
    /// What was decided.
    pub verdict: Verdict,
    /// The turn it names.
    pub turn: TurnOrdinal,
    /// The digest it names.
    pub digest: TurnDigest,
    /// What the actor had to say.
    pub comment: Option<String>,
}

/// The text is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDecision(pub String);

impl DecisionRequest {
    /// Reads `{"verdict":"approve"|"deny","turn":1,"digest":"sha256:…","comment":"…"}`. The comment may be
    /// missing; any other member, a missing one and any other type is an error, never ignored.
    ///
    /// # Errors
    /// Names the member that is wrong and what would be right.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidDecision> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Wire {
            verdict: String,
            turn: u32,
            digest: String,
            comment: Option<String>,
        }
        let wire: Wire = serde_json::from_slice(json)
            .map_err(|error| InvalidDecision(format!("not a decision: {error}")))?;
        let verdict = Verdict::parse(&wire.verdict)
            .ok_or_else(|| InvalidDecision("`verdict` must be exactly \"approve\" or \"deny\"".to_owned()))?;
        let digest = TurnDigest::parse(&wire.digest).ok_or_else(|| {
            InvalidDecision("`digest` must be \"sha256:\" and 64 lower-case hex digits".to_owned())
        })?;
        Self::new(verdict, TurnOrdinal(wire.turn), digest, wire.comment)
    }

    /// A decision from its parts.
    ///
    /// # Errors
    /// The comment is longer than [`MAX_COMMENT_CHARS`], or the ordinal is 0.
    pub fn new(
        verdict: Verdict,
        turn: TurnOrdinal,
        digest: TurnDigest,
        comment: Option<String>,
    ) -> Result<Self, InvalidDecision> {
        if turn.0 == 0 {
            return Err(InvalidDecision("`turn` counts from 1".to_owned()));
        }
        if comment
            .as_ref()
            .is_some_and(|text| text.chars().count() > MAX_COMMENT_CHARS)
        {
            return Err(InvalidDecision(format!(
                "`comment` is longer than {MAX_COMMENT_CHARS} characters"
            )));
        }
        if comment.as_ref().is_some_and(|text| text.contains('\0')) {
            return Err(InvalidDecision("`comment` holds a NUL character".to_owned()));
        }
        Ok(Self {
            verdict,
            turn,
            digest,
            comment,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn parse(verdict: &str) -> Result<DecisionRequest, InvalidDecision> {
        DecisionRequest::parse(format!(r#"{{"verdict":{verdict},"turn":1,"digest":"{DIGEST}"}}"#).as_bytes())
    }

    #[test]
    fn a_verdict_is_one_of_two_words() {
        assert_eq!(parse("\"approve\"").unwrap().verdict, Verdict::Approve);
        assert_eq!(parse("\"deny\"").unwrap().verdict, Verdict::Deny);
    }

    #[test]
    fn case_c1_nothing_else_is_a_verdict() {
        for verdict in [
            "null",
            "\"\"",
            "\"APPROVE \"",
            "1",
            "true",
            "\"false\"",
            "\"approve \"",
            r#"{"approved":"false"}"#,
        ] {
            assert!(parse(verdict).is_err(), "{verdict}");
        }
        assert!(DecisionRequest::parse(format!(r#"{{"turn":1,"digest":"{DIGEST}"}}"#).as_bytes()).is_err());
        assert!(DecisionRequest::parse(br#"{"approved":"false"}"#).is_err());
    }

    #[test]
    fn case_b8_an_unknown_member_is_an_error() {
        for extra in ["edited", "calls"] {
            let json = format!(r#"{{"verdict":"approve","turn":1,"digest":"{DIGEST}","{extra}":[]}}"#);
            let error = DecisionRequest::parse(json.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(extra), "{error}");
        }
    }

    #[test]
    fn a_comment_is_bounded() {
        let request = |comment: String| {
            DecisionRequest::new(
                Verdict::Deny,
                TurnOrdinal(1),
                TurnDigest::parse(DIGEST).unwrap(),
                Some(comment),
            )
        };
        assert!(request("é".repeat(MAX_COMMENT_CHARS)).is_ok());
        assert!(request("é".repeat(MAX_COMMENT_CHARS + 1)).is_err());
    }
}
