//! `countersign who-can`: who could release the turn that a run waits with. Every enabled actor of the directory is put to
//! the real gates; nothing is claimed, decided or written.

use clap::Args;
use serde_json::{Value, json};

use super::arguments::Globals;
use super::exit::{Exit, Fault};
use super::layout::{Cell, Table};
use super::paint::{Paint, Style};
use super::session::{Session, no_such_run};
use crate::gate::{Catalogued, Refusal, Waiting, could_release};
use crate::identity::principal_of;
use crate::model::{Actor, Run, RunId, RunStatus, visible};

/// What `who-can` takes.
#[derive(Debug, Args)]
pub struct WhoCanArguments {
    /// The run.
    run: RunId,
}

/// What the gates say of each actor.
type Verdicts = Vec<(Actor, Result<(), Refusal>)>;

pub(super) async fn run(globals: &Globals, arguments: &WhoCanArguments) -> anyhow::Result<Exit> {
    let session = Session::open(globals).await?;
    let id = arguments.run;
    let (run, state) = session
        .store
        .run_with_state(id)
        .await?
        .ok_or_else(|| no_such_run(id))?;
    if run.status != RunStatus::WaitingForApproval {
        return Err(Fault::new(
            Exit::TooLate,
            format!("run {id} waits for no decision: it is {}", run.status),
        )
        .into());
    }
    let at = session
        .current_catalogue()
        .await?
        .unwrap_or_else(Catalogued::none);
    let waiting = Waiting {
        run: &run,
        state: &state,
        at: &at,
        // Secrets are the workers': this process may have others.
        missing_secret: None,
        now: session.now(),
    };
    let mut verdicts = Verdicts::new();
    for actor in actors(&session).await? {
        if let Some(entry) = session.store.directory_entry(&actor).await?
            && let Some(principal) = principal_of(entry)
        {
            let verdict = could_release(waiting, &actor, Some(&principal));
            verdicts.push((actor, verdict));
        }
    }
    session.screen.answer(
        || as_json(&run, &at, &verdicts),
        |paint| as_text(&run, &verdicts, paint),
    )?;
    Ok(Exit::Done)
}

async fn actors(session: &Session) -> anyhow::Result<Vec<Actor>> {
    let directory = session.store.directory().await?;
    let people = directory.people.into_iter().map(|person| Actor::User(person.id));
    let accounts = directory
        .accounts
        .into_iter()
        .map(|account| Actor::Service(account.id));
    Ok(people.chain(accounts).collect())
}

fn as_json(run: &Run, at: &Catalogued, verdicts: &Verdicts) -> Value {
    let actors: Vec<_> = verdicts
        .iter()
        .map(|(actor, verdict)| {
            let refusal = verdict.as_ref().err().map(Refusal::to_json);
            json!({ "actor": actor, "could": refusal.is_none(), "refusal": refusal })
        })
        .collect();
    json!({
        "run_id": run.id,
        "turn": run.turn,
        "catalogue": at.version,
        "nobody": verdicts.iter().all(|(_, verdict)| verdict.is_err()),
        "actors": actors,
    })
}

fn as_text(run: &Run, verdicts: &Verdicts, paint: Paint) -> String {
    let able = verdicts.iter().filter(|(_, verdict)| verdict.is_ok()).count();
    let mut text = match able {
        0 => format!(
            "{} can release turn {} of run {} as things are.\n",
            paint.apply(Style::Red, "Nobody"),
            run.turn,
            run.id
        ),
        able => format!("{able} could release turn {} of run {}.\n", run.turn, run.id),
    };
    text.push('\n');
    let mut table = Table::with_headings(["ACTOR", "COULD", "WHY NOT"]);
    for (actor, verdict) in verdicts {
        let (could, why) = match verdict {
            Ok(()) => (Cell::new(Style::Green, "yes"), String::new()),
            Err(refusal) => (
                Cell::new(Style::Red, "no"),
                format!("{}: {}", refusal.code(), visible(&refusal.to_string())),
            ),
        };
        table.row([actor.to_string().into(), could, why.into()]);
    }
    text.push_str(&table.render(paint));
    text
}
