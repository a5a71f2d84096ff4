//! Colour, and little of it: eight words that a terminal can be told. Text is measured and escaped before it
//! is painted, never after.

/// What a piece of text should look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// A name or a heading.
    Bold,
    /// Of less importance.
    Dim,
    /// Refused, failed.
    Red,
    /// Done, allowed.
    Green,
    /// Waits for somebody.
    Yellow,
    /// Under way, or to be typed.
    Cyan,
}

/// Whether text is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// No colour.
    pub const PLAIN: Self = Self { on: false };

    /// Colour for a terminal.
    pub const ANSI: Self = Self { on: true };

    /// The text in that style. It must hold no control characters.
    #[must_use]
    pub fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Cyan => "36",
        };
        if self.on && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A heading or a name.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.apply(Style::Bold, text)
    }

    /// Something of less importance.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.apply(Style::Dim, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_for_a_terminal() {
        assert_eq!(Paint::PLAIN.apply(Style::Red, "no"), "no");
        assert_eq!(Paint::ANSI.apply(Style::Red, "no"), "\u{1b}[31mno\u{1b}[0m");
        assert_eq!(Paint::ANSI.bold(""), "");
        assert_eq!(Paint::ANSI.apply(Style::Plain, "x"), "x");
    }
}
