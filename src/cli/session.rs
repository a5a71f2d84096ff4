//! What a command works with once the settings are read and the database is open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use time::OffsetDateTime;

use super::arguments::Globals;
use super::copyable::Program;
use super::exit::{Exit, Fault};
use super::screen::Screen;
use crate::catalogue::Catalogue;
use crate::clock::{Clock, SystemClock};
use crate::config::{Settings, SettingsError};
use crate::gate::Catalogued;
use crate::identity::resolve;
use crate::model::{Actor, EventId, EventKind, NewEvent, Principal, RunId};
use crate::store::{CatalogueVersion, Ledger, Migration, Opened, SharedStore, Store, StoreSettings, connect};

/// An open database, a clock and a screen.
pub struct Session {
    /// The database.
    pub store: SharedStore,
    /// The ledger in the same database.
    pub ledger: Arc<dyn Ledger>,
    /// Where times and ids come from.
    pub clock: Arc<dyn Clock>,
    /// Where the answer goes.
    pub screen: Screen,
    /// How this program is called, for commands to be copied.
    pub program: Program,
}

/// The settings, from the file that the options or the working folder name and from the environment.
///
/// # Errors
/// The file cannot be read, or a setting is wrong.
pub fn settings(globals: &Globals) -> anyhow::Result<Settings> {
    let file = config_file(globals);
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge of the process, where the environment is handed in"
    )]
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut settings = Settings::load(file.as_deref(), environment).map_err(unusable)?;
    if let Some(timeout) = globals.connect_timeout {
        settings.database.connect_timeout = timeout;
        settings.broker.connect_timeout = timeout;
    }
    Ok(settings)
}

/// Where the database is, as the store takes it.
#[must_use]
pub fn store_settings(settings: &Settings) -> StoreSettings {
    let database = &settings.database;
    StoreSettings {
        url: database.url.expose().to_owned(),
        max_connections: database.max_connections,
        connect_timeout: database.connect_timeout,
    }
}

fn unusable(error: SettingsError) -> anyhow::Error {
    let SettingsError::Invalid { file, problems } = &error else {
        return error.into();
    };
    let message = match file {
        Some(file) => format!("wrong settings in {} or in the environment", file.display()),
        None => "wrong settings in the environment, and there is no settings file".to_owned(),
    };
    Fault::new(Exit::Failed, message)
        .details(problems)
        .help("mend what is named above, or name a file with --config; docs/settings.md lists all settings")
        .into()
}

fn config_file(globals: &Globals) -> Option<PathBuf> {
    let usual = Path::new("countersign.toml");
    globals
        .config
        .clone()
        .or_else(|| usual.exists().then(|| usual.to_owned()))
}

impl Session {
    /// Opens the database that the settings name, as far as it has this build's tables.
    ///
    /// # Errors
    /// The settings are wrong, or the database is, or it is away.
    pub async fn open(globals: &Globals) -> anyhow::Result<Self> {
        Self::open_with(globals, Migration::Require).await
    }

    /// Opens the database that the settings name.
    ///
    /// # Errors
    /// The settings are wrong, or the database is, or it is away.
    pub async fn open_with(globals: &Globals, migration: Migration) -> anyhow::Result<Self> {
        say_warnings();
        let settings = settings(globals)?;
        let Opened { store, ledger } = connect(&store_settings(&settings), migration).await?;
        Ok(Self {
            store,
            ledger,
            clock: Arc::new(SystemClock),
            screen: globals.screen(),
            program: Program::as_called(config_file(globals).as_deref()),
        })
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// An event that happens now.
    #[must_use]
    pub fn event(&self, run: Option<RunId>, kind: EventKind, actor: Option<&Actor>, data: Value) -> NewEvent {
        let id = EventId::from(self.clock.new_id());
        NewEvent {
            id,
            run,
            kind,
            actor: actor.cloned(),
            at: self.now(),
            data,
        }
    }

    /// What the actor is right now.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn resolve(&self, actor: &Actor) -> anyhow::Result<Option<Principal>> {
        let mut directory: &dyn Store = self.store.as_ref();
        Ok(resolve(&mut directory, actor).await?)
    }

    /// What the actor is right now, who must be somebody.
    ///
    /// # Errors
    /// The actor is unknown, disabled or deleted.
    pub async fn somebody(&self, actor: &Actor) -> anyhow::Result<Principal> {
        self.resolve(actor).await?.ok_or_else(|| {
            Fault::new(Exit::Refused, format!("{actor} is unknown, disabled or deleted"))
                .help("see who there is with `countersign directory show`")
                .into()
        })
    }

    /// The current catalogue, if one was ever applied.
    ///
    /// # Errors
    /// The database could not be read, or what it holds is no catalogue.
    pub async fn current_catalogue(&self) -> anyhow::Result<Option<Catalogued>> {
        let Some(version) = self.store.current_version().await? else {
            return Ok(None);
        };
        let source = self.version(version).await?.source;
        Ok(Some(Catalogued {
            version,
            catalogue: Arc::new(parse_stored(version, &source)?),
        }))
    }

    /// One catalogue version.
    ///
    /// # Errors
    /// There is none of that number.
    pub async fn version(&self, version: i64) -> anyhow::Result<CatalogueVersion> {
        self.store.catalogue(version).await?.ok_or_else(|| {
            Fault::new(Exit::NotFound, format!("there is no catalogue version {version}"))
                .help("`countersign catalogue show` shows the current one")
                .into()
        })
    }
}

/// The fault of a run that does not exist.
#[must_use]
pub fn no_such_run(run: RunId) -> Fault {
    Fault::new(Exit::NotFound, format!("there is no run {run}"))
        .help("list them with `countersign runs list`")
}

/// A stored catalogue. It was checked when it was applied, so that only a younger or older build fails here.
///
/// # Errors
/// This build cannot read it.
pub fn parse_stored(version: i64, source: &str) -> anyhow::Result<Catalogue> {
    Catalogue::parse(source).map_err(|problems| {
        Fault::new(
            Exit::Failed,
            format!("this build cannot read catalogue version {version}: {problems}"),
        )
        .help("apply a catalogue that `countersign catalogue check` accepts")
        .into()
    })
}

/// Lets warnings be seen, such as that the database does not answer yet. Who has set up logging keeps it.
fn say_warnings() {
    let _ = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .try_init();
}
