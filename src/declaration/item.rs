//! One value of a text, with its place. It is asked for as what it should be; when it is something else, that
//! is a fault at its place. No fault repeats a value: it may be a secret that was put in the wrong place.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::DeValue;

use super::document::NOTHING_MEANT;
use super::json::{NotJson, to_json};
use super::{Document, Section, Severity, format_duration, parse_duration};

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// A value and where it stands.
#[derive(Clone)]
pub struct Item<'d> {
    document: &'d Document<'d>,
    path: String,
    at: usize,
    value: &'d Spanned<DeValue<'d>>,
}

impl<'d> Item<'d> {
    pub(super) fn new(
        document: &'d Document<'d>,
        path: String,
        at: usize,
        value: &'d Spanned<DeValue<'d>>,
    ) -> Self {
        Self {
            document,
            path,
            at,
            value,
        }
    }

    /// The value's path from the root: `tools.refund.effect`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A text.
    pub fn text(&self) -> Option<&'d str> {
        self.expect("a text in quotes", self.value.get_ref().as_str())
    }

    /// A text that is not blank.
    pub fn some_text(&self) -> Option<&'d str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.error(format!("{} is empty", self.path));
            return None;
        }
        Some(text)
    }

    /// A text that can be a name: not empty, no blanks around it, no control characters, at most 128 characters.
    pub fn name(&self) -> Option<&'d str> {
        let name = self.text()?;
        self.accepts_name(name).then_some(name)
    }

    /// Whether the text can be a name (see [`Item::name`]); that it cannot is an error at this place.
    pub fn accepts_name(&self, name: &str) -> bool {
        let fault = if name.trim().is_empty() {
            "is empty"
        } else if name.trim() != name {
            "begins or ends with a blank"
        } else if name.chars().any(char::is_control) {
            "has a control character in it"
        } else if name.chars().count() > MAX_NAME_CHARS {
            "is longer than 128 characters"
        } else {
            return true;
        };
        self.error(format!("a name in {} {fault}", self.path));
        false
    }

    /// A truth value.
    pub fn flag(&self) -> Option<bool> {
        self.expect("`true` or `false`", self.value.get_ref().as_bool())
    }

    /// A whole number in a range.
    pub fn number(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let written = self.expect("a whole number", self.value.get_ref().as_integer())?;
        let number = i128::from_str_radix(written.as_str(), written.radix()).ok();
        let number = number
            .and_then(|number| u64::try_from(number).ok())
            .filter(|number| range.contains(number));
        if number.is_none() {
            self.error(format!(
                "{} must be from {} to {}",
                self.path,
                range.start(),
                range.end()
            ));
        }
        number
    }

    /// A duration in a range.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        let text = self.expect(
            "a duration in quotes, such as \"30s\"",
            self.value.get_ref().as_str(),
        )?;
        match parse_duration(text) {
            Ok(duration) if range.contains(&duration) => Some(duration),
            Ok(_) => {
                let (shortest, longest) = (format_duration(*range.start()), format_duration(*range.end()));
                self.error(format!("{} must be from {shortest} to {longest}", self.path));
                None
            }
            Err(error) => {
                self.error(format!("{} is {error}", self.path));
                None
            }
        }
    }

    /// The members of a list.
    pub fn list(&self) -> Vec<Self> {
        let members = self.expect("a list", self.value.get_ref().as_array());
        let member = |(index, value): (usize, &'d Spanned<DeValue<'d>>)| {
            Self::new(
                self.document,
                format!("{}[{index}]", self.path),
                value.span().start,
                value,
            )
        };
        members
            .into_iter()
            .flat_map(|members| members.iter().enumerate())
            .map(member)
            .collect()
    }

    /// A table, to be read key by key.
    pub fn table(&self) -> Option<Section<'d>> {
        let table = self.expect("a table", self.value.get_ref().as_table())?;
        Some(Section::new(self.document, self.path.clone(), self.at, table))
    }

    /// A JSON object, written as a TOML table (its members are then in the order of their names) or as JSON text
    /// (kept exactly as written, outer blanks aside).
    pub fn json_object(&self) -> Option<Box<RawValue>> {
        let text = match self.value.get_ref() {
            DeValue::String(text) => text.trim().to_owned(),
            table @ DeValue::Table(_) => match to_json(table) {
                Ok(json) => json.to_string(),
                Err(NotJson(what)) => {
                    self.error(format!("{} holds {what}, which JSON cannot express", self.path));
                    return None;
                }
            },
            _ => return self.expect("a table or a JSON text", None),
        };
        // The first parse judges that it is an object; the second keeps the text.
        let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text);
        match object.and_then(|_| RawValue::from_string(text)) {
            Ok(raw) => Some(raw),
            Err(error) => {
                let place = format!("line {}, column {} of it", error.line(), error.column());
                self.error(format!("{} is no JSON object ({place})", self.path));
                None
            }
        }
    }

    /// One of a fixed set of words.
    pub fn one_of(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text()?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            let message = format!("{} must be one of {}", self.path, listed(words));
            self.misspelt(Severity::Error, message, text, words.iter().copied());
        }
        word
    }

    /// An error at this place.
    pub fn error(&self, message: impl Into<String>) {
        self.document.report(
            Severity::Error,
            &self.path,
            self.at,
            message.into(),
            NOTHING_MEANT,
        );
    }

    /// A warning at this place.
    pub fn warn(&self, message: impl Into<String>) {
        self.document.report(
            Severity::Warning,
            &self.path,
            self.at,
            message.into(),
            NOTHING_MEANT,
        );
    }

    /// An error or a warning at this place about a name that is none of the known ones; the nearest of them is
    /// suggested.
    pub fn misspelt<'c>(
        &self,
        severity: Severity,
        message: impl Into<String>,
        written: &str,
        known: impl IntoIterator<Item = &'c str>,
    ) {
        self.document
            .report(severity, &self.path, self.at, message.into(), (written, known));
    }

    fn expect<T>(&self, what: &str, found: Option<T>) -> Option<T> {
        if found.is_none() {
            let found = match self.value.get_ref() {
                DeValue::String(_) => "a text",
                DeValue::Integer(_) => "a whole number",
                DeValue::Float(_) => "a fraction",
                DeValue::Boolean(_) => "a truth value",
                DeValue::Datetime(_) => "a date",
                DeValue::Array(_) => "a list",
                DeValue::Table(_) => "a table",
            };
            self.error(format!("{} must be {what}, not {found}", self.path));
        }
        found
    }
}

/// Words as a person lists them: `a`, `b`, `c`.
fn listed(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
