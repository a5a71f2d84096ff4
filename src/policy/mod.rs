//! May this principal make this call here? One pure function, [`decide`], and many askers: the owner at
//! execution, the approver at the gate, the simulator. The other rules stand beside it: when a call needs a decision,
//! who may decide and use what, what may be given to a model, and which models are asked.
//!
//! The room knows nothing of runs, decisions, stores or time.

mod access;
mod approval;
mod context;
mod routing;

pub use access::{may_decide, may_reconcile, may_start, may_use};
pub use approval::{Approval, approval_of};
pub use context::{ContextDecision, decide_context};
pub use routing::{Route, Unrouted, route};

use crate::catalogue::{Catalogue, Configuration, Enforcement, Tool};
use crate::model::{Principal, ToolName};

/// Why a call is denied. The order is the order in which they are looked for, cheapest and least revealing
/// first; it picks the reason that is reported and nothing else, since every condition must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DenyReason {
    /// The catalogue has no such tool.
    NotRegistered,
    /// The tool is not enabled.
    ToolDisabled,
    /// The tool needs an admin, and the principal is none. Nobody is no admin.
    RequiresAdmin,
    /// The tool names groups, and the principal is in none of them.
    RequiresMembership,
    /// The configuration does not offer the tool.
    ConfigurationToolset,
    /// The tool's data class is above the ceiling of the zone that the configuration can reach.
    TrustZone,
}

impl DenyReason {
    /// Every reason, in order.
    pub const ALL: [Self; 6] = [
        Self::NotRegistered,
        Self::ToolDisabled,
        Self::RequiresAdmin,
        Self::RequiresMembership,
        Self::ConfigurationToolset,
        Self::TrustZone,
    ];

    /// The stable code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotRegistered => "not_registered",
            Self::ToolDisabled => "tool_disabled",
            Self::RequiresAdmin => "requires_admin",
            Self::RequiresMembership => "requires_membership",
            Self::ConfigurationToolset => "configuration_toolset",
            Self::TrustZone => "trust_zone",
        }
    }
}

/// What the policy says of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolDecision {
    /// Every condition holds.
    Allowed,
    /// Every condition holds but the trust zone, which is only observed.
    Observed,
    /// A condition does not hold.
    Denied(DenyReason),
}

impl ToolDecision {
    /// The reason, where the call is denied.
    #[must_use]
    pub fn denied(self) -> Option<DenyReason> {
        match self {
            Self::Denied(reason) => Some(reason),
            Self::Allowed | Self::Observed => None,
        }
    }
}

/// May this principal make this call in this configuration? `None` asks as nobody.
#[must_use]
pub fn decide(
    catalogue: &Catalogue,
    tool: &ToolName,
    configuration: &Configuration,
    principal: Option<&Principal>,
) -> ToolDecision {
    let Some(tool) = catalogue.tool(tool) else {
        return ToolDecision::Denied(DenyReason::NotRegistered);
    };
    let conditions = [
        (tool.enabled, DenyReason::ToolDisabled),
        (
            !tool.requires_admin || principal.is_some_and(Principal::is_admin),
            DenyReason::RequiresAdmin,
        ),
        (is_member(tool, principal), DenyReason::RequiresMembership),
        (
            catalogue.offers(configuration, &tool.name),
            DenyReason::ConfigurationToolset,
        ),
    ];
    if let Some((_, reason)) = conditions.into_iter().find(|(holds, _)| !holds) {
        return ToolDecision::Denied(reason);
    }
    if tool.data_class <= catalogue.zone_of(configuration).ceiling() {
        return ToolDecision::Allowed;
    }
    match catalogue.trust_zone_enforcement {
        Enforcement::Observe => ToolDecision::Observed,
        Enforcement::Enforce => ToolDecision::Denied(DenyReason::TrustZone),
    }
}

fn is_member(tool: &Tool, principal: Option<&Principal>) -> bool {
    tool.groups.is_empty() || principal.is_some_and(|principal| principal.is_in_any(&tool.groups))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{DataClass, TrustZone};
    use crate::gate::sample;
    use crate::model::Effect;

    fn reason(edit: impl FnOnce(&mut Catalogue), principal: Option<&Principal>) -> ToolDecision {
        let mut catalogue = sample::catalogue();
        edit(&mut catalogue);
        let configuration = catalogue.configurations["support"].clone();
        decide(&catalogue, &"refund".into(), &configuration, principal)
    }

    fn edit_tool(edit: impl FnOnce(&mut Tool)) -> impl FnOnce(&mut Catalogue) {
        |catalogue| edit(catalogue.tools.get_mut(&"refund".into()).unwrap())
    }

    #[test]
    fn each_reason_is_its_own() {
        let user = sample::user("olga");
        let ask = |edit: Box<dyn FnOnce(&mut Catalogue)>| reason(edit, Some(&user)).denied();
        assert_eq!(ask(Box::new(|_| ())), None);
        assert_eq!(
            ask(Box::new(|c| drop(c.tools.remove(&"refund".into())))),
            Some(DenyReason::NotRegistered)
        );
        assert_eq!(
            ask(Box::new(edit_tool(|t| t.enabled = false))),
            Some(DenyReason::ToolDisabled)
        );
        assert_eq!(
            ask(Box::new(edit_tool(|t| t.requires_admin = true))),
            Some(DenyReason::RequiresAdmin)
        );
        assert_eq!(
            ask(Box::new(edit_tool(|t| t.groups = vec!["finance".to_owned()]))),
            Some(DenyReason::RequiresMembership)
        );
        assert_eq!(
            ask(Box::new(|c| c
                .configurations
                .get_mut("support")
                .unwrap()
                .toolsets
                .clear())),
            Some(DenyReason::ConfigurationToolset)
        );
        assert_eq!(
            ask(Box::new(edit_tool(|t| t.data_class = DataClass::Secret))),
            Some(DenyReason::TrustZone)
        );
    }

    #[test]
    fn the_cheapest_reason_is_reported() {
        let everything_wrong = |tool: &mut Tool| {
            tool.enabled = false;
            tool.requires_admin = true;
            tool.groups = vec!["finance".to_owned()];
            tool.data_class = DataClass::Secret;
        };
        assert_eq!(
            reason(edit_tool(everything_wrong), None).denied(),
            Some(DenyReason::ToolDisabled)
        );
    }

    #[test]
    fn nobody_is_no_admin_and_no_member() {
        assert_eq!(
            reason(edit_tool(|t| t.requires_admin = true), None).denied(),
            Some(DenyReason::RequiresAdmin)
        );
        let in_group = edit_tool(|t| t.groups = vec!["finance".to_owned()]);
        assert_eq!(
            reason(in_group, None).denied(),
            Some(DenyReason::RequiresMembership)
        );
    }

    #[test]
    fn the_ladder_decides_for_all_pairs() {
        for zone in TrustZone::ALL {
            for class in DataClass::ALL {
                for enforcement in [Enforcement::Enforce, Enforcement::Observe] {
                    let decision = reason(
                        |catalogue| {
                            catalogue.trust_zone_enforcement = enforcement;
                            catalogue.models.get_mut("model").unwrap().zone = zone;
                            catalogue.tools.get_mut(&"refund".into()).unwrap().data_class = class;
                        },
                        None,
                    );
                    let expected = match (class <= zone.ceiling(), enforcement) {
                        (true, _) => ToolDecision::Allowed,
                        (false, Enforcement::Observe) => ToolDecision::Observed,
                        (false, Enforcement::Enforce) => ToolDecision::Denied(DenyReason::TrustZone),
                    };
                    assert_eq!(decision, expected, "{zone:?} {class:?} {enforcement:?}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_tool_counts_as_the_worst_write() {
        assert_eq!(
            sample::catalogue().effect_of(&"nonsense".into()),
            Effect::NonIdempotentWrite
        );
    }
}
