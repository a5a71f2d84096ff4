//! What an attempt means for the call: done, tried again, or unknown. It is decided from what is known of
//! the attempt and from the declared effect, and from nothing else.
//!
//! Two mistakes are avoided. A write that must not happen twice is never sent again unless nothing was sent;
//! and a write that took effect is never told to the model as failed because its answer is of no use.

use std::time::Duration;

use reqwest::StatusCode;
use time::OffsetDateTime;

use super::CallEnd;
use super::exchange::{Detour, Exchange, Loss};
use super::wire::{Body, BodyEnd, retry_after};
use crate::model::Effect;

/// How much of a fault's text is passed on, in characters.
const MAX_FAULT_CHARS: usize = 2_000;

/// What an attempt means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The call is over.
    Done(CallEnd),
    /// It may be tried again, not before the time that the tool asks for; if it is not, this is its end.
    Again {
        /// The end, if there is no further attempt.
        otherwise: CallEnd,
        /// What the tool asks for.
        not_before: Option<Duration>,
    },
}

/// What is declared of the call, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    /// What the call does to the world.
    pub effect: Effect,
    /// Its deadline.
    pub timeout: Duration,
    /// The largest answer that is taken, in bytes.
    pub limit: usize,
}

/// Judges one attempt.
pub(super) fn judge(declared: Declared, exchange: Exchange, now: OffsetDateTime) -> Judgement {
    let repeatable = declared.effect != Effect::NonIdempotentWrite;
    match exchange {
        Exchange::Answered { status, body, .. } if status.is_success() => {
            Judgement::Done(result(declared, status, body))
        }
        Exchange::Answered {
            status,
            headers,
            body,
        } => {
            let end = CallEnd::Failed(fault(status, &body));
            if repeatable && is_passing(status) {
                Judgement::Again {
                    otherwise: end,
                    not_before: retry_after(&headers, now),
                }
            } else {
                Judgement::Done(end)
            }
        }
        Exchange::NotFollowed { status, detour } => Judgement::Done(not_followed(declared, status, &detour)),
        Exchange::NotSent(loss) => {
            let why = match loss {
                Loss::Deadline => format!("no connection was made within {:?}", declared.timeout),
                Loss::Connection => "no connection could be made".to_owned(),
            };
            let end = CallEnd::Failed(format!("the tool could not be reached: {why}; nothing was sent"));
            Judgement::Again {
                otherwise: end,
                not_before: None,
            }
        }
        Exchange::Lost(loss) => {
            let lost = match loss {
                Loss::Deadline => format!("the tool did not answer within {:?}", declared.timeout),
                Loss::Connection => "the connection was lost before the tool had answered".to_owned(),
            };
            match declared.effect {
                Effect::ReadOnly => Judgement::Again {
                    otherwise: CallEnd::Failed(lost),
                    not_before: None,
                },
                Effect::IdempotentWrite => Judgement::Again {
                    otherwise: CallEnd::Failed(format!("{lost}; the call may have taken effect")),
                    not_before: None,
                },
                Effect::NonIdempotentWrite => Judgement::Done(CallEnd::Unknown(format!(
                    "the call was sent, and {lost}; whether it took effect is not known"
                ))),
            }
        }
    }
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        )
}

fn result(declared: Declared, status: StatusCode, body: Body) -> CallEnd {
    let code = status.as_u16();
    let useless = if body.end == BodyEnd::OverLimit {
        format!(
            "its answer is larger than the limit of {} bytes, so nothing of it was kept",
            declared.limit
        )
    } else {
        match String::from_utf8(body.bytes) {
            Ok(text) => return CallEnd::Succeeded(text),
            Err(_) => "its answer is not UTF-8 text, so nothing of it was kept".to_owned(),
        }
    };
    if declared.effect.is_write() {
        CallEnd::Succeeded(format!(
            "the tool did the call (it answered {code}), but {useless}"
        ))
    } else {
        CallEnd::Failed(format!("the tool answered {code}, but {useless}"))
    }
}

fn fault(status: StatusCode, body: &Body) -> String {
    let code = status.as_u16();
    let text = String::from_utf8_lossy(&body.bytes);
    let excerpt = match text.char_indices().nth(MAX_FAULT_CHARS) {
        Some((cut, _)) => format!("{}… (cut after {MAX_FAULT_CHARS} characters)", &text[..cut]),
        None if matches!(body.end, BodyEnd::Lost | BodyEnd::TimedOut) => {
            format!("{text}… (the rest was lost)")
        }
        None => text.into_owned(),
    };
    if excerpt.is_empty() {
        format!("the tool answered {code}")
    } else {
        format!("the tool answered {code}: {excerpt}")
    }
}

fn not_followed(declared: Declared, status: StatusCode, detour: &Detour) -> CallEnd {
    let code = status.as_u16();
    let what = match detour {
        Detour::Origin(origin) => {
            format!("the tool answered {code} and points to {origin}, which is not its declared place")
        }
        Detour::TooFar => format!("the tool answered {code} once more after too many redirects"),
    };
    // 307 and 308 say that the call is to be made elsewhere; the others may come after it was taken.
    let taken = declared.effect.is_write() && matches!(code, 301..=303);
    let effect = if taken {
        "; the call may have taken effect"
    } else {
        ""
    };
    CallEnd::Failed(format!("{what}; that was not followed{effect}"))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, RETRY_AFTER};

    use super::*;

    fn judged(effect: Effect, exchange: Exchange) -> Judgement {
        let declared = Declared {
            effect,
            timeout: Duration::from_secs(30),
            limit: 4,
        };
        judge(declared, exchange, OffsetDateTime::UNIX_EPOCH)
    }

    fn answer(status: u16, bytes: &[u8], end: BodyEnd) -> Exchange {
        Exchange::Answered {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::from_iter([(RETRY_AFTER, "7".parse().unwrap())]),
            body: Body {
                bytes: bytes.to_vec(),
                end,
            },
        }
    }

    fn name(judgement: &Judgement) -> &'static str {
        match judgement {
            Judgement::Done(CallEnd::Succeeded(_)) => "succeeded",
            Judgement::Done(CallEnd::Failed(_)) => "failed",
            Judgement::Done(CallEnd::Unknown(_)) => "unknown",
            Judgement::Again {
                otherwise: CallEnd::Failed(_),
                ..
            } => "again",
            Judgement::Again { .. } => "again, else not failed",
        }
    }

    #[test]
    fn each_attempt_and_effect_has_its_judgement() {
        let whole = |status| answer(status, b"x", BodyEnd::Whole);
        type Attempt<'a> = Box<dyn Fn() -> Exchange + 'a>;
        let origin = || Detour::Origin("http://other".into());
        // Columns: read only, idempotent write, non-idempotent write.
        let table: [(&str, Attempt<'_>, [&str; 3]); 13] = [
            ("200", Box::new(|| whole(200)), ["succeeded"; 3]),
            (
                "over",
                Box::new(|| answer(200, b"xxxx", BodyEnd::OverLimit)),
                ["failed", "succeeded", "succeeded"],
            ),
            (
                "bytes",
                Box::new(|| answer(200, b"\xff", BodyEnd::Whole)),
                ["failed", "succeeded", "succeeded"],
            ),
            ("304", Box::new(|| whole(304)), ["failed"; 3]),
            ("404", Box::new(|| whole(404)), ["failed"; 3]),
            ("408", Box::new(|| whole(408)), ["again", "again", "failed"]),
            ("429", Box::new(|| whole(429)), ["again", "again", "failed"]),
            ("500", Box::new(|| whole(500)), ["again", "again", "failed"]),
            (
                "503 cut",
                Box::new(|| answer(503, b"x", BodyEnd::Lost)),
                ["again", "again", "failed"],
            ),
            (
                "elsewhere",
                Box::new(|| Exchange::NotFollowed {
                    status: StatusCode::FOUND,
                    detour: origin(),
                }),
                ["failed"; 3],
            ),
            (
                "not sent",
                Box::new(|| Exchange::NotSent(Loss::Connection)),
                ["again"; 3],
            ),
            (
                "lost",
                Box::new(|| Exchange::Lost(Loss::Connection)),
                ["again", "again", "unknown"],
            ),
            (
                "timed out",
                Box::new(|| Exchange::Lost(Loss::Deadline)),
                ["again", "again", "unknown"],
            ),
        ];
        for (case, attempt, expected) in table {
            let effects = [
                Effect::ReadOnly,
                Effect::IdempotentWrite,
                Effect::NonIdempotentWrite,
            ];
            assert_eq!(
                effects.map(|effect| name(&judged(effect, attempt()))),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn the_tool_says_when_to_come_back() {
        let Judgement::Again { not_before, .. } = judged(Effect::ReadOnly, answer(503, b"", BodyEnd::Whole))
        else {
            panic!("a 503 to a read is tried again");
        };
        assert_eq!(not_before, Some(Duration::from_secs(7)));
    }

    #[test]
    fn nothing_is_cut_silently() {
        let text = |effect, exchange| match judged(effect, exchange) {
            Judgement::Done(CallEnd::Succeeded(text) | CallEnd::Failed(text) | CallEnd::Unknown(text)) => {
                text
            }
            Judgement::Again { .. } => panic!("it is over"),
        };
        let over = || answer(200, b"xxxx", BodyEnd::OverLimit);
        assert!(text(Effect::ReadOnly, over()).contains("limit of 4 bytes"));
        assert!(text(Effect::NonIdempotentWrite, over()).contains("did the call (it answered 200)"));
        let exact = "ä".repeat(MAX_FAULT_CHARS);
        let whole = text(Effect::ReadOnly, answer(404, exact.as_bytes(), BodyEnd::Whole));
        assert_eq!(whole, format!("the tool answered 404: {exact}"));
        let cut = text(
            Effect::ReadOnly,
            answer(404, format!("{exact}b").as_bytes(), BodyEnd::Whole),
        );
        assert!(cut.ends_with("ä… (cut after 2000 characters)"), "{cut}");
        let lost = text(Effect::ReadOnly, answer(404, b"no s", BodyEnd::Lost));
        assert_eq!(lost, "the tool answered 404: no s… (the rest was lost)");
        assert_eq!(
            text(Effect::ReadOnly, answer(404, b"", BodyEnd::Whole)),
            "the tool answered 404"
        );
    }

    #[test]
    fn a_detour_after_the_call_was_taken_says_so() {
        let text = |status, effect| {
            let status = StatusCode::from_u16(status).unwrap();
            let detour = Detour::Origin("http://other:1".into());
            match judged(effect, Exchange::NotFollowed { status, detour }) {
                Judgement::Done(CallEnd::Failed(text)) => text,
                other => panic!("{other:?}"),
            }
        };
        assert!(text(303, Effect::IdempotentWrite).contains("may have taken effect"));
        for (status, effect) in [(307, Effect::NonIdempotentWrite), (303, Effect::ReadOnly)] {
            let text = text(status, effect);
            assert!(
                text.contains("http://other:1") && !text.contains("taken effect"),
                "{text}"
            );
        }
    }
}
