//! Growing, jittered pauses between attempts: the one place that uses the crate `backoff`.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// The pauses of one episode of failure. They double from the first to the longest, each give or take a
/// half, and never end; who retries decides when to give up.
#[derive(Debug)]
pub struct Pauses(ExponentialBackoff);

impl Pauses {
    /// Pauses that begin around `first` and grow to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self(ExponentialBackoff {
            current_interval: first,
            initial_interval: first,
            randomization_factor: 0.5,
            multiplier: 2.0,
            max_interval: longest,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        })
    }

    /// How long to wait before the next attempt.
    pub fn next_pause(&mut self) -> Duration {
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }

    /// The episode is over; the next one begins small again.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_again() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(2));
        let mut pauses = Pauses::new(first, longest);
        assert!(pauses.next_pause() <= first * 3 / 2);
        let grown = (0..20).map(|_| pauses.next_pause()).last().unwrap();
        assert!(grown >= longest / 2 && grown <= longest * 3 / 2, "{grown:?}");
        pauses.reset();
        assert!(pauses.next_pause() <= first * 3 / 2);
    }
}
