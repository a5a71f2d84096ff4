//! The relay: feeds the broker from the outbox. One relay works at a time; the events of a run are published in their
//! order; an event is marked once the broker has confirmed it, and published again under the same id until it has.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Works;
use crate::broker::{Destination, Outgoing, PublishError};
use crate::model::{Event, EventId, Job, RunId};
use crate::retry::Pauses;
use crate::store::Result;

const DUTY: &str = "relay";
/// How long the duty is held without being renewed.
const DUTY_TTL: Duration = Duration::from_secs(15);

pub(super) async fn run(works: Works, stop: CancellationToken) {
    let bell = works.store.bell();
    let mut pauses = Pauses::new(works.pace.relay_poll, Duration::from_secs(5));
    let mut away = false;
    while !stop.is_cancelled() {
        let pause = match turn(&works).await {
            Ok(Published::More) => {
                pauses.reset();
                continue;
            }
            Ok(Published::All | Published::NotOurs) => {
                if std::mem::take(&mut away) {
                    tracing::info!("the relay goes on");
                }
                pauses.reset();
                works.pace.relay_poll
            }
            Ok(Published::Some) => pauses.next_pause(),
            Err(error) => {
                if !std::mem::replace(&mut away, true) {
                    tracing::warn!(%error, "the relay cannot read the outbox; it keeps trying");
                }
                pauses.next_pause()
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = bell.notified() => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Publishes what is left, for as long as it gets anywhere, and lets another relay go on at once.
pub(super) async fn drain(works: &Works) {
    while matches!(turn(works).await, Ok(Published::More)) {}
    // Not lost if it fails: the duty runs out by itself.
    let _ = works.store.hold_duty(DUTY, &works.worker, Duration::ZERO).await;
}

enum Published {
    /// The outbox is empty.
    All,
    /// As much as is published at a time; there may be more.
    More,
    /// Not everything could be confirmed.
    Some,
    /// Another relay has the duty.
    NotOurs,
}

async fn turn(works: &Works) -> Result<Published> {
    if !works.store.hold_duty(DUTY, &works.worker, DUTY_TTL).await? {
        return Ok(Published::NotOurs);
    }
    let (events, confirmed) = relay_once(works).await?;
    metrics::gauge!("countersign_outbox_unconfirmed").set((events - confirmed) as f64);
    Ok(match (events, confirmed) {
        (0, _) => Published::All,
        (events, confirmed) if events == confirmed => Published::More,
        _ => Published::Some,
    })
}

/// Publishes one batch from the outbox. Returns how many events it held, and how many were confirmed.
///
/// # Errors
/// The outbox could not be read or marked.
pub async fn relay_once(works: &Works) -> Result<(usize, usize)> {
    let events = works.store.outbox(works.pace.relay_batch).await?;
    let count = events.len();
    let mut confirmed = Vec::with_capacity(count);
    let mut stuck: HashSet<RunId> = HashSet::new();
    for round in rounds(events) {
        let round: Vec<Event> = round
            .into_iter()
            .filter(|event| event.event.run.is_none_or(|run| !stuck.contains(&run)))
            .collect();
        let (messages, owners) = messages(&round);
        let results = works.broker.publish(messages).await;
        let mut failed: HashSet<EventId> = HashSet::new();
        for (owner, result) in owners.into_iter().zip(results) {
            if let Err(error) = result
                && !given_up(owner, &error)
            {
                failed.insert(owner);
            }
        }
        for event in round {
            if !failed.contains(&event.event.id) {
                confirmed.push(event.event.id);
            } else if let Some(run) = event.event.run {
                stuck.insert(run);
            }
        }
    }
    works.store.mark_published(&confirmed).await?;
    metrics::counter!("countersign_events_published_total").increment(confirmed.len() as u64);
    Ok((count, confirmed.len()))
}

/// Splits a batch so that no round holds two events of one run: a later one is sent only when the one before is with
/// the broker.
fn rounds(events: Vec<Event>) -> Vec<Vec<Event>> {
    let mut seen: HashMap<Option<RunId>, usize> = HashMap::new();
    let mut rounds: Vec<Vec<Event>> = Vec::new();
    for event in events {
        let turn = match event.event.run {
            Some(run) => {
                let turn = seen.entry(Some(run)).or_default();
                *turn += 1;
                *turn - 1
            }
            None => 0,
        };
        if rounds.len() <= turn {
            rounds.push(Vec::new());
        }
        rounds[turn].push(event);
    }
    rounds
}

fn messages(events: &[Event]) -> (Vec<Outgoing>, Vec<EventId>) {
    let mut messages = Vec::new();
    let mut owners = Vec::new();
    for event in events {
        let (id, kind) = (event.event.id, event.event.kind);
        if kind.route().is_published() {
            let body = event.event.to_json().to_string().into_bytes();
            messages.push(Outgoing {
                id,
                destination: Destination::Events(kind.as_str()),
                body,
                earlier: 0,
            });
            owners.push(id);
        }
        if kind.route().is_job()
            && let Some(job) = Job::of(event)
        {
            messages.push(Outgoing {
                id,
                destination: Destination::Jobs,
                body: job.to_bytes(),
                earlier: event.wakes,
            });
            owners.push(id);
        }
    }
    (messages, owners)
}

/// Whether trying again is no use: the event stays in the database, and the outbox goes on without it.
fn given_up(event: EventId, error: &PublishError) -> bool {
    match error {
        PublishError::TooLarge { .. } => {
            tracing::error!(%event, %error, "an event is too large to be published; it is kept in the database only");
            metrics::counter!("countersign_events_too_large_total").increment(1);
            true
        }
        PublishError::Unroutable | PublishError::Unconfirmed(_) => {
            tracing::debug!(%event, %error, "an event is not confirmed; it will be published again");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::{EventKind, NewEvent};

    fn event(position: i64, run: u128) -> Event {
        let event = NewEvent {
            id: Uuid::from_u128(position.unsigned_abs().into()).into(),
            run: (run > 0).then(|| Uuid::from_u128(run).into()),
            kind: EventKind::RunCompleted,
            actor: None,
            at: time::OffsetDateTime::UNIX_EPOCH,
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
    fn no_round_holds_two_events_of_one_run_and_order_is_kept() {
        let rounds = rounds(vec![
            event(1, 1),
            event(2, 2),
            event(3, 1),
            event(4, 1),
            event(5, 2),
            event(6, 0),
        ]);
        let positions: Vec<Vec<i64>> = rounds
            .iter()
            .map(|round| round.iter().map(|event| event.position).collect())
            .collect();
        assert_eq!(positions, [vec![1, 2, 6], vec![3, 5], vec![4]]);
    }

    #[test]
    fn only_what_can_never_be_sent_is_given_up() {
        let id = Uuid::from_u128(1).into();
        assert!(given_up(id, &PublishError::TooLarge { bytes: 2, limit: 1 }));
        assert!(!given_up(id, &PublishError::Unroutable));
        assert!(!given_up(id, &PublishError::Unconfirmed(String::new())));
    }
}
