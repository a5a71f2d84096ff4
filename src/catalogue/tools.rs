//! Tools, as they are declared. What is not said about a tool counts as the worst: a write that must not
//! happen twice, of secret data.

use std::time::Duration;

use serde_json::value::RawValue;

use super::address::{credential, is_sent_in_clear, read_url};
use super::models::TIMEOUTS;
use super::{DataClass, HttpTool, Severity, Tool, ToolKind};
use crate::declaration::{Flag, Item, Section};
use crate::model::Effect;

/// Tools that are part of the product, each with what it does.
pub const BUILTIN_FUNCTIONS: [(&str, Effect); 3] = [
    ("ledger_list", Effect::ReadOnly),
    ("ledger_read", Effect::ReadOnly),
    ("ledger_refund", Effect::NonIdempotentWrite),
];

const KINDS: [&str; 2] = ["builtin", "http"];
const BUILTIN_KEYS: [&str; 1] = ["function"];
const HTTP_KEYS: [&str; 4] = ["url", "bearer_env", "bearer_file", "max_response_bytes"];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_MAX_RESPONSE_BYTES: u64 = 1 << 20;
const LARGEST_MAX_RESPONSE_BYTES: u64 = 64 << 20;
/// The schema of a tool that takes no arguments.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

pub(super) fn read_tool(name: &str, section: &Section<'_>) -> Option<Tool> {
    if !is_callable(name) {
        let path = section.path();
        section.error(format!(
            "{path} cannot be offered to a model: use 1 to 64 letters, digits, `_` or `-`"
        ));
    }
    let kind = read_kind(section);
    let effect = read_effect(section, kind.as_ref());
    let data_class = read_data_class(section);
    let parameters = read_parameters(section);
    let groups = section
        .names("groups")
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    let tool = Tool {
        name: name.into(),
        description: section.text("description").unwrap_or_default().to_owned(),
        enabled: section.flag("enabled", Flag::Set),
        requires_admin: section.flag("requires_admin", Flag::Unset),
        requires_approval: section.flag("requires_approval", Flag::Unset),
        timeout: section.duration("timeout", TIMEOUTS, DEFAULT_TIMEOUT),
        kind: kind?,
        effect,
        data_class,
        groups,
        parameters: parameters?,
    };
    Some(tool)
}

/// Whether the model interfaces take the name of a function.
fn is_callable(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn read_kind(section: &Section<'_>) -> Option<ToolKind> {
    match section.require("kind").and_then(|item| item.one_of(&KINDS)) {
        Some("builtin") => {
            section.out_of_place(&HTTP_KEYS, "it belongs to a tool of the kind `http`");
            let function = section
                .require("function")?
                .one_of(&BUILTIN_FUNCTIONS.map(|(name, _)| name))?;
            Some(ToolKind::Builtin {
                function: function.to_owned(),
            })
        }
        Some(_) => {
            section.out_of_place(&BUILTIN_KEYS, "it belongs to a tool of the kind `builtin`");
            read_http(section)
        }
        None => {
            section.tolerate(&HTTP_KEYS);
            section.tolerate(&BUILTIN_KEYS);
            None
        }
    }
}

fn read_http(section: &Section<'_>) -> Option<ToolKind> {
    let url = section.require("url");
    let bearer = credential(section, "bearer_env", "bearer_file");
    let range = 1..=LARGEST_MAX_RESPONSE_BYTES;
    let max_response_bytes = section.number("max_response_bytes", range, DEFAULT_MAX_RESPONSE_BYTES);
    let item = url?;
    if is_sent_in_clear(&read_url(&item)?, bearer.as_ref()) {
        item.warn(format!(
            "{} is plain http: the bearer token is sent to it in clear",
            item.path()
        ));
    }
    Some(ToolKind::Http(HttpTool {
        url: item.text()?.to_owned(),
        bearer,
        // The range has bounded it.
        max_response_bytes: usize::try_from(max_response_bytes).unwrap_or(usize::MAX),
    }))
}

fn read_effect(section: &Section<'_>, kind: Option<&ToolKind>) -> Effect {
    let Some(item) = section.get("effect") else {
        let message = format!(
            "{} declares no effect and counts as `non_idempotent_write`",
            section.path()
        );
        section.warn_at_key("effect", message);
        return Effect::NonIdempotentWrite;
    };
    let declared = item
        .one_of(&Effect::ALL.map(Effect::as_str))
        .and_then(Effect::parse);
    if declared == Some(Effect::ReadOnly) && kind.is_some_and(is_known_to_write) {
        item.error(format!(
            "{} is `read_only`, but the built-in function writes",
            item.path()
        ));
    }
    declared.unwrap_or(Effect::NonIdempotentWrite)
}

fn is_known_to_write(kind: &ToolKind) -> bool {
    match kind {
        ToolKind::Builtin { function } => BUILTIN_FUNCTIONS
            .iter()
            .any(|(name, effect)| name == function && effect.is_write()),
        ToolKind::Http(_) => false,
    }
}

pub(super) fn read_data_class(section: &Section<'_>) -> DataClass {
    let Some(item) = section.get("data_class") else {
        let message = format!("{} declares no data class and counts as `secret`", section.path());
        section.warn_at_key("data_class", message);
        return DataClass::Secret;
    };
    let written = item.text();
    if let Some(text) = written
        && DataClass::parse(text).is_none()
    {
        let message = format!("{} is no known data class and counts as `secret`", item.path());
        item.misspelt(
            Severity::Warning,
            message,
            text,
            DataClass::ALL.map(DataClass::as_str),
        );
    }
    DataClass::declared(written)
}

fn read_parameters(section: &Section<'_>) -> Option<Box<RawValue>> {
    let Some(item) = section.get("parameters") else {
        return RawValue::from_string(NO_PARAMETERS.to_owned()).ok();
    };
    let schema = item.json_object()?;
    warn_of_odd_schema(&item, &schema);
    Some(schema)
}

/// Providers differ in what they refuse, so that an odd schema is a warning and not an error.
fn warn_of_odd_schema(item: &Item<'_>, schema: &RawValue) {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(schema.get()).unwrap_or_default();
    if members.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        item.warn(format!(
            "{} has no `type = \"object\"`: many providers refuse such a schema",
            item.path()
        ));
    }
}
