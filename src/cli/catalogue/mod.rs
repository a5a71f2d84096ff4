//! `countersign catalogue …`: what is declared. `check` needs no database; `apply` stores the next version, which
//! workers act on from their next claim; a version is never changed.

mod apply;
mod check;
mod diff;
mod show;

use clap::Subcommand;

use super::arguments::Globals;
use super::exit::{Exit, Fault};
use super::session::Session;

/// What can be done with the catalogue.
#[derive(Debug, Subcommand)]
pub enum CatalogueCommand {
    /// Check a file. Needs no database.
    Check(check::CheckArguments),
    /// Check a file and make it the current catalogue.
    Apply(apply::ApplyArguments),
    /// Print a version, as it was applied.
    Show(show::ShowArguments),
    /// Say what differs. Of one FILE or version N: to the current catalogue, of two: from the first to the second,
    /// of none: what the current version changed.
    Diff(diff::DiffArguments),
}

pub(super) async fn run(globals: &Globals, command: &CatalogueCommand) -> anyhow::Result<Exit> {
    match command {
        CatalogueCommand::Check(arguments) => check::run(&globals.screen(), arguments),
        CatalogueCommand::Apply(arguments) => apply::run(globals, arguments).await,
        CatalogueCommand::Show(arguments) => show::run(&Session::open(globals).await?, arguments).await,
        CatalogueCommand::Diff(arguments) => diff::run(&Session::open(globals).await?, arguments).await,
    }
}

/// The number of the current version.
async fn current_number(session: &Session) -> anyhow::Result<i64> {
    let current = session.store.current_version().await?;
    Ok(current.ok_or_else(|| {
        Fault::new(Exit::NotFound, "no catalogue has been applied")
            .help("apply one with `countersign catalogue apply FILE`")
    })?)
}
