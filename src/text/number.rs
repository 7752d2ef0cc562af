//! Line-numbered text in the `NNN | content` form of spec 3.3.

use std::fmt::Write as _;

/// A window of numbered lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberedLines {
    /// The lines, each `NNN | content`, joined by `\n`; numbers are padded on
    /// the left to the width of the last one. Line endings are not shown.
    pub text: String,
    /// Number of the last line shown; 0 when none is.
    pub last: usize,
    /// Lines in the whole text.
    pub total: usize,
}

/// Numbers at most `limit` lines of `text` from line `offset` (1-based).
pub(crate) fn number_lines(text: &str, offset: usize, limit: usize) -> NumberedLines {
    let total = text.lines().count();
    let first = offset.max(1);
    let last = total.min((first - 1).saturating_add(limit));
    if first > last {
        return NumberedLines {
            text: String::new(),
            last: 0,
            total,
        };
    }
    let lines = text.lines().skip(first - 1).take(last - first + 1);
    NumberedLines {
        text: number_from(lines, first, last),
        last,
        total,
    }
}

/// Numbers `lines` from `first` to `last`.
pub(crate) fn number_from<'a>(
    lines: impl Iterator<Item = &'a str>,
    first: usize,
    last: usize,
) -> String {
    let width = last.to_string().len();
    let mut numbered = String::new();
    for (number, line) in (first..).zip(lines) {
        if number > first {
            numbered.push('\n');
        }
        let _ = write!(numbered, "{number:>width$} | {line}");
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, offset: usize, limit: usize, expected: &str, last: usize, total: usize) {
        let expected = NumberedLines {
            text: expected.to_owned(),
            last,
            total,
        };
        assert_eq!(number_lines(text, offset, limit), expected);
    }

    #[test]
    fn whole_text() {
        check("a\nb\n", 1, 9, "1 | a\n2 | b", 2, 2);
        check("a\r\n\r\nb", 1, 9, "1 | a\n2 | \n3 | b", 3, 3);
        check("", 1, 9, "", 0, 0);
    }

    #[test]
    fn windows() {
        let text = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        check(text, 9, 2, " 9 | i\n10 | j", 10, 11);
        check(text, 11, 1, "11 | k", 11, 11);
        check(text, 12, 1, "", 0, 11);
        check(text, 0, 1, "1 | a", 1, 11);
        check(text, 1, 0, "", 0, 11);
        check(text, usize::MAX, usize::MAX, "", 0, 11);
    }
}
