//! From the text to a [`Catalogue`]: which tables there are, in which order they are read, and that names are
//! known before anything refers to them. What a provider, a model or a tool consists of is in the files of
//! their names. Nothing is read from anywhere but the text, and a text with an error yields no catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{
    Catalogue, Configuration, Context, Enforcement, Problems, Severity, Toolset, check, models, tools,
};
use crate::declaration::{Document, Flag, Item, Section};

/// How often a model may be asked in one run, unless declared.
const DEFAULT_MAX_ITERATIONS: u64 = 25;
const DAY: Duration = Duration::from_secs(86_400);
/// How long a turn waits for a decision, unless declared.
const DEFAULT_APPROVAL_TTL: Duration = Duration::from_secs(7 * 86_400);

impl Catalogue {
    /// Reads a text that is to be used. Warnings are dropped; [`Catalogue::check`] tells them.
    ///
    /// # Errors
    ///
    /// When the text is no TOML, has an unknown key, a name that is not declared or a value that cannot be: all
    /// problems that were found, warnings among them.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        match Self::check(text) {
            (Some(catalogue), _) => Ok(catalogue),
            (None, problems) => Err(problems),
        }
    }

    /// Reads a text and tells everything that is wrong or doubtful about it. There is a catalogue exactly when
    /// no problem is an error.
    #[must_use]
    pub fn check(text: &str) -> (Option<Self>, Problems) {
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(problems) => return (None, problems),
        };
        let catalogue = read(&document);
        let problems = document.into_problems();
        ((!problems.has_errors()).then_some(catalogue), problems)
    }
}

/// The tables whose keys are names.
pub(super) struct Tables<'d> {
    pub(super) providers: Option<Section<'d>>,
    pub(super) models: Option<Section<'d>>,
    pub(super) configurations: Option<Section<'d>>,
    pub(super) toolsets: Option<Section<'d>>,
    pub(super) tools: Option<Section<'d>>,
    pub(super) contexts: Option<Section<'d>>,
}

fn read(document: &Document<'_>) -> Catalogue {
    let root = document.root();
    let table = |key| root.get(key).and_then(|item| item.table());
    let governance = table("governance");
    let tables = Tables {
        providers: table("providers"),
        models: table("models"),
        configurations: table("configurations"),
        toolsets: table("toolsets"),
        tools: table("tools"),
        contexts: table("contexts"),
    };
    root.finish();

    let names = Names {
        providers: named(tables.providers.as_ref()),
        models: named(tables.models.as_ref()),
        toolsets: named(tables.toolsets.as_ref()),
        tools: named(tables.tools.as_ref()),
        contexts: named(tables.contexts.as_ref()),
    };
    let catalogue = Catalogue {
        trust_zone_enforcement: governance.map_or(Enforcement::Enforce, read_governance),
        providers: each(tables.providers.as_ref(), models::read_provider),
        models: each(tables.models.as_ref(), |name, section| {
            models::read_model(name, section, &names)
        }),
        configurations: each(tables.configurations.as_ref(), |name, section| {
            Some(read_configuration(name, section, &names))
        }),
        toolsets: each(tables.toolsets.as_ref(), |name, section| {
            Some(read_toolset(name, section, &names))
        }),
        tools: each(tables.tools.as_ref(), tools::read_tool)
            .into_iter()
            .map(|(name, tool)| (name.into(), tool))
            .collect(),
        contexts: each(tables.contexts.as_ref(), |name, section| {
            Some(read_context(name, section))
        }),
    };
    // What was left out for its errors would make doubtful what is right.
    if !document.has_errors() {
        check::doubts(&catalogue, &tables);
    }
    catalogue
}

/// What is declared, by kind; a reference is held against it.
pub(super) struct Names<'d> {
    pub(super) providers: BTreeSet<&'d str>,
    pub(super) models: BTreeSet<&'d str>,
    pub(super) toolsets: BTreeSet<&'d str>,
    pub(super) tools: BTreeSet<&'d str>,
    pub(super) contexts: BTreeSet<&'d str>,
}

fn named<'d>(table: Option<&Section<'d>>) -> BTreeSet<&'d str> {
    table
        .into_iter()
        .flat_map(|table| table.entries().map(|(name, _)| name))
        .collect()
}

/// Reads each named table of a kind. One that cannot be built has reported why and is left out.
fn each<T>(
    table: Option<&Section<'_>>,
    read: impl Fn(&str, &Section<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut all = BTreeMap::new();
    for (name, item) in table.into_iter().flat_map(Section::entries) {
        item.accepts_name(name);
        let Some(section) = item.table() else { continue };
        if let Some(built) = read(name, &section) {
            all.insert(name.to_owned(), built);
        }
        section.finish();
    }
    all
}

/// Holds a reference against what is declared; that it dangles is an error that names the nearest.
pub(super) fn resolves(item: &Item<'_>, kind: &str, name: &str, declared: &BTreeSet<&str>) -> bool {
    let known = declared.contains(name);
    if !known {
        let message = format!("{} names the {kind} `{name}`, which is not declared", item.path());
        item.misspelt(Severity::Error, message, name, declared.iter().copied());
    }
    known
}

/// A list of references of one kind, dangling ones reported and left in.
fn references(
    section: &Section<'_>,
    key: &'static str,
    kind: &str,
    declared: &BTreeSet<&str>,
) -> Vec<String> {
    let names = section.names(key).into_iter();
    names
        .inspect(|(name, item)| _ = resolves(item, kind, name, declared))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn read_governance(section: Section<'_>) -> Enforcement {
    let written = section.get("trust_zone");
    let text = written.as_ref().and_then(Item::text);
    let enforcement = Enforcement::declared(text);
    if let (Some(item), Some(text), Enforcement::Enforce) = (&written, text, enforcement)
        && text != "enforce"
    {
        let message = "governance.trust_zone is neither `enforce` nor `observe` and counts as `enforce`";
        item.misspelt(Severity::Warning, message, text, ["enforce", "observe"]);
    }
    section.finish();
    enforcement
}

fn read_toolset(name: &str, section: &Section<'_>, names: &Names<'_>) -> Toolset {
    section.require("tools");
    let tools = references(section, "tools", "tool", &names.tools);
    Toolset {
        name: name.to_owned(),
        tools: tools.into_iter().map(Into::into).collect(),
    }
}

fn read_context(name: &str, section: &Section<'_>) -> Context {
    Context {
        name: name.to_owned(),
        description: section.text("description").unwrap_or_default().to_owned(),
        data_class: tools::read_data_class(section),
    }
}

fn read_configuration(name: &str, section: &Section<'_>, names: &Names<'_>) -> Configuration {
    let model = section.require("model").and_then(|item| {
        let model = item.name()?;
        resolves(&item, "model", model, &names.models).then_some(model)
    });
    let fallbacks = references(section, "fallbacks", "model", &names.models);
    if let Some(model) = model.filter(|model| fallbacks.iter().any(|fallback| fallback == model)) {
        section.error_at_key(
            "fallbacks",
            format!("{} has `{model}` as its model and as a fallback", section.path()),
        );
    }
    let max_iterations = section.number("max_iterations", 1..=1_000, DEFAULT_MAX_ITERATIONS);
    Configuration {
        name: name.to_owned(),
        description: section.text("description").unwrap_or_default().to_owned(),
        instructions: section.text("instructions").map(str::to_owned),
        model: model.unwrap_or_default().to_owned(),
        fallbacks,
        toolsets: references(section, "toolsets", "toolset", &names.toolsets),
        contexts: references(section, "contexts", "context", &names.contexts),
        groups: section
            .names("groups")
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect(),
        // The range has bounded it.
        max_iterations: u32::try_from(max_iterations).unwrap_or(u32::MAX),
        approval_ttl: section.duration(
            "approval_ttl",
            Duration::from_secs(1)..=3_650 * DAY,
            DEFAULT_APPROVAL_TTL,
        ),
        require_second_approver: section.flag("require_second_approver", Flag::Unset),
    }
}
