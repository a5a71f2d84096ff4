//! `countersign catalogue show`: a version, as it was applied.

use clap::Args;
use serde_json::json;

use super::current_number;
use crate::cli::exit::Exit;
use crate::cli::moment::{relative, rfc3339};
use crate::cli::screen;
use crate::cli::session::Session;

/// What `catalogue show` takes.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Which version; the current one unless set.
    #[arg(long = "version", value_name = "N")]
    number: Option<i64>,
}

pub(super) async fn run(session: &Session, arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let number = match arguments.number {
        Some(number) => number,
        None => current_number(session).await?,
    };
    let version = session.version(number).await?;
    if session.screen.is_json() {
        session.screen.answer(
            || {
                json!({
                    "version": version.version,
                    "applied_by": version.applied_by,
                    "applied_at": rfc3339(version.applied_at),
                    "source": version.source,
                })
            },
            |_| String::new(),
        )?;
        return Ok(Exit::Done);
    }
    let by = version
        .applied_by
        .as_ref()
        .map(|by| format!(" by {by}"))
        .unwrap_or_default();
    let when = relative(version.applied_at, session.now());
    // Apart from the text, so that the text can be sent into a file.
    eprintln!("version {}, applied {when}{by}", version.version);
    screen::write(&session.screen.document(&version.source))?;
    Ok(Exit::Done)
}
