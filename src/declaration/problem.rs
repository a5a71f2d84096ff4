//! One fault of a declared text, and all of them. What a person needs to mend it is in the fault itself:
//! which key, where, and what it may have been meant to be.

use std::fmt;

use crate::model::visible;

/// How bad a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The text is refused.
    Error,
    /// The text is taken, but says something that was hardly meant.
    Warning,
}

impl Severity {
    /// As it is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The key it is about, from the root of the text: `tools.refund.requires_aproval`. Empty for a fault of
    /// the text as a whole.
    pub path: String,
    /// The line, from 1; 0 where the fault is not in the text.
    pub line: usize,
    /// The column in characters, from 1; 0 where the fault is not in the text.
    pub column: usize,
    /// What is wrong, as a lower-case fragment that names the key.
    pub message: String,
    /// The known name that is nearest to the one that was written.
    pub suggestion: Option<String>,
    /// For a syntax error, the line and a caret below it. It is the only place where a fault quotes the text,
    /// so a text with secrets in it drops this.
    pub excerpt: Option<String>,
}

impl Problem {
    /// An error about something that stands in no text, such as a variable, or in none that matters.
    #[must_use]
    pub fn elsewhere(path: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            path: path.to_owned(),
            line: 0,
            column: 0,
            message: message.into(),
            suggestion: None,
            excerpt: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity.as_str(), visible(&self.message))?;
        if self.line > 0 {
            write!(f, ", line {}, column {}", self.line, self.column)?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, ": did you mean `{}`?", visible(suggestion))?;
        }
        for line in self.excerpt.iter().flat_map(|excerpt| excerpt.split('\n')) {
            write!(f, "\n  {}", visible(line))?;
        }
        Ok(())
    }
}

/// All faults of one text, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Whether any is an error, so that the text is refused.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Whether there is none, not even a warning.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each of them, by place.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl From<Vec<Problem>> for Problems {
    fn from(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Self(problems)
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One problem a line; a syntax error has its excerpt below it.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: usize, message: &str) -> Problem {
        Problem {
            severity: Severity::Warning,
            path: String::new(),
            line,
            column: 1,
            message: message.to_owned(),
            suggestion: None,
            excerpt: None,
        }
    }

    #[test]
    fn problems_are_told_in_the_order_of_the_text() {
        let problems = Problems::from(vec![
            problem(9, "late"),
            problem(0, "everywhere"),
            problem(2, "early"),
        ]);
        assert_eq!(
            problems.to_string(),
            "warning: everywhere\nwarning: early, line 2, column 1\nwarning: late, line 9, column 1"
        );
        assert!(!problems.has_errors());
    }

    #[test]
    fn a_name_cannot_rewrite_the_terminal() {
        let shown = problem(1, "unknown key `a\u{1b}[2K\u{202e}`").to_string();
        assert_eq!(
            shown,
            "warning: unknown key `a\\u{1b}[2K\\u{202e}`, line 1, column 1"
        );
    }
}
