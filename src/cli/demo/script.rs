//! What `demo --script` plays, as data: who decides what, what must come of it, and what that proves.
//!
//! Each step is checked against the run, the decision and the ledger after it; a step that comes out otherwise ends
//! the demo with a failure.

use super::seed::Story;
use crate::model::Verdict;

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What happens, in one line.
    pub title: &'static str,
    /// Who decides.
    pub who: &'static str,
    /// On which run.
    pub on: Story,
    /// What is decided.
    pub verdict: Verdict,
    /// Which turn the decision names.
    pub names: Named,
    /// What must come of it.
    pub expected: Expected,
    /// How many refunds the ledger must have after it.
    pub refunds: i64,
    /// What it proves.
    pub proves: &'static str,
}

/// Which turn a decision names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The one that the run was seeded with, by ordinal and digest.
    Seeded,
    /// That ordinal, with the digest of another run's turn.
    WithDigestOf(Story),
}

/// What must come of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The decision stands, and the run is completed.
    Completed,
    /// The decision is refused with this code, for this reason where the policy gave one; the run waits with the same turn.
    Refused {
        /// The refusal's code.
        code: &'static str,
        /// The policy's reason.
        reason: Option<&'static str>,
    },
    /// The decision comes too late: the same verdict stands. That is no fault, and nothing happens again.
    StoodBefore,
    /// The decision comes too late: the other verdict stands.
    OtherStands,
}

/// The steps, in order.
pub const STEPS: [Step; 11] = [
    Step {
        title: "the sweeper approves a turn that only reads",
        who: "service:sweeper",
        on: Story::Look,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Completed,
        refunds: 0,
        proves: "a service account with agent:approve clears a read-only pause",
    },
    Step {
        title: "gina, who could not make a refund, approves one",
        who: "user:gina",
        on: Story::Refund,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Refused {
            code: "approver_not_permitted",
            reason: Some("requires_membership"),
        },
        refunds: 0,
        proves: "an approver may only release a write they could run themselves",
    },
    Step {
        title: "the sweeper approves the refund",
        who: "service:sweeper",
        on: Story::Refund,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Refused {
            code: "service_account_write",
            reason: None,
        },
        refunds: 0,
        proves: "a service account never releases a write",
    },
    Step {
        title: "ada approves the refund, but names the calls of another run",
        who: "user:ada",
        on: Story::Refund,
        verdict: Verdict::Approve,
        names: Named::WithDigestOf(Story::TwoEyes),
        expected: Expected::Refused {
            code: "stale_turn",
            reason: None,
        },
        refunds: 0,
        proves: "a decision releases the very calls that were looked at, and no others",
    },
    Step {
        title: "ada, who could make the refund, approves it",
        who: "user:ada",
        on: Story::Refund,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Completed,
        refunds: 1,
        proves: "a refused decision leaves the turn to be decided; the refund runs once, as its owner olga",
    },
    Step {
        title: "ada approves the same turn again",
        who: "user:ada",
        on: Story::Refund,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::StoodBefore,
        refunds: 1,
        proves: "the same decision twice executes once, and the second is told so",
    },
    Step {
        title: "gina denies what has been approved",
        who: "user:gina",
        on: Story::Refund,
        verdict: Verdict::Deny,
        names: Named::Seeded,
        expected: Expected::OtherStands,
        refunds: 1,
        proves: "a late denial is told that the approval stands, never that it worked",
    },
    Step {
        title: "gina approves a turn that reads and refunds",
        who: "user:gina",
        on: Story::Mixed,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Refused {
            code: "approver_not_permitted",
            reason: Some("requires_membership"),
        },
        refunds: 1,
        proves: "one write that the approver could not run refuses the whole turn",
    },
    Step {
        title: "gina denies it",
        who: "user:gina",
        on: Story::Mixed,
        verdict: Verdict::Deny,
        names: Named::Seeded,
        expected: Expected::Completed,
        refunds: 1,
        proves: "whoever may decide may always say no; nothing is executed and the model is told",
    },
    Step {
        title: "olga approves her own run where a second approver is required",
        who: "user:olga",
        on: Story::TwoEyes,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Refused {
            code: "self_approval",
            reason: None,
        },
        refunds: 1,
        proves: "two pairs of eyes are two people",
    },
    Step {
        title: "ada approves it",
        who: "user:ada",
        on: Story::TwoEyes,
        verdict: Verdict::Approve,
        names: Named::Seeded,
        expected: Expected::Completed,
        refunds: 2,
        proves: "somebody else's approval releases it",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::cli::demo::seed::DIRECTORY;
    use crate::gate::Refusal;
    use crate::identity::DirectoryFile;
    use crate::model::Actor;
    use crate::policy::DenyReason;

    #[test]
    fn everybody_in_the_script_is_in_the_directory() {
        let file = DirectoryFile::parse(DIRECTORY).unwrap();
        for step in STEPS {
            let known = match step.who.parse().unwrap() {
                Actor::User(id) => file.users.iter().any(|user| user.id == id),
                Actor::Service(id) => file.service_accounts.iter().any(|account| account.id == id),
            };
            assert!(known, "{}", step.who);
        }
    }

    #[test]
    fn every_run_ends_and_every_code_is_one() {
        let mut ended = HashSet::new();
        for step in STEPS {
            match step.expected {
                Expected::Completed => assert!(ended.insert(step.on), "{}", step.title),
                Expected::Refused { code, reason } => {
                    assert!(Refusal::CODES.contains(&code), "{code}");
                    let known = DenyReason::ALL.map(DenyReason::as_str);
                    assert!(reason.is_none_or(|reason| known.contains(&reason)), "{reason:?}");
                    assert!(!ended.contains(&step.on), "{}", step.title);
                }
                Expected::StoodBefore | Expected::OtherStands => {
                    assert!(ended.contains(&step.on), "{}", step.title)
                }
            }
        }
        assert_eq!(ended.len(), Story::ALL.len());
    }
}
