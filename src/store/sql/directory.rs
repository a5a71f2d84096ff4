//! The directory: read whole, read for one actor, replaced, and switched off in part.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row as _;

use super::{Connection, Result, Sql, Tx, events, failed, guarded};
use crate::model::{Actor, NewEvent, Scope, UserGrant};
use crate::store::{Account, Directory, DirectoryEntry, Group, Guarded, Person};

pub(super) async fn entry(connection: &mut Connection, actor: &Actor) -> Result<Option<DirectoryEntry>> {
    match actor {
        Actor::User(id) => person(connection, id).await,
        Actor::Service(id) => account(connection, id).await,
    }
}

async fn person(connection: &mut Connection, id: &str) -> Result<Option<DirectoryEntry>> {
    let rows = sqlx::query(
        "SELECT users.name, users.admin, users.enabled, memberships.group_id, group_grants.grant_name FROM users \
         LEFT JOIN memberships ON memberships.user_id = users.id \
         LEFT JOIN group_grants ON group_grants.group_id = memberships.group_id WHERE users.id = $1",
    )
    .bind(id)
    .fetch_all(connection)
    .await
    .map_err(failed)?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut person = Person {
        id: id.to_owned(),
        name: first.try_get("name").map_err(failed)?,
        admin: first.try_get("admin").map_err(failed)?,
        enabled: first.try_get("enabled").map_err(failed)?,
        groups: BTreeSet::new(),
    };
    let mut grants = BTreeSet::new();
    for row in &rows {
        person
            .groups
            .extend(row.try_get::<Option<String>, _>("group_id").map_err(failed)?);
        let grant: Option<String> = row.try_get("grant_name").map_err(failed)?;
        // A grant that this build does not know gives nothing.
        grants.extend(grant.as_deref().and_then(UserGrant::parse));
    }
    Ok(Some(DirectoryEntry::Person(person, grants)))
}

async fn account(connection: &mut Connection, id: &str) -> Result<Option<DirectoryEntry>> {
    let rows = sqlx::query(
        "SELECT service_accounts.name, service_accounts.enabled, account_scopes.scope FROM service_accounts \
         LEFT JOIN account_scopes ON account_scopes.account_id = service_accounts.id WHERE service_accounts.id = $1",
    )
    .bind(id)
    .fetch_all(connection)
    .await
    .map_err(failed)?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut scopes = BTreeSet::new();
    for row in &rows {
        let scope: Option<String> = row.try_get("scope").map_err(failed)?;
        scopes.extend(scope.as_deref().and_then(Scope::parse));
    }
    Ok(Some(DirectoryEntry::Account(Account {
        id: id.to_owned(),
        name: first.try_get("name").map_err(failed)?,
        enabled: first.try_get("enabled").map_err(failed)?,
        scopes,
    })))
}

async fn pairs(
    connection: &mut Connection,
    statement: &'static str,
) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let rows = sqlx::query(statement)
        .fetch_all(connection)
        .await
        .map_err(failed)?;
    let mut pairs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in &rows {
        let (of, what) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        pairs.entry(of).or_default().insert(what);
    }
    Ok(pairs)
}

pub(super) async fn list(store: &Sql) -> Result<Directory> {
    // A transaction, so that people and their groups are of one moment.
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let connection = tx.connection();
    let mut members = pairs(connection, "SELECT user_id, group_id FROM memberships").await?;
    let mut grants = pairs(connection, "SELECT group_id, grant_name FROM group_grants").await?;
    let mut scopes = pairs(connection, "SELECT account_id, scope FROM account_scopes").await?;
    let mut directory = Directory::default();
    let rows = sqlx::query("SELECT id, name, admin, enabled FROM users ORDER BY id")
        .fetch_all(&mut *connection)
        .await;
    for row in rows.map_err(failed)? {
        let id: String = row.try_get("id").map_err(failed)?;
        directory.people.push(Person {
            groups: members.remove(&id).unwrap_or_default(),
            name: row.try_get("name").map_err(failed)?,
            admin: row.try_get("admin").map_err(failed)?,
            enabled: row.try_get("enabled").map_err(failed)?,
            id,
        });
    }
    let rows = sqlx::query("SELECT id FROM user_groups ORDER BY id")
        .fetch_all(&mut *connection)
        .await;
    for row in rows.map_err(failed)? {
        let id: String = row.try_get("id").map_err(failed)?;
        let names = grants.remove(&id).unwrap_or_default();
        directory.groups.push(Group {
            id,
            grants: names.iter().filter_map(|name| UserGrant::parse(name)).collect(),
        });
    }
    let rows = sqlx::query("SELECT id, name, enabled FROM service_accounts ORDER BY id")
        .fetch_all(&mut *connection)
        .await;
    for row in rows.map_err(failed)? {
        let id: String = row.try_get("id").map_err(failed)?;
        let names = scopes.remove(&id).unwrap_or_default();
        directory.accounts.push(Account {
            name: row.try_get("name").map_err(failed)?,
            enabled: row.try_get("enabled").map_err(failed)?,
            scopes: names.iter().filter_map(|name| Scope::parse(name)).collect(),
            id,
        });
    }
    Ok(directory)
}

async fn insert_pair(
    connection: &mut Connection,
    statement: &'static str,
    of: &str,
    what: &str,
) -> Result<()> {
    sqlx::query(statement)
        .bind(of)
        .bind(what)
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed)
}

pub(super) async fn replace(store: &Sql, directory: &Directory, event: &NewEvent) -> Result<()> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let connection = tx.connection();
    for table in [
        "DELETE FROM memberships",
        "DELETE FROM group_grants",
        "DELETE FROM account_scopes",
        "DELETE FROM users",
        "DELETE FROM user_groups",
        "DELETE FROM service_accounts",
    ] {
        sqlx::query(table)
            .execute(&mut *connection)
            .await
            .map_err(failed)?;
    }
    for group in &directory.groups {
        sqlx::query("INSERT INTO user_groups (id) VALUES ($1)")
            .bind(group.id.as_str())
            .execute(&mut *connection)
            .await
            .map_err(failed)?;
        for grant in &group.grants {
            let statement = "INSERT INTO group_grants (group_id, grant_name) VALUES ($1, $2)";
            insert_pair(connection, statement, &group.id, grant.as_str()).await?;
        }
    }
    for person in &directory.people {
        sqlx::query("INSERT INTO users (id, name, admin, enabled) VALUES ($1, $2, $3, $4)")
            .bind(person.id.as_str())
            .bind(person.name.as_str())
            .bind(person.admin)
            .bind(person.enabled)
            .execute(&mut *connection)
            .await
            .map_err(failed)?;
        for group in &person.groups {
            let statement = "INSERT INTO memberships (user_id, group_id) VALUES ($1, $2)";
            insert_pair(connection, statement, &person.id, group).await?;
        }
    }
    for account in &directory.accounts {
        sqlx::query("INSERT INTO service_accounts (id, name, enabled) VALUES ($1, $2, $3)")
            .bind(account.id.as_str())
            .bind(account.name.as_str())
            .bind(account.enabled)
            .execute(&mut *connection)
            .await
            .map_err(failed)?;
        for scope in &account.scopes {
            let statement = "INSERT INTO account_scopes (account_id, scope) VALUES ($1, $2)";
            insert_pair(connection, statement, &account.id, scope.as_str()).await?;
        }
    }
    events::insert(connection, std::slice::from_ref(event)).await?;
    tx.commit().await.map_err(failed)
}

pub(super) async fn set_enabled(
    store: &Sql,
    actor: &Actor,
    enabled: bool,
    event: &NewEvent,
) -> Result<Guarded> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let statement = match actor {
        Actor::User(_) => "UPDATE users SET enabled = $2 WHERE id = $1",
        Actor::Service(_) => "UPDATE service_accounts SET enabled = $2 WHERE id = $1",
    };
    let rows = sqlx::query(statement)
        .bind(actor.id())
        .bind(enabled)
        .execute(tx.connection())
        .await
        .map_err(failed)?
        .rows_affected();
    if rows == 1 {
        events::insert(tx.connection(), std::slice::from_ref(event)).await?;
        tx.commit().await.map_err(failed)?;
    }
    Ok(guarded(rows))
}
