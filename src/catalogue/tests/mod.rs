//! The room as its users see it: one text in, a catalogue or its problems out.

mod changes;
mod doubts;
mod random;
mod refusals;

use std::time::Duration;

use super::{
    Catalogue, CredentialSource, DataClass, Endpoint, Enforcement, HttpTool, ProviderKind, Severity,
    ToolKind, TrustZone,
};
use crate::model::{Effect, ToolName};

/// Every table, and every key in one of them.
const FULL: &str = r#"
[governance]
trust_zone = "enforce"

[providers.hosted]
kind = "openai"
base_url = "https://models.example.org/v1/"
key_env = "MODELS_KEY"
timeout = "90s"
max_retries = 5

[providers.script]
kind = "scripted"
script = "demo/script.json"

[models.large]
provider = "hosted"
name = "large-2"
zone = "private_hosted"
parameters = { temperature = 0.5, seed = 7 }

[models.spare]
provider = "script"
zone = "local"

[configurations.support]
description = "Support desk"
instructions = "Be brief."
model = "large"
fallbacks = ["spare"]
toolsets = ["ledger"]
groups = ["support"]
max_iterations = 8
approval_ttl = "2h"
require_second_approver = true

[toolsets.ledger]
tools = ["read", "refund"]

[tools.read]
kind = "builtin"
function = "ledger_read"
effect = "read_only"
data_class = "internal"
description = "Reads an entry"

[tools.refund]
kind = "http"
url = "https://ledger.example.org/refund"
bearer_file = "/run/secrets/ledger"
max_response_bytes = 4096
effect = "non_idempotent_write"
data_class = "restricted"
enabled = false
requires_admin = true
groups = ["finance"]
requires_approval = true
timeout = "5s"
parameters = '{"type": "object", "properties": {"amount": {"type": "integer"}}}'
"#;

fn full() -> Catalogue {
    let (catalogue, problems) = Catalogue::check(FULL);
    assert_eq!(problems.to_string(), "");
    catalogue.unwrap()
}

/// What is said about the full catalogue when one line of it is another.
fn with(line: &str, other: &str) -> (Option<Catalogue>, Vec<String>) {
    assert_eq!(FULL.matches(line).count(), 1, "{line}");
    let (catalogue, problems) = Catalogue::check(&FULL.replace(line, other));
    (catalogue, problems.iter().map(ToString::to_string).collect())
}

fn refused(line: &str, other: &str, expected: &str) {
    let (catalogue, problems) = with(line, other);
    assert!(catalogue.is_none(), "{other} was taken");
    assert!(
        problems.iter().any(|problem| problem == expected),
        "{other}: {problems:#?}"
    );
}

fn warned(line: &str, other: &str, expected: &str) -> Catalogue {
    let (catalogue, problems) = with(line, other);
    assert!(
        problems.iter().any(|problem| problem == expected),
        "{other}: {problems:#?}"
    );
    catalogue.expect(other)
}

#[test]
fn everything_that_is_declared_is_read() {
    let catalogue = full();
    let support = &catalogue.configurations["support"];
    assert_eq!(
        (support.max_iterations, support.approval_ttl),
        (8, Duration::from_secs(7200))
    );
    assert!(support.require_second_approver);
    assert_eq!(
        (support.model.as_str(), support.fallbacks.as_slice()),
        ("large", &["spare".to_owned()][..])
    );
    assert_eq!(catalogue.zone_of(support), TrustZone::PrivateHosted);

    let large = &catalogue.models["large"];
    assert_eq!(large.remote_name, "large-2");
    assert_eq!(
        large.parameters.as_deref(),
        Some(r#"{"seed":7,"temperature":0.5}"#)
    );
    assert_eq!(catalogue.models["spare"].remote_name, "spare");
    assert_eq!(
        catalogue.providers["hosted"].kind,
        ProviderKind::OpenAi(Endpoint {
            base_url: "https://models.example.org/v1".to_owned(),
            key: Some(CredentialSource::Environment("MODELS_KEY".to_owned())),
            timeout: Duration::from_secs(90),
            max_retries: 5,
        })
    );

    let refund = catalogue.tool(&ToolName::from("refund")).unwrap();
    assert_eq!(
        (refund.effect, refund.data_class),
        (Effect::NonIdempotentWrite, DataClass::Restricted)
    );
    assert!(!refund.enabled && refund.requires_admin && refund.requires_approval);
    assert_eq!(
        refund.parameters.get(),
        r#"{"type": "object", "properties": {"amount": {"type": "integer"}}}"#
    );
    assert_eq!(
        refund.kind,
        ToolKind::Http(HttpTool {
            url: "https://ledger.example.org/refund".to_owned(),
            bearer: Some(CredentialSource::File("/run/secrets/ledger".to_owned())),
            max_response_bytes: 4096,
        })
    );
    assert!(catalogue.offers(support, &refund.name));
}

#[test]
fn what_is_not_declared_has_its_documented_default() {
    let text = "[providers.p]\nkind = 'openai'\nbase_url = 'http://localhost:1'\n[models.m]\nprovider = 'p'\n\
        [configurations.c]\nmodel = 'm'\n[tools.t]\nkind = 'http'\nurl = 'http://localhost:2'";
    let (catalogue, problems) = Catalogue::check(text);
    let catalogue = catalogue.expect("only warnings");
    assert_eq!(catalogue.trust_zone_enforcement, Enforcement::Enforce);
    let endpoint = catalogue.providers["p"].kind.endpoint().unwrap();
    assert_eq!(
        (&endpoint.key, endpoint.timeout, endpoint.max_retries),
        (&None, Duration::from_secs(60), 3)
    );
    let configuration = &catalogue.configurations["c"];
    assert_eq!(
        (configuration.max_iterations, configuration.approval_ttl.as_secs()),
        (25, 604_800)
    );
    assert!(!configuration.require_second_approver && configuration.groups.is_empty());
    let tool = &catalogue.tools[&ToolName::from("t")];
    assert!(tool.enabled && !tool.requires_admin && !tool.requires_approval);
    assert_eq!(tool.timeout, Duration::from_secs(30));
    assert_eq!(tool.parameters.get(), r#"{"type":"object","properties":{}}"#);
    assert!(matches!(&tool.kind, ToolKind::Http(http) if http.max_response_bytes == 1 << 20));

    // What counts as the worst is said.
    assert_eq!(
        (tool.effect, tool.data_class),
        (Effect::NonIdempotentWrite, DataClass::Secret)
    );
    assert_eq!(catalogue.models["m"].zone, TrustZone::ExternalGlobal);
    let told: Vec<_> = problems
        .iter()
        .map(|problem| (problem.severity, problem.path.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Severity::Warning, "models.m.zone"),
            (Severity::Warning, "configurations.c"),
            (Severity::Warning, "tools.t.effect"),
            (Severity::Warning, "tools.t.data_class"),
            (Severity::Warning, "tools.t"),
        ]
    );
}

#[test]
fn case_c8_a_misspelt_key_is_refused_and_the_nearest_known_one_named() {
    let (catalogue, problems) = Catalogue::check(&FULL.replace("requires_approval", "requires_aproval"));
    assert!(catalogue.is_none());
    let problem = problems.iter().next().unwrap();
    assert_eq!(
        (problem.path.as_str(), problem.line),
        ("tools.refund.requires_aproval", 57)
    );
    assert_eq!(problem.suggestion.as_deref(), Some("requires_approval"));
    assert_eq!(
        problems.to_string(),
        "error: unknown key `requires_aproval` in tools.refund, line 57, column 1: did you mean `requires_approval`?"
    );
    refused(
        "[governance]",
        "[govrnance]",
        "error: unknown key `govrnance` in the text, line 2, column 2: did you mean `governance`?",
    );
    refused(
        "trust_zone = \"enforce\"",
        "color = 1",
        "error: unknown key `color` in governance, line 3, column 1",
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let text = FULL
        .replace("requires_admin", "requires_admn")
        .replace("max_retries = 5", "max_retries = -1");
    let (_, problems) = Catalogue::check(&text.replace("model = \"large\"", ""));
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "providers.hosted.max_retries",
            "configurations.support.model",
            "tools.refund.requires_admn"
        ]
    );
}
