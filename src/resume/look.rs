//! Look: refuse what can be refused before anything is touched, and keep the refusal.

use serde_json::json;
use uuid::Uuid;

use super::deliver::Delivered;
use super::{EventMint, Path, Stop, tell};
use crate::engine;
use crate::gate::{self, Facts, Refusal, Seen};
use crate::identity::resolve;
use crate::model::{Decision, EventKind, NewEvent, Run, RunState, RunStatus};
use crate::store::Store;

/// Gathers the facts and looks.
pub(super) async fn look(path: &Path, job: &Delivered) -> Result<(), Stop> {
    let at = path.catalogues.current(&*path.store).await?;
    let mut directory: &dyn Store = &*path.store;
    let principal = resolve(&mut directory, &job.decision.actor).await?;
    let state = RunState::open(&job.state, job.run.id, &job.run.owner, job.run.turn);
    let missing_secret = at
        .configuration(&job.run.configuration)
        .ok()
        .and_then(|configuration| engine::missing_secret(&at.catalogue, configuration));
    let seen = gate::look(Facts {
        decision: &job.decision,
        run: &job.run,
        state: state.as_ref(),
        stands: job.stands,
        principal: principal.as_ref(),
        at: &at,
        missing_secret: missing_secret.as_deref(),
        now: path.clock.now(),
    });
    match seen {
        Seen::Claimable => Ok(()),
        Seen::Concluded => Err(Stop::Done("the decision has had its outcome")),
        Seen::Refused(refusal) => {
            let events = events_of(path, &job.decision, &job.run, state.as_ref().ok(), &refusal, &at);
            // Whether the decision was still pending does not matter: it did not stand before, and does not now.
            let _ = path
                .store
                .refuse(job.decision.id, refusal.code(), &events)
                .await?;
            tell::log_refusal(&job.decision, &refusal);
            Err(Stop::Refused(refusal))
        }
    }
}

/// What is told of a refusal: the refusal, and the turn that waits, once more. Told once for each decision and turn,
/// however often its job is delivered; of a verdict that stands already, nothing is told.
pub(super) fn events_of(
    path: &Path,
    decision: &Decision,
    run: &Run,
    state: Option<&RunState>,
    refusal: &Refusal,
    at: &gate::Catalogued,
) -> Vec<NewEvent> {
    if refusal.is_no_fault() {
        return Vec::new();
    }
    let mint = EventMint(path.clock.clone());
    let told_once = |what: &str| {
        let name = format!("{what} of {} at turn {}", refusal.code(), run.turn);
        Uuid::new_v5(&decision.id.uuid(), name.as_bytes()).into()
    };
    let refused = tell::refused(decision, refusal, at.version);
    let mut events = vec![NewEvent {
        id: told_once("refusal"),
        ..mint.by(Some(&decision.actor), run.id, EventKind::RunRefused, refused)
    }];
    let turn = state.and_then(|state| state.pending_turn().ok().flatten());
    if run.status == RunStatus::WaitingForApproval {
        let mut waiting = turn.map_or_else(|| json!({ "turn": run.turn }), |turn| tell::waiting(&turn, at));
        waiting["again"] = json!(true);
        events.push(NewEvent {
            id: told_once("announcement"),
            ..mint.by(None, run.id, EventKind::RunWaiting, waiting)
        });
    }
    events
}
