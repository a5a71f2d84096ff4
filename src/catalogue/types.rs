//! The declared things, as the rest of the product reads them. Every name in them resolves: `check` has
//! seen to it before a value of these types exists.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;

use super::{DataClass, TrustZone};
use crate::model::{Effect, ToolName};

/// A checked catalogue.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// What a trust-zone denial does.
    pub trust_zone_enforcement: Enforcement,
    /// Providers of models, by name.
    pub providers: BTreeMap<String, Provider>,
    /// Models, by name.
    pub models: BTreeMap<String, Model>,
    /// Configurations, by name.
    pub configurations: BTreeMap<String, Configuration>,
    /// Toolsets, by name.
    pub toolsets: BTreeMap<String, Toolset>,
    /// Tools, by name.
    pub tools: BTreeMap<ToolName, Tool>,
    /// Contexts, by name.
    pub contexts: BTreeMap<String, Context>,
}

/// Something that the runs of a configuration are given to read: a knowledge base, a customer's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// How secret it is.
    pub data_class: DataClass,
}

/// What a trust-zone denial does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// It denies. Anything but the literal `observe` means this.
    Enforce,
    /// It is marked and passes.
    Observe,
}

impl Enforcement {
    /// `observe`, case and outer blanks aside, observes; anything else, and nothing, enforces.
    #[must_use]
    pub fn declared(text: Option<&str>) -> Self {
        match text {
            Some(text) if text.trim().eq_ignore_ascii_case("observe") => Self::Observe,
            _ => Self::Enforce,
        }
    }
}

/// Where a model is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// How it is asked.
    pub kind: ProviderKind,
}

/// How a provider is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Any endpoint that speaks OpenAI's chat completions.
    OpenAi(Endpoint),
    /// Any endpoint that speaks Anthropic's Messages API.
    Anthropic(Endpoint),
    /// Answers from a file or from the catalogue itself, for the demo and for tests.
    Scripted {
        /// Path of the script; relative to the working folder.
        script: String,
    },
}

/// Where a provider is asked over HTTP, and how patiently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Up to and without `/chat/completions` or `/messages`, e.g. `https://api.openai.com/v1`.
    pub base_url: String,
    /// Where the key comes from; none for a local server.
    pub key: Option<CredentialSource>,
    /// For one request, from connecting to the last byte.
    pub timeout: Duration,
    /// How often a request is repeated after a 429, a 5xx or a lost connection.
    pub max_retries: u32,
}

impl ProviderKind {
    /// Where it is asked over HTTP, if it is.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::OpenAi(endpoint) | Self::Anthropic(endpoint) => Some(endpoint),
            Self::Scripted { .. } => None,
        }
    }
}

/// Where a secret is read from, at each use. The catalogue never holds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// An environment variable of the worker.
    Environment(String),
    /// A file, without its last line break.
    File(String),
}

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name in the catalogue.
    pub name: String,
    /// The provider's name in the catalogue.
    pub provider: String,
    /// What the provider calls it.
    pub remote_name: String,
    /// How far the place where it runs is trusted.
    pub zone: TrustZone,
    /// Further members of each request, e.g. `temperature`: a JSON object.
    pub parameters: Option<String>,
}

/// How a run is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// The system message of a new run.
    pub instructions: Option<String>,
    /// The model, by name.
    pub model: String,
    /// Models that are asked when the one before fails, by name.
    pub fallbacks: Vec<String>,
    /// Toolsets that are offered, by name.
    pub toolsets: Vec<String>,
    /// Contexts that its runs are given, by name.
    pub contexts: Vec<String>,
    /// Groups whose members may use it; empty lets everybody.
    pub groups: Vec<String>,
    /// How often the model may be asked in one run.
    pub max_iterations: u32,
    /// How long a turn waits for a decision.
    pub approval_ttl: Duration,
    /// Whether a user's own run needs somebody else's approval.
    pub require_second_approver: bool,
}

/// Tools that are offered together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolset {
    /// Its name.
    pub name: String,
    /// Its tools, by name.
    pub tools: Vec<ToolName>,
}

/// A tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name, under which the model asks for it.
    pub name: ToolName,
    /// For the model and for people.
    pub description: String,
    /// How it is called.
    pub kind: ToolKind,
    /// What it does to the world.
    pub effect: Effect,
    /// How secret what it returns is.
    pub data_class: DataClass,
    /// Whether it may be called at all.
    pub enabled: bool,
    /// Whether only an admin may call it.
    pub requires_admin: bool,
    /// Groups whose members may call it; empty lets everybody.
    pub groups: Vec<String>,
    /// Whether a call needs a decision though its effect would not ask for one.
    pub requires_approval: bool,
    /// JSON Schema of the arguments, as it is sent to the model.
    pub parameters: Box<RawValue>,
    /// For one call, from connecting to the last byte.
    pub timeout: Duration,
}

/// How a tool is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Part of the product: the demo's ledger (`ledger_list`, `ledger_read`, `ledger_refund`).
    Builtin {
        /// Which of them.
        function: String,
    },
    /// A POST to a declared URL.
    Http(HttpTool),
}

/// A tool behind a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTool {
    /// `http` or `https`.
    pub url: String,
    /// Sent as `Authorization: Bearer …`, if declared.
    pub bearer: Option<CredentialSource>,
    /// The largest response that is taken, in bytes.
    pub max_response_bytes: usize,
}

impl Catalogue {
    /// A catalogue that declares nothing: what holds before the first version is applied.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            trust_zone_enforcement: Enforcement::Enforce,
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            configurations: BTreeMap::new(),
            toolsets: BTreeMap::new(),
            tools: BTreeMap::new(),
            contexts: BTreeMap::new(),
        }
    }

    /// The tool of exactly that name.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// What a call of that tool does. An unknown tool counts as a non-idempotent write.
    #[must_use]
    pub fn effect_of(&self, name: &ToolName) -> Effect {
        self.tool(name)
            .map_or(Effect::NonIdempotentWrite, |tool| tool.effect)
    }

    /// Whether the configuration offers the tool, through any of its toolsets.
    #[must_use]
    pub fn offers(&self, configuration: &Configuration, tool: &ToolName) -> bool {
        configuration
            .toolsets
            .iter()
            .filter_map(|name| self.toolsets.get(name))
            .any(|set| set.tools.contains(tool))
    }

    /// The least trusted zone that the configuration can reach: of its model and its fallbacks.
    #[must_use]
    pub fn zone_of(&self, configuration: &Configuration) -> TrustZone {
        let models = std::iter::once(&configuration.model).chain(&configuration.fallbacks);
        models
            .map(|name| {
                self.models
                    .get(name)
                    .map_or(TrustZone::ExternalGlobal, |model| model.zone)
            })
            .max()
            .unwrap_or(TrustZone::ExternalGlobal)
    }
}
