//! Line search over a whole buffer.
//!
//! The buffer is searched at once and a line is looked for only where the
//! expression matched, which is many times faster than line by line. For that
//! to give the same answer, the expression is rewritten so that no match can
//! contain a line break: `\s` and `[^a]` lose `\n`, `\A` and `\z` become the
//! ends of a line. ripgrep does the same.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind,
    Look,
};

use crate::environment::{EnvironmentError, EnvironmentErrorKind};
use crate::text::{Pattern, has_nul};

/// Bytes of a line that a match carries; what is beyond is cut off.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// A regular expression that matches within lines.
#[derive(Clone, Debug)]
pub(crate) struct LineMatcher {
    pattern: Pattern,
}

impl LineMatcher {
    /// Compiles `pattern` (syntax of the `regex` crate).
    pub(crate) fn new(pattern: &str, case_insensitive: bool) -> Result<Self, EnvironmentError> {
        let invalid = |reason: &dyn std::fmt::Display| {
            EnvironmentError::new(
                EnvironmentErrorKind::InvalidInput,
                format!("invalid regular expression {pattern:?}: {reason}"),
            )
        };
        let hir = ParserBuilder::new()
            .utf8(false)
            .case_insensitive(case_insensitive)
            .multi_line(true)
            .crlf(true)
            .build()
            .parse(pattern)
            .map_err(|error| invalid(&reason(&error)))?;
        let Some(within) = within_lines(&hir) else {
            return Err(invalid(
                &"it is matched line by line and cannot contain a line break",
            ));
        };
        match Pattern::new(&within) {
            Ok(pattern) => Ok(Self { pattern }),
            Err(reason) => Err(invalid(&reason)),
        }
    }

    /// Calls `found` with the number (from 1) and the text of each matching
    /// line until it returns false; whether the search came to the end. A
    /// binary file has no matching lines.
    pub(crate) fn search_file(
        &self,
        content: &[u8],
        mut found: impl FnMut(u64, String) -> bool,
    ) -> bool {
        if has_nul(content) {
            return true;
        }
        let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
        self.search(content, |line, text| {
            let text = &text[..text.len().min(MAX_TEXT_BYTES)];
            found(line, String::from_utf8_lossy(text).into_owned())
        })
    }

    /// Like [`Self::search_file`], with the bytes of each line, for any content.
    pub(crate) fn search(&self, content: &[u8], mut found: impl FnMut(u64, &[u8]) -> bool) -> bool {
        let mut line = 1;
        // Line breaks before this offset are counted; it is the start of a line.
        let mut counted = 0;
        while counted < content.len() {
            let Some(hit) = self.pattern.find(content, counted) else {
                return true;
            };
            let before = &content[counted..hit];
            let start = match before.iter().rposition(|byte| *byte == b'\n') {
                Some(position) => counted + position + 1,
                None => counted,
            };
            // There is no line after the last line break.
            if start == content.len() {
                return true;
            }
            line += count_breaks(&content[counted..start]);
            let length = content[hit..].iter().position(|b| *b == b'\n');
            let end = length.map_or(content.len(), |length| hit + length);
            let text = &content[start..end];
            if !found(line, text.strip_suffix(b"\r").unwrap_or(text)) {
                return false;
            }
            counted = end + 1;
            line += 1;
        }
        true
    }
}

fn count_breaks(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The last line of the error of `regex-syntax`, which says what is wrong; the
/// lines before it draw the pattern.
fn reason(error: &regex_syntax::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// `hir` without line breaks; `None` if it demands one.
fn within_lines(hir: &Hir) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            if literal.0.contains(&b'\n') {
                return None;
            }
            Hir::literal(literal.0.clone())
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartCRLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(within_lines(&repetition.sub)?))
        }
        HirKind::Capture(capture) => Hir::capture(Capture {
            index: capture.index,
            name: capture.name.clone(),
            sub: Box::new(within_lines(&capture.sub)?),
        }),
        HirKind::Concat(subs) => Hir::concat(all_within_lines(subs)?),
        HirKind::Alternation(subs) => Hir::alternation(all_within_lines(subs)?),
    })
}

fn all_within_lines(subs: &[Hir]) -> Option<Vec<Hir>> {
    subs.iter().map(within_lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, content: &str, expected: &[(u64, &str)]) {
        let matcher = LineMatcher::new(pattern, false).expect("a valid pattern");
        let mut actual = Vec::new();
        let full = matcher.search_file(content.as_bytes(), |line, text| {
            actual.push((line, text));
            true
        });
        let actual: Vec<_> = actual.iter().map(|(n, text)| (*n, text.as_str())).collect();
        assert_eq!(actual, expected, "{pattern:?} in {content:?}");
        assert!(full);
        let line_by_line: Vec<_> = content
            .lines()
            .zip(1..)
            .filter(|(text, _)| matcher.pattern.find(text.as_bytes(), 0).is_some())
            .map(|(text, number)| (number, text))
            .collect();
        assert_eq!(line_by_line, expected, "line by line: {pattern:?}");
    }

    #[test]
    fn lines_and_numbers() {
        check("b", "a\nb\nc\nab\n", &[(2, "b"), (4, "ab")]);
        check("b", "b", &[(1, "b")]);
        check("b", "", &[]);
        check("b.*b", "bb b\nb\nb", &[(1, "bb b")]);
    }

    #[test]
    fn empty_matches() {
        check("^$", "a\n\nb\n", &[(2, "")]);
        check("x*", "a\n\n", &[(1, "a"), (2, "")]);
        check("$", "a\nb", &[(1, "a"), (2, "b")]);
    }

    #[test]
    fn no_match_spans_lines() {
        check(r"a\s+b", "a\nb\na b", &[(3, "a b")]);
        check("a[^x]*b", "a\nb\na-b", &[(3, "a-b")]);
        check(r"(?s)a.*b", "a\nb\nab\n", &[(3, "ab")]);
        check(r"a\W*$", "a\n\n\nb", &[(1, "a")]);
        check(r"\Ab\z", "a\nb\nbb", &[(2, "b")]);
        check(r"(?i)A(\s|z)", "a \naZ\nb", &[(1, "a "), (2, "aZ")]);
    }

    #[test]
    fn crlf() {
        check("a$", "a\r\nb\r\n", &[(1, "a")]);
        check("^b.*$", "a\r\nbc\r\n", &[(2, "bc")]);
    }

    #[test]
    fn unicode_and_case() {
        check(
            "(?i)ÄPFEL",
            "äpfel\nÄpfel\nx",
            &[(1, "äpfel"), (2, "Äpfel")],
        );
        let matcher = LineMatcher::new(r"a\sb", true).expect("a valid pattern");
        let mut lines = 0;
        matcher.search(b"A B\na\nb", |_, _| {
            lines += 1;
            true
        });
        assert_eq!(lines, 1);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_line() {
        let matcher = LineMatcher::new("^a", false).expect("a valid pattern");
        let mut found = Vec::new();
        matcher.search_file(b"\xEF\xBB\xBFa\nb", |line, text| {
            found.push((line, text));
            true
        });
        assert_eq!(found, [(1, "a".to_owned())]);
    }

    #[test]
    fn binary_and_invalid_content() {
        let matcher = LineMatcher::new("a", false).expect("a valid pattern");
        assert!(matcher.search_file(b"a\0", |_, _| unreachable!()));
        let mut found = Vec::new();
        matcher.search_file(b"a\xFF\n", |_, text| {
            found.push(text);
            true
        });
        assert_eq!(found, ["a\u{FFFD}"]);
    }

    #[test]
    fn long_lines_are_cut_and_the_search_stops_on_demand() {
        let matcher = LineMatcher::new("x", false).expect("a valid pattern");
        let content = vec![b'x'; 10 * 1024 * 1024];
        let mut length = 0;
        let full = matcher.search_file(&content, |_, text| {
            length = text.len();
            false
        });
        assert_eq!((length, full), (MAX_TEXT_BYTES, false));
    }

    fn check_invalid(pattern: &str, message: &str) {
        let error = LineMatcher::new(pattern, false).expect_err("an invalid pattern");
        assert_eq!(error.kind, EnvironmentErrorKind::InvalidInput);
        assert_eq!(error.message, message);
    }

    #[test]
    fn invalid_patterns() {
        check_invalid("a(", "invalid regular expression \"a(\": unclosed group");
        check_invalid(
            r"a\nb",
            "invalid regular expression \"a\\\\nb\": it is matched line by line and cannot contain a line break",
        );
    }
}
