//! Where text goes in a terminal: how wide it is, how it is cut into lines, and tables whose columns stand
//! under each other. It never drops a character.

use super::paint::{Paint, Style};

/// How many cells a character takes. Good enough to align: wide East Asian characters and emoji take two,
/// combining marks none.
#[must_use]
pub fn width_of_char(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x1AB0..=0x1AFF | 0x20D0..=0x20FF => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// How many cells a text takes.
#[must_use]
pub fn width_of(text: &str) -> usize {
    text.chars().map(width_of_char).sum()
}

/// The text cut into pieces of at most so many cells; joined they are the text again.
#[must_use]
pub fn cut(text: &str, cells: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut begin, mut used) = (0, 0);
    for (at, c) in text.char_indices() {
        let width = width_of_char(c);
        if used + width > cells && at > begin {
            pieces.push(&text[begin..at]);
            (begin, used) = (at, 0);
        }
        used += width;
    }
    pieces.push(&text[begin..]);
    pieces
}

/// A size, in the unit that reads best.
#[must_use]
pub fn size(bytes: usize) -> String {
    let tenths = |unit: usize| {
        let tenths = (bytes * 10 + unit / 2) / unit;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..=1_023 => format!("{bytes} B"),
        1_024..=1_048_575 => format!("{} KiB", tenths(1_024)),
        _ => format!("{} MiB", tenths(1_048_576)),
    }
}

/// A number and its noun.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// One field of a table: text that is safe to show, and its style.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A field in a style.
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(Style::Plain, text)
    }
}

/// Rows whose columns stand under each other.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn with_headings<const N: usize>(headings: [&str; N]) -> Self {
        Self {
            rows: vec![headings.map(|heading| Cell::new(Style::Dim, heading)).to_vec()],
        }
    }

    /// One more row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.to_vec());
    }

    /// The table, a line for each row, every one ended.
    #[must_use]
    pub fn render(&self, paint: Paint) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| width_of(&cell.text)).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                text.push_str(&paint.apply(cell.style, &cell.text));
                if column + 1 < row.len() {
                    text.push_str(&" ".repeat(widths[column] - width_of(&cell.text) + 2));
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let mut table = Table::with_headings(["A", "LONG", "C"]);
        table.row(["退款".into(), "x".into(), "end".into()]);
        table.row(["y".into(), String::new().into(), String::new().into()]);
        assert_eq!(table.render(Paint::PLAIN), "A     LONG  C\n退款  x     end\ny\n");
    }

    #[test]
    fn a_cut_text_is_the_text_again() {
        for text in ["", "short", "a longer text than fits", "退款退款退款"] {
            let pieces = cut(text, 5);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| width_of(piece) <= 5), "{pieces:?}");
        }
    }

    #[test]
    fn sizes_read_well() {
        let sizes = [0, 38, 1_023, 1_024, 1_536, 1_048_576, 1_258_291].map(size);
        assert_eq!(
            sizes,
            [
                "0 B", "38 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "1.2 MiB"
            ]
        );
        assert_eq!([count(1, "call"), count(0, "call")], ["1 call", "0 calls"]);
    }
}
