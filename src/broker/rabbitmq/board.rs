//! The health of the whole, from the health of its parts: the publisher and each consumer have a connection of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::broker::Health;

/// Something that has a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Publisher,
    /// Consumers are numbered as they come.
    Consumer(u64),
}

impl Part {
    /// The label in metrics and logs.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Consumer(_) => "consumer",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Where the parts put how they are.
#[derive(Debug)]
pub(super) struct Board {
    parts: Mutex<BTreeMap<Part, Health>>,
    whole: watch::Sender<Health>,
}

impl Board {
    pub(super) fn new() -> Self {
        Self {
            parts: Mutex::default(),
            whole: watch::Sender::new(Health::Down("not connected yet".to_owned())),
        }
    }

    pub(super) fn set(&self, part: Part, health: Health) {
        self.change(|parts| drop(parts.insert(part, health)));
    }

    pub(super) fn remove(&self, part: Part) {
        self.change(|parts| drop(parts.remove(&part)));
    }

    pub(super) fn whole(&self) -> watch::Receiver<Health> {
        self.whole.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Part, Health>)) {
        // A map of plain values is whole even where a panic left the lock poisoned.
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut parts);
        let health = combine(&parts);
        self.whole.send_if_modified(|whole| {
            let changed = *whole != health;
            *whole = health;
            changed
        });
    }
}

/// The worst of all: down before blocked before up.
fn combine(parts: &BTreeMap<Part, Health>) -> Health {
    if parts.is_empty() {
        return Health::Down("closed".to_owned());
    }
    let mut whole = Health::Up;
    for (part, health) in parts {
        match (health, &whole) {
            (Health::Down(why), _) => return Health::Down(format!("{part}: {why}")),
            (Health::Blocked(why), Health::Up) => whole = Health::Blocked(why.clone()),
            _ => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_as_the_worst_of_its_parts() {
        let board = Board::new();
        let whole = board.whole();
        board.set(Part::Publisher, Health::Up);
        assert_eq!(*whole.borrow(), Health::Up);
        board.set(Part::Publisher, Health::Blocked("low on memory".to_owned()));
        assert_eq!(*whole.borrow(), Health::Blocked("low on memory".to_owned()));
        board.set(Part::Consumer(1), Health::Down("cut".to_owned()));
        assert_eq!(*whole.borrow(), Health::Down("consumer: cut".to_owned()));
        board.remove(Part::Consumer(1));
        board.set(Part::Publisher, Health::Up);
        assert_eq!(*whole.borrow(), Health::Up);
        board.remove(Part::Publisher);
        assert_eq!(*whole.borrow(), Health::Down("closed".to_owned()));
    }
}
