//! What an actor is right now. A principal is read at each decision and never kept: neither across
//! decisions nor in a message.

use std::collections::BTreeSet;

use super::Actor;

/// A grant that a user holds through a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UserGrant {
    /// `agent_approve`: may decide runs of others.
    AgentApprove,
}

impl UserGrant {
    /// Every grant there is.
    pub const ALL: [Self; 1] = [Self::AgentApprove];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentApprove => "agent_approve",
        }
    }

    /// The grant of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grant| grant.as_str() == name)
    }
}

/// A scope that a service account holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// `agent:approve`: may release read-only turns and deny any.
    AgentApprove,
    /// `configuration:use`: may use configurations that name groups.
    ConfigurationUse,
}

impl Scope {
    /// Every scope there is.
    pub const ALL: [Self; 2] = [Self::AgentApprove, Self::ConfigurationUse];

    /// The stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentApprove => "agent:approve",
            Self::ConfigurationUse => "configuration:use",
        }
    }

    /// The scope of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// What an actor is right now. Deleted, disabled and unknown actors have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// An enabled person.
    User {
        /// The user's id, without the kind.
        id: String,
        /// Whether the person is an administrator.
        admin: bool,
        /// Names of the groups the person is in.
        groups: BTreeSet<String>,
        /// Grants, through any of the groups.
        grants: BTreeSet<UserGrant>,
    },
    /// An enabled service account. It is never an admin and in no group.
    Service {
        /// The account's id, without the kind.
        id: String,
        /// What the account may do.
        scopes: BTreeSet<Scope>,
    },
}

impl Principal {
    /// The actor that this principal is.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match self {
            Self::User { id, .. } => Actor::User(id.clone()),
            Self::Service { id, .. } => Actor::Service(id.clone()),
        }
    }

    /// Whether this is an administrator. A service account never is.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        matches!(self, Self::User { admin: true, .. })
    }

    /// Whether this principal is in any of the groups. A service account is in none.
    #[must_use]
    pub fn is_in_any<'g>(&self, names: impl IntoIterator<Item = &'g String>) -> bool {
        match self {
            Self::User { groups, .. } => names.into_iter().any(|name| groups.contains(name)),
            Self::Service { .. } => false,
        }
    }

    /// Whether the user grant is held.
    #[must_use]
    pub fn has_grant(&self, grant: UserGrant) -> bool {
        matches!(self, Self::User { grants, .. } if grants.contains(&grant))
    }

    /// Whether the service scope is held.
    #[must_use]
    pub fn has_scope(&self, scope: Scope) -> bool {
        matches!(self, Self::Service { scopes, .. } if scopes.contains(&scope))
    }
}
