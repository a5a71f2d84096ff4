//! Waiting for a condition, with a deadline: the only way in which a test here waits.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Asks until there is an answer; panics when there is none within `patience`.
pub async fn eventually<T, F>(what: &str, patience: Duration, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
        sleep(Duration::from_millis(20)).await;
    }
}
