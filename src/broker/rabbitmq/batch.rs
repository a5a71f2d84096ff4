//! Sends a batch over one channel, all of it before the first confirm is awaited, and sorts out what became of each
//! message.

use std::collections::HashSet;

use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, PublisherConfirm};
use tokio::time::{Instant, timeout_at};

use super::letter::Letter;
use crate::broker::PublishError;

/// What became of a batch.
#[derive(Debug)]
pub(super) struct Sent {
    /// One for each letter, in their order.
    pub(super) results: Vec<Result<(), PublishError>>,
    /// What the channel broke of, if it did.
    pub(super) broke: Option<lapin::Error>,
    /// Whether something was still under way at the deadline.
    pub(super) timed_out: bool,
}

/// Sends the letters. The deadline bounds the whole.
pub(super) async fn send(channel: &Channel, letters: Vec<Letter>, deadline: Instant) -> Sent {
    let mut pending = Vec::with_capacity(letters.len());
    let ids: Vec<_> = letters.iter().map(|letter| letter.id().cloned()).collect();
    let mut fate = Fate::default();
    for letter in letters {
        let sent = match fate.sealed() {
            true => None,
            false => fate.observe(timeout_at(deadline, hand_over(channel, letter)).await),
        };
        pending.push(sent);
    }
    let mut confirmed = Vec::with_capacity(pending.len());
    let mut returned = HashSet::new();
    for confirm in pending {
        let answer = match confirm {
            Some(confirm) => fate.observe(timeout_at(deadline, confirm).await),
            None => None,
        };
        confirmed.push(fate.judge(answer, &mut returned));
    }
    let unroutable = |(result, id): (_, &_)| {
        if returned.contains(id) {
            Err(PublishError::Unroutable)
        } else {
            result
        }
    };
    let results = confirmed.into_iter().zip(&ids).map(unroutable).collect();
    Sent {
        results,
        broke: fate.broke,
        timed_out: fate.timed_out,
    }
}

async fn hand_over(channel: &Channel, letter: Letter) -> lapin::Result<PublisherConfirm> {
    let Letter {
        exchange,
        routing_key,
        mandatory,
        properties,
        body,
    } = letter;
    let options = BasicPublishOptions {
        mandatory,
        ..BasicPublishOptions::default()
    };
    channel
        .basic_publish(exchange, routing_key, options, &body, properties)
        .await
}

/// What befell the channel while the batch was under way.
#[derive(Debug, Default)]
struct Fate {
    broke: Option<lapin::Error>,
    timed_out: bool,
}

impl Fate {
    /// Whether there is no use in sending more.
    fn sealed(&self) -> bool {
        self.broke.is_some() || self.timed_out
    }

    fn observe<T>(&mut self, outcome: Result<lapin::Result<T>, tokio::time::error::Elapsed>) -> Option<T> {
        match outcome {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => drop(self.broke.get_or_insert(error)),
            Err(_) => self.timed_out = true,
        }
        None
    }

    /// The result of one message, and the id of a returned one, which need not be the one confirmed here.
    fn judge(
        &self,
        answer: Option<Confirmation>,
        returned: &mut HashSet<Option<ShortString>>,
    ) -> Result<(), PublishError> {
        let acknowledged = answer.as_ref().is_some_and(Confirmation::is_ack);
        let refused = answer.as_ref().is_some_and(Confirmation::is_nack);
        if let Some(message) = answer.and_then(Confirmation::take_message) {
            returned.insert(message.properties.message_id().clone());
        }
        match &self.broke {
            _ if acknowledged => Ok(()),
            _ if refused => Err(PublishError::Unconfirmed("the broker refused it".to_owned())),
            Some(error) => Err(PublishError::Unconfirmed(error.to_string())),
            None => Err(PublishError::Unconfirmed("no confirm in time".to_owned())),
        }
    }
}
