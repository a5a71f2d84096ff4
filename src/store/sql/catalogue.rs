//! Catalogue versions: immutable, numbered, the newest current.

use sqlx::Row as _;

use super::{Connection, Result, Sql, Tx, events, failed};
use crate::model::{Actor, NewEvent};
use crate::store::row::Stamp;
use crate::store::{CatalogueVersion, StoreError};

pub(super) async fn current_version(connection: &mut Connection) -> Result<Option<i64>> {
    let row = sqlx::query("SELECT max(version) AS version FROM catalogue_versions")
        .fetch_one(connection)
        .await
        .map_err(failed)?;
    row.try_get("version").map_err(failed)
}

pub(super) async fn get(connection: &mut Connection, version: i64) -> Result<Option<CatalogueVersion>> {
    let row = sqlx::query(
        "SELECT version, source, applied_by, applied_at FROM catalogue_versions WHERE version = $1",
    )
    .bind(version)
    .fetch_optional(connection)
    .await
    .map_err(failed)?;
    let Some(row) = row else { return Ok(None) };
    let applied_by: Option<String> = row.try_get("applied_by").map_err(failed)?;
    let applied_by = applied_by
        .map(|actor| {
            actor.parse().map_err(|_| StoreError::CorruptRow {
                table: "catalogue_versions",
                id: version.to_string(),
                column: "applied_by",
                problem: "names no actor".to_owned(),
            })
        })
        .transpose()?;
    Ok(Some(CatalogueVersion {
        version,
        source: row.try_get("source").map_err(failed)?,
        applied_by,
        applied_at: row.try_get::<Stamp, _>("applied_at").map_err(failed)?.0,
    }))
}

pub(super) async fn apply(store: &Sql, source: &str, by: Option<&Actor>, event: &NewEvent) -> Result<i64> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let row = sqlx::query(
        "INSERT INTO catalogue_versions (version, source, applied_by, applied_at) \
         SELECT COALESCE(max(version), 0) + 1, $1, $2, $3 FROM catalogue_versions RETURNING version",
    )
    .bind(source)
    .bind(by.map(ToString::to_string))
    .bind(Stamp(event.at))
    .fetch_one(tx.connection())
    .await
    .map_err(failed)?;
    let version: i64 = row.try_get("version").map_err(failed)?;
    let mut event = event.clone();
    event.data["version"] = version.into();
    events::insert(tx.connection(), &[event]).await?;
    tx.commit().await.map_err(failed)?;
    Ok(version)
}
