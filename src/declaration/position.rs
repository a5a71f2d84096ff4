//! From a byte of the text to the line and column that an editor shows.

/// Where the lines of a text begin.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub(super) fn place(&self, offset: usize) -> (usize, usize) {
        let offset = self.on_a_character(offset);
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let column = self.text[self.starts[line - 1]..offset].chars().count() + 1;
        (line, column)
    }

    /// The line of a byte, with a caret under the byte. Only the neighbourhood of the byte on a very long line.
    pub(super) fn excerpt(&self, offset: usize) -> String {
        const BEFORE: usize = 60;
        const SHOWN: usize = 100;
        let (line, column) = self.place(offset);
        let content = self.text[self.starts[line - 1]..]
            .split('\n')
            .next()
            .unwrap_or_default();
        let skipped = (column - 1).saturating_sub(BEFORE);
        let shown: String = content
            .trim_end_matches('\r')
            .chars()
            .skip(skipped)
            .take(SHOWN)
            .collect();
        // A tab is one column here and would be several on the screen.
        let shown = shown.replace('\t', " ");
        format!("{shown}\n{}^", " ".repeat(column - 1 - skipped))
    }

    fn on_a_character(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_an_editor_counts_them() {
        let lines = Lines::of("a = 1\r\nß€ = 2\n");
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(4), (1, 5));
        assert_eq!(lines.place(7), (2, 1));
        assert_eq!(lines.place(9), (2, 2));
        assert_eq!(lines.place(10), (2, 2), "inside a character is at the character");
        assert_eq!(lines.place(9_999), (3, 1));
        assert_eq!(Lines::of("").place(0), (1, 1));
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let lines = Lines::of("first\n\tsécond line\nthird");
        assert_eq!(lines.excerpt(11), " sécond line\n    ^");
        let long = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let excerpt = Lines::of(&long).excerpt(500);
        let (shown, caret) = excerpt.split_once('\n').unwrap();
        assert_eq!(shown.find('X'), caret.find('^'));
    }
}
