//! A pooled connection never carries a transaction that somebody has given up: what is reported written is there.

use std::task::Poll;
use std::time::Duration;

use countersign::model::WorkerName;
use countersign::store::{Migration, StoreSettings, connect};
use sqlx::Connection as _;

use crate::system::{Kind, eventually, play};

/// Drops the future where it is still pending when it has been polled so often.
async fn given_up_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

mod real_services {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn case_h10_a_transaction_that_is_given_up_leaks_into_no_later_one() {
        play(Kind::Real, |system| async move {
            let settings = StoreSettings {
                url: system.url.clone(),
                max_connections: 2,
                connect_timeout: Duration::from_secs(20),
            };
            let store = connect(&settings, Migration::Require).await.unwrap().store;
            let worker = WorkerName::new("pooled", 1, "boot");
            let hour = Duration::from_secs(3_600);
            let mut given_up = 0;
            for attempt in 0..100 {
                // From before the first byte is sent to well after the last answer.
                let duty = format!("given up {attempt}");
                let written = given_up_after(attempt % 7, store.hold_duty(&duty, &worker, hour)).await;
                given_up += usize::from(written.is_none());
                let kept = format!("kept {attempt}");
                assert!(store.hold_duty(&kept, &worker, hour).await.unwrap());
            }
            assert!(given_up > 0, "{given_up} of 100 were given up on their way");
            let mut other = sqlx::PgConnection::connect(&system.url).await.unwrap();
            let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM duties WHERE name LIKE 'kept %'")
                .fetch_one(&mut other)
                .await
                .unwrap();
            assert_eq!(kept, 100, "every write that was reported is there");
            // The two connections that are not in use may still be rolling back.
            store.ping().await.unwrap();
            store.ping().await.unwrap();
            eventually("no transaction is left open", || async {
                let mut other = sqlx::PgConnection::connect(&system.url).await.unwrap();
                let open: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND application_name = 'countersign' AND state LIKE 'idle in transaction%'",
                )
                .fetch_one(&mut other)
                .await
                .unwrap();
                (open == 0).then_some(())
            })
            .await;
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn case_h11_a_column_is_added_while_the_store_is_in_use() {
        play(Kind::Real, |system| async move {
            let call = ("c1", "refund", "{}");
            let before = system.waiting("support", &[call]).await;
            system.run(before.run).await;
            system
                .sql("ALTER TABLE runs ADD COLUMN added text; ALTER TABLE events ADD COLUMN added text")
                .await;
            let after = system.waiting("support", &[call]).await;
            assert_eq!(system.state(before.run).await, before.sealed);
            assert_eq!(system.kinds(after.run).await, ["run.waiting_for_approval"]);
        })
        .await;
    }
}
