//! A parsed text together with the places of everything in it, and the faults found in it so far.

use std::cell::RefCell;

use toml::Spanned;
use toml::de::{DeTable, Error};

use super::position::Lines;
use super::{Problem, Problems, Section, Severity};

/// The largest text that is read, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// A parsed text. Whoever reads it goes through [`Document::root`]; the faults gather here.
pub struct Document<'t> {
    lines: Lines<'t>,
    root: Spanned<DeTable<'t>>,
    found: RefCell<Vec<Problem>>,
}

impl<'t> Document<'t> {
    /// Parses a text of at most 4 MiB.
    ///
    /// # Errors
    ///
    /// When the text is too large or no TOML: one problem, with the line and a caret as its excerpt.
    pub fn parse(text: &'t str) -> Result<Self, Problems> {
        if text.len() > MAX_BYTES {
            return Err(vec![too_large(text.len())].into());
        }
        let lines = Lines::of(text);
        match DeTable::parse(text) {
            Ok(root) => Ok(Self { lines, root, found: RefCell::default() }),
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
        self.found.borrow().iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All faults that were found, by place.
    #[must_use]
    pub fn into_problems(self) -> Problems {
        self.found.into_inner().into()
    }

    /// Keeps a fault.
    pub(super) fn report(
        &self,
        severity: Severity,
        path: &str,
        at: usize,
        message: String,
        suggestion: Option<&str>,
    ) {
        let (line, column) = self.lines.place(at);
        self.found.borrow_mut().push(Problem {
            severity,
            path: path.to_owned(),
            line,
            column,
            message,
            suggestion: suggestion.map(str::to_owned),
            excerpt: None,
        });
    }
}

fn too_large(bytes: usize) -> Problem {
    Problem {
        severity: Severity::Error,
        path: String::new(),
        line: 0,
        column: 0,
        message: format!("the text has {bytes} bytes; at most {MAX_BYTES} are read"),
        suggestion: None,
        excerpt: None,
    }
}

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
        let problems = Document::parse("[tools.refund]\nkind = \"builtin\nurl = 1\n").err().unwrap();
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
        assert_eq!(problems.iter().map(|p| (p.line, p.column)).collect::<Vec<_>>(), [(3, 1)]);
    }

    #[test]
    fn a_text_that_is_too_large_is_not_looked_at() {
        let text = "#".repeat(MAX_BYTES + 1);
        let problems = Document::parse(&text).err().unwrap();
        assert_eq!(problems.to_string(), "error: the text has 4194305 bytes; at most 4194304 are read");
        assert!(Document::parse(&text[..MAX_BYTES]).is_ok());
    }
}
