//! The kinds of values that settings have, and how each is read: from a text, as a variable has it, or from a
//! place in the settings' file.

use std::time::Duration;

use crate::declaration::{Item, format_duration, parse_duration};

/// What a setting's value has to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    Word(&'static [&'static str]),
    Number { least: u64, most: u64 },
    Duration { least: Duration, most: Duration },
}

/// A value that is of its setting's kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(u64),
    Duration(Duration),
}

impl Kind {
    /// Reads a value from a text. The error is what the text would have to be; it does not repeat the text.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Word(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
            Self::Word(words) => Err(format!("must be one of {}", words.join(", "))),
            Self::Number { least, most } => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                number
                    .map(Value::Number)
                    .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
            }
            Self::Duration { least, most } => {
                let duration = parse_duration(text).map_err(|error| format!("is {error}"))?;
                let (shortest, longest) = (format_duration(least), format_duration(most));
                let fits = (least..=most).contains(&duration);
                fits.then_some(Value::Duration(duration))
                    .ok_or(format!("must be from {shortest} to {longest}"))
            }
        }
    }

    /// Reads a value of the settings' file. That it is of another kind is an error at its place.
    pub(super) fn read_item(self, item: &Item<'_>) -> Option<Value> {
        match self {
            Self::Text => Some(Value::Text(item.some_text()?.to_owned())),
            Self::Word(words) => Some(Value::Text(item.one_of(words)?.to_owned())),
            Self::Number { least, most } => item.number(least..=most).map(Value::Number),
            Self::Duration { least, most } => item.duration(least..=most).map(Value::Duration),
        }
    }
}
