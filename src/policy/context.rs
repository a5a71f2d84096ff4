//! The input-context gate: may what a configuration's runs are given be sent to its models? It compares the strictest
//! data class among the contexts with the ceiling of the zone that the configuration can reach. It sees no text.

use std::fmt;

use crate::catalogue::{Catalogue, Configuration, Context, DataClass, Enforcement, TrustZone};

/// What the gate says. Nothing is compared where the configuration has no context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextDecision<'c> {
    /// What was compared.
    pub compared: Option<Compared<'c>>,
    /// Whether a refusal blocks, or is only marked.
    pub enforcement: Enforcement,
}

/// The strictest context and the zone that it was held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared<'c> {
    /// The context.
    pub context: &'c Context,
    /// The least trusted zone that the configuration can reach.
    pub zone: TrustZone,
}

impl Compared<'_> {
    /// The most secret class that may reach the zone.
    #[must_use]
    pub fn ceiling(&self) -> DataClass {
        self.zone.ceiling()
    }
}

/// `context `tickets` is restricted, and at most internal may reach external_global`
impl fmt::Display for Compared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "context `{}` is {}, and at most {} may reach {}",
            self.context.name,
            self.context.data_class.as_str(),
            self.ceiling().as_str(),
            self.zone.as_str()
        )
    }
}

impl<'c> ContextDecision<'c> {
    /// What is too secret, whether or not that blocks.
    #[must_use]
    pub fn refused(self) -> Option<Compared<'c>> {
        self.compared
            .filter(|compared| compared.context.data_class > compared.ceiling())
    }

    /// What blocks: it is refused, and refusals are enforced.
    #[must_use]
    pub fn blocked(self) -> Option<Compared<'c>> {
        self.refused()
            .filter(|_| self.enforcement == Enforcement::Enforce)
    }
}

/// May what the configuration's runs are given be sent to its models?
#[must_use]
pub fn decide_context<'c>(catalogue: &'c Catalogue, configuration: &Configuration) -> ContextDecision<'c> {
    let given = configuration.contexts.iter();
    let strictest = given
        .filter_map(|name| catalogue.contexts.get(name))
        .max_by_key(|context| context.data_class);
    ContextDecision {
        compared: strictest.map(|context| Compared {
            context,
            zone: catalogue.zone_of(configuration),
        }),
        enforcement: catalogue.trust_zone_enforcement,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    fn given(classes: &[DataClass], zone: TrustZone, enforcement: Enforcement) -> Catalogue {
        let mut catalogue = sample::catalogue();
        catalogue.trust_zone_enforcement = enforcement;
        catalogue.models.get_mut("model").unwrap().zone = zone;
        for class in classes {
            let context = Context {
                name: class.as_str().to_owned(),
                description: String::new(),
                data_class: *class,
            };
            catalogue.contexts.insert(context.name.clone(), context);
        }
        catalogue.configurations.get_mut("support").unwrap().contexts =
            classes.iter().map(|class| class.as_str().to_owned()).collect();
        catalogue
    }

    #[test]
    fn the_ladder_decides_for_all_pairs() {
        for zone in TrustZone::ALL {
            for class in DataClass::ALL {
                for enforcement in [Enforcement::Enforce, Enforcement::Observe] {
                    let catalogue = given(&[class], zone, enforcement);
                    let decision = decide_context(&catalogue, &catalogue.configurations["support"]);
                    let refused = class > zone.ceiling();
                    assert_eq!(decision.refused().is_some(), refused, "{zone:?} {class:?}");
                    let blocked = refused && enforcement == Enforcement::Enforce;
                    assert_eq!(decision.blocked().is_some(), blocked, "{zone:?} {class:?}");
                }
            }
        }
    }

    #[test]
    fn the_strictest_context_counts_and_none_compares_nothing() {
        let classes = [DataClass::Public, DataClass::Secret, DataClass::Internal];
        let catalogue = given(&classes, TrustZone::PrivateHosted, Enforcement::Enforce);
        let decision = decide_context(&catalogue, &catalogue.configurations["support"]);
        assert_eq!(
            decision.blocked().unwrap().to_string(),
            "context `secret` is secret, and at most restricted may reach private_hosted"
        );
        let catalogue = given(&[], TrustZone::ExternalGlobal, Enforcement::Enforce);
        let decision = decide_context(&catalogue, &catalogue.configurations["support"]);
        assert_eq!((decision.compared, decision.refused()), (None, None));
    }

    #[test]
    fn a_fallback_that_is_trusted_least_counts() {
        let mut catalogue = given(&[DataClass::Secret], TrustZone::Local, Enforcement::Enforce);
        let mut spare = catalogue.models["model"].clone();
        (spare.name, spare.zone) = ("spare".to_owned(), TrustZone::ExternalGlobal);
        catalogue.models.insert(spare.name.clone(), spare);
        let configuration = catalogue.configurations.get_mut("support").unwrap();
        configuration.fallbacks = vec!["spare".to_owned()];
        let configuration = configuration.clone();
        assert!(decide_context(&catalogue, &configuration).blocked().is_some());
    }
}
