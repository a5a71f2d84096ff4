//! What differs between two catalogues, for whoever is about to put the second in place of the first.
//!
//! It compares what the texts mean: order of keys, comments and spelled-out defaults are no difference.

use std::collections::BTreeMap;
use std::fmt;

use super::{
    Catalogue, Configuration, Context, CredentialSource, Endpoint, Enforcement, HttpTool, Model, Provider,
    ProviderKind, Tool, ToolKind, Toolset,
};
use crate::declaration::format_duration;
use crate::model::visible;

/// One difference. A path is `tools.refund` for a whole declaration, `tools.refund.effect` for a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the new catalogue has it.
    Added {
        /// Where it stands.
        path: String,
        /// What it says, its parts in the order of their names.
        new: String,
    },
    /// Only the old catalogue has it.
    Removed {
        /// Where it stood.
        path: String,
        /// What it said, its parts in the order of their names.
        old: String,
    },
    /// Both have it, and it says something else.
    Changed {
        /// Where it stands.
        path: String,
        /// What it said.
        old: String,
        /// What it says now.
        new: String,
    },
}

/// `+ path: new`, `- path: old` or `~ path: old → new`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { path, new } => write!(f, "+ {}: {}", visible(path), visible(new)),
            Self::Removed { path, old } => write!(f, "- {}: {}", visible(path), visible(old)),
            Self::Changed { path, old, new } => {
                write!(f, "~ {}: {} → {}", visible(path), visible(old), visible(new))
            }
        }
    }
}

/// The differences, in the order of their paths. Empty when both mean the same.
#[must_use]
pub fn diff(old: &Catalogue, new: &Catalogue) -> Vec<Change> {
    let (old, new) = (flat(old), flat(new));
    let mut paths: Vec<_> = old.keys().chain(new.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
        .into_iter()
        .flat_map(|path| match (old.get(path), new.get(path)) {
            (None, Some(parts)) => vec![Change::Added {
                path: path.clone(),
                new: in_one_line(parts),
            }],
            (Some(parts), None) => vec![Change::Removed {
                path: path.clone(),
                old: in_one_line(parts),
            }],
            (Some(old), Some(new)) => parts_that_changed(path, old, new),
            (None, None) => Vec::new(),
        })
        .collect()
}

/// The parts of one declaration, as text. A part that says nothing is absent.
type Parts = BTreeMap<&'static str, String>;

fn parts_that_changed(path: &str, old: &Parts, new: &Parts) -> Vec<Change> {
    let mut keys: Vec<_> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let change = |key: &&'static str| {
        let path = format!("{path}.{key}");
        match (old.get(key).cloned(), new.get(key).cloned()) {
            (None, Some(new)) => Some(Change::Added { path, new }),
            (Some(old), None) => Some(Change::Removed { path, old }),
            (Some(old), Some(new)) => (old != new).then_some(Change::Changed { path, old, new }),
            (None, None) => None,
        }
    };
    keys.into_iter().filter_map(change).collect()
}

fn in_one_line(parts: &Parts) -> String {
    parts
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Every declaration of a catalogue by its path.
fn flat(catalogue: &Catalogue) -> BTreeMap<String, Parts> {
    // Taken apart in full, here and below, so that a new field cannot be forgotten.
    let Catalogue {
        trust_zone_enforcement,
        providers,
        models,
        configurations,
        toolsets,
        tools,
        contexts,
    } = catalogue;
    let governance = Parts::from([("trust_zone", enforcement(*trust_zone_enforcement).to_owned())]);
    let mut all = BTreeMap::from([("governance".to_owned(), governance)]);
    all.extend(
        providers
            .iter()
            .map(|(name, it)| (format!("providers.{name}"), provider(it))),
    );
    all.extend(
        models
            .iter()
            .map(|(name, it)| (format!("models.{name}"), model(it))),
    );
    all.extend(
        configurations
            .iter()
            .map(|(name, it)| (format!("configurations.{name}"), configuration(it))),
    );
    all.extend(
        toolsets
            .iter()
            .map(|(name, it)| (format!("toolsets.{name}"), toolset(it))),
    );
    all.extend(
        tools
            .iter()
            .map(|(name, it)| (format!("tools.{}", name.as_str()), tool(it))),
    );
    all.extend(
        contexts
            .iter()
            .map(|(name, it)| (format!("contexts.{name}"), context(it))),
    );
    all
}

fn enforcement(enforcement: Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Enforce => "enforce",
        Enforcement::Observe => "observe",
    }
}

fn provider(Provider { name: _, kind }: &Provider) -> Parts {
    match kind {
        ProviderKind::OpenAi(at) => endpoint("openai", at),
        ProviderKind::Anthropic(at) => endpoint("anthropic", at),
        ProviderKind::Scripted { script } => {
            Parts::from([("kind", "scripted".to_owned()), ("script", script.clone())])
        }
    }
}

fn endpoint(
    kind: &str,
    Endpoint {
        base_url,
        key,
        timeout,
        max_retries,
    }: &Endpoint,
) -> Parts {
    let mut parts = Parts::from([
        ("base_url", base_url.clone()),
        ("kind", kind.to_owned()),
        ("max_retries", max_retries.to_string()),
        ("timeout", format_duration(*timeout)),
    ]);
    parts.extend(key.as_ref().map(|key| ("key", source(key))));
    parts
}

fn source(source: &CredentialSource) -> String {
    match source {
        CredentialSource::Environment(name) => format!("from variable {name}"),
        CredentialSource::File(path) => format!("from file {path}"),
    }
}

fn model(
    Model {
        name: _,
        provider,
        remote_name,
        zone,
        parameters,
    }: &Model,
) -> Parts {
    let mut parts = Parts::from([
        ("name", remote_name.clone()),
        ("provider", provider.clone()),
        ("zone", zone.as_str().to_owned()),
    ]);
    parts.extend(parameters.clone().map(|parameters| ("parameters", parameters)));
    parts
}

fn configuration(configuration: &Configuration) -> Parts {
    let Configuration {
        name: _,
        description,
        instructions,
        model,
        fallbacks,
        toolsets,
        contexts,
        groups,
        max_iterations,
        approval_ttl,
        require_second_approver,
    } = configuration;
    let mut parts = Parts::from([
        ("model", model.clone()),
        ("max_iterations", max_iterations.to_string()),
        ("approval_ttl", format_duration(*approval_ttl)),
        ("require_second_approver", require_second_approver.to_string()),
    ]);
    parts.extend(instructions.clone().map(|text| ("instructions", text)));
    parts.extend(unless_empty("description", description.clone()));
    parts.extend(unless_empty("fallbacks", fallbacks.join(", ")));
    parts.extend(unless_empty("toolsets", toolsets.join(", ")));
    parts.extend(unless_empty("contexts", contexts.join(", ")));
    parts.extend(unless_empty("groups", groups.join(", ")));
    parts
}

fn context(
    Context {
        name: _,
        description,
        data_class,
    }: &Context,
) -> Parts {
    let mut parts = Parts::from([("data_class", data_class.as_str().to_owned())]);
    parts.extend(unless_empty("description", description.clone()));
    parts
}

fn toolset(Toolset { name: _, tools }: &Toolset) -> Parts {
    let names: Vec<_> = tools.iter().map(|tool| tool.as_str()).collect();
    Parts::from([("tools", names.join(", "))])
}

fn tool(tool: &Tool) -> Parts {
    let Tool {
        name: _,
        description,
        kind,
        effect,
        data_class,
        enabled,
        requires_admin,
        groups,
        requires_approval,
        parameters,
        timeout,
    } = tool;
    let mut parts = Parts::from([
        ("effect", effect.as_str().to_owned()),
        ("data_class", data_class.as_str().to_owned()),
        ("enabled", enabled.to_string()),
        ("requires_admin", requires_admin.to_string()),
        ("requires_approval", requires_approval.to_string()),
        ("parameters", parameters.get().to_owned()),
        ("timeout", format_duration(*timeout)),
    ]);
    parts.extend(unless_empty("description", description.clone()));
    parts.extend(unless_empty("groups", groups.join(", ")));
    match kind {
        ToolKind::Builtin { function } => {
            parts.extend([("kind", "builtin".to_owned()), ("function", function.clone())]);
        }
        ToolKind::Http(HttpTool {
            url,
            bearer,
            max_response_bytes,
        }) => {
            parts.extend([
                ("kind", "http".to_owned()),
                ("url", url.clone()),
                ("max_response_bytes", max_response_bytes.to_string()),
            ]);
            parts.extend(bearer.as_ref().map(|bearer| ("bearer", source(bearer))));
        }
    }
    parts
}

fn unless_empty(key: &'static str, text: String) -> Option<(&'static str, String)> {
    (!text.is_empty()).then_some((key, text))
}
