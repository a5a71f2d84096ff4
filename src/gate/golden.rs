//! The golden table of the whole gate: every combination of verdict, actor kind, turn, binding, second approver and
//! recordability, with its outcome, in one reviewed file (`golden.txt`). A combination that is missing from
//! the file, one too many, and any other outcome fail here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use super::{Catalogued, Claim, Clearance, Facts, NotBound, Recording, Refusal, Seen, look, sample};
use crate::model::{
    Actor, ClaimedRun, Decision, DecisionStatus, Effect, Lease, Message, PendingCall, Principal, Run,
    RunState, RunStatus, Scope, Transcript, Turn, TurnDigest, TurnOrdinal, Verdict, WorkerName,
};

const ACTORS: [&str; 7] = [
    "admin",
    "granted",
    "owner",
    "plain",
    "unresolved",
    "service_scoped",
    "service_unscoped",
];
const TURNS: [&str; 4] = ["reads", "write", "unknown_tool", "mixed"];
const BINDINGS: [&str; 3] = ["right", "wrong_ordinal", "wrong_digest"];
const SECOND: [&str; 2] = ["any_approver", "second_approver"];
const RECORDING: [(&str, Recording); 2] = [
    ("recordable", Recording::Kept),
    ("unrecordable", Recording::Failed),
];

/// The actor, and what it resolves to. The tool `refund` is for the group `finance`: the owner and the admin are in it.
fn actor(kind: &str) -> (Actor, Option<Principal>) {
    let in_finance = |principal: Principal| match principal {
        Principal::User {
            id,
            admin,
            mut groups,
            grants,
        } => {
            groups.insert("finance".to_owned());
            Principal::User {
                id,
                admin,
                groups,
                grants,
            }
        }
        service @ Principal::Service { .. } => service,
    };
    let principal = match kind {
        "admin" => in_finance(sample::admin("ada")),
        "granted" => sample::granted("gina"),
        "owner" => in_finance(sample::user("olga")),
        "plain" => sample::user("paul"),
        "service_scoped" => sample::service("sweeper", &[Scope::AgentApprove]),
        "service_unscoped" => sample::service("reader", &[Scope::ConfigurationUse]),
        _ => return (Actor::User("gone".to_owned()), None),
    };
    (principal.actor(), Some(principal))
}

fn calls(kind: &str) -> Vec<(&'static str, &'static str)> {
    match kind {
        "reads" => vec![("c1", "read"), ("c2", "read")],
        "write" => vec![("c1", "refund")],
        "unknown_tool" => vec![("c1", "nonsense")],
        _ => vec![("c1", "read"), ("c2", "refund")],
    }
}

fn catalogued(second: &str) -> Catalogued {
    let mut catalogue = sample::catalogue();
    catalogue.tools.get_mut(&"refund".into()).unwrap().groups = vec!["finance".to_owned()];
    catalogue
        .configurations
        .get_mut("support")
        .unwrap()
        .require_second_approver = second == "second_approver";
    Catalogued {
        version: 1,
        catalogue: Arc::new(catalogue),
    }
}

struct Scene {
    run: Run,
    state: RunState,
    decision: Decision,
    principal: Option<Principal>,
    at: Catalogued,
}

fn scene(verdict: Verdict, actor_kind: &str, turn_kind: &str, binding: &str, second: &str) -> Scene {
    let owner = Actor::User("olga".to_owned());
    let id = Uuid::from_u128(1).into();
    let entries: Vec<_> = calls(turn_kind)
        .iter()
        .map(|(id, tool)| {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":"{{}}"}}}}"#)
        })
        .collect();
    let asks = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#,
        entries.join(",")
    );
    let transcript = Transcript::new(vec![
        Message::plain("user", "please"),
        Message::parse(asks).unwrap(),
    ]);
    let mut state = RunState::new(id, owner.clone(), transcript);
    state.turn = TurnOrdinal(7);
    let run = Run {
        id,
        owner,
        configuration: "support".to_owned(),
        status: RunStatus::WaitingForApproval,
        turn: state.turn,
        failure: None,
        claimed_by: None,
        epoch: 0,
        requeues: 0,
        created_at: OffsetDateTime::UNIX_EPOCH,
        updated_at: OffsetDateTime::UNIX_EPOCH,
        deadline: None,
    };
    let digest = state.pending_turn().unwrap().unwrap().digest();
    let other = Turn {
        ordinal: TurnOrdinal(7),
        calls: vec![PendingCall {
            id: "c9".into(),
            tool: "read".into(),
            arguments: String::new(),
        }],
    };
    let (turn, digest) = match binding {
        "right" => (TurnOrdinal(7), digest),
        "wrong_ordinal" => (TurnOrdinal(6), digest),
        _ => (TurnOrdinal(7), other.digest()),
    };
    let (actor, principal) = actor(actor_kind);
    let decision = decision(verdict, turn, digest, actor, &run);
    Scene {
        run,
        state,
        decision,
        principal,
        at: catalogued(second),
    }
}

fn decision(verdict: Verdict, turn: TurnOrdinal, digest: TurnDigest, actor: Actor, run: &Run) -> Decision {
    Decision {
        id: Uuid::from_u128(2).into(),
        run: run.id,
        turn: Some(turn),
        digest: Some(digest),
        verdict,
        actor,
        comment: None,
        status: DecisionStatus::Pending,
        decided_at: OffsetDateTime::UNIX_EPOCH,
    }
}

/// The gates in the order of the path.
fn outcome(scene: Scene, recording: Recording) -> Result<&'static str, Refusal> {
    let Scene {
        run,
        state,
        decision,
        principal,
        at,
    } = scene;
    let seen = look(Facts {
        decision: &decision,
        run: &run,
        state: Ok(&state),
        stands: None,
        principal: principal.as_ref(),
        at: &at,
        missing_secret: None,
        now: OffsetDateTime::UNIX_EPOCH,
    });
    match seen {
        Seen::Refused(refusal) => return Err(refusal),
        Seen::Concluded => return Ok("concluded"),
        Seen::Claimable => {}
    }
    let lease = Lease {
        holder: WorkerName::new("host", 1, "boot"),
        epoch: 1,
    };
    let claimed = ClaimedRun {
        run,
        lease,
        state: state.seal(),
    };
    let bound = Claim::won(claimed, decision)
        .bind()
        .map_err(|not_bound| match not_bound {
            NotBound::Refused(refusal) => refusal,
            NotBound::Unreadable(corrupt) => Refusal::CorruptState {
                detail: corrupt.to_string(),
            },
        })?;
    let (cleared, _) = bound.permit(&at, principal.as_ref())?.record(recording)?;
    Ok(match cleared.clearance() {
        Clearance::Approved { .. } => "executes",
        _ => "answered_as_denied",
    })
}

fn actual() -> BTreeMap<String, String> {
    let mut table = BTreeMap::new();
    for verdict in Verdict::ALL {
        for actor in ACTORS {
            for turn in TURNS {
                for binding in BINDINGS {
                    for second in SECOND {
                        for (name, recording) in RECORDING {
                            let scene = scene(verdict, actor, turn, binding, second);
                            let outcome = outcome(scene, recording);
                            let outcome =
                                outcome.map_or_else(|refusal| refusal.code().to_owned(), str::to_owned);
                            table.insert(
                                format!("{verdict} {actor} {turn} {binding} {second} {name}"),
                                outcome,
                            );
                        }
                    }
                }
            }
        }
    }
    table
}

#[test]
fn the_gate_is_the_reviewed_table() {
    let golden: BTreeMap<String, String> = include_str!("golden.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (facts, outcome) = line.split_once(" = ").expect("each line is `facts = outcome`");
            (facts.to_owned(), outcome.to_owned())
        })
        .collect();
    let actual = actual();
    let mut differences = String::new();
    for (facts, outcome) in &actual {
        if golden.get(facts) != Some(outcome) {
            writeln!(
                differences,
                "{facts} = {outcome}  (the table says {:?})",
                golden.get(facts)
            )
            .unwrap();
        }
    }
    for stale in golden.keys().filter(|facts| !actual.contains_key(*facts)) {
        writeln!(differences, "{stale}: no such combination").unwrap();
    }
    assert!(
        differences.is_empty(),
        "the gate and its table differ:\n{differences}"
    );
    assert_eq!(golden.len(), 2 * 7 * 4 * 3 * 2 * 2);
}

#[test]
fn the_fixture_writes_what_it_says() {
    let at = catalogued("any_approver");
    let effects = |kind| -> Vec<Effect> {
        calls(kind)
            .iter()
            .map(|(_, tool)| at.catalogue.effect_of(&(*tool).into()))
            .collect()
    };
    assert!(effects("reads").iter().all(|effect| !effect.is_write()));
    assert!(effects("unknown_tool")[0].is_write() && effects("mixed")[1].is_write());
}
