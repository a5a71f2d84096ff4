//! The resolver: actor → principal, or nothing. Deleted, disabled and unknown are all nothing. It reads
//! through whatever the caller reads through, so that at a claim it sees what the claim sees.

use async_trait::async_trait;

use crate::model::{Actor, Principal};
use crate::store::{ClaimScope, DirectoryEntry, Result, Store};

/// Where a directory entry is read: the store, or a claim in the making.
#[async_trait]
pub trait ReadDirectory: Send {
    /// What is written of the actor at this moment.
    async fn entry(&mut self, actor: &Actor) -> Result<Option<DirectoryEntry>>;
}

#[async_trait]
impl ReadDirectory for &dyn Store {
    async fn entry(&mut self, actor: &Actor) -> Result<Option<DirectoryEntry>> {
        self.directory_entry(actor).await
    }
}

#[async_trait]
impl ReadDirectory for dyn ClaimScope {
    async fn entry(&mut self, actor: &Actor) -> Result<Option<DirectoryEntry>> {
        self.directory_entry(actor).await
    }
}

/// What the actor is right now.
///
/// # Errors
/// The directory could not be read; that is never taken for "nothing".
pub async fn resolve<R: ReadDirectory + ?Sized>(
    directory: &mut R,
    actor: &Actor,
) -> Result<Option<Principal>> {
    Ok(directory.entry(actor).await?.and_then(principal_of))
}

/// What a directory entry makes of its actor.
#[must_use]
pub fn principal_of(entry: DirectoryEntry) -> Option<Principal> {
    match entry {
        DirectoryEntry::Person(person, grants) => person.enabled.then_some(Principal::User {
            id: person.id,
            admin: person.admin,
            groups: person.groups,
            grants,
        }),
        DirectoryEntry::Account(account) => account.enabled.then_some(Principal::Service {
            id: account.id,
            scopes: account.scopes,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::{Scope, UserGrant};
    use crate::store::{Account, Person};

    fn person(enabled: bool) -> DirectoryEntry {
        let person = Person {
            id: "ada".to_owned(),
            name: "Ada".to_owned(),
            admin: true,
            enabled,
            groups: BTreeSet::new(),
        };
        DirectoryEntry::Person(person, BTreeSet::from([UserGrant::AgentApprove]))
    }

    #[test]
    fn an_enabled_person_is_somebody() {
        let principal = principal_of(person(true)).unwrap();
        assert!(principal.is_admin() && principal.has_grant(UserGrant::AgentApprove));
    }

    #[test]
    fn a_disabled_actor_is_nothing() {
        assert_eq!(principal_of(person(false)), None);
        let account = |enabled| {
            let scopes = BTreeSet::from([Scope::AgentApprove]);
            DirectoryEntry::Account(Account {
                id: "bot".to_owned(),
                name: String::new(),
                enabled,
                scopes,
            })
        };
        assert_eq!(principal_of(account(false)), None);
        assert!(principal_of(account(true)).is_some());
    }
}
