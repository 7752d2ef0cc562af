//! Truncation of tool output, word for word as in spec 5.1 and 5.3.
//!
//! Characters are Unicode scalar values and never split.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Which part of an output that is too long survives (spec 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationMode {
    /// Beginning and end.
    HeadTail,
    /// End only.
    Tail,
}

/// `output` cut to `max_chars` characters, with the marker of spec 5.1 where
/// something is missing. With an odd limit half of it is rounded down, as in
/// the spec, so one character more is missing than the marker says.
pub fn truncate_output(output: &str, max_chars: usize, mode: TruncationMode) -> Cow<'_, str> {
    // A text never has more characters than bytes.
    if output.len() <= max_chars {
        return Cow::Borrowed(output);
    }
    let length = output.chars().count();
    if length <= max_chars {
        return Cow::Borrowed(output);
    }
    let removed = length - max_chars;
    Cow::Owned(match mode {
        TruncationMode::HeadTail => {
            let half = max_chars / 2;
            format!(
                "{}\n\n[WARNING: Tool output was truncated. \
                 {removed} characters were removed from the middle. \
                 The full output is available in the event stream. \
                 If you need to see specific parts, re-run the tool with more targeted \
                 parameters.]\n\n{}",
                first_chars(output, half),
                last_chars(output, half),
            )
        }
        TruncationMode::Tail => format!(
            "[WARNING: Tool output was truncated. First {removed} characters were removed. \
             The full output is available in the event stream.]\n\n{}",
            last_chars(output, max_chars),
        ),
    })
}

/// `output` cut to `max_lines` lines, head and tail, with the marker of spec 5.3.
pub(crate) fn truncate_lines(output: &str, max_lines: usize) -> Cow<'_, str> {
    let breaks = output.bytes().filter(|byte| *byte == b'\n').count();
    let lines = breaks + 1;
    if lines <= max_lines {
        return Cow::Borrowed(output);
    }
    let head_count = max_lines / 2;
    let tail_count = max_lines - head_count;
    let head = match head_count.checked_sub(1) {
        None => "",
        Some(nth) => match output.match_indices('\n').nth(nth) {
            Some((end, _)) => &output[..end],
            None => output,
        },
    };
    let tail = match tail_count.checked_sub(1) {
        None => "",
        Some(nth) => match output.rmatch_indices('\n').nth(nth) {
            Some((start, _)) => &output[start + 1..],
            None => output,
        },
    };
    let omitted = lines - max_lines;
    Cow::Owned(format!("{head}\n[... {omitted} lines omitted ...]\n{tail}"))
}

fn first_chars(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn last_chars(text: &str, count: usize) -> &str {
    match count.checked_sub(1) {
        None => "",
        Some(nth) => match text.char_indices().rev().nth(nth) {
            Some((start, _)) => &text[start..],
            None => text,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::TruncationMode::{HeadTail, Tail};
    use super::*;

    fn check_chars(output: &str, max: usize, mode: TruncationMode, expected: &str) {
        let actual = truncate_output(output, max, mode);
        assert_eq!(actual, expected, "{max} {mode:?}");
        assert_eq!(
            matches!(actual, Cow::Borrowed(_)),
            output == expected,
            "an unchanged output is not copied"
        );
    }

    fn middle(removed: usize) -> String {
        format!(
            "\n\n[WARNING: Tool output was truncated. {removed} characters were removed from the \
             middle. The full output is available in the event stream. If you need to see \
             specific parts, re-run the tool with more targeted parameters.]\n\n"
        )
    }

    fn first(removed: usize) -> String {
        format!(
            "[WARNING: Tool output was truncated. First {removed} characters were removed. The \
             full output is available in the event stream.]\n\n"
        )
    }

    #[test]
    fn fits() {
        for mode in [HeadTail, Tail] {
            check_chars("", 0, mode, "");
            check_chars("abcd", 4, mode, "abcd");
            check_chars("abcd", 5, mode, "abcd");
        }
    }

    #[test]
    fn characters_count_not_bytes() {
        check_chars("äöü€😀", 5, HeadTail, "äöü€😀");
        check_chars("äöü€😀", 4, HeadTail, &format!("äö{}€😀", middle(1)));
        check_chars("äöü€😀", 2, Tail, &format!("{}€😀", first(3)));
    }

    #[test]
    fn even_limit() {
        check_chars("abcdef", 4, HeadTail, &format!("ab{}ef", middle(2)));
    }

    #[test]
    fn odd_limit_rounds_the_half_down() {
        check_chars("abcdef", 5, HeadTail, &format!("ab{}ef", middle(1)));
    }

    #[test]
    fn limits_zero_and_one() {
        check_chars("abc", 0, HeadTail, &middle(3));
        check_chars("abc", 1, HeadTail, &middle(2));
        check_chars("abc", 0, Tail, &first(3));
        check_chars("abc", 1, Tail, &format!("{}c", first(2)));
    }

    #[test]
    fn one_line_of_ten_megabytes() {
        let output = "é".repeat(10_000_000);
        let expected = format!(
            "{}{}{}",
            "é".repeat(15_000),
            middle(9_970_000),
            "é".repeat(15_000)
        );
        check_chars(&output, 30_000, HeadTail, &expected);
    }

    fn check_lines(output: &str, max: usize, expected: &str) {
        assert_eq!(truncate_lines(output, max), expected, "{output:?} {max}");
    }

    #[test]
    fn lines_that_fit() {
        check_lines("", 1, "");
        check_lines("a\nb", 2, "a\nb");
        check_lines("a\nb\n", 3, "a\nb\n");
    }

    #[test]
    fn lines_keep_head_and_tail() {
        check_lines("a\nb\nc\nd\ne", 4, "a\nb\n[... 1 lines omitted ...]\nd\ne");
        check_lines("a\nb\nc\nd\ne", 3, "a\n[... 2 lines omitted ...]\nd\ne");
    }

    #[test]
    fn line_limits_zero_and_one() {
        check_lines("a\nb", 0, "\n[... 2 lines omitted ...]\n");
        check_lines("a\nb", 1, "\n[... 1 lines omitted ...]\nb");
        check_lines("", 0, "\n[... 1 lines omitted ...]\n");
    }

    #[test]
    fn a_final_newline_is_an_empty_last_line() {
        check_lines("a\nb\nc\n", 2, "a\n[... 2 lines omitted ...]\n");
    }
}
