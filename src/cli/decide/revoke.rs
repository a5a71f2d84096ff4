//! `countersign decide revoke`: takes a decision back before a worker has used it. Its actor may, and an admin.

use clap::Args;
use serde_json::json;

use crate::cli::arguments::{Globals, actor};
use crate::cli::exit::{Exit, Fault};
use crate::cli::forms;
use crate::cli::session::Session;
use crate::model::{Actor, Decision, DecisionId, DecisionStatus, EventKind, visible};
use crate::store::Guarded;

/// What `decide revoke` takes.
#[derive(Debug, Args)]
#[command(after_help = super::ABOUT_AS)]
pub struct RevokeArguments {
    /// The decision, as `decide … --no-wait` and `runs show` name it.
    decision: DecisionId,
    /// Who takes it back: its actor, or an admin.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    actor: Actor,
}

pub(super) async fn run(globals: &Globals, arguments: &RevokeArguments) -> anyhow::Result<Exit> {
    let RevokeArguments { decision: id, actor } = arguments;
    let session = Session::open(globals).await?;
    let decision = find(&session, *id).await?;
    let principal = session.somebody(actor).await?;
    if decision.actor != *actor && !principal.is_admin() {
        return Err(Fault::new(
            Exit::Refused,
            format!("{actor} may not take back a decision of {}", decision.actor),
        )
        .help("whoever made it may, and an admin")
        .into());
    }
    let data = json!({ "decision_id": id, "turn": decision.turn, "verdict": decision.verdict.as_str() });
    let event = session.event(Some(decision.run), EventKind::DecisionRevoked, Some(actor), data);
    match session.store.revoke(*id, &event).await? {
        Guarded::Done => {
            let revoked = Decision {
                status: DecisionStatus::Revoked,
                ..decision
            };
            session.screen.answer(
                || json!({ "decision": forms::decision(&revoked) }),
                |_| format!("Decision {id} is taken back. Nothing was executed because of it.\n"),
            )?;
            Ok(Exit::Done)
        }
        Guarded::Lost => Err(too_late(&find(&session, *id).await?).into()),
    }
}

async fn find(session: &Session, id: DecisionId) -> anyhow::Result<Decision> {
    let decision = session.store.decision(id).await?;
    Ok(decision.ok_or_else(|| Fault::new(Exit::NotFound, format!("there is no decision {id}")))?)
}

fn too_late(decision: &Decision) -> Fault {
    let what = match &decision.status {
        DecisionStatus::Standing => "it stands already".to_owned(),
        DecisionStatus::Refused(code) => format!("it was refused ({})", visible(code)),
        DecisionStatus::Revoked => "it was taken back before".to_owned(),
        DecisionStatus::Pending => "somebody else was changing it".to_owned(),
    };
    Fault::new(
        Exit::TooLate,
        format!("decision {} can no longer be taken back: {what}", decision.id),
    )
    .help(format!(
        "see what became of it with `countersign runs show {}`",
        decision.run
    ))
}
