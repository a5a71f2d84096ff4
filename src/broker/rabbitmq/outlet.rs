//! The link that publishes, kept alive: made again when it breaks, and its blocked state told to who waits to publish.
//!
//! It is a connection apart from the consumers': under a memory or disk alarm the broker stops reading from a connection
//! that has published, and acknowledgements would be stuck behind.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use lapin::Event;
use lapin::options::ConfirmSelectOptions;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::board::Part;
use super::failure::Failure;
use super::link::Link;
use super::rebuild::Rebuilder;
use super::shared::Shared;
use crate::broker::Health;

/// A link in confirm mode.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) link: Arc<Link>,
    /// The broker's reason for taking nothing now.
    blocked: watch::Sender<Option<String>>,
    /// Why a sender found it broken.
    broken: watch::Sender<Option<Failure>>,
    /// Confirms are outstanding that nobody waits for any more.
    doubtful: AtomicBool,
    /// Since when messages reach no queue.
    missing_since: Mutex<Option<Instant>>,
}

/// How long a deleted queue is left to its consumers. A queue that is there again before the broker has told them is
/// taken by it for the old one: their channels then drop what the new queue delivers, without a word.
const LEFT_TO_CONSUMERS: Duration = Duration::from_secs(3);
/// A queue that is missing for the second time in so long is missing anew.
const ONE_EPISODE: Duration = Duration::from_secs(30);

impl Outlet {
    /// A link in confirm mode.
    pub(super) async fn open(shared: &Shared) -> Result<Arc<Link>, Failure> {
        let link = Link::open(shared, Part::Publisher).await?;
        let confirming = link.channel.confirm_select(ConfirmSelectOptions::default()).await;
        confirming.map_err(|error| Failure::in_use(&error))?;
        Ok(link)
    }

    fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            blocked: watch::Sender::new(None),
            broken: watch::Sender::new(None),
            doubtful: AtomicBool::new(false),
            missing_since: Mutex::new(None),
        }
    }

    /// A message has reached no queue. Whether that has lasted so long that nobody else will declare it again.
    pub(super) fn is_still_missing(&self) -> bool {
        let mut since = self.missing_since.lock().unwrap_or_else(PoisonError::into_inner);
        let lasted = since.map_or(ONE_EPISODE, |since| since.elapsed());
        if lasted >= ONE_EPISODE {
            *since = Some(Instant::now());
            return false;
        }
        lasted >= LEFT_TO_CONSUMERS
    }

    /// Why the broker takes nothing now, if it does not; changes can be awaited.
    pub(super) fn blocked(&self) -> watch::Receiver<Option<String>> {
        self.blocked.subscribe()
    }

    /// It broke under a sender.
    pub(super) fn give_up(&self, failure: Failure) {
        self.broken.send_replace(Some(failure));
    }

    /// Confirms did not come in time. Late ones, and late returns, would be taken for those of the next batch, so the link
    /// is not used for another: it is made again, and where the broker is blocked, as soon as that is over.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
        if self.blocked.borrow().is_none() {
            self.give_up(unconfirmed());
        }
    }

    /// Follows the link until it is no more.
    async fn lost(&self, shared: &Shared, events: impl Stream<Item = Event>) -> Failure {
        let mut events = pin!(events);
        let mut broken = self.broken.subscribe();
        if !self.link.connection.status().connected() {
            return Failure::passing("closed", "the connection was closed at once");
        }
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                broken = broken.wait_for(Option::is_some) => {
                    let failure = broken.ok().and_then(|failure| failure.clone());
                    return failure.unwrap_or_else(unconfirmed);
                }
            };
            match event {
                Some(Event::ConnectionBlocked(reason)) => self.block(shared, reason),
                Some(Event::ConnectionUnblocked) => {
                    if self.doubtful.load(Ordering::Acquire) {
                        return Failure::passing(
                            "unblocked",
                            "the alarm is over; late confirms are left behind",
                        );
                    }
                    self.unblock(shared);
                }
                Some(Event::Error(error)) => return Failure::in_use(&error),
                Some(_) => {}
                None => return Failure::passing("closed", "the connection has ended"),
            }
        }
    }

    fn block(&self, shared: &Shared, reason: String) {
        warn!(reason, "the broker takes no messages; they wait in the outbox");
        shared.board.set(Part::Publisher, Health::Blocked(reason.clone()));
        self.blocked.send_replace(Some(reason));
    }

    fn unblock(&self, shared: &Shared) {
        info!("the broker takes messages again");
        shared.board.set(Part::Publisher, Health::Up);
        self.blocked.send_replace(None);
    }
}

fn unconfirmed() -> Failure {
    Failure::passing("confirm_timeout", "confirms did not come in time")
}

/// Keeps an outlet in `current` until the broker is closed.
pub(super) async fn keep(shared: Arc<Shared>, first: Arc<Link>, current: watch::Sender<Option<Arc<Outlet>>>) {
    let mut rebuilder = Rebuilder::new(Arc::clone(&shared), Part::Publisher);
    let mut link = first;
    shared.board.set(Part::Publisher, Health::Up);
    loop {
        let events = link.connection.events_listener();
        let outlet = Arc::new(Outlet::new(Arc::clone(&link)));
        current.send_replace(Some(Arc::clone(&outlet)));
        let lost = tokio::select! {
            () = shared.closed.cancelled() => break,
            lost = outlet.lost(&shared, events) => lost,
        };
        current.send_replace(None);
        tokio::spawn(async move { link.close().await });
        match rebuilder.rebuild(lost, || Outlet::open(&shared)).await {
            Some(made) => link = made,
            None => break,
        }
    }
    current.send_replace(None);
    shared.board.remove(Part::Publisher);
}
