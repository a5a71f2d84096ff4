//! Makes a part's link again after it broke: attempt after attempt, said once in the log when it begins and once when it
//! is over. What failed is told by [`Health`] and by a metric; nothing else in the process notices an outage.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::board::Part;
use super::failure::Failure;
use super::shared::Shared;
use crate::broker::Health;
use crate::retry::Pauses;

/// The first and the longest pause. The longest bounds how late we are once a broker is back.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// A link that held this long was sound: what breaks next begins with short pauses again.
const SOUND: Duration = Duration::from_secs(30);

/// The pauses of backing off from a broker.
pub(super) fn pauses() -> Pauses {
    Pauses::new(PAUSES.0, PAUSES.1)
}

/// The rebuilding of one part.
#[derive(Debug)]
pub(super) struct Rebuilder {
    shared: Arc<Shared>,
    part: Part,
    pauses: Pauses,
    built: Instant,
}

impl Rebuilder {
    pub(super) fn new(shared: Arc<Shared>, part: Part) -> Self {
        Self {
            shared,
            part,
            pauses: pauses(),
            built: Instant::now(),
        }
    }

    /// Tries until `attempt` succeeds; nothing once the broker is closed.
    pub(super) async fn rebuild<T, F>(&mut self, lost: Failure, attempt: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let began = Instant::now();
        if began - self.built > SOUND {
            self.pauses.reset();
        }
        self.begin(&lost);
        let mut attempts = 0_u32;
        loop {
            let pause = self.pauses.next_pause();
            tokio::select! {
                () = self.shared.closed.cancelled() => return None,
                () = tokio::time::sleep(pause) => {}
            }
            attempts += 1;
            match attempt().await {
                Ok(made) => {
                    self.built = Instant::now();
                    self.shared.board.set(self.part, Health::Up);
                    let took = format!("{:.1} s", began.elapsed().as_secs_f64());
                    info!(part = %self.part, attempts, took, "broker link is back");
                    return Some(made);
                }
                Err(failure) => self.failed(&failure, attempts),
            }
        }
    }

    fn begin(&self, lost: &Failure) {
        let (part, reason) = (self.part.label(), lost.reason());
        metrics::counter!("countersign_broker_rebuilds_total", "part" => part, "reason" => reason)
            .increment(1);
        warn!(part, reason, "broker link lost, making it again: {}", lost.text());
        self.shared
            .board
            .set(self.part, Health::Down(lost.text().to_owned()));
    }

    fn failed(&self, failure: &Failure, attempts: u32) {
        match failure {
            // Somebody changed the broker under us; the first attempt says so aloud, since it may never pass.
            Failure::Misconfigured(text) if attempts == 1 => error!(part = %self.part, "{text}"),
            _ => {
                debug!(part = %self.part, attempts, reason = failure.reason(), "broker link: {}", failure.text())
            }
        }
        self.shared
            .board
            .set(self.part, Health::Down(failure.text().to_owned()));
    }
}
