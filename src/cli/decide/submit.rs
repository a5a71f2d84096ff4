//! `countersign decide submit`: a decision as a JSON document. It is taken exactly or not at all: an unknown
//! member, a verdict in another spelling or a wrong type is an error, and nothing is recorded.

use std::path::PathBuf;

use clap::Args;

use super::{ABOUT_AS, Waiting};
use crate::cli::arguments::{Globals, actor};
use crate::cli::exit::{Exit, Fault};
use crate::cli::input;
use crate::cli::session::Session;
use crate::model::{Actor, DecisionRequest, RunId};

/// What `decide submit` takes.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_AS)]
pub struct SubmitArguments {
    /// The run.
    run: RunId,
    /// The document; `-` reads it from standard input:
    /// {"verdict":"approve"|"deny","turn":1,"digest":"sha256:…","comment":"…"}, the comment optional.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Who decides: user:ID or service:ID.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    actor: Actor,
    #[command(flatten)]
    waiting: Waiting,
}

pub(super) async fn run(globals: &Globals, arguments: &SubmitArguments) -> anyhow::Result<Exit> {
    let request = DecisionRequest::parse(input::read(&arguments.file)?.as_bytes()).map_err(|error| {
        Fault::new(Exit::Usage, error.to_string()).help(
            "nothing was recorded; write {\"verdict\":\"approve\"|\"deny\",\"turn\":N,\"digest\":\"sha256:…\"}, \
             and a \"comment\" if you like",
        )
    })?;
    let session = Session::open(globals).await?;
    super::decide(
        &session,
        arguments.run,
        request,
        &arguments.actor,
        &arguments.waiting,
    )
    .await
}
