//! Events: written with the change they tell of, read as a timeline.

use super::rows::{all, event_columns, event_of};
use super::{Connection, Db, Result, Sql, failed};
use crate::model::{Event, NewEvent, Route, RunId};
use crate::store::StoreError;
use crate::store::row::{Key, Stamp};

/// Writes the events. One whose id is known already is not written twice.
pub(super) async fn insert(connection: &mut Connection, events: &[NewEvent]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut query = sqlx::QueryBuilder::<Db>::new(
        "INSERT INTO events (id, run_id, kind, actor, at, data, published_at) ",
    );
    query.push_values(events, |mut row, event| {
        row.push_bind(Key(event.id.uuid()))
            .push_bind(event.run.map(|run| Key(run.uuid())))
            .push_bind(event.kind.as_str())
            .push_bind(event.actor.as_ref().map(ToString::to_string))
            .push_bind(Stamp(event.at))
            .push_bind(sqlx::types::Json(&event.data))
            // What goes nowhere never waits in the outbox.
            .push_bind((event.kind.route() == Route::Kept).then_some(Stamp(event.at)));
    });
    query.push(" ON CONFLICT (id) DO NOTHING");
    query.build().execute(connection).await.map(drop).map_err(failed)
}

/// Writes the events behind a savepoint: where they cannot be written, the transaction is as it was.
pub(super) async fn insert_behind_savepoint(connection: &mut Connection, events: &[NewEvent]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    sqlx::raw_sql("SAVEPOINT before_events")
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    let inserted = insert(connection, events).await;
    let release = match inserted {
        Ok(()) => "RELEASE SAVEPOINT before_events",
        Err(_) => "ROLLBACK TO SAVEPOINT before_events; RELEASE SAVEPOINT before_events",
    };
    sqlx::raw_sql(release).execute(connection).await.map_err(failed)?;
    inserted
}

/// Writes events that tell of a change which must not wait for them: where the table refuses them, the
/// failure is logged and the change goes on. A database that is away fails the change as a whole.
pub(super) async fn tell(connection: &mut Connection, events: &[NewEvent]) -> Result<()> {
    match insert_behind_savepoint(connection, events).await {
        Err(StoreError::Failed(error)) => {
            for event in events {
                let run = event.run.map(tracing::field::display);
                tracing::error!(run, event = event.kind.as_str(), %error, "an event could not be recorded");
            }
            metrics::counter!("countersign_events_not_recorded_total").increment(events.len() as u64);
            Ok(())
        }
        other => other,
    }
}

pub(super) async fn list(store: &Sql, run: Option<RunId>, after: i64, limit: u32) -> Result<Vec<Event>> {
    let mut query = sqlx::QueryBuilder::<Db>::new(concat!(
        "SELECT ",
        event_columns!(),
        " FROM events WHERE position > "
    ));
    query.push_bind(after);
    if let Some(run) = run {
        query.push(" AND run_id = ").push_bind(Key(run.uuid()));
    }
    query
        .push(" ORDER BY position LIMIT ")
        .push_bind(i64::from(limit));
    let rows = query.build().fetch_all(store.pool()).await.map_err(failed)?;
    all(&rows, event_of)
}
