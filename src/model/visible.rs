//! Text from a run, made safe to show to a person: what cannot be seen is escaped, so that it can.
//!
//! Escaped are controls, bidirectional formatting, zero-width and other default-ignorable characters,
//! unusual blanks and line separators (see Unicode TR36 and TR39). A plain newline and tab are controls too: who shows
//! text over many lines splits it first.

use std::fmt;

/// A text as it is shown to people.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'t>(&'t str);

/// Shows a text with its invisible characters escaped as `\u{…}`.
#[must_use]
pub fn visible(text: &str) -> Visible<'_> {
    Visible(text)
}

impl Visible<'_> {
    /// Whether anything had to be escaped; a surface flags such a text.
    #[must_use]
    pub fn is_suspicious(&self) -> bool {
        self.0.chars().any(is_invisible)
    }
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
            | 0x00A0 | 0x1680 | 0x2000..=0x200F | 0x2028..=0x202F | 0x205F..=0x206F | 0x3000 | 0x3164
            | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xE000..=0xF8FF
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF | 0xF0000..=0x0010_FFFF)
}

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if is_invisible(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_e6_what_cannot_be_seen_is_escaped() {
        let text = "re\u{200b}fund\u{202e}\u{2028}\u{1b}[31m\n";
        assert_eq!(
            visible(text).to_string(),
            "re\\u{200b}fund\\u{202e}\\u{2028}\\u{1b}[31m\\n"
        );
        assert!(visible(text).is_suspicious());
    }

    #[test]
    fn plain_text_of_any_script_stays() {
        for text in ["refund 40 €", "Возврат", "退款", "naïve"] {
            assert_eq!(visible(text).to_string(), text);
            assert!(!visible(text).is_suspicious());
        }
    }
}
