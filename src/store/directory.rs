//! The directory as it is written: people, groups, service accounts. What an actor may do because of it is
//! decided in `identity`.

use std::collections::BTreeSet;

use crate::model::{Scope, UserGrant};

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The id, without the kind.
    pub id: String,
    /// How the person is shown.
    pub name: String,
    /// Whether the person is an administrator.
    pub admin: bool,
    /// Whether the person counts at all.
    pub enabled: bool,
    /// The groups the person is in.
    pub groups: BTreeSet<String>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub id: String,
    /// What its members may do.
    pub grants: BTreeSet<UserGrant>,
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The id, without the kind.
    pub id: String,
    /// How the account is shown.
    pub name: String,
    /// Whether the account counts at all.
    pub enabled: bool,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
}

/// Everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// People, by id.
    pub people: Vec<Person>,
    /// Groups, by name.
    pub groups: Vec<Group>,
    /// Service accounts, by id.
    pub accounts: Vec<Account>,
}

/// What is written of one actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryEntry {
    /// A person, with the grants of the person's groups.
    Person(Person, BTreeSet<UserGrant>),
    /// A service account.
    Account(Account),
}
