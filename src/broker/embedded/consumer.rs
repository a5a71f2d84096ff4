//! Takes jobs from the in-process queue, at most `prefetch` of them at a time, and settles them.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::DeadLetter;
use super::queue::{Job, Queue};
use crate::broker::{Consumer, Delivery, Receipt};

/// A consumer of the in-process queue.
#[derive(Debug)]
pub(super) struct EmbeddedConsumer {
    queue: Arc<Queue>,
    /// One permit for each delivery that may be out; closed when stopped.
    slots: Arc<Semaphore>,
}

impl EmbeddedConsumer {
    pub(super) fn new(queue: Arc<Queue>, prefetch: u16) -> Self {
        Self {
            queue,
            slots: Arc::new(Semaphore::new(usize::from(prefetch.max(1)))),
        }
    }
}

#[async_trait]
impl Consumer for EmbeddedConsumer {
    async fn next(&mut self) -> Option<Delivery> {
        let slot = tokio::select! {
            () = self.queue.closed() => return None,
            slot = Arc::clone(&self.slots).acquire_owned() => slot.ok()?,
        };
        let job = self.queue.take().await?;
        Some(Delivery {
            // The receipt keeps its own: a dropped delivery goes back whole.
            body: job.body.clone(),
            message_id: job.message_id.clone(),
            came_before: job.earlier + job.redeliveries,
            receipt: Box::new(EmbeddedReceipt {
                queue: Arc::clone(&self.queue),
                job: Some(job),
                _slot: slot,
            }),
        })
    }

    async fn stop(&mut self) {
        self.slots.close();
    }
}

/// The settling side of a delivery: gives its slot back when it is settled.
#[derive(Debug)]
struct EmbeddedReceipt {
    queue: Arc<Queue>,
    job: Option<Job>,
    _slot: OwnedSemaphorePermit,
}

#[async_trait]
impl Receipt for EmbeddedReceipt {
    async fn acknowledge(mut self: Box<Self>) {
        self.job = None;
    }

    async fn requeue(self: Box<Self>) {
        drop(self);
    }

    async fn dead_letter(mut self: Box<Self>, body: Vec<u8>, message_id: Option<String>, reason: &str) {
        self.job = None;
        self.queue.give_up(DeadLetter {
            reason: reason.to_owned(),
            message_id,
            body,
        });
    }
}

impl Drop for EmbeddedReceipt {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.queue.put_back(job);
        }
    }
}
