//! One attempt at a call: a POST, the redirects that it may follow, and the answer up to its limit. It finds
//! out what can be known of the attempt; what follows from it is judged elsewhere.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::wire::{Body, BodyEnd, cause, read_up_to};

/// How many redirects one attempt follows.
const MAX_REDIRECTS: u32 = 5;
/// How much of an answer is read that says no more than that the call failed.
const MAX_FAULT_BYTES: usize = 16 * 1024;

/// A request, ready to be sent any number of times.
pub(super) struct Request {
    /// The declared URL.
    pub url: Url,
    /// The `Authorization` header, if a credential is declared.
    pub bearer: Option<HeaderValue>,
    /// The same on every attempt.
    pub idempotency_key: HeaderValue,
    /// The JSON body.
    pub body: Bytes,
    /// The largest answer that is taken, in bytes.
    pub limit: usize,
}

/// What is known of one attempt.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The tool answered. A 2xx was read to its end or to the limit, of others there is a beginning.
    Answered {
        status: StatusCode,
        headers: HeaderMap,
        body: Body,
    },
    /// The tool points to where a call is not taken.
    NotFollowed { status: StatusCode, detour: Detour },
    /// Nothing was sent.
    NotSent(Loss),
    /// Something was sent, and no answer came.
    Lost(Loss),
}

/// Why a redirect was not followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Detour {
    /// To another scheme, host or port.
    Origin(String),
    /// One redirect too many.
    TooFar,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The deadline passed.
    Deadline,
    /// The connection could not be made, or broke.
    Connection,
}

/// Makes one attempt, to end before the deadline.
pub(super) async fn exchange(client: &Client, request: &Request, deadline: Instant) -> Exchange {
    let sent = Arc::new(AtomicBool::new(false));
    let lost = |loss| {
        if sent.load(Ordering::SeqCst) {
            Exchange::Lost(loss)
        } else {
            Exchange::NotSent(loss)
        }
    };
    let (mut method, mut url) = (Method::POST, request.url.clone());
    let mut redirects = 0;
    loop {
        let hop = hop(client, request, &method, &url, &sent);
        let response = match timeout_at(deadline, hop.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                tracing::warn!(cause = cause(error), "no answer from the tool");
                return lost(Loss::Connection);
            }
            Err(_) => return lost(Loss::Deadline),
        };
        let Some(next) = redirect_target(&response) else {
            return answered(response, request.limit, deadline).await;
        };
        let status = response.status();
        if next.origin() != request.url.origin() {
            let origin = next.origin().ascii_serialization();
            return Exchange::NotFollowed {
                status,
                detour: Detour::Origin(origin),
            };
        }
        redirects += 1;
        if redirects > MAX_REDIRECTS {
            return Exchange::NotFollowed {
                status,
                detour: Detour::TooFar,
            };
        }
        // Only 307 and 308 ask for the call to be made over there. After the others the answer is fetched, as
        // every client does it (RFC 9110, 15.4): the call may have been taken, so it is not made again.
        if !matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        ) {
            method = Method::GET;
        }
        url = next;
    }
}

fn hop(
    client: &Client,
    request: &Request,
    method: &Method,
    url: &Url,
    sent: &Arc<AtomicBool>,
) -> RequestBuilder {
    let mut hop = client.request(method.clone(), url.clone());
    if let Some(bearer) = &request.bearer {
        hop = hop.header(AUTHORIZATION, bearer);
    }
    if method != Method::POST {
        return hop;
    }
    // The body is asked for once the connection stands, and nothing is written before: while nobody has
    // asked, the call certainly took no effect. Its length is given, since not every server takes chunks.
    let (body, sent) = (request.body.clone(), Arc::clone(sent));
    let marking = futures_util::stream::once(async move {
        sent.store(true, Ordering::SeqCst);
        Ok::<_, Infallible>(body)
    });
    hop.header(CONTENT_TYPE, "application/json")
        .header(CONTENT_LENGTH, request.body.len())
        .header("idempotency-key", &request.idempotency_key)
        .body(reqwest::Body::wrap_stream(marking))
}

fn redirect_target(response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    response
        .url()
        .join(response.headers().get(LOCATION)?.to_str().ok()?)
        .ok()
}

async fn answered(response: Response, limit: usize, deadline: Instant) -> Exchange {
    let (status, headers) = (response.status(), response.headers().clone());
    let limit = if status.is_success() {
        limit
    } else {
        MAX_FAULT_BYTES
    };
    let body = read_up_to(limit, response, deadline).await;
    match body.end {
        BodyEnd::Lost if status.is_success() => Exchange::Lost(Loss::Connection),
        BodyEnd::TimedOut if status.is_success() => Exchange::Lost(Loss::Deadline),
        _ => Exchange::Answered {
            status,
            headers,
            body,
        },
    }
}
