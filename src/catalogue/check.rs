//! What is allowed but was hardly meant: tools that nobody is offered, models that nobody asks, a tool that
//! every call of will be refused. Only warnings; an error is found where it is read.

use std::collections::BTreeSet;

use super::parse::Tables;
use super::{Catalogue, Enforcement};
use crate::declaration::Section;

/// Warns of what cannot have been meant.
pub(super) fn doubts(catalogue: &Catalogue, tables: &Tables<'_>) {
    let configurations = || catalogue.configurations.values();
    let asked: BTreeSet<&str> = configurations()
        .flat_map(|configuration| std::iter::once(&configuration.model).chain(&configuration.fallbacks))
        .map(String::as_str)
        .collect();
    let offered: BTreeSet<&str> = configurations()
        .flat_map(|configuration| &configuration.toolsets)
        .map(String::as_str)
        .collect();
    let grouped: BTreeSet<&str> = catalogue
        .toolsets
        .values()
        .flat_map(|set| &set.tools)
        .map(|tool| tool.as_str())
        .collect();
    let provided: BTreeSet<&str> = catalogue
        .models
        .values()
        .map(|model| model.provider.as_str())
        .collect();

    unused(
        tables.providers.as_ref(),
        &provided,
        "is the provider of no model",
    );
    unused(tables.models.as_ref(), &asked, "is asked by no configuration");
    unused(
        tables.toolsets.as_ref(),
        &offered,
        "is offered by no configuration",
    );
    unused(tables.tools.as_ref(), &grouped, "is in no toolset");
    let given: BTreeSet<&str> = configurations()
        .flat_map(|configuration| &configuration.contexts)
        .map(String::as_str)
        .collect();
    unused(tables.contexts.as_ref(), &given, "is given to no configuration");
    without_tools(catalogue, tables);
    beyond_the_zone(catalogue, tables);
}

fn unused(table: Option<&Section<'_>>, used: &BTreeSet<&str>, what: &str) {
    let entries = table.into_iter().flat_map(Section::entries);
    for (_, item) in entries.filter(|(name, _)| !used.contains(name)) {
        item.warn(format!("{} {what}", item.path()));
    }
}

fn without_tools(catalogue: &Catalogue, tables: &Tables<'_>) {
    for (name, item) in tables
        .configurations
        .as_ref()
        .into_iter()
        .flat_map(Section::entries)
    {
        if catalogue
            .configurations
            .get(name)
            .is_some_and(|configuration| configuration.toolsets.is_empty())
        {
            item.warn(format!(
                "{} has no toolset: its runs can call no tool",
                item.path()
            ));
        }
    }
}

/// A tool whose data may never reach a configuration that offers it: each call would be refused.
fn beyond_the_zone(catalogue: &Catalogue, tables: &Tables<'_>) {
    if catalogue.trust_zone_enforcement == Enforcement::Observe {
        return;
    }
    for (name, item) in tables
        .configurations
        .as_ref()
        .into_iter()
        .flat_map(Section::entries)
    {
        let Some(configuration) = catalogue.configurations.get(name) else {
            continue;
        };
        let zone = catalogue.zone_of(configuration);
        let sets = configuration
            .toolsets
            .iter()
            .filter_map(|name| catalogue.toolsets.get(name));
        let offered: BTreeSet<_> = sets.flat_map(|set| &set.tools).collect();
        let tools = offered.into_iter().filter_map(|name| catalogue.tool(name));
        for tool in tools.filter(|tool| tool.data_class > zone.ceiling()) {
            item.warn(format!(
                "{} offers `{}`, whose calls will be refused: its data is {}, and at most {} may reach {}",
                item.path(),
                tool.name,
                tool.data_class.as_str(),
                zone.ceiling().as_str(),
                zone.as_str(),
            ));
        }
    }
}
