//! Providers and models, as they are declared.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::address::{credential, is_sent_in_clear, read_url};
use super::parse::{Names, resolves};
use super::{CredentialSource, Endpoint, Model, Provider, ProviderKind, Severity, TrustZone};
use crate::declaration::{Item, Section};

const KINDS: [&str; 3] = ["openai", "anthropic", "scripted"];
const ENDPOINT_KEYS: [&str; 5] = ["base_url", "key_env", "key_file", "timeout", "max_retries"];
const SCRIPTED_KEYS: [&str; 1] = ["script"];
/// Members of a request that the product itself writes.
const OWN_MEMBERS: [&str; 5] = ["messages", "model", "n", "stream", "tools"];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_MAX_RETRIES: u64 = 3;

/// The shortest and the longest time that one request or call may be given.
pub(super) const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(86_400);

pub(super) fn read_provider(name: &str, section: &Section<'_>) -> Option<Provider> {
    let written = section.require("kind").and_then(|item| item.one_of(&KINDS));
    let kind = match written {
        Some("openai") => read_endpoint(section, "/chat/completions").map(ProviderKind::OpenAi),
        Some("anthropic") => read_endpoint(section, "/messages").map(ProviderKind::Anthropic),
        Some(_) => {
            section.out_of_place(
                &ENDPOINT_KEYS,
                "it belongs to a provider of the kind `openai` or `anthropic`",
            );
            read_scripted(section)
        }
        None => {
            section.tolerate(&ENDPOINT_KEYS);
            section.tolerate(&SCRIPTED_KEYS);
            None
        }
    };
    Some(Provider {
        name: name.to_owned(),
        kind: kind?,
    })
}

/// An endpoint, to whose `base_url` requests add `route`.
fn read_endpoint(section: &Section<'_>, route: &str) -> Option<Endpoint> {
    section.out_of_place(&SCRIPTED_KEYS, "it belongs to a provider of the kind `scripted`");
    let base_url = section.require("base_url");
    let key = credential(section, "key_env", "key_file");
    let timeout = section.duration("timeout", TIMEOUTS, DEFAULT_TIMEOUT);
    let max_retries = section.number("max_retries", 0..=100, DEFAULT_MAX_RETRIES);
    Some(Endpoint {
        base_url: read_base_url(&base_url?, route, key.as_ref())?,
        key,
        timeout,
        // The range has bounded it.
        max_retries: u32::try_from(max_retries).unwrap_or(u32::MAX),
    })
}

fn read_base_url(item: &Item<'_>, route: &str, key: Option<&CredentialSource>) -> Option<String> {
    let url = read_url(item)?;
    let path = url.path().trim_end_matches('/');
    if path.ends_with(route) {
        item.error(format!(
            "{} must end before `{route}`, which is added",
            item.path()
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        item.error(format!("{} must have no query and no fragment", item.path()));
    }
    if is_sent_in_clear(&url, key) {
        item.warn(format!(
            "{} is plain http: the key is sent to it in clear",
            item.path()
        ));
    }
    item.text().map(|text| text.trim_end_matches('/').to_owned())
}

fn read_scripted(section: &Section<'_>) -> Option<ProviderKind> {
    let script = section.require("script")?.name()?;
    Some(ProviderKind::Scripted {
        script: script.to_owned(),
    })
}

pub(super) fn read_model(name: &str, section: &Section<'_>, names: &Names<'_>) -> Option<Model> {
    let provider = section.require("provider").and_then(|item| {
        let provider = item.name()?;
        resolves(&item, "provider", provider, &names.providers).then_some(provider)
    });
    let remote_name = section.get("name").map_or(Some(name), |item| item.name());
    let zone = read_zone(section);
    let parameters = section.get("parameters").and_then(|item| read_parameters(&item));
    Some(Model {
        name: name.to_owned(),
        provider: provider?.to_owned(),
        remote_name: remote_name?.to_owned(),
        zone,
        parameters,
    })
}

fn read_zone(section: &Section<'_>) -> TrustZone {
    let Some(item) = section.get("zone") else {
        let message = format!(
            "{} declares no zone and counts as `external_global`",
            section.path()
        );
        section.warn_at_key("zone", message);
        return TrustZone::ExternalGlobal;
    };
    let written = item.text();
    if let Some(text) = written
        && TrustZone::parse(text).is_none()
    {
        let message = format!("{} is no known zone and counts as `external_global`", item.path());
        item.misspelt(
            Severity::Warning,
            message,
            text,
            TrustZone::ALL.map(TrustZone::as_str),
        );
    }
    TrustZone::declared(written)
}

fn read_parameters(item: &Item<'_>) -> Option<String> {
    let json = item.json_object()?;
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json.get()).unwrap_or_default();
    for own in OWN_MEMBERS.into_iter().filter(|own| members.contains_key(*own)) {
        item.error(format!(
            "{} sets `{own}`, which each request sets itself",
            item.path()
        ));
    }
    Some(json.get().to_owned())
}
