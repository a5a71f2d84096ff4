//! What the demo begins with: a catalogue, people, payments, and four runs that wait for a decision.
//!
//! The runs are as a worker would have left them: their first assistant message is the script's, so that the same
//! script goes on with them.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use time::{Duration, OffsetDateTime};

use crate::cli::moment::rfc3339;
use crate::clock::Clock;
use crate::model::{
    Actor, EventId, EventKind, Message, NewEvent, Run, RunId, RunState, RunStatus, Transcript, Turn,
    TurnOrdinal,
};
use crate::store::{LedgerEntry, NewRun};

/// What is declared.
pub const CATALOGUE: &str = include_str!("catalogue.toml");
/// Who there is.
pub const DIRECTORY: &str = include_str!("directory.toml");
/// What the scripted model says; the script `builtin:demo`.
pub const MODEL_SCRIPT: &str = include_str!("model.json");
/// The name of that script, after `builtin:`.
pub const MODEL_SCRIPT_NAME: &str = "demo";

/// The owner of all runs.
pub const OWNER: &str = "user:olga";
/// How long the runs wait.
const PATIENCE: Duration = Duration::days(7);
/// As the configurations say.
const INSTRUCTIONS: &str = "You help with payments. Look before you refund.";

/// The four runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Story {
    /// A turn that only reads.
    Look,
    /// A refund.
    Refund,
    /// A turn that reads and refunds.
    Mixed,
    /// A refund that its owner may not approve.
    TwoEyes,
}

impl Story {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 4] = [Self::Look, Self::Refund, Self::Mixed, Self::TwoEyes];

    /// What it is about, in a few words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Look => "a look at a payment",
            Self::Refund => "a refund of 42.00",
            Self::Mixed => "a look and a refund of 15.00, in one turn",
            Self::TwoEyes => "a refund of 99.00 that needs a second approver",
        }
    }

    /// The user's message; the script knows the conversation by it.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::Look => "Has Nora Lind paid? Her payment is P-1001.",
            Self::Refund => "Give Sam Okoro 42.00 back, payment P-1002.",
            Self::Mixed => "Check P-1003 and give 15.00 of it back to Ines Prado.",
            Self::TwoEyes => "Refund P-1004 of Yuki Mori, all of it.",
        }
    }

    /// The configuration it runs under.
    #[must_use]
    pub fn configuration(self) -> &'static str {
        match self {
            Self::Look | Self::Refund | Self::Mixed => "support",
            Self::TwoEyes => "support-two-eyes",
        }
    }
}

/// The payments.
#[must_use]
pub fn payments() -> Vec<LedgerEntry> {
    let payment = |id: &str, customer: &str, amount_cents| LedgerEntry {
        id: id.to_owned(),
        customer: customer.to_owned(),
        amount_cents,
        refunded_cents: 0,
    };
    vec![
        payment("P-1001", "Nora Lind", 12_000),
        payment("P-1002", "Sam Okoro", 4_200),
        payment("P-1003", "Ines Prado", 8_000),
        payment("P-1004", "Yuki Mori", 9_900),
    ]
}

/// A run that waits, ready to be stored.
#[derive(Clone, Debug)]
pub struct WaitingRun {
    /// Which of the four.
    pub story: Story,
    /// The run, its state and its event.
    pub new: NewRun,
    /// The turn that waits.
    pub turn: Turn,
}

impl WaitingRun {
    /// The run's id.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.new.run.id
    }
}

/// The demo's script cannot be used; only a mistake in this folder can cause it, and a test holds that there is none.
#[derive(Debug, thiserror::Error)]
#[error("the demo's script does not fit its runs: {0}")]
pub struct UnfitScript(String);

/// The four runs, created now.
///
/// # Errors
/// The script does not fit.
pub fn waiting_runs(clock: &dyn Clock) -> Result<Vec<WaitingRun>, UnfitScript> {
    Story::ALL
        .into_iter()
        .map(|story| waiting(story, clock))
        .collect()
}

fn waiting(story: Story, clock: &dyn Clock) -> Result<WaitingRun, UnfitScript> {
    let owner: Actor = OWNER
        .parse()
        .map_err(|_| UnfitScript(format!("{OWNER} is no actor")))?;
    let (id, now) = (RunId::from(clock.new_id()), clock.now());
    let messages = vec![
        Message::plain("system", INSTRUCTIONS),
        Message::plain("user", story.message()),
        first_reply(story)?,
    ];
    let mut state = RunState::new(id, owner.clone(), Transcript::new(messages));
    state.turn = TurnOrdinal(1);
    state.iterations = 1;
    let turn = state
        .pending_turn()
        .map_err(|corrupt| UnfitScript(corrupt.to_string()))?
        .ok_or_else(|| {
            UnfitScript(format!(
                "the first reply to {:?} asks for nothing",
                story.message()
            ))
        })?;
    let deadline = now + PATIENCE;
    let run = Run {
        id,
        owner,
        configuration: story.configuration().to_owned(),
        status: RunStatus::WaitingForApproval,
        turn: turn.ordinal,
        failure: None,
        claimed_by: None,
        epoch: 0,
        requeues: 0,
        created_at: now,
        updated_at: now,
        deadline: Some(deadline),
    };
    let event = announcement(clock, id, &turn, deadline);
    Ok(WaitingRun {
        story,
        new: NewRun {
            run,
            state: state.seal(),
            events: vec![event],
        },
        turn,
    })
}

fn announcement(clock: &dyn Clock, run: RunId, turn: &Turn, deadline: OffsetDateTime) -> NewEvent {
    let calls: Vec<_> = turn
        .calls
        .iter()
        .map(|call| json!({ "id": call.id, "tool": call.tool }))
        .collect();
    NewEvent {
        id: EventId::from(clock.new_id()),
        run: Some(run),
        kind: EventKind::RunWaiting,
        actor: None,
        at: clock.now(),
        data: json!({
            "turn": turn.ordinal, "digest": turn.digest(), "calls": calls, "deadline": rfc3339(deadline),
        }),
    }
}

/// What the script answers to the story's message, byte for byte.
fn first_reply(story: Story) -> Result<Message, UnfitScript> {
    #[derive(Deserialize)]
    struct Script {
        conversations: Vec<Conversation>,
    }
    #[derive(Deserialize)]
    struct Conversation {
        when: String,
        replies: Vec<Box<RawValue>>,
    }
    let script: Script =
        serde_json::from_str(MODEL_SCRIPT).map_err(|error| UnfitScript(error.to_string()))?;
    let conversation = script
        .conversations
        .into_iter()
        .find(|known| story.message().contains(&known.when));
    let reply = conversation.and_then(|conversation| conversation.replies.into_iter().next());
    reply
        .map(Message::from_raw)
        .ok_or_else(|| UnfitScript(format!("it does not know {:?}", story.message())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    use crate::catalogue::Catalogue;
    use crate::clock::SystemClock;
    use crate::identity::DirectoryFile;
    use crate::model::{Principal, UserGrant};
    use crate::policy::{self, Approval, DenyReason, ToolDecision};

    fn catalogue() -> Catalogue {
        let (catalogue, problems) = Catalogue::check(CATALOGUE);
        assert!(problems.is_empty(), "{problems}");
        catalogue.unwrap()
    }

    fn user(id: &str) -> Principal {
        let file = DirectoryFile::parse(DIRECTORY).unwrap();
        let entry = file.users.iter().find(|user| user.id == id).unwrap();
        let in_group = |id: &String| file.groups.iter().find(|group| group.id == *id).unwrap();
        let grants: BTreeSet<UserGrant> = entry
            .groups
            .iter()
            .flat_map(|id| in_group(id).grants.clone())
            .collect();
        let groups = entry.groups.iter().cloned().collect();
        Principal::User {
            id: id.to_owned(),
            admin: entry.admin,
            groups,
            grants,
        }
    }

    #[test]
    fn every_run_waits_with_a_turn_that_needs_a_decision() {
        let catalogue = catalogue();
        let runs = waiting_runs(&SystemClock).unwrap();
        for run in &runs {
            let stored = &run.new.run;
            let state = RunState::open(&run.new.state, stored.id, &stored.owner, stored.turn).unwrap();
            assert_eq!(state.pending_turn().unwrap().as_ref(), Some(&run.turn));
            let needs = |call: &crate::model::PendingCall| {
                policy::approval_of(&catalogue, &call.tool) == Approval::Needed
            };
            assert!(run.turn.calls.iter().any(needs), "{:?}", run.story);
            assert!(catalogue.configurations.contains_key(&stored.configuration));
        }
        let digests: HashSet<_> = runs
            .iter()
            .map(|run| run.turn.digest().as_str().to_owned())
            .collect();
        assert_eq!(digests.len(), Story::ALL.len());
    }

    #[test]
    fn the_people_differ_in_what_they_could_run_themselves() {
        let catalogue = catalogue();
        let refund = |who: &str| {
            let configuration = &catalogue.configurations["support"];
            policy::decide(
                &catalogue,
                &"ledger_refund".into(),
                configuration,
                Some(&user(who)),
            )
        };
        assert_eq!(refund("ada"), ToolDecision::Allowed);
        assert_eq!(refund("olga"), ToolDecision::Allowed);
        assert_eq!(
            refund("gina"),
            ToolDecision::Denied(DenyReason::RequiresMembership)
        );
        let owner = OWNER.parse().unwrap();
        for who in ["ada", "gina", "olga"] {
            assert!(policy::may_decide(&user(who), &owner), "{who}");
        }
        assert!(!user("gina").is_admin());
    }

    #[test]
    fn the_instructions_are_those_of_the_configurations() {
        for configuration in catalogue().configurations.values() {
            assert_eq!(configuration.instructions.as_deref(), Some(INSTRUCTIONS));
        }
    }

    #[test]
    fn each_story_is_one_conversation() {
        let script: serde_json::Value = serde_json::from_str(MODEL_SCRIPT).unwrap();
        for story in Story::ALL {
            let fits = |known: &&serde_json::Value| story.message().contains(known["when"].as_str().unwrap());
            assert_eq!(
                script["conversations"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(fits)
                    .count(),
                1,
                "{story:?}"
            );
        }
    }
}
