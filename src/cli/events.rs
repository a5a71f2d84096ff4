//! `countersign events follow`: what happens, as it happens, of one run or of all.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::time::sleep;

use super::arguments::Globals;
use super::exit::Exit;
use super::forms;
use super::session::{Session, no_such_run};
use super::timeline::{OfRun, line};
use crate::model::{Event, RunId};
use crate::store::{self, Store};

/// How often the store is asked.
const POLL: Duration = Duration::from_millis(200);
/// How many events are read at a time.
const PAGE: u32 = 500;
/// How many positions are looked at again. Positions are given out before a transaction commits, so that a slow one may
/// be seen after its successors.
const LOOK_BACK: i64 = 200;

/// What can be done with events.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Show events as they come, until Ctrl-C. Of one run: from its beginning. Of all: from now on.
    Follow(FollowArguments),
}

/// What `events follow` takes.
#[derive(Debug, Args)]
pub struct FollowArguments {
    /// Only events of this run.
    run: Option<RunId>,
    /// Begin after this position; 0 is the beginning.
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    from: Option<i64>,
    /// Show what there is and end.
    #[arg(long)]
    once: bool,
}

pub(super) async fn run(globals: &Globals, command: &EventsCommand) -> anyhow::Result<Exit> {
    let EventsCommand::Follow(arguments) = command;
    let session = Session::open(globals).await?;
    if let Some(run) = arguments.run {
        session.store.run(run).await?.ok_or_else(|| no_such_run(run))?;
    }
    let begin = match (arguments.from, arguments.run) {
        (Some(position), _) => position,
        (None, Some(_)) => 0,
        (None, None) if arguments.once => 0,
        (None, None) => newest_position(session.store.as_ref()).await?,
    };
    tokio::select! {
        followed = follow(&session, arguments, Seen::after(begin)) => followed,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
    }
}

async fn follow(session: &Session, arguments: &FollowArguments, mut seen: Seen) -> anyhow::Result<Exit> {
    let of_run = if arguments.run.is_some() {
        OfRun::Known
    } else {
        OfRun::Named
    };
    loop {
        let mut after = seen.look_from();
        loop {
            let page = match session.store.events(arguments.run, after, PAGE).await {
                Ok(page) => page,
                Err(error) if error.is_transient() && !arguments.once => break,
                Err(error) => return Err(error.into()),
            };
            let Some(last) = page.last().map(|event| event.position) else {
                break;
            };
            for event in page.iter().filter(|event| seen.is_new(event)) {
                session
                    .screen
                    .line(|| forms::event(event), |paint| line(event, of_run, paint))?;
            }
            after = last;
        }
        if arguments.once {
            return Ok(Exit::Done);
        }
        sleep(POLL).await;
    }
}

/// Which events have been shown.
struct Seen {
    /// Nothing up to here is shown.
    floor: i64,
    /// The highest position that was shown.
    highest: i64,
    /// Positions that were shown, as far as they are looked at again.
    recent: BTreeSet<i64>,
}

impl Seen {
    fn after(position: i64) -> Self {
        Self {
            floor: position,
            highest: position,
            recent: BTreeSet::new(),
        }
    }

    fn look_from(&self) -> i64 {
        self.floor.max(self.highest - LOOK_BACK)
    }

    fn is_new(&mut self, event: &Event) -> bool {
        let new = self.recent.insert(event.position);
        self.highest = self.highest.max(event.position);
        self.recent = self.recent.split_off(&(self.look_from() + 1));
        new
    }
}

/// The newest event's position, found by halving.
async fn newest_position(store: &dyn Store) -> store::Result<i64> {
    let (mut low, mut high) = (0, 1_024);
    while !store.events(None, high, 1).await?.is_empty() {
        (low, high) = (high, high * 2);
    }
    // There is an event after `low`, or none at all; there is none after `high`.
    while low < high {
        let middle = low + (high - low) / 2;
        match store.events(None, middle, 1).await?.first() {
            Some(event) => low = event.position,
            None => high = middle,
        }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventId, EventKind, NewEvent};
    use time::macros::datetime;

    fn event(position: i64) -> Event {
        let id = EventId::from(uuid::Uuid::from_u128(u128::from(position.unsigned_abs())));
        let at = datetime!(2026-12-01 05:10:03 UTC);
        let kind = EventKind::RunQueued;
        let event = NewEvent {
            id,
            run: None,
            kind,
            actor: None,
            at,
            data: serde_json::json!({}),
        };
        Event {
            position,
            event,
            published_at: None,
            wakes: 0,
        }
    }

    #[test]
    fn an_event_is_shown_once_though_it_comes_late() {
        let mut seen = Seen::after(0);
        assert!(seen.is_new(&event(1)));
        assert!(seen.is_new(&event(3)));
        assert!(!seen.is_new(&event(3)));
        assert!(seen.is_new(&event(2)), "committed after its successor");
        assert!(!seen.is_new(&event(2)));
    }

    #[test]
    fn what_was_not_asked_for_stays_unseen() {
        let mut seen = Seen::after(1_000);
        assert_eq!(seen.look_from(), 1_000);
        assert!(seen.is_new(&event(1_001)));
        assert_eq!(seen.look_from(), 1_000);
        assert!(seen.is_new(&event(2_000)));
        assert_eq!(seen.look_from(), 1_800);
        assert_eq!(seen.recent.len(), 1);
    }
}
