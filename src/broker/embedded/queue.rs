//! The queue of the in-process broker: jobs in the order they came, and those that were given up. A job that comes back
//! takes its old place, as in a quorum queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::DeadLetter;
use crate::broker::dead_letters;

/// How many dead letters are kept: enough for a person to look at.
const DEAD_LETTERS_KEPT: usize = 1_000;

/// A job in the queue, or out of it.
#[derive(Debug)]
pub(super) struct Job {
    place: u64,
    pub(super) body: Vec<u8>,
    pub(super) message_id: Option<String>,
    /// How often it was sent before.
    pub(super) earlier: u32,
    pub(super) redeliveries: u32,
}

#[derive(Debug, Default)]
struct Contents {
    next_place: u64,
    ready: BTreeMap<u64, Job>,
    dead: VecDeque<DeadLetter>,
}

/// The jobs, and who waits for them.
#[derive(Debug)]
pub(super) struct Queue {
    contents: Mutex<Contents>,
    arrived: Notify,
    closed: CancellationToken,
    delivery_limit: u32,
}

impl Queue {
    pub(super) fn new(delivery_limit: u32) -> Self {
        Self {
            contents: Mutex::default(),
            arrived: Notify::new(),
            closed: CancellationToken::new(),
            delivery_limit,
        }
    }

    /// Appends a job.
    pub(super) fn put(&self, body: Vec<u8>, message_id: Option<String>, earlier: u32) {
        let mut contents = self.contents();
        let place = contents.next_place;
        contents.next_place += 1;
        contents.ready.insert(
            place,
            Job {
                place,
                body,
                message_id,
                earlier,
                redeliveries: 0,
            },
        );
        drop(contents);
        self.arrived.notify_waiters();
    }

    /// The next job; waits for one. Nothing once the queue is closed. Safe to cancel.
    pub(super) async fn take(&self) -> Option<Job> {
        loop {
            let arrived = self.arrived.notified();
            if self.closed.is_cancelled() {
                return None;
            }
            // `notified` counts from its creation on, so a job that arrives between here and the wait is not missed.
            if let Some((_, job)) = self.contents().ready.pop_first() {
                return Some(job);
            }
            tokio::select! {
                () = self.closed.cancelled() => return None,
                () = arrived => {}
            }
        }
    }

    /// Puts a job back to its place, or gives it up.
    pub(super) fn put_back(&self, mut job: Job) {
        job.redeliveries += 1;
        if job.redeliveries > self.delivery_limit {
            let reason = format!("delivery_limit: it came back {} times", job.redeliveries);
            return self.give_up(DeadLetter {
                reason,
                message_id: job.message_id,
                body: job.body,
            });
        }
        self.contents().ready.insert(job.place, job);
        self.arrived.notify_waiters();
    }

    /// Keeps a dead letter.
    pub(super) fn give_up(&self, letter: DeadLetter) {
        dead_letters::count(&letter.reason);
        let mut contents = self.contents();
        if contents.dead.len() == DEAD_LETTERS_KEPT {
            contents.dead.pop_front();
        }
        contents.dead.push_back(letter);
    }

    pub(super) fn dead_letters(&self) -> Vec<DeadLetter> {
        self.contents().dead.iter().cloned().collect()
    }

    /// Hands out nothing more.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Waits for the close.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Each change above is complete before anything can panic.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
