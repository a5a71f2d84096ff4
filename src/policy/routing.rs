//! Routing: which models a configuration's runs are asked of, in which order. The runtime asks what this chose, and the
//! simulator shows it.

use crate::catalogue::{Catalogue, Configuration, Model, Provider};

/// A model that may be asked, with its provider.
pub type Route<'c> = (&'c Model, &'c Provider);

/// No model can be asked: the configuration's own is not declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the catalogue does not declare the model `{model}` with a provider")]
pub struct Unrouted {
    /// The model's name.
    pub model: String,
}

/// The configuration's model, then those that are asked in turn while the one before is not available.
///
/// # Errors
/// The configuration's own model cannot be asked. Fallbacks that cannot be are passed over.
pub fn route<'c>(
    catalogue: &'c Catalogue,
    configuration: &Configuration,
) -> Result<(Route<'c>, Vec<Route<'c>>), Unrouted> {
    let of = |name: &String| {
        let model = catalogue.models.get(name)?;
        Some((model, catalogue.providers.get(&model.provider)?))
    };
    let first = of(&configuration.model).ok_or_else(|| Unrouted {
        model: configuration.model.clone(),
    })?;
    Ok((first, configuration.fallbacks.iter().filter_map(of).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn the_model_comes_first_and_what_is_not_declared_is_passed_over() {
        let mut catalogue = sample::catalogue();
        let mut spare = catalogue.models["model"].clone();
        spare.name = "spare".to_owned();
        catalogue.models.insert("spare".to_owned(), spare);
        let mut configuration = catalogue.configurations["support"].clone();
        configuration.fallbacks = vec!["gone".to_owned(), "spare".to_owned()];
        let (first, others) = route(&catalogue, &configuration).unwrap();
        assert_eq!(first.0.name, "model");
        assert_eq!(
            others.iter().map(|(model, _)| &model.name).collect::<Vec<_>>(),
            ["spare"]
        );
        configuration.model = "gone".to_owned();
        assert_eq!(
            route(&catalogue, &configuration).unwrap_err().to_string(),
            "the catalogue does not declare the model `gone` with a provider"
        );
    }
}
