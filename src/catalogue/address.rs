//! Where something is called and which secret goes along: URLs and the places that keys are read from. A
//! catalogue is shown to people, so neither may hold a secret itself.

use url::{Host, Url};

use super::CredentialSource;
use crate::declaration::{Item, Section};

/// A URL with `http` or `https`, a host and no credentials in it.
pub(super) fn read_url(item: &Item<'_>) -> Option<Url> {
    let text = item.text()?;
    let fault = match Url::parse(text) {
        Err(error) => format!("is no URL: {error}"),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            "must begin with `http://` or `https://`".to_owned()
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "must not hold a user or a password: a catalogue holds no secrets".to_owned()
        }
        Ok(_) if text.chars().any(|c| c.is_whitespace() || c.is_control()) => "has a blank in it".to_owned(),
        Ok(url) => return Some(url),
    };
    item.error(format!("{} {fault}", item.path()));
    None
}

/// The source of a secret, from one of two keys. Both at once is an error.
pub(super) fn credential(
    section: &Section<'_>,
    env_key: &'static str,
    file_key: &'static str,
) -> Option<CredentialSource> {
    let (env, file) = (section.get(env_key), section.get(file_key));
    if let (Some(_), Some(file)) = (&env, &file) {
        let path = section.path();
        file.error(format!(
            "{path} has both `{env_key}` and `{file_key}`; one source must be named"
        ));
    }
    if let Some(item) = env {
        let name = item.name()?;
        if !is_variable(name) {
            // What stands there is not repeated: it may be the secret itself.
            item.error(format!(
                "{} must be the name of an environment variable",
                item.path()
            ));
            return None;
        }
        return Some(CredentialSource::Environment(name.to_owned()));
    }
    file?.name().map(|path| CredentialSource::File(path.to_owned()))
}

fn is_variable(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a secret would cross a network unprotected.
pub(super) fn is_sent_in_clear(url: &Url, secret: Option<&CredentialSource>) -> bool {
    let stays_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    secret.is_some() && url.scheme() == "http" && !stays_here
}
