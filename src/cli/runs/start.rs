//! `countersign runs start`: a new run, queued for a worker. Refused are a configuration that is not declared and
//! an owner who may not use it; a worker asks the same again before it begins.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::catalogue::nearest;
use crate::cli::arguments::actor;
use crate::cli::exit::{Exit, Fault};
use crate::cli::session::Session;
use crate::cli::{forms, input};
use crate::gate::Catalogued;
use crate::model::{
    Actor, EventKind, Message, Run, RunId, RunState, RunStatus, Transcript, TurnOrdinal, visible,
};
use crate::policy;
use crate::store::NewRun;

/// What `runs start` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "--as is for operators who already hold the database's credentials: it is believed, not checked."
)]
pub struct StartArguments {
    /// The configuration to run under, as the catalogue names it.
    #[arg(long, value_name = "NAME")]
    configuration: String,
    /// The owner, as whom everything executes: user:ID or service:ID.
    #[arg(long = "as", value_name = "OWNER", value_parser = actor)]
    owner: Actor,
    /// The user's message; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    input: String,
}

pub(super) async fn run(session: &Session, arguments: &StartArguments) -> anyhow::Result<Exit> {
    let StartArguments {
        configuration,
        owner,
        input,
    } = arguments;
    let text = if input == "-" {
        input::read(Path::new("-"))?
    } else {
        input.clone()
    };
    if text.trim().is_empty() {
        return Err(Fault::new(Exit::Usage, "the input is empty")
            .help("say what the run is to do with --input")
            .into());
    }
    let at = session.current_catalogue().await?.ok_or_else(|| {
        Fault::new(Exit::NotFound, "no catalogue has been applied")
            .help("apply one with `countersign catalogue apply FILE`")
    })?;
    let found = at
        .catalogue
        .configurations
        .get(configuration)
        .ok_or_else(|| unknown(&at, configuration))?;
    at.configuration(configuration)
        .map_err(|gone| Fault::new(Exit::NotFound, gone.to_string()))?;
    let principal = session.somebody(owner).await?;
    if !policy::may_use(found, Some(&principal)) {
        let message = format!("{owner} may not use the configuration `{configuration}`");
        let groups = found.groups.join(", ");
        return Err(Fault::new(Exit::Refused, message)
            .help(format!(
                "it is for admins, for members of {groups}, and for accounts with `configuration:use`"
            ))
            .into());
    }
    let run = queued(session, owner, configuration);
    let state = RunState::new(
        run.id,
        owner.clone(),
        transcript(found.instructions.as_deref(), &text),
    )
    .seal();
    let data = json!({ "configuration": configuration, "owner": owner });
    let event = session.event(Some(run.id), EventKind::RunQueued, Some(owner), data);
    session
        .store
        .create_run(&NewRun {
            run: run.clone(),
            state,
            events: vec![event],
        })
        .await?;
    session.screen.answer(
        || json!({ "run": forms::run(&run) }),
        |paint| {
            format!(
                "Run {} is queued.\n{} {}\n",
                paint.bold(&run.id.to_string()),
                paint.dim("follow it:"),
                session.program.with(&format!("events follow {}", run.id))
            )
        },
    )?;
    Ok(Exit::Done)
}

fn unknown(at: &Catalogued, name: &str) -> Fault {
    let declared = || at.catalogue.configurations.keys().map(String::as_str);
    let fault = Fault::new(
        Exit::NotFound,
        format!("there is no configuration `{}`", visible(name)),
    );
    match nearest(name, declared()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault.help(format!(
            "declared are: {}",
            declared().collect::<Vec<_>>().join(", ")
        )),
    }
}

fn queued(session: &Session, owner: &Actor, configuration: &str) -> Run {
    let now = session.now();
    Run {
        id: RunId::from(session.clock.new_id()),
        owner: owner.clone(),
        configuration: configuration.to_owned(),
        status: RunStatus::Queued,
        turn: TurnOrdinal(0),
        failure: None,
        claimed_by: None,
        epoch: 0,
        requeues: 0,
        created_at: now,
        updated_at: now,
        deadline: None,
    }
}

fn transcript(instructions: Option<&str>, input: &str) -> Transcript {
    let system = instructions.map(|text| Message::plain("system", text));
    Transcript::new(
        system
            .into_iter()
            .chain([Message::plain("user", input)])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_with_its_instructions() {
        let roles = |instructions| {
            let transcript = transcript(instructions, "hello");
            transcript
                .messages()
                .iter()
                .map(|message| message.role().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(roles(Some("be kind")), ["system", "user"]);
        assert_eq!(roles(None), ["user"]);
    }
}
