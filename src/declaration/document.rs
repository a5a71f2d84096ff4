//! A parsed text together with the places of everything in it, and the faults found in it so far.

use std::cell::RefCell;

use toml::Spanned;
use toml::de::{DeTable, Error};

use super::position::Lines;
use super::{Problem, Problems, Section, Severity, nearest};

/// The largest text that is read, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// How many faults are told. A text with more is wrong in another way than each of them says, and placing them
/// all would cost the square of its length.
const MAX_TOLD: usize = 200;

/// The faults so far.
#[derive(Default)]
struct Found {
    told: Vec<Problem>,
    untold: usize,
    has_errors: bool,
}

/// A parsed text. Whoever reads it goes through [`Document::root`]; the faults gather here.
pub struct Document<'t> {
    lines: Lines<'t>,
    root: Spanned<DeTable<'t>>,
    found: RefCell<Found>,
}

impl<'t> Document<'t> {
    /// Parses a text of at most 4 MiB.
    ///
    /// # Errors
    ///
    /// When the text is too large or no TOML: one problem, with the line and a caret as its excerpt.
    pub fn parse(text: &'t str) -> Result<Self, Problems> {
        if text.len() > MAX_BYTES {
            let message = format!("the text has {} bytes; at most {MAX_BYTES} are read", text.len());
            return Err(vec![Problem::elsewhere("", message)].into());
        }
        let lines = Lines::of(text);
        match DeTable::parse(text) {
            Ok(root) => Ok(Self {
                lines,
                root,
                found: RefCell::default(),
            }),
            Err(error) => Err(vec![syntax_error(&lines, text, &error)].into()),
        }
    }

    /// The text's outermost table.
    pub fn root(&self) -> Section<'_> {
        Section::new(self, String::new(), 0, self.root.get_ref())
    }

    /// Whether an error has been found so far.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.found.borrow().has_errors
    }

    /// All faults that were found, by place; of very many, those that were found first and how many more there are.
    #[must_use]
    pub fn into_problems(self) -> Problems {
        let Found {
            mut told,
            untold,
            has_errors,
        } = self.found.into_inner();
        if untold > 0 {
            let severity = if has_errors {
                Severity::Error
            } else {
                Severity::Warning
            };
            let message = format!("{untold} more problems are not shown");
            told.push(Problem {
                severity,
                ..Problem::elsewhere("", message)
            });
        }
        told.into()
    }

    /// Keeps a fault. What was probably meant is one of the candidates, if any is near what was written.
    pub(super) fn report<'c>(
        &self,
        severity: Severity,
        path: &str,
        at: usize,
        message: String,
        meant: (&str, impl IntoIterator<Item = &'c str>),
    ) {
        let mut found = self.found.borrow_mut();
        found.has_errors |= severity == Severity::Error;
        if found.told.len() == MAX_TOLD {
            found.untold += 1;
            return;
        }
        let (line, column) = self.lines.place(at);
        let (written, candidates) = meant;
        let suggestion = nearest(written, candidates).map(str::to_owned);
        found.told.push(Problem {
            suggestion,
            line,
            column,
            severity,
            ..Problem::elsewhere(path, message)
        });
    }
}

/// For a fault that is no misspelling.
pub(super) const NOTHING_MEANT: (&str, [&str; 0]) = ("", []);

fn syntax_error(lines: &Lines<'_>, text: &str, error: &Error) -> Problem {
    let at = error.span().map_or(text.len(), |span| span.start);
    let (line, column) = lines.place(at);
    Problem {
        severity: Severity::Error,
        path: String::new(),
        line,
        column,
        message: format!("not valid TOML: {}", error.message()),
        suggestion: None,
        excerpt: Some(lines.excerpt(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_shows_its_line() {
        let problems = Document::parse("[tools.refund]\nkind = \"builtin\nurl = 1\n")
            .err()
            .unwrap();
        let shown = problems.to_string();
        assert_eq!(problems.len(), 1);
        assert!(shown.starts_with("error: not valid TOML: "), "{shown}");
        assert!(shown.contains(", line 2, column "), "{shown}");
        assert!(shown.contains("\n  kind = \"builtin\n"), "{shown}");
        assert!(shown.ends_with('^'), "{shown}");
    }

    #[test]
    fn a_key_that_stands_twice_is_found_at_its_second_place() {
        let problems = Document::parse("a = 1\nb = 2\na = 3\n").err().unwrap();
        assert_eq!(
            problems.iter().map(|p| (p.line, p.column)).collect::<Vec<_>>(),
            [(3, 1)]
        );
    }

    #[test]
    fn a_text_that_is_too_large_is_not_looked_at() {
        let text = "#".repeat(MAX_BYTES + 1);
        let problems = Document::parse(&text).err().unwrap();
        assert_eq!(
            problems.to_string(),
            "error: the text has 4194305 bytes; at most 4194304 are read"
        );
        assert!(Document::parse(&text[..MAX_BYTES]).is_ok());
    }
}
