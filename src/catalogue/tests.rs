//! The room as its users see it: one text in, a catalogue or its problems out.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    Catalogue, Change, CredentialSource, DataClass, Enforcement, HttpTool, ProviderKind, Severity, ToolKind,
    TrustZone, diff,
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
    assert!(problems.iter().any(|problem| problem == expected), "{other}: {problems:#?}");
}

fn warned(line: &str, other: &str, expected: &str) -> Catalogue {
    let (catalogue, problems) = with(line, other);
    assert!(problems.iter().any(|problem| problem == expected), "{other}: {problems:#?}");
    catalogue.expect(other)
}

#[test]
fn everything_that_is_declared_is_read() {
    let catalogue = full();
    let support = &catalogue.configurations["support"];
    assert_eq!((support.max_iterations, support.approval_ttl), (8, Duration::from_secs(7200)));
    assert!(support.require_second_approver);
    assert_eq!((support.model.as_str(), support.fallbacks.as_slice()), ("large", &["spare".to_owned()][..]));
    assert_eq!(catalogue.zone_of(support), TrustZone::PrivateHosted);

    let large = &catalogue.models["large"];
    assert_eq!(large.remote_name, "large-2");
    assert_eq!(large.parameters.as_deref(), Some(r#"{"seed":7,"temperature":0.5}"#));
    assert_eq!(catalogue.models["spare"].remote_name, "spare");
    assert_eq!(
        catalogue.providers["hosted"].kind,
        ProviderKind::OpenAi {
            base_url: "https://models.example.org/v1".to_owned(),
            key: Some(CredentialSource::Environment("MODELS_KEY".to_owned())),
            timeout: Duration::from_secs(90),
            max_retries: 5,
        }
    );

    let refund = catalogue.tool(&ToolName::from("refund")).unwrap();
    assert_eq!((refund.effect, refund.data_class), (Effect::NonIdempotentWrite, DataClass::Restricted));
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
    let ProviderKind::OpenAi { key, timeout, max_retries, .. } = &catalogue.providers["p"].kind else {
        panic!()
    };
    assert_eq!((key, *timeout, *max_retries), (&None, Duration::from_secs(60), 3));
    let configuration = &catalogue.configurations["c"];
    assert_eq!((configuration.max_iterations, configuration.approval_ttl.as_secs()), (25, 604_800));
    assert!(!configuration.require_second_approver && configuration.groups.is_empty());
    let tool = &catalogue.tools[&ToolName::from("t")];
    assert!(tool.enabled && !tool.requires_admin && !tool.requires_approval);
    assert_eq!(tool.timeout, Duration::from_secs(30));
    assert_eq!(tool.parameters.get(), r#"{"type":"object","properties":{}}"#);
    assert!(matches!(&tool.kind, ToolKind::Http(http) if http.max_response_bytes == 1 << 20));

    // What counts as the worst is said.
    assert_eq!((tool.effect, tool.data_class), (Effect::NonIdempotentWrite, DataClass::Secret));
    assert_eq!(catalogue.models["m"].zone, TrustZone::ExternalGlobal);
    let told: Vec<_> = problems.iter().map(|problem| (problem.severity, problem.path.as_str())).collect();
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
    assert_eq!((problem.path.as_str(), problem.line), ("tools.refund.requires_aproval", 57));
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
fn a_name_that_is_not_declared_is_refused() {
    refused(
        "toolsets = [\"ledger\"]",
        "toolsets = [\"ledgr\"]",
        "error: configurations.support.toolsets[0] names the toolset `ledgr`, which is not declared, \
         line 31, column 13: did you mean `ledger`?",
    );
    refused(
        "tools = [\"read\", \"refund\"]",
        "tools = [\"read\", \"refnd\", \"read\"]",
        "error: toolsets.ledger.tools[1] names the tool `refnd`, which is not declared, line 38, column 18: \
         did you mean `refund`?",
    );
    refused(
        "tools = [\"read\", \"refund\"]",
        "tools = [\"read\", \"refnd\", \"read\"]",
        "error: `read` stands twice in toolsets.ledger.tools, line 38, column 27",
    );
    refused(
        "provider = \"hosted\"",
        "provider = \"x\"",
        "error: models.large.provider names the provider `x`, which is not declared, line 17, column 1",
    );
    refused(
        "fallbacks = [\"spare\"]",
        "fallbacks = [\"large\"]",
        "error: configurations.support has `large` as its model and as a fallback, line 26, column 17",
    );
}

#[test]
fn a_value_that_cannot_be_is_refused() {
    for (line, other, expected) in [
        (
            "timeout = \"5s\"",
            "timeout = \"0s\"",
            "tools.refund.timeout must be from 1ms to 1d, line 58, column 1",
        ),
        (
            "timeout = \"5s\"",
            "timeout = 5",
            "tools.refund.timeout must be a duration in quotes, such as \"30s\", not a whole number, line 58, column 1",
        ),
        (
            "max_iterations = 8",
            "max_iterations = 0",
            "configurations.support.max_iterations must be from 1 to 1000, line 33, column 1",
        ),
        (
            "approval_ttl = \"2h\"",
            "approval_ttl = \"500ms\"",
            "configurations.support.approval_ttl must be from 1s to 3650d, line 34, column 1",
        ),
        (
            "enabled = false",
            "enabled = \"false\"",
            "tools.refund.enabled must be `true` or `false`, not a text, line 54, column 1",
        ),
        (
            "effect = \"read_only\"",
            "effect = \"readonly\"",
            "tools.read.effect must be one of `read_only`, `idempotent_write`, `non_idempotent_write`, \
             line 43, column 1: did you mean `read_only`?",
        ),
        (
            "function = \"ledger_read\"",
            "function = \"ledger_refund\"",
            "tools.read.effect is `read_only`, but the built-in function writes, line 43, column 1",
        ),
        (
            "function = \"ledger_read\"",
            "url = \"https://example.org\"",
            "the key `url` is out of place in tools.read: it belongs to a tool of the kind `http`, line 42, column 1",
        ),
        ("function = \"ledger_read\"", "", "tools.read needs the key `function`, line 40, column 8"),
        (
            "bearer_file = \"/run/secrets/ledger\"",
            "bearer_file = \"a\"\nbearer_env = \"B\"",
            "tools.refund has both `bearer_env` and `bearer_file`; one source must be named, line 50, column 1",
        ),
        ("[models.spare]", "[models.\"\"]", "a name in models.\"\" is empty, line 22, column 9"),
        (
            "[tools.read]",
            "[tools.\"read it\"]",
            "tools.\"read it\" cannot be offered to a model: use 1 to 64 letters, digits, `_` or `-`, line 40, column 8",
        ),
        (
            "parameters = { temperature = 0.5, seed = 7 }",
            "parameters = { stream = true }",
            "models.large.parameters sets `stream`, which each request sets itself, line 20, column 1",
        ),
        (
            "parameters = { temperature = 0.5, seed = 7 }",
            "parameters = '[1]'",
            "models.large.parameters is no JSON object (line 1, column 0 of it), line 20, column 1",
        ),
        (
            "parameters = { temperature = 0.5, seed = 7 }",
            "parameters = { a = [nan] }",
            "models.large.parameters holds a number that is infinite or none, which JSON cannot express, \
             line 20, column 1",
        ),
    ] {
        refused(line, other, &format!("error: {expected}"));
    }
}

#[test]
fn a_url_is_one_that_can_be_called_and_holds_no_secret() {
    for (url, fault) in [
        ("ledger/refund", "is no URL: relative URL without a base"),
        ("ftp://ledger.example.org", "must begin with `http://` or `https://`"),
        ("https://", "is no URL: empty host"),
        ("https://u:p@example.org", "must not hold a user or a password: a catalogue holds no secrets"),
        ("https://example.org/a b", "has a blank in it"),
    ] {
        let line = "url = \"https://ledger.example.org/refund\"";
        refused(
            line,
            &format!("url = \"{url}\""),
            &format!("error: tools.refund.url {fault}, line 49, column 1"),
        );
    }
    let base = "base_url = \"https://models.example.org/v1/\"";
    refused(
        base,
        "base_url = \"https://a.example/v1/chat/completions\"",
        "error: providers.hosted.base_url must end before `/chat/completions`, which is added, line 7, column 1",
    );
    warned(
        base,
        "base_url = \"http://a.example/v1\"",
        "warning: providers.hosted.base_url is plain http: the key is sent to it in clear, line 7, column 1",
    );
}

#[test]
fn a_secret_in_the_place_of_its_source_is_not_repeated() {
    let (catalogue, problems) = with("key_env = \"MODELS_KEY\"", "key_env = \"sk-hunter2\"");
    assert!(catalogue.is_none());
    assert_eq!(
        problems,
        ["error: providers.hosted.key_env must be the name of an environment variable, line 8, column 1"]
    );
}

#[test]
fn only_observe_observes_and_anything_odd_is_told() {
    let line = "trust_zone = \"enforce\"";
    assert_eq!(
        with(line, "trust_zone = \" Observe \"").0.unwrap().trust_zone_enforcement,
        Enforcement::Observe
    );
    let odd = warned(
        line,
        "trust_zone = \"observed\"",
        "warning: governance.trust_zone is neither `enforce` nor `observe` and counts as `enforce`, \
         line 3, column 1: did you mean `observe`?",
    );
    assert_eq!(odd.trust_zone_enforcement, Enforcement::Enforce);
}

#[test]
fn what_is_unknown_counts_as_the_worst_and_is_told() {
    let catalogue = warned(
        "data_class = \"internal\"",
        "data_class = \"Internal\"",
        "warning: tools.read.data_class is no known data class and counts as `secret`, line 44, column 1: \
         did you mean `internal`?",
    );
    assert_eq!(catalogue.tool(&"read".into()).unwrap().data_class, DataClass::Secret);
    let catalogue = warned(
        "zone = \"local\"",
        "zone = \"lokal\"",
        "warning: models.spare.zone is no known zone and counts as `external_global`, line 24, column 1: \
         did you mean `local`?",
    );
    assert_eq!(catalogue.models["spare"].zone, TrustZone::ExternalGlobal);
}

#[test]
fn what_was_hardly_meant_is_told() {
    for (line, other, expected) in [
        (
            "tools = [\"read\", \"refund\"]",
            "tools = [\"refund\"]",
            "tools.read is in no toolset, line 40, column 8",
        ),
        ("fallbacks = [\"spare\"]", "", "models.spare is asked by no configuration, line 22, column 9"),
        (
            "toolsets = [\"ledger\"]",
            "",
            "configurations.support has no toolset: its runs can call no tool, line 26, column 17",
        ),
        ("toolsets = [\"ledger\"]", "", "toolsets.ledger is offered by no configuration, line 37, column 11"),
        (
            "zone = \"private_hosted\"",
            "zone = \"external_region\"",
            "configurations.support offers `refund`, whose calls will be refused: its data is restricted, and at \
             most confidential may reach external_region, line 26, column 17",
        ),
        (
            "data_class = \"internal\"",
            "data_class = \"internal\"\nparameters = {}",
            "tools.read.parameters has no `type = \"object\"`: many providers refuse such a schema, line 45, column 1",
        ),
    ] {
        warned(line, other, &format!("warning: {expected}"));
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let text = FULL.replace("requires_admin", "requires_admn").replace("max_retries = 5", "max_retries = -1");
    let (_, problems) = Catalogue::check(&text.replace("model = \"large\"", ""));
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        ["providers.hosted.max_retries", "configurations.support.model", "tools.refund.requires_admn"]
    );
}

#[test]
fn a_change_is_told_with_what_it_was_and_is() {
    let new = FULL
        .replace("effect = \"read_only\"", "effect = \"idempotent_write\"")
        .replace("key_env = \"MODELS_KEY\"", "")
        .replace("fallbacks = [\"spare\"]", "")
        .replace("[models.spare]", "[models.other]");
    let changes = diff(&full(), &Catalogue::parse(&new).unwrap());
    let shown: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "- configurations.support.fallbacks: spare",
            "+ models.other: name = other, provider = script, zone = local",
            "- models.spare: name = spare, provider = script, zone = local",
            "- providers.hosted.key: from variable MODELS_KEY",
            "~ tools.read.effect: read_only → idempotent_write",
        ]
    );
    assert!(matches!(&changes[4], Change::Changed { path, .. } if path == "tools.read.effect"));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,400}") {
        let (catalogue, problems) = Catalogue::check(&text);
        prop_assert_eq!(catalogue.is_none(), problems.has_errors());
    }

    /// Texts that are nearly TOML get further than arbitrary ones.
    #[test]
    fn no_text_of_toml_tokens_makes_the_reader_panic(
        tokens in proptest::collection::vec(
            prop::sample::select(vec![
                "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\n", "\"", "'", "\"\"\"", "tools", "models", "a", "é",
                "kind", "\"http\"", "effect", "1", "-", "nan", "1979-05-27", "true", "#", " ", "\\u", "\r", "0x1",
            ]),
            0..60,
        ),
    ) {
        let (_, problems) = Catalogue::check(&tokens.concat());
        _ = problems.to_string();
    }

    #[test]
    fn no_damage_to_a_good_text_makes_the_reader_panic(
        cut in 0..FULL.len(), length in 0..40_usize, put in "(?s).{0,6}", twice in any::<prop::sample::Index>(),
    ) {
        let end = (cut + length).min(FULL.len());
        let damaged = format!("{}{put}{}", &FULL[..cut], &FULL[end..]);
        let lines: Vec<_> = damaged.split('\n').collect();
        let doubled = format!("{damaged}\n{}", lines[twice.index(lines.len())]);
        for text in [damaged.as_str(), doubled.as_str()] {
            let (catalogue, problems) = Catalogue::check(text);
            _ = problems.to_string();
            // What is taken means the same each time it is read.
            if let Some(catalogue) = catalogue {
                prop_assert!(diff(&catalogue, &Catalogue::parse(text).unwrap()).is_empty());
            }
        }
    }
}
