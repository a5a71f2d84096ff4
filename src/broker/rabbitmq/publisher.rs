//! Publishes batches: checks sizes, waits for a link, sends one batch at a time, and says of each message whether the
//! broker has it. It retries nothing: who publishes keeps the message until it is confirmed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout_at};
use tracing::{error, warn};

use super::batch;
use super::declare::declare;
use super::failure::Failure;
use super::letter::Letter;
use super::outlet::Outlet;
use super::shared::Shared;
use crate::broker::{Outgoing, PublishError, Topology};

/// The publishing side of a broker.
#[derive(Debug)]
pub(super) struct Publisher {
    shared: Arc<Shared>,
    outlet: watch::Receiver<Option<Arc<Outlet>>>,
    /// One batch at a time: the broker returns an unroutable message before it confirms it, but lapin hangs the returned one
    /// on whichever confirm comes next, which must at least be one of the same batch.
    turn: Mutex<()>,
}

impl Publisher {
    pub(super) fn new(shared: Arc<Shared>, outlet: watch::Receiver<Option<Arc<Outlet>>>) -> Self {
        Self {
            shared,
            outlet,
            turn: Mutex::default(),
        }
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.shared.settings.topology
    }

    /// Publishes jobs and events.
    pub(super) async fn publish(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>> {
        let limit = self.shared.settings.max_message_bytes;
        let fits = |message: &Outgoing| match message.body.len() {
            bytes if bytes > limit => Err(PublishError::TooLarge { bytes, limit }),
            _ => Ok(()),
        };
        let mut results: Vec<_> = messages.iter().map(fits).collect();
        let fitting = messages
            .into_iter()
            .zip(&results)
            .filter(|(_, fits)| fits.is_ok());
        let letters: Vec<_> = fitting
            .map(|(message, _)| Letter::outgoing(self.topology(), message))
            .collect();
        let mut sent = self.send(letters).await.into_iter();
        for result in results.iter_mut().filter(|result| result.is_ok()) {
            *result = sent.next().unwrap_or_else(|| Err(unconfirmed("not sent")));
        }
        results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .for_each(count);
        results
    }

    /// Sends letters in their order and waits for the confirms, one result for each.
    pub(super) async fn send(&self, letters: Vec<Letter>) -> Vec<Result<(), PublishError>> {
        if letters.is_empty() {
            return Vec::new();
        }
        let deadline = Instant::now() + self.shared.settings.confirm_timeout;
        let all = |error: PublishError, count| vec![Err(error); count];
        let Ok(_turn) = timeout_at(deadline, self.turn.lock()).await else {
            return all(
                unconfirmed("an earlier batch is still waiting for its confirms"),
                letters.len(),
            );
        };
        match self.ready(deadline).await {
            Ok(outlet) => self.send_over(&outlet, letters, deadline).await,
            Err(error) => all(error, letters.len()),
        }
    }

    /// A link that the broker takes messages over.
    async fn ready(&self, deadline: Instant) -> Result<Arc<Outlet>, PublishError> {
        let mut current = self.outlet.clone();
        loop {
            let outlet = match timeout_at(deadline, current.wait_for(Option::is_some)).await {
                Ok(Ok(outlet)) => outlet.clone(),
                Ok(Err(_)) => return Err(unconfirmed("the broker has been closed")),
                Err(_) => return Err(unconfirmed("not connected")),
            };
            let Some(outlet) = outlet else { continue };
            let mut blocked = outlet.blocked();
            let Some(reason) = blocked.borrow_and_update().clone() else {
                return Ok(outlet);
            };
            // Sending to a blocked broker would only pile the messages up in front of it.
            tokio::select! {
                _ = blocked.changed() => {}
                _ = current.changed() => {}
                () = tokio::time::sleep_until(deadline) => {
                    return Err(unconfirmed(&format!("the broker takes no messages: {reason}")));
                }
            }
        }
    }

    async fn send_over(
        &self,
        outlet: &Outlet,
        letters: Vec<Letter>,
        deadline: Instant,
    ) -> Vec<Result<(), PublishError>> {
        let sent = batch::send(&outlet.link.channel, letters, deadline).await;
        if let Some(error) = sent.broke {
            outlet.give_up(Failure::in_use(&error));
        } else if sent.timed_out {
            outlet.doubt();
        } else if sent.results.contains(&Err(PublishError::Unroutable)) && outlet.is_still_missing() {
            self.declare_again(outlet).await;
        }
        sent.results
    }

    /// A queue is missing that we declared: somebody deleted it. Its consumers declare it again; where there are none, we do.
    async fn declare_again(&self, outlet: &Outlet) {
        warn!("a message reached no queue; the topology is declared again");
        // On a channel of its own: a refused declaration closes its channel.
        let declared = async {
            let channel = outlet.link.connection.create_channel().await;
            declare(&channel.map_err(|error| Failure::in_use(&error))?, &self.shared).await
        };
        let limit = Duration::from_secs(10);
        let outcome = tokio::time::timeout(limit, declared).await;
        match outcome.unwrap_or_else(|_| {
            Err(Failure::passing(
                "declare",
                "the declarations were not answered in time",
            ))
        }) {
            Ok(()) => {}
            Err(failure) => {
                error!("the topology could not be declared again: {}", failure.text());
                outlet.give_up(failure);
            }
        }
    }
}

fn unconfirmed(why: &str) -> PublishError {
    PublishError::Unconfirmed(why.to_owned())
}

fn count(error: &PublishError) {
    let kind = match error {
        PublishError::TooLarge { .. } => "too_large",
        PublishError::Unroutable => "unroutable",
        PublishError::Unconfirmed(_) => "unconfirmed",
    };
    metrics::counter!("countersign_publish_failures_total", "kind" => kind).increment(1);
}
