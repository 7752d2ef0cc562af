//! Putting a new text in the places of a quotation, with the line endings that
//! stand there: a file may mix them, and an edit changes none that it does not
//! have to.

use std::borrow::Cow;
use std::ops::Range;

use super::{LineEnding, Located, MatchKind};

/// `text` with each range replaced by `new`, in the line endings of the place
/// and without giving the text a final newline that it did not have.
pub(crate) fn replace_ranges(text: &str, located: &Located, new: &str) -> String {
    let mut result = String::with_capacity(text.len() + new.len());
    let mut at = 0;
    for range in &located.ranges {
        let range = whole_break(text, range);
        let fitted = fit(text, &range, located.kind, new);
        result.push_str(&text[at..range.start]);
        result.push_str(&fitted);
        at = range.end;
    }
    let ends_open = located.kind != MatchKind::Exact && at == text.len() && !text.ends_with('\n');
    if ends_open && new.ends_with('\n') {
        result.pop();
        if result.ends_with('\r') {
            result.pop();
        }
    }
    result.push_str(&text[at..]);
    result
}

/// A quotation may begin with the second half of a CRLF.
fn whole_break(text: &str, range: &Range<usize>) -> Range<usize> {
    let split = text[..range.start].ends_with('\r') && text[range.start..].starts_with('\n');
    range.start - usize::from(split)..range.end
}

/// `new` with the line endings of what stands in `range`.
fn fit<'a>(text: &str, range: &Range<usize>, kind: MatchKind, new: &'a str) -> Cow<'a, str> {
    let old = &text[range.clone()];
    let around = ending_around(text, range);
    if !old.contains("\r\n") {
        return match (kind, around) {
            // A quotation that fits exactly says what it means.
            (MatchKind::Exact, LineEnding::Lf) => new.into(),
            (_, _) if old.contains('\n') => LineEnding::Lf.apply(new),
            (_, around) => around.apply(new),
        };
    }
    let old = lines(old);
    let new = lines(new);
    let same = |(old, new): &(&Line<'_>, &Line<'_>)| old.content == new.content;
    let head = old.iter().zip(&new).take_while(same).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = rest.take_while(same).count();
    // The lines between take the endings of the lines that they replace.
    let last_replaced = (old.len() - tail).saturating_sub(1);
    let mut fitted = String::new();
    for (index, line) in new.iter().enumerate() {
        let model = if index + tail >= new.len() {
            index + old.len() - new.len()
        } else {
            index.min(last_replaced)
        };
        fitted.push_str(line.content);
        if line.ending.is_some() {
            let ending = old.get(model).and_then(|line| line.ending);
            fitted.push_str(ending.unwrap_or(around).as_str());
        }
    }
    fitted.into()
}

/// Ending of the line in which `range` ends, or of the one before.
fn ending_around(text: &str, range: &Range<usize>) -> LineEnding {
    let after = text[range.end..].find('\n').map(|at| range.end + at);
    let Some(at) = after.or_else(|| text[..range.end].rfind('\n')) else {
        return LineEnding::Lf;
    };
    if text[..at].ends_with('\r') {
        LineEnding::Crlf
    } else {
        LineEnding::Lf
    }
}

struct Line<'a> {
    content: &'a str,
    /// `None` for a last line without one.
    ending: Option<LineEnding>,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let line = |line| match str::strip_suffix(line, "\r\n") {
        Some(content) => Line {
            content,
            ending: Some(LineEnding::Crlf),
        },
        None => Line {
            content: line.strip_suffix('\n').unwrap_or(line),
            ending: line.ends_with('\n').then_some(LineEnding::Lf),
        },
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::locate;
    use super::*;

    fn check(text: &str, quote: &str, new: &str, expected: &str) {
        let located = locate(text, quote).expect("the quotation is there");
        assert_eq!(replace_ranges(text, &located, new), expected);
    }

    #[test]
    fn replacement_takes_the_files_line_endings() {
        check("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n");
        check("a\r\nb\r\n", "a\nb\n", "x\n", "x\r\n");
        check("a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n");
        check("a\r\nb\r\n", "\nb", "c", "ac\r\n");
        check("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n");
        check("a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n");
    }

    #[test]
    fn mixed_endings_stay_where_they_are() {
        check("a\r\nb\nc\n", "a", "x\ny", "x\r\ny\r\nb\nc\n");
        check("a\nb\nc\r\n", "c", "x\ny", "a\nb\nx\r\ny\r\n");
        check("a\r\nb\nc\r\n", "b\n", "x\ny\n", "a\r\nx\ny\nc\r\n");
        let all = "a\r\nb\nc\r\nd\n";
        check(all, "a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\r\nB\nc\r\nd\n");
        check(
            all,
            "a\nb\nc\nd\n",
            "a\nb\nC\nE\nd\n",
            "a\r\nb\nC\r\nE\r\nd\n",
        );
        check(
            all,
            "a\nb\nc\nd\n",
            "new\na\nb\nc\nd\n",
            "new\r\na\r\nb\nc\r\nd\n",
        );
        check(all, "a\nb\nc\nd\n", "d\n", "d\n");
        check("a\r\nb", "a\nb", "x\ny\nz", "x\r\ny\r\nz");
    }

    #[test]
    fn a_missing_final_newline_stays_missing() {
        check("a\n  b", "a\nb\n", "c\n", "c");
        check("a\r\n  b", "b\n", "c\n", "a\r\nc");
        check("a", "a", "c\n", "c\n");
    }
}
