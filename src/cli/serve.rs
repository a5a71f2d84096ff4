//! `countersign serve`: the process that does the work, in the roles it is given.
//!
//! It listens first, not ready yet, then waits for the database and the broker, then works until it is told to
//! stop. What it cannot do because of its settings ends it at once, with a message that says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::arguments::Globals;
use super::exit::{Exit, Fault};
use super::signals::Signals;
use super::{process, session};
use crate::broker::{Broker, Health as BrokerHealth};
use crate::clock::SystemClock;
use crate::config::{DatabaseKind, Role, Settings};
use crate::engine::models::Scripted;
use crate::http::{self, Health};
use crate::store::{Migration, SharedStore, connect};
use crate::telemetry;
use crate::worker::{self, Stopped};

/// The options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// What this process does; all of it unless set.
    #[arg(long, value_delimiter = ',', value_name = "ROLE", value_parser = role)]
    roles: Vec<Role>,
}

fn role(name: &str) -> Result<Role, String> {
    Role::parse(name).ok_or_else(|| format!("write {}", Role::ALL.map(Role::as_str).join(", ")))
}

pub(super) async fn run(globals: &Globals, arguments: &ServeArguments) -> anyhow::Result<Exit> {
    let settings = session::settings(globals)?;
    telemetry::log(&settings.log)?;
    let roles: BTreeSet<Role> = match arguments.roles.as_slice() {
        [] => Role::ALL.into(),
        some => some.iter().copied().collect(),
    };
    settings.allow(&roles).map_err(|problems| {
        Fault::new(Exit::Failed, "these roles cannot be played with these settings").details(&problems)
    })?;
    let signals = Signals::listen()?;
    tokio::select! {
        ended = work(&settings, &roles, &signals) => ended,
        () = signals.now.cancelled() => {
            tracing::warn!("ended at once by a second signal; what ran is left to its leases");
            Ok(Exit::Interrupted)
        }
    }
}

async fn work(settings: &Settings, roles: &BTreeSet<Role>, signals: &Signals) -> anyhow::Result<Exit> {
    let (store, broker_health) = (
        Arc::new(watch::Sender::new(None)),
        watch::Sender::new(Some("not connected yet".to_owned())),
    );
    let health = Health {
        store: Arc::clone(&store),
        broker: broker_health.subscribe(),
        metrics: telemetry::metrics(),
    };
    let answering = CancellationToken::new();
    if let Some(address) = settings.http.listen {
        let bound = http::bind(address).await?;
        tracing::info!(%address, "answering /livez, /readyz and /metrics");
        tokio::spawn(bound.serve(health, answering.clone()));
    }
    let connected = tokio::select! {
        connected = connect_all(settings, &store) => connected?,
        () = signals.stop.cancelled() => return Ok(Exit::Done),
    };
    let (opened, broker) = connected;
    tokio::spawn(tell_health(Arc::clone(&broker), broker_health));
    let works = process::works(
        settings,
        opened,
        Arc::clone(&broker),
        Arc::new(SystemClock),
        Scripted::new(),
    )?;
    process::refill(settings, &works).await?;
    let names: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
    tracing::info!(worker = %works.worker, roles = names.join(","), "working");
    let stopped = worker::work(works, roles, signals.stop.clone()).await?;
    broker.close().await;
    answering.cancel();
    match stopped {
        Stopped::Clean => tracing::info!("stopped; every turn that ran came to an end"),
        Stopped::LetGo { jobs } => {
            tracing::warn!(jobs, "stopped; the rest is taken up when its leases run out")
        }
    }
    Ok(Exit::Done)
}

async fn connect_all(
    settings: &Settings,
    told: &watch::Sender<Option<SharedStore>>,
) -> anyhow::Result<(crate::store::Opened, Arc<dyn Broker>)> {
    // One machine migrates itself; many are migrated by whoever deploys them.
    let migration = match settings.database.kind {
        DatabaseKind::Sqlite => Migration::Apply,
        DatabaseKind::Postgres => Migration::Require,
    };
    let opened = connect(&session::store_settings(settings), migration).await?;
    told.send_replace(Some(opened.store.clone()));
    tracing::info!("the database is reached");
    let broker = process::broker(settings).await?;
    tracing::info!("the broker is reached");
    Ok((opened, broker))
}

/// Keeps the readiness answer as the broker is.
async fn tell_health(broker: Arc<dyn Broker>, told: watch::Sender<Option<String>>) {
    let mut health = broker.health();
    loop {
        let why = match &*health.borrow_and_update() {
            BrokerHealth::Up => None,
            BrokerHealth::Blocked(why) => Some(format!("takes no messages ({why})")),
            BrokerHealth::Down(why) => Some(format!("not connected ({why})")),
        };
        told.send_replace(why);
        if health.changed().await.is_err() {
            return;
        }
    }
}
