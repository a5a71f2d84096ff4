//! Durations as people write them: one whole number and one unit, `250ms`, `30s`, `5m`, `2h`, `7d`.
//!
//! One unit only, so that a duration has few spellings and a text never reads as more than it is.

use std::time::Duration;

/// The text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// No number with a unit.
    #[error(
        "no duration: write a whole number and a unit, such as \"250ms\", \"30s\", \"5m\", \"2h\" or \"7d\""
    )]
    NotWritten,
    /// More than ten years.
    #[error("too long for a duration: at most \"3650d\"")]
    TooLong,
}

/// Units with their milliseconds, the longest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Ten years: far beyond what anything here waits for, and far below where adding it to a date overflows.
const LONGEST_MS: u64 = 3_650 * 86_400_000;

/// Reads a duration.
///
/// # Errors
///
/// When the text is not a whole number directly followed by a unit, or is more than ten years.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS
        .into_iter()
        .find(|(name, _)| *name == unit)
        .ok_or(InvalidDuration::NotWritten)?;
    if number.is_empty() {
        return Err(InvalidDuration::NotWritten);
    }
    // The digits are known to be digits: only size can make this fail.
    let number: u64 = number.parse().map_err(|_| InvalidDuration::TooLong)?;
    let ms = number
        .checked_mul(unit_ms)
        .filter(|ms| *ms <= LONGEST_MS)
        .ok_or(InvalidDuration::TooLong)?;
    Ok(Duration::from_millis(ms))
}

/// Writes a duration in the largest unit that says it exactly. What is less than a millisecond is dropped.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    let (name, unit_ms) = UNITS
        .into_iter()
        .find(|(_, unit_ms)| ms != 0 && ms.is_multiple_of(u128::from(*unit_ms)))
        .unwrap_or(("s", 1_000));
    format!("{}{name}", ms / u128::from(unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_as_it_is_written() {
        for (text, ms) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(format_duration(Duration::from_millis(ms)), text);
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "90s");
        assert_eq!(format_duration(Duration::from_secs(86_400)), "1d");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "30", "s", "30 s", " 30s", "1h30m", "-1s", "1.5s", "30S", "30sec", "٣s", "1_000s",
        ] {
            assert_eq!(parse_duration(text), Err(InvalidDuration::NotWritten), "{text:?}");
        }
        for text in ["3651d", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse_duration(text), Err(InvalidDuration::TooLong), "{text:?}");
        }
    }
}
