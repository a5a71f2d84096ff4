//! `countersign catalogue apply`: makes a checked file the current catalogue. The very text that is current already is
//! not applied again.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::check::{refused, told};
use super::diff::{form_of_changes, lines};
use crate::catalogue::{Catalogue, diff};
use crate::cli::arguments::{Globals, actor};
use crate::cli::exit::Exit;
use crate::cli::input;
use crate::cli::session::Session;
use crate::model::{Actor, EventKind};

/// What `catalogue apply` takes.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    /// The file; `-` reads standard input.
    file: PathBuf,
    /// Who does it, for the record.
    #[arg(long = "as", value_name = "ACTOR", value_parser = actor)]
    by: Option<Actor>,
}

pub(super) async fn run(globals: &Globals, arguments: &ApplyArguments) -> anyhow::Result<Exit> {
    let source = input::read(&arguments.file)?;
    let (catalogue, problems) = Catalogue::check(&source);
    let Some(catalogue) = catalogue else {
        return Err(refused(&arguments.file, &problems));
    };
    if !globals.json {
        eprint!("{}", told(&problems, globals.error_paint()));
    }
    let session = Session::open(globals).await?;
    let current = match session.store.current_version().await? {
        Some(version) => Some(session.version(version).await?),
        None => None,
    };
    if let Some(current) = current.as_ref().filter(|current| current.source == source) {
        let version = current.version;
        session.screen.answer(
            || json!({ "version": version, "applied": false, "changes": [] }),
            |_| format!("Version {version} is this very text; nothing to apply.\n"),
        )?;
        return Ok(Exit::Done);
    }
    // A current version that this build cannot read is no reason to refuse one that it can.
    let old = current.and_then(|current| Catalogue::parse(&current.source).ok());
    let changes = old.map(|old| diff(&old, &catalogue));
    let event = session.event(
        None,
        EventKind::CatalogueApplied,
        arguments.by.as_ref(),
        json!({}),
    );
    let version = session
        .store
        .apply_catalogue(&source, arguments.by.as_ref(), &event)
        .await?;
    session.screen.answer(
        || json!({ "version": version, "applied": true, "changes": changes.as_deref().map(form_of_changes) }),
        |paint| {
            let mut text = changes
                .as_deref()
                .map(|changes| lines(changes, paint))
                .unwrap_or_default();
            text.push_str(&format!(
                "Version {version} is the catalogue from the next claim on.\n"
            ));
            text
        },
    )?;
    Ok(Exit::Done)
}
