//! What calling a tool and asking a model have in common on the wire: the client, a body that is read up to
//! a limit and a deadline, and how long a server asks to be left alone. Nothing here knows what is sent.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::time::{Instant, timeout_at};

/// How long a connection may take to be made, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The HTTP client cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up")]
pub struct NoHttpClient(#[source] reqwest::Error);

/// Whether a connection is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Connections {
    /// Idle ones are kept. The server may close one just when a request is written to it.
    Kept,
    /// Each request has its own: a request that must not be repeated is not lost to that race.
    Fresh,
}

/// A client that follows no redirect and takes no proxy from the environment: a request goes to the declared
/// place or nowhere.
pub(in crate::engine) fn client(connections: Connections) -> Result<Client, NoHttpClient> {
    let idle = match connections {
        Connections::Kept => usize::MAX,
        Connections::Fresh => 0,
    };
    Client::builder()
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(idle)
        .build()
        .map_err(NoHttpClient)
}

/// The beginning of a body.
#[derive(Debug)]
pub(in crate::engine) struct Body {
    /// What was read: no more than the limit.
    pub bytes: Vec<u8>,
    /// Why no more was read.
    pub end: BodyEnd,
}

/// Why reading a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum BodyEnd {
    /// That is all of it.
    Whole,
    /// There is more than the limit.
    OverLimit,
    /// The connection was lost.
    Lost,
    /// The deadline passed.
    TimedOut,
}

/// Reads a body, but no more of it than the limit.
pub(in crate::engine) async fn read_up_to(limit: usize, mut response: Response, deadline: Instant) -> Body {
    let mut bytes = Vec::new();
    let end = loop {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let room = limit - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    break BodyEnd::OverLimit;
                }
            }
            Ok(Ok(None)) => break BodyEnd::Whole,
            Ok(Err(_)) => break BodyEnd::Lost,
            Err(_) => break BodyEnd::TimedOut,
        }
    };
    Body { bytes, end }
}

/// How long the server asks to be left alone: `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3).
pub(in crate::engine) fn retry_after(headers: &HeaderMap, now: OffsetDateTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(Duration::try_from(at - now).unwrap_or(Duration::ZERO))
}

/// What went wrong on the wire, for a log: without the URL, which may carry a secret in its query.
pub(in crate::engine) fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        text.push_str(": ");
        text.push_str(&error.to_string());
        inner = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = datetime!(1994-11-06 08:49:30 UTC);
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(
            read("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            read("Sun, 06 Nov 1994 08:00:00 GMT"),
            Some(Duration::ZERO),
            "past"
        );
        for unreadable in ["", "soon", "-1", "1.5"] {
            assert_eq!(read(unreadable), None, "{unreadable:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
