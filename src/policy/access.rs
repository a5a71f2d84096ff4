//! Who may decide a run, and who may use a configuration.

use crate::catalogue::Configuration;
use crate::model::{Actor, Principal, Scope, UserGrant};

/// Whether the principal may decide runs of that owner: an admin, a user with the grant `agent_approve`,
/// the owner, or a service account with the scope `agent:approve`. What the decision may release is
/// another question, and the gate's.
#[must_use]
pub fn may_decide(principal: &Principal, owner: &Actor) -> bool {
    principal.is_admin()
        || principal.has_grant(UserGrant::AgentApprove)
        || principal.has_scope(Scope::AgentApprove)
        || (owner.is_user() && principal.actor() == *owner)
}

/// Whether the principal may state what a write with an unknown outcome really did. It makes a result out of somebody's
/// word, so an admin's word is asked for.
#[must_use]
pub fn may_reconcile(principal: &Principal) -> bool {
    principal.is_admin()
}

/// Whether the principal may use the configuration. One that names groups is for admins, for their members,
/// and for service accounts with the scope `configuration:use`.
#[must_use]
pub fn may_use(configuration: &Configuration, principal: Option<&Principal>) -> bool {
    configuration.groups.is_empty()
        || principal.is_some_and(|principal| {
            principal.is_admin()
                || principal.is_in_any(&configuration.groups)
                || principal.has_scope(Scope::ConfigurationUse)
        })
}

/// Whether runs of that owner may begin with the configuration: there must be an owner, and the owner may use it.
#[must_use]
pub fn may_start(configuration: &Configuration, owner: Option<&Principal>) -> bool {
    owner.is_some() && may_use(configuration, owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn four_kinds_may_decide() {
        let owner = Actor::User("olga".to_owned());
        assert!(may_decide(&sample::admin("ada"), &owner));
        assert!(may_decide(&sample::granted("gina"), &owner));
        assert!(may_decide(&sample::user("olga"), &owner));
        assert!(may_decide(
            &sample::service("sweeper", &[Scope::AgentApprove]),
            &owner
        ));
    }

    #[test]
    fn nobody_else_may() {
        let owner = Actor::User("olga".to_owned());
        assert!(!may_decide(&sample::user("paul"), &owner));
        assert!(!may_decide(
            &sample::service("sweeper", &[Scope::ConfigurationUse]),
            &owner
        ));
        assert!(!may_decide(&sample::service("olga", &[]), &owner));
        let own = Actor::Service("bot".to_owned());
        assert!(
            !may_decide(&sample::service("bot", &[]), &own),
            "an account needs its scope for its own runs too"
        );
    }

    #[test]
    fn only_an_admin_reconciles() {
        assert!(may_reconcile(&sample::admin("ada")));
        for principal in [
            sample::granted("gina"),
            sample::user("olga"),
            sample::service("sweeper", &[Scope::AgentApprove]),
        ] {
            assert!(!may_reconcile(&principal), "{}", principal.actor());
        }
    }

    #[test]
    fn a_configuration_with_groups_is_for_its_members() {
        let mut configuration = sample::catalogue().configurations["support"].clone();
        assert!(may_use(&configuration, None) && !may_start(&configuration, None));
        assert!(may_start(&configuration, Some(&sample::user("paul"))));
        configuration.groups = vec!["ops".to_owned()];
        assert!(!may_use(&configuration, None));
        assert!(!may_use(&configuration, Some(&sample::user("paul"))));
        assert!(may_use(&configuration, Some(&sample::admin("ada"))));
        assert!(may_use(&configuration, Some(&sample::member("mia", "ops"))));
        assert!(may_use(
            &configuration,
            Some(&sample::service("bot", &[Scope::ConfigurationUse]))
        ));
        assert!(!may_use(
            &configuration,
            Some(&sample::service("bot", &[Scope::AgentApprove]))
        ));
    }
}
