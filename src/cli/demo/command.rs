//! `countersign demo`: the embedded system on a temporary folder, with people, payments and four runs that wait.
//! It needs no key and no network, and removes all of it at its end.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::guide::guide;
use super::play;
use super::seed::{self, WaitingRun};
use crate::cli::arguments::Globals;
use crate::cli::copyable::Program;
use crate::cli::directory_change::written;
use crate::cli::exit::{Exit, Fault};
use crate::cli::process;
use crate::cli::session::store_settings;
use crate::cli::signals::Signals;
use crate::clock::{Clock, SystemClock};
use crate::config::{LogFormat, LogSettings, Role, Settings};
use crate::engine::models::Scripted;
use crate::identity::DirectoryFile;
use crate::model::{EventKind, NewEvent};
use crate::store::{Directory, Migration, Opened, connect};
use crate::worker::{self, Works};

/// The options of `demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Play the story by itself, say what each step proves, and fail if one comes out otherwise.
    #[arg(long)]
    script: bool,
}

pub(in crate::cli) async fn run(globals: &Globals, arguments: &DemoArguments) -> anyhow::Result<Exit> {
    let screen = globals.screen();
    let level = if arguments.script {
        "off"
    } else {
        "countersign=warn"
    };
    crate::telemetry::log(&LogSettings {
        format: LogFormat::Text,
        level: level.to_owned(),
    })?;
    let signals = Signals::listen()?;
    let folder = tempfile::Builder::new().prefix("countersign-demo-").tempdir()?;
    let config = write_settings(folder.path())?;
    let settings = Settings::load(Some(&config), std::iter::empty())?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let opened = connect(&store_settings(&settings), Migration::Apply).await?;
    let runs = seed_all(&opened, &*clock).await?;
    let broker = process::broker(&settings).await?;
    let scripted = Scripted::new().with_builtin(seed::MODEL_SCRIPT_NAME, seed::MODEL_SCRIPT);
    let works = process::works(
        &settings,
        opened.clone(),
        Arc::clone(&broker),
        clock.clone(),
        scripted,
    )?;
    if arguments.script {
        let working = tokio::spawn(work(works, signals.stop.clone()));
        let played = tokio::select! {
            played = play::play(&opened, &*clock, &runs, &screen) => played,
            () = signals.stop.cancelled() => Err(Fault::new(Exit::Failed, "the demo was ended before it was over").into()),
        };
        signals.stop.cancel();
        working.await??;
        return played;
    }
    let program = Program::at(&std::env::current_exe()?, Some(&config));
    screen.answer(
        || json!({ "config": config.display().to_string(), "runs": runs.iter().map(|run| run.id()).collect::<Vec<_>>() }),
        |paint| guide(&program, &runs, paint),
    )?;
    tokio::select! {
        worked = work(works, signals.stop.clone()) => worked?,
        () = signals.now.cancelled() => {}
    }
    broker.close().await;
    Ok(Exit::Done)
}

async fn work(works: Works, stop: tokio_util::sync::CancellationToken) -> anyhow::Result<()> {
    worker::work(works, &Role::ALL.into(), stop).await?;
    Ok(())
}

/// The demo's settings, as a file, so that every other command can be pointed at the demo.
fn write_settings(folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    let path = folder.join("countersign.toml");
    let database = folder.join("demo.db");
    // A TOML literal string cannot hold a single quote, so the text is escaped as a basic string.
    let url = format!("{:?}", format!("sqlite://{}", database.display()));
    std::fs::write(
        &path,
        format!(
            "# The settings of a demo; they end with it.\n[database]\nurl = {url}\n[worker]\ngrace = \"2s\"\n\
             [relay]\npoll = \"50ms\"\n[http]\nlisten = \"off\"\n"
        ),
    )?;
    Ok(path)
}

async fn seed_all(opened: &Opened, clock: &dyn Clock) -> anyhow::Result<Vec<WaitingRun>> {
    let event = |kind| NewEvent {
        id: clock.new_id().into(),
        run: None,
        kind,
        actor: None,
        at: clock.now(),
        data: json!({}),
    };
    let file = DirectoryFile::parse(seed::DIRECTORY).map_err(|problems| {
        Fault::new(Exit::Failed, "the demo's people cannot be read").details(&problems)
    })?;
    let directory = written(file, &Directory::default());
    opened
        .store
        .replace_directory(&directory, &event(EventKind::DirectoryChanged))
        .await?;
    opened
        .store
        .apply_catalogue(seed::CATALOGUE, None, &event(EventKind::CatalogueApplied))
        .await?;
    for payment in seed::payments() {
        opened.ledger.put_payment(&payment).await?;
    }
    let runs = seed::waiting_runs(clock)?;
    for run in &runs {
        opened.store.create_run(&run.new).await?;
    }
    Ok(runs)
}
