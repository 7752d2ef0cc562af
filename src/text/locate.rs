//! Finding text that someone quotes from memory: exactly, or with the
//! differences that models introduce, from the most harmless on.

use std::ops::Range;

/// How a quotation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchKind {
    /// Byte for byte.
    Exact,
    /// But for `\r\n` against `\n`.
    LineEndings,
    /// But for white space at the ends of lines.
    TrailingSpace,
    /// But for white space at both ends of lines.
    SurroundingSpace,
    /// But for typographic quotes, dashes and spaces.
    Punctuation,
    /// But for white space at both ends of lines, and punctuation.
    SpaceAndPunctuation,
}

impl MatchKind {
    const ALL: [Self; 6] = [
        Self::Exact,
        Self::LineEndings,
        Self::TrailingSpace,
        Self::SurroundingSpace,
        Self::Punctuation,
        Self::SpaceAndPunctuation,
    ];

    /// What was overlooked, as in "matched ignoring …"; none for `Exact`.
    pub(crate) fn ignoring(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::LineEndings => Some("line endings"),
            Self::TrailingSpace => Some("trailing white space"),
            Self::SurroundingSpace => Some("indentation and trailing white space"),
            Self::Punctuation => Some("typographic punctuation"),
            Self::SpaceAndPunctuation => {
                Some("indentation, trailing white space and typographic punctuation")
            }
        }
    }
}

/// Places where a quotation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// How they were found; every place the same way.
    pub kind: MatchKind,
    /// Byte ranges, in order, not overlapping.
    pub ranges: Vec<Range<usize>>,
}

/// All places of `quote` in `text` by the strictest kind of match that finds
/// any. An empty quote is nowhere.
pub(crate) fn locate(text: &str, quote: &str) -> Option<Located> {
    if quote.is_empty() {
        return None;
    }
    MatchKind::ALL.into_iter().find_map(|kind| {
        let ranges = match kind {
            MatchKind::Exact => text
                .match_indices(quote)
                .map(|(start, found)| start..start + found.len())
                .collect(),
            MatchKind::LineEndings => by_chars(text, quote, |c| c),
            MatchKind::Punctuation => by_chars(text, quote, plain),
            MatchKind::TrailingSpace => by_lines(text, quote, |line| line.trim_end().to_owned()),
            MatchKind::SurroundingSpace => by_lines(text, quote, |line| line.trim().to_owned()),
            MatchKind::SpaceAndPunctuation => by_lines(text, quote, plain_trimmed),
        };
        (!ranges.is_empty()).then_some(Located { kind, ranges })
    })
}

/// Substring search with `\r\n` as `\n` and every character mapped.
fn by_chars(text: &str, quote: &str, map: fn(char) -> char) -> Vec<Range<usize>> {
    let fold = |text: &str| {
        let mut folded = String::with_capacity(text.len());
        // Where in `folded` the distance to the original grows: (folded, original).
        let mut marks = vec![(0, 0)];
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
                marks.push((folded.len(), at + 1));
                continue;
            }
            let mapped = map(c);
            folded.push(mapped);
            if mapped.len_utf8() != c.len_utf8() {
                marks.push((folded.len(), at + c.len_utf8()));
            }
        }
        (folded, marks)
    };
    let (folded, marks) = fold(text);
    let (quote, _) = fold(quote);
    let original = |at: usize| {
        let mark = marks.partition_point(|(folded, _)| *folded <= at);
        let (folded, original) = marks[mark - 1];
        original + (at - folded)
    };
    folded
        .match_indices(&quote)
        .map(|(start, found)| {
            let end = start + found.len();
            // A `\r` before the match belongs to it only if its `\n` does.
            let mut range = original(start)..original(end);
            if found.starts_with('\n') && text[..range.start].ends_with('\r') {
                range.start -= 1;
            }
            if !found.ends_with('\n')
                && text[..range.end].ends_with('\r')
                && text[range.end..].starts_with('\n')
            {
                range.end -= 1;
            }
            range
        })
        .collect()
}

/// Search for whole lines that are equal once `fold` is applied.
fn by_lines(text: &str, quote: &str, fold: fn(&str) -> String) -> Vec<Range<usize>> {
    let quote_lines: Vec<String> = quote.lines().map(fold).collect();
    // A quotation of nothing but white space would fit between any two lines.
    if quote_lines.iter().all(String::is_empty) {
        return Vec::new();
    }
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = if at == 0 {
            line.strip_prefix('\u{FEFF}').unwrap_or(line)
        } else {
            line
        };
        let start = at + line.len() - content.len();
        at += line.len();
        lines.push((start..at, fold(content.trim_end_matches(['\r', '\n']))));
    }
    let mut ranges = Vec::new();
    let mut first = 0;
    while first + quote_lines.len() <= lines.len() {
        let window = &lines[first..first + quote_lines.len()];
        if !window.iter().map(|(_, line)| line).eq(&quote_lines) {
            first += 1;
            continue;
        }
        let start = window[0].0.start;
        let end = window[window.len() - 1].0.end;
        let found = &text[start..end];
        let end = if quote.ends_with('\n') {
            end
        } else {
            start + found.trim_end_matches(['\r', '\n']).len()
        };
        ranges.push(start..end);
        first += quote_lines.len();
    }
    ranges
}

/// The ASCII character that `c` is a typographic form of.
pub(crate) fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201B}' | '\u{2032}' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{00A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        _ => c,
    }
}

fn plain_trimmed(line: &str) -> String {
    let plain: String = line.chars().map(plain).collect();
    plain.trim().to_owned()
}

/// Where a quotation almost stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NearMiss {
    /// First line of the place, from 1.
    pub line: usize,
    /// Lines of the quotation that are there, white space aside.
    pub equal_lines: usize,
    /// The first line that differs: its number, what stands there (none past
    /// the end) and what the quotation has.
    pub first_difference: Option<(usize, Option<String>, String)>,
}

/// The place in `text` most like `quote`, if any is.
pub(crate) fn nearest(text: &str, quote: &str) -> Option<NearMiss> {
    let lines: Vec<&str> = text.lines().collect();
    let quoted: Vec<&str> = quote.lines().collect();
    let (first, equal_lines) = by_votes(&lines, &quoted).or_else(|| by_words(&lines, &quoted))?;
    let first_difference = quoted.iter().enumerate().find_map(|(index, quoted)| {
        let there = lines.get(first + index).copied();
        (there != Some(*quoted)).then(|| {
            let number = first + index + 1;
            (number, there.map(str::to_owned), (*quoted).to_owned())
        })
    });
    Some(NearMiss {
        line: first + 1,
        equal_lines,
        first_difference,
    })
}

/// Places looked at for each line of a quotation, so that a line that stands
/// everywhere does not make the search quadratic.
const MAX_VOTES_PER_LINE: usize = 64;

/// The offset at which most lines are equal, white space aside.
fn by_votes(lines: &[&str], quoted: &[&str]) -> Option<(usize, usize)> {
    let mut places: std::collections::BTreeMap<&str, Vec<usize>> = Default::default();
    for line in quoted.iter().filter(|line| !line.trim().is_empty()) {
        places.entry(line.trim()).or_default();
    }
    for (number, line) in lines.iter().enumerate() {
        if let Some(found) = places.get_mut(line.trim())
            && found.len() < MAX_VOTES_PER_LINE
        {
            found.push(number);
        }
    }
    let mut votes: std::collections::BTreeMap<usize, usize> = Default::default();
    for (index, line) in quoted.iter().enumerate() {
        for place in places.get(line.trim()).into_iter().flatten() {
            if let Some(first) = place.checked_sub(index) {
                *votes.entry(first).or_default() += 1;
            }
        }
    }
    // Most votes; of equals the first place.
    votes
        .into_iter()
        .max_by_key(|(first, votes)| (*votes, std::cmp::Reverse(*first)))
}

/// The line that shares most words with the first line of the quotation.
fn by_words(lines: &[&str], quoted: &[&str]) -> Option<(usize, usize)> {
    let index = quoted.iter().position(|line| !line.trim().is_empty())?;
    let wanted: Vec<&str> = words(quoted[index]).collect();
    let (shared, number) = lines
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let shared = words(line).filter(|word| wanted.contains(word)).count();
            (shared.min(wanted.len()), number)
        })
        .max_by_key(|(shared, number)| (*shared, std::cmp::Reverse(*number)))?;
    (shared > 0 && shared * 2 >= wanted.len()).then(|| (number.saturating_sub(index), 0))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .take(200)
}

#[cfg(test)]
mod tests {
    use super::MatchKind::*;
    use super::*;

    fn check(text: &str, quote: &str, expected: Option<(MatchKind, &[&str])>) {
        let located = locate(text, quote);
        let actual = located.as_ref().map(|located| {
            let found = located.ranges.iter().map(|range| &text[range.clone()]);
            (located.kind, found.collect::<Vec<_>>())
        });
        let expected = expected.map(|(kind, found)| (kind, found.to_vec()));
        assert_eq!(actual, expected, "{quote:?} in {text:?}");
    }

    #[test]
    fn exact() {
        check("abcabc", "bc", Some((Exact, &["bc", "bc"])));
        check("abc", "", None);
        check("abc", "x", None);
        check("aaa", "aa", Some((Exact, &["aa"])));
    }

    #[test]
    fn line_endings() {
        check("a\r\nb\r\nc", "a\nb", Some((LineEndings, &["a\r\nb"])));
        check(
            "a\r\nb\r\nc",
            "a\nb\n",
            Some((LineEndings, &["a\r\nb\r\n"])),
        );
        check("a\nb\nc", "a\r\nb", Some((LineEndings, &["a\nb"])));
        check("a\r\nb\r\n", "\nb", Some((Exact, &["\nb"])));
        check(
            "a\r\nb\r\nc",
            "\nb\nc",
            Some((LineEndings, &["\r\nb\r\nc"])),
        );
    }

    #[test]
    fn white_space_at_line_ends() {
        check("a  \nb\t\nc", "a\nb", Some((TrailingSpace, &["a  \nb\t"])));
        check("a\nb\n", "a  \nb \n", Some((TrailingSpace, &["a\nb\n"])));
        check("xa\nb", "a \nb", None);
    }

    #[test]
    fn indentation() {
        check(
            "if x:\n    a\n    b\nc",
            "  a\n  b\n",
            Some((SurroundingSpace, &["    a\n    b\n"])),
        );
        check("max\n", "  x\n", None);
        check("a\n\n\nb", " \n", None);
    }

    #[test]
    fn punctuation() {
        check(
            "say \u{201C}it\u{2019}s\u{201D}\u{00A0}now",
            "\"it's\" n",
            Some((Punctuation, &["\u{201C}it\u{2019}s\u{201D}\u{00A0}n"])),
        );
        check("a - b", "a \u{2014} b", Some((Punctuation, &["a - b"])));
        check(
            "  a \u{2013} b  \n",
            "a - b\n",
            Some((SpaceAndPunctuation, &["  a \u{2013} b  \n"])),
        );
    }

    #[test]
    fn a_byte_order_mark_stays_outside() {
        check(
            "\u{FEFF}  a\nb",
            "a \nb",
            Some((SurroundingSpace, &["  a\nb"])),
        );
    }

    fn check_nearest(text: &str, quote: &str, expected: Option<(usize, usize, usize)>) {
        let actual = nearest(text, quote).map(|miss| {
            let line = miss.first_difference.map_or(0, |(line, ..)| line);
            (miss.line, miss.equal_lines, line)
        });
        assert_eq!(actual, expected);
    }

    #[test]
    fn near_misses() {
        let text = "fn a() {\n    one();\n}\n\nfn b() {\n    two();\n    three();\n}\n";
        check_nearest(
            text,
            "fn b() {\n    zwei();\n    three();\n}",
            Some((5, 3, 6)),
        );
        check_nearest(text, "let x = one();", None);
        check_nearest(text, "one() + 1;", Some((2, 0, 2)));
        check_nearest(text, "}\nfn c() {}\n", Some((3, 1, 4)));
        check_nearest("", "a", None);
    }
}
