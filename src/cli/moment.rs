//! How times are shown: to people as how long ago or until when, to machines as RFC 3339 in UTC.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time for machines.
#[must_use]
pub fn rfc3339(at: OffsetDateTime) -> String {
    // Only a year beyond 9999 cannot be written so.
    at.format(&Rfc3339).unwrap_or_default()
}

/// A time for a line of a timeline: UTC, to the second.
#[must_use]
pub fn stamp(at: OffsetDateTime) -> String {
    let (date, time) = (at.date(), at.time());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{date} {hour:02}:{minute:02}:{second:02}Z")
}

/// How far a time is from now: `12 s ago`, `in 7 d`.
#[must_use]
pub fn relative(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let seconds = (at - now).whole_seconds();
    let length = length(seconds.unsigned_abs());
    match seconds {
        -1..=1 => "just now".to_owned(),
        ..=-2 => format!("{length} ago"),
        _ => format!("in {length}"),
    }
}

/// A length of time in the largest unit that it fills, rounded to the nearest.
fn length(seconds: u64) -> String {
    let rounded = |unit: u64| (seconds + unit / 2) / unit;
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_569 => format!("{} min", rounded(60)),
        3_570..=84_599 => format!("{} h", rounded(3_600)),
        _ => format!("{} d", rounded(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_time_is_told_from_now() {
        let now = datetime!(2026-12-01 05:10:03 UTC);
        let told = |seconds: i64| relative(now + time::Duration::seconds(seconds), now);
        assert_eq!(told(0), "just now");
        assert_eq!(told(-12), "12 s ago");
        assert_eq!(told(-89), "1 min ago");
        assert_eq!(told(-3_599), "1 h ago");
        assert_eq!(told(-86_399), "1 d ago");
        assert_eq!(told(7 * 86_400 - 1), "in 7 d");
    }

    #[test]
    fn a_time_is_written_in_utc() {
        let at = datetime!(2026-12-01 05:10:03.5 UTC);
        assert_eq!(stamp(at), "2026-12-01 05:10:03Z");
        assert_eq!(rfc3339(at), "2026-12-01T05:10:03.5Z");
    }
}
