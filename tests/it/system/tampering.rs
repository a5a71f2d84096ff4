//! What no surface offers: statements past the store, messages past the relay, and what became of them.

use super::*;

impl System {
    /// A statement on the test's database.
    pub async fn sql(&self, statement: &str) {
        use sqlx::Connection as _;
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        match self.kind {
            Kind::Embedded => {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::raw_sql("PRAGMA busy_timeout = 20000")
                    .execute(&mut connection)
                    .await
                    .unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
            }
            Kind::Real => {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
            }
        }
    }

    /// Until when the run's lease holds, as the database writes it.
    pub async fn lease_until(&self, run: RunId) -> Option<String> {
        use sqlx::Connection as _;
        let query = "SELECT CAST(lease_until AS text) FROM runs WHERE CAST(id AS text) = $1";
        match self.kind {
            Kind::Embedded => {
                let mut connection = sqlx::SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(query)
                    .bind(run.to_string())
                    .fetch_one(&mut connection)
                    .await
                    .unwrap()
            }
            Kind::Real => {
                let mut connection = sqlx::PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(query)
                    .bind(run.to_string())
                    .fetch_one(&mut connection)
                    .await
                    .unwrap()
            }
        }
    }

    /// The lease has been renewed once more, from its beginning to its end.
    pub async fn renewed(&self, run: RunId) {
        // The first change may be of a renewal that was under way before.
        for _ in 0..2 {
            let before = self.lease_until(run).await;
            eventually("the lease is renewed", || async {
                (self.lease_until(run).await != before).then_some(())
            })
            .await;
        }
    }

    /// The stored state is replaced by another one.
    pub async fn put_state(&self, run: RunId, state: &SealedState) {
        let hex: String = state.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes = match self.kind {
            Kind::Embedded => format!("x'{hex}'"),
            Kind::Real => format!("'\\x{hex}'"),
        };
        self.sql(&format!(
            "UPDATE runs SET state = {bytes}, seal = '{}' WHERE id = '{run}'",
            state.seal
        ))
        .await;
    }

    /// The run's deadline is so many seconds from now.
    pub async fn set_deadline(&self, run: RunId, seconds: i64) {
        let deadline = match self.kind {
            Kind::Embedded => format!("(unixepoch() + ({seconds})) * 1000000"),
            Kind::Real => format!("now() + interval '{seconds} seconds'"),
        };
        self.sql(&format!(
            "UPDATE runs SET deadline = {deadline} WHERE id = '{run}'"
        ))
        .await;
    }

    /// Puts a body on the jobs queue, as anybody with the right to publish can.
    pub async fn publish_job(&self, body: Vec<u8>) {
        let message = Outgoing {
            id: self.clock.new_id().into(),
            destination: Destination::Jobs,
            body,
            earlier: 0,
        };
        for result in self.broker.publish(vec![message]).await {
            result.unwrap();
        }
    }

    /// The next dead letter: its body, and its reason. Taken from the queue.
    async fn next_dead_letter(&self) -> (String, String) {
        match &self.embedded {
            Some(broker) => {
                let taken = *self.letters.lock().await;
                let letter = eventually("a dead letter", || async {
                    broker.dead_letters().get(taken).cloned()
                })
                .await;
                *self.letters.lock().await += 1;
                (String::from_utf8_lossy(&letter.body).into_owned(), letter.reason)
            }
            None => crate::listener::dead_letter(&self.topology.dead).await,
        }
    }

    /// The body of the next dead letter.
    pub async fn dead_letter(&self) -> String {
        self.next_dead_letter().await.0
    }

    /// The reason of the next dead letter.
    pub async fn dead_letter_reason(&self) -> String {
        self.next_dead_letter().await.1
    }

    /// Every job that is in the queue is lost.
    pub async fn lose_jobs(&self) {
        match &self.embedded {
            Some(_) => self.drain_embedded().await,
            None => crate::listener::purge(&self.topology.jobs).await,
        }
    }

    async fn drain_embedded(&self) {
        let mut consumer = self.broker.consume(100).await.unwrap();
        let delivery = tokio::time::timeout(Duration::from_secs(10), consumer.next())
            .await
            .unwrap()
            .unwrap();
        delivery.acknowledge().await;
        consumer.stop().await;
    }
}
