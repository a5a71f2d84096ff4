//! Where a command's answer goes: to standard output, at once, as text for people or as JSON for machines.
//!
//! JSON is lossless and yet safe to look at: a character that cannot be seen is written as `\uXXXX`, which every
//! JSON reader turns back into the character.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

use super::paint::Paint;
use crate::model::visible;

/// For whom a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Whether colour is wanted where a terminal could show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// If standard output is a terminal.
    IfTerminal,
    /// Never.
    Never,
}

/// Standard output, and how it is written to.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// For whom.
    pub format: Format,
    /// In which colours.
    pub paint: Paint,
}

impl Screen {
    /// A screen that paints where standard output is a terminal.
    #[must_use]
    pub fn new(format: Format, colour: Colour) -> Self {
        let painted = colour == Colour::IfTerminal && format == Format::Text && io::stdout().is_terminal();
        Self {
            format,
            paint: if painted { Paint::ANSI } else { Paint::PLAIN },
        }
    }

    /// Whether a machine reads.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A text of many lines that was stored as it is: exact where a program reads it, escaped line by line where
    /// a person does.
    #[must_use]
    pub fn document(&self, text: &str) -> String {
        if !io::stdout().is_terminal() {
            return text.to_owned();
        }
        text.lines().map(|line| format!("{}\n", visible(line))).collect()
    }

    /// Shows the one or the other.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn answer(&self, json: impl FnOnce() -> Value, text: impl FnOnce(Paint) -> String) -> io::Result<()> {
        match self.format {
            Format::Json => write(&format!("{}\n", to_json(&json(), Shape::Indented))),
            Format::Text => write(&text(self.paint)),
        }
    }

    /// Shows one line of many: the one or the other.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn line(&self, json: impl FnOnce() -> Value, text: impl FnOnce(Paint) -> String) -> io::Result<()> {
        match self.format {
            Format::Json => write(&format!("{}\n", to_json(&json(), Shape::OneLine))),
            Format::Text => write(&format!("{}\n", text(self.paint))),
        }
    }
}

/// Writes to standard output, at once.
///
/// # Errors
/// It cannot be written to.
pub fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// For a document.
    Indented,
    /// For one of many lines.
    OneLine,
}

/// A value as JSON text in which every character can be seen.
#[must_use]
pub fn to_json(value: &Value, shape: Shape) -> String {
    let text = if shape == Shape::Indented {
        format!("{value:#}")
    } else {
        value.to_string()
    };
    let mut escaped = String::with_capacity(text.len());
    let mut buffer = [0; 4];
    for c in text.chars() {
        // Line breaks stand between tokens only; within a string they are escaped already.
        if c == '\n' || !visible(c.encode_utf8(&mut buffer)).is_suspicious() {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn case_e6_json_can_be_looked_at_and_loses_nothing() {
        let value =
            json!({ "arguments": "re\u{200b}fund\u{202e}\u{2028}\u{e0041}\u{7f}\n\u{1b}[2K", "é": "退款" });
        for shape in [Shape::Indented, Shape::OneLine] {
            let text = to_json(&value, shape);
            assert!(
                text.contains("re\\u200bfund\\u202e\\u2028\\udb40\\udc41\\u007f\\n\\u001b[2K"),
                "{text}"
            );
            assert!(text.contains("退款"));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
        assert!(!to_json(&value, Shape::OneLine).contains('\n'));
    }
}
