//! The simulator: what would become of one call, in one configuration, for one actor? Five rules are asked, the very
//! functions that the runtime asks, and each keeps its row. There is no rule of its own here, only the fold.
//!
//! Facts in, table out: it can neither act nor write.

use crate::catalogue::{Catalogue, Configuration};
use crate::model::{Principal, ToolName};
use crate::policy::{self, Approval, DenyReason, ToolDecision};

/// What is not asked, and is to be said wherever a simulation is shown.
pub const NOT_COVERED: [&str; 4] = [
    "what the call's arguments are, and whether the tool takes them",
    "whether the tool and the model can be reached, and whether their secrets are there",
    "budgets and guardrails of the model's provider",
    "who may release the call: `who-can` answers that",
];

/// One of the rules that are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// May the actor make the call here?
    ToolGate,
    /// May what the configuration is given be sent to its models?
    InputContext,
    /// Which model would be asked?
    Routing,
    /// Does the call need a decision?
    Approval,
    /// May the actor use the configuration?
    ConfigurationAccess,
}

impl Axis {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolGate => "tool_gate",
            Self::InputContext => "input_context",
            Self::Routing => "routing",
            Self::Approval => "approval",
            Self::ConfigurationAccess => "configuration_access",
        }
    }

    /// Whom the answer holds for: the actor that was asked for, or everybody.
    #[must_use]
    pub fn scope(self) -> &'static str {
        match self {
            Self::ToolGate | Self::ConfigurationAccess => "actor",
            Self::InputContext | Self::Routing | Self::Approval => "everyone",
        }
    }
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It lets the call pass.
    Allowed,
    /// It lets the call pass once a human has decided.
    ApprovalNeeded,
    /// It refuses, and the refusal is only observed: the call passes.
    Observed,
    /// It refuses.
    Refused,
}

impl Outcome {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::ApprovalNeeded => "approval_needed",
            Self::Observed => "observed",
            Self::Refused => "refused",
        }
    }
}

/// What one rule says, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which rule.
    pub axis: Axis,
    /// What it says.
    pub outcome: Outcome,
    /// The stable code of the reason.
    pub reason: &'static str,
    /// The reason for people: names and classes.
    pub detail: String,
    /// Keys of the catalogue, or entries of the directory, that would have to change; empty where nothing stands in the way.
    pub fix: Vec<String>,
}

/// What would become of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreseen {
    /// It would run.
    Allow,
    /// It would wait for a decision.
    AllowWithApproval,
    /// It would not run.
    Block,
}

impl Foreseen {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowWithApproval => "allow_with_approval",
            Self::Block => "block",
        }
    }

    /// The fold: a refusal blocks; else a needed decision is needed; else the call runs.
    fn of(rows: &[Row]) -> Self {
        let one = |row: &Row| match row.outcome {
            Outcome::Allowed | Outcome::Observed => Self::Allow,
            Outcome::ApprovalNeeded => Self::AllowWithApproval,
            Outcome::Refused => Self::Block,
        };
        rows.iter().map(one).max().unwrap_or(Self::Block)
    }
}

/// The answer: a verdict and the row of every rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// What would become of the call.
    pub verdict: Foreseen,
    /// All five, also after one refuses.
    pub rows: [Row; 5],
}

/// What would become of a call of that tool, in a run of that configuration whose owner is the principal. `None` asks
/// as nobody.
#[must_use]
pub fn simulate(
    catalogue: &Catalogue,
    configuration: &Configuration,
    tool: &ToolName,
    principal: Option<&Principal>,
) -> Simulation {
    let rows = [
        tool_gate(catalogue, configuration, tool, principal),
        input_context(catalogue, configuration),
        routing(catalogue, configuration),
        approval(catalogue, tool),
        access(configuration, principal),
    ];
    Simulation {
        verdict: Foreseen::of(&rows),
        rows,
    }
}

fn tool_gate(
    catalogue: &Catalogue,
    configuration: &Configuration,
    tool: &ToolName,
    principal: Option<&Principal>,
) -> Row {
    let row = |outcome, reason, detail: String, fix| Row {
        axis: Axis::ToolGate,
        outcome,
        reason,
        detail,
        fix,
    };
    let (outcome, reason) = match policy::decide(catalogue, tool, configuration, principal) {
        ToolDecision::Allowed => {
            let detail = format!("`{tool}` may be called here");
            return row(Outcome::Allowed, "allowed", detail, Vec::new());
        }
        ToolDecision::Observed => (Outcome::Observed, DenyReason::TrustZone),
        ToolDecision::Denied(reason) => (Outcome::Refused, reason),
    };
    let key = |part: &str| format!("tools.{tool}.{part}");
    let declared = catalogue.tool(tool);
    let (detail, fix) = match reason {
        DenyReason::NotRegistered => (
            format!("the catalogue declares no tool `{tool}`"),
            vec![format!("tools.{tool}")],
        ),
        DenyReason::ToolDisabled => (format!("`{tool}` is disabled"), vec![key("enabled")]),
        DenyReason::RequiresAdmin => (
            format!("`{tool}` is for admins"),
            vec![key("requires_admin"), "directory: the actor's `admin`".to_owned()],
        ),
        DenyReason::RequiresMembership => {
            let groups = declared.map_or(String::new(), |tool| tool.groups.join(", "));
            (
                format!("`{tool}` is for the groups {groups}"),
                vec![key("groups"), "directory: the actor's `groups`".to_owned()],
            )
        }
        DenyReason::ConfigurationToolset => (
            format!("no toolset of `{}` has `{tool}`", configuration.name),
            vec![format!("configurations.{}.toolsets", configuration.name)],
        ),
        DenyReason::TrustZone => {
            let zone = catalogue.zone_of(configuration);
            let class = declared.map_or("secret", |tool| tool.data_class.as_str());
            (
                format!(
                    "data of `{tool}` is {class}, and at most {} may reach {}",
                    zone.ceiling().as_str(),
                    zone.as_str()
                ),
                vec![key("data_class"), worst_zone(catalogue, configuration)],
            )
        }
    };
    row(outcome, reason.as_str(), detail, fix)
}

/// The key of the zone that makes the configuration's zone what it is.
fn worst_zone(catalogue: &Catalogue, configuration: &Configuration) -> String {
    let zone = catalogue.zone_of(configuration);
    let models = std::iter::once(&configuration.model).chain(&configuration.fallbacks);
    let cause = models
        .filter_map(|name| catalogue.models.get(name))
        .find(|model| model.zone == zone);
    format!(
        "models.{}.zone",
        cause.map_or(&configuration.model, |model| &model.name)
    )
}

fn input_context(catalogue: &Catalogue, configuration: &Configuration) -> Row {
    let decision = policy::decide_context(catalogue, configuration);
    let (outcome, reason) = match (decision.compared, decision.refused(), decision.blocked()) {
        (None, ..) => (Outcome::Allowed, "no_context"),
        (Some(_), None, _) => (Outcome::Allowed, "allowed"),
        (Some(_), Some(_), None) => (Outcome::Observed, "trust_zone"),
        (Some(_), Some(_), Some(_)) => (Outcome::Refused, "trust_zone"),
    };
    let (detail, fix) = match decision.compared {
        None => (
            format!(
                "`{}` is given no context: nothing was compared",
                configuration.name
            ),
            Vec::new(),
        ),
        Some(compared) => {
            let fix = vec![
                format!("contexts.{}.data_class", compared.context.name),
                worst_zone(catalogue, configuration),
            ];
            let needed = decision.refused().is_some();
            (compared.to_string(), if needed { fix } else { Vec::new() })
        }
    };
    Row {
        axis: Axis::InputContext,
        outcome,
        reason,
        detail,
        fix,
    }
}

fn routing(catalogue: &Catalogue, configuration: &Configuration) -> Row {
    let (outcome, reason, detail, fix) = match policy::route(catalogue, configuration) {
        Ok(((first, _), fallbacks)) => {
            let mut detail = format!("`{}` is asked", first.name);
            for (fallback, _) in fallbacks {
                detail.push_str(&format!(", then `{}`", fallback.name));
            }
            (Outcome::Allowed, "chosen", detail, Vec::new())
        }
        Err(unrouted) => {
            let fix = vec![format!("configurations.{}.model", configuration.name)];
            (Outcome::Refused, "no_model", unrouted.to_string(), fix)
        }
    };
    Row {
        axis: Axis::Routing,
        outcome,
        reason,
        detail,
        fix,
    }
}

fn approval(catalogue: &Catalogue, tool: &ToolName) -> Row {
    let effect = catalogue.effect_of(tool).as_str();
    let (outcome, reason, detail, fix) = match policy::approval_of(catalogue, tool) {
        Approval::NotNeeded => (
            Outcome::Allowed,
            "not_needed",
            format!("a call of `{tool}` ({effect}) needs no decision"),
            Vec::new(),
        ),
        Approval::Needed => (
            Outcome::ApprovalNeeded,
            "needed",
            format!("a call of `{tool}` ({effect}) waits for a decision"),
            vec![
                format!("tools.{tool}.effect"),
                format!("tools.{tool}.requires_approval"),
            ],
        ),
    };
    Row {
        axis: Axis::Approval,
        outcome,
        reason,
        detail,
        fix,
    }
}

fn access(configuration: &Configuration, principal: Option<&Principal>) -> Row {
    let name = &configuration.name;
    let (outcome, reason, detail, fix) = if policy::may_start(configuration, principal) {
        let detail = format!("the actor may use `{name}`");
        (Outcome::Allowed, "allowed", detail, Vec::new())
    } else if principal.is_none() {
        let fix = vec!["directory: the actor".to_owned()];
        (
            Outcome::Refused,
            "unresolved",
            "nobody can own a run: the actor is unknown, disabled or deleted".to_owned(),
            fix,
        )
    } else {
        (
            Outcome::Refused,
            "requires_membership",
            format!("`{name}` is for the groups {}", configuration.groups.join(", ")),
            vec![
                format!("configurations.{name}.groups"),
                "directory: the actor's `groups`".to_owned(),
            ],
        )
    };
    Row {
        axis: Axis::ConfigurationAccess,
        outcome,
        reason,
        detail,
        fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Context, DataClass, Enforcement, TrustZone};
    use crate::gate::sample;

    fn foresee(edit: impl FnOnce(&mut Catalogue), tool: &str, principal: Option<&Principal>) -> Simulation {
        let mut catalogue = sample::catalogue();
        edit(&mut catalogue);
        let configuration = &catalogue.configurations["support"];
        simulate(&catalogue, configuration, &tool.into(), principal)
    }

    fn outcomes(simulation: &Simulation) -> [&'static str; 5] {
        simulation.rows.each_ref().map(|row| row.outcome.as_str())
    }

    fn zone(catalogue: &mut Catalogue, zone: TrustZone) {
        catalogue.models.get_mut("model").unwrap().zone = zone;
    }

    #[test]
    fn a_read_runs_a_write_waits_and_what_is_unknown_does_not_run() {
        let olga = sample::user("olga");
        let verdict = |tool| foresee(|_| (), tool, Some(&olga)).verdict;
        assert_eq!(verdict("read"), Foreseen::Allow);
        assert_eq!(verdict("refund"), Foreseen::AllowWithApproval);
        assert_eq!(verdict("nonsense"), Foreseen::Block);
    }

    #[test]
    fn every_rule_is_asked_though_another_refuses() {
        let everything = |catalogue: &mut Catalogue| {
            zone(catalogue, TrustZone::ExternalGlobal);
            let files = Context {
                name: "files".to_owned(),
                description: String::new(),
                data_class: DataClass::Secret,
            };
            catalogue.contexts.insert("files".to_owned(), files);
            let configuration = catalogue.configurations.get_mut("support").unwrap();
            configuration.contexts = vec!["files".to_owned()];
            configuration.groups = vec!["ops".to_owned()];
            configuration.model = "gone".to_owned();
            catalogue.tools.get_mut(&"refund".into()).unwrap().enabled = false;
        };
        let simulation = foresee(everything, "refund", Some(&sample::user("olga")));
        assert_eq!(
            outcomes(&simulation),
            ["refused", "refused", "refused", "approval_needed", "refused"]
        );
        assert!(
            simulation.rows.iter().all(|row| !row.fix.is_empty()),
            "{simulation:?}"
        );
    }

    #[test]
    fn what_is_only_observed_is_said_and_passes() {
        let observed = |catalogue: &mut Catalogue| {
            zone(catalogue, TrustZone::ExternalGlobal);
            catalogue.trust_zone_enforcement = Enforcement::Observe;
            catalogue.tools.get_mut(&"read".into()).unwrap().data_class = DataClass::Secret;
        };
        let simulation = foresee(observed, "read", Some(&sample::user("olga")));
        assert_eq!(outcomes(&simulation)[0], "observed");
        assert_eq!(simulation.verdict, Foreseen::Allow);
        assert_eq!(
            simulation.rows[0].fix,
            ["tools.read.data_class", "models.model.zone"]
        );
    }

    #[test]
    fn nobody_is_not_the_operator() {
        let simulation = foresee(|_| (), "read", None);
        assert_eq!(outcomes(&simulation)[4], "refused");
        assert_eq!(simulation.verdict, Foreseen::Block);
    }
}
