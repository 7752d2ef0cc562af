//! `edit_file` (spec 3.3): replaces a piece of text.
//!
//! The text is looked for exactly, then with the differences that models
//! introduce; a relaxed match must be the only one. Everything outside of it
//! keeps its bytes: line endings, byte-order mark, missing final newline.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::read_file::read_existing;
use super::{CallContext, MAX_FILE_BYTES, Tool, ToolError, ToolOutput, parse};
use crate::llm::ToolDefinition;
use crate::text::{
    Located, MatchKind, TextFormat, decode_text, locate, nearest, replace_ranges, unified_diff_from,
};

/// Line numbers listed for a text that is not unique.
const MAX_LISTED: usize = 10;

/// Lines of context around a change in the diff.
const CONTEXT: usize = 3;

/// Changed stretches longer than this are not shown as a diff.
const MAX_DIFF_LINES: usize = 200;

/// Nor are changed stretches of more bytes.
const MAX_DIFF_BYTES: usize = 32 * 1024;

/// Characters of a line that an error message quotes.
const MAX_QUOTED_CHARS: usize = 200;

/// Edits files.
#[derive(Clone, Debug)]
pub struct EditFile {
    definition: ToolDefinition,
}

impl EditFile {
    /// Presents itself as `definition` says.
    pub fn new(definition: ToolDefinition) -> Self {
        Self { definition }
    }
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

#[async_trait(?Send)]
impl Tool for EditFile {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn kind(&self) -> &str {
        "edit_file"
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let path = &arguments.file_path;
        if arguments.old_string.is_empty() {
            return Err(ToolError::new(
                "old_string is empty; give the text to replace, or use write_file to write a \
                 whole file",
            ));
        }
        if arguments.old_string == arguments.new_string {
            return Err(ToolError::new(
                "old_string and new_string are the same; nothing would change",
            ));
        }
        let _turn = call.files.lock(&call.environment.absolute(path)).await;
        let content = read_existing(&call.environment, path).await?;
        let text = decode_text(&content)
            .map_err(|reason| ToolError::new(format!("cannot edit {path}: {reason}")))?;
        let located = find(text, &arguments)?;
        check_size(text, &located, &arguments)?;
        let ending = TextFormat::detect(text).ending;
        let edited = replace_ranges(text, &located, &arguments.new_string, ending);
        if edited == text {
            return Err(ToolError::new(format!(
                "{path} would not change: what old_string stands for is already new_string"
            )));
        }
        let summary = summary(path, text, &located);
        let diff = diff(text, &edited, &located);
        call.environment.write(path, edited).await?;
        Ok(ToolOutput::bounded(
            format!("{summary}{diff}"),
            call.max_captured_bytes,
        ))
    }
}

/// Where to replace, or why nowhere.
fn find(text: &str, arguments: &Arguments) -> Result<Located, ToolError> {
    let path = &arguments.file_path;
    let Some(located) = locate(text, &arguments.old_string) else {
        return Err(ToolError::new(not_found(text, arguments)));
    };
    let count = located.ranges.len();
    // Overlooking white space in many places at once is more than was asked for.
    let may_repeat =
        arguments.replace_all && matches!(located.kind, MatchKind::Exact | MatchKind::LineEndings);
    if count == 1 || may_repeat {
        return Ok(located);
    }
    let lines = line_numbers(text, &located);
    Err(ToolError::new(match located.kind.ignoring() {
        None => format!(
            "old_string occurs {count} times in {path} ({lines}); include more of the lines \
             around it to name one, or set replace_all"
        ),
        Some(ignoring) => format!(
            "old_string is not in {path} exactly; ignoring {ignoring} it occurs {count} times \
             ({lines}); copy the text exactly and include more of the lines around it"
        ),
    }))
}

/// Many replacements by a long text could ask for more memory than there is.
fn check_size(text: &str, located: &Located, arguments: &Arguments) -> Result<(), ToolError> {
    let added = arguments.new_string.len() as u64 * located.ranges.len() as u64;
    let size = text.len() as u64 + added;
    if size > MAX_FILE_BYTES {
        return Err(ToolError::new(format!(
            "{} would grow to some {size} bytes, the limit is {MAX_FILE_BYTES} bytes",
            arguments.file_path
        )));
    }
    Ok(())
}

/// `line 3` or `lines 3, 9 and 20`.
fn line_numbers(text: &str, located: &Located) -> String {
    let mut numbers = Vec::new();
    let mut line = 1;
    let mut at = 0;
    for range in located.ranges.iter().take(MAX_LISTED) {
        line += count_breaks(&text[at..range.start]);
        at = range.start;
        numbers.push(line.to_string());
    }
    if located.ranges.len() > MAX_LISTED {
        return format!("lines {}, …", numbers.join(", "));
    }
    match numbers.as_slice() {
        [] => String::new(),
        [only] => format!("line {only}"),
        [first @ .., last] => format!("lines {} and {last}", first.join(", ")),
    }
}

fn not_found(text: &str, arguments: &Arguments) -> String {
    let mut message = format!("old_string not found in {}", arguments.file_path);
    if has_line_numbers(&arguments.old_string) {
        message.push_str("; leave out the line numbers that read_file shows");
        return message;
    }
    let Some(near) = nearest(text, &arguments.old_string) else {
        message.push_str("; nothing like it is there, read the file again");
        return message;
    };
    let _ = write!(message, "; the nearest place is line {}", near.line);
    if let Some((line, there, quoted)) = &near.first_difference {
        let _ = write!(
            message,
            ", which first differs in line {line}:\n  file:       "
        );
        match there {
            Some(there) => message.push_str(&quote(there)),
            None => message.push_str("(past the end)"),
        }
        let _ = write!(message, "\n  old_string: {}", quote(quoted));
    }
    message
}

/// The line in quotes, with invisible characters shown.
fn quote(line: &str) -> String {
    let mut shown: String = line.chars().take(MAX_QUOTED_CHARS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// Whether every line begins as in the output of `read_file`.
fn has_line_numbers(quote: &str) -> bool {
    quote.lines().all(|line| {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && line[digits..].starts_with(" | ")
    })
}

fn summary(path: &str, text: &str, located: &Located) -> String {
    let count = located.ranges.len();
    let lines = line_numbers(text, located);
    let noun = if count == 1 {
        "replacement"
    } else {
        "replacements"
    };
    let mut summary = format!("Made {count} {noun} in {path} ({lines})");
    if let Some(ignoring) = located.kind.ignoring() {
        let _ = write!(
            summary,
            "; old_string was not exact and matched ignoring {ignoring}"
        );
    }
    summary
}

/// Diff of the stretch from the first change to the last; empty if it is long.
fn diff(old: &str, new: &str, located: &Located) -> String {
    let (Some(first), Some(last)) = (located.ranges.first(), located.ranges.last()) else {
        return String::new();
    };
    let start = lines_back(old, first.start, CONTEXT);
    let old_end = lines_on(old, last.end, CONTEXT);
    // What follows the last change is the same in both.
    let new_end = new.len() - (old.len() - old_end);
    let (old_piece, new_piece) = (&old[start..old_end], &new[start..new_end]);
    let lines = count_breaks(old_piece) + count_breaks(new_piece);
    if lines > MAX_DIFF_LINES || old_piece.len() + new_piece.len() > MAX_DIFF_BYTES {
        return String::new();
    }
    let first_line = count_breaks(&old[..start]) + 1;
    let diff = unified_diff_from(old_piece, new_piece, CONTEXT, first_line);
    format!("\n\n{}", diff.replace('\r', "").trim_end_matches('\n'))
}

/// Start of the line that holds `at`, `count` lines up.
fn lines_back(text: &str, at: usize, count: usize) -> usize {
    let mut breaks = text[..at].rmatch_indices('\n');
    breaks.nth(count).map_or(0, |(position, _)| position + 1)
}

/// End of the line that holds `at`, `count` lines down.
fn lines_on(text: &str, at: usize, count: usize) -> usize {
    let mut breaks = text[at..].match_indices('\n');
    let end = breaks.nth(count);
    end.map_or(text.len(), |(position, _)| at + position + 1)
}

fn count_breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::run;

    /// Edits `a.txt`; the file afterwards and the output or error message.
    fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> (Vec<u8>, String) {
        let arguments = json!({
            "file_path": "a.txt", "old_string": old, "new_string": new,
            "replace_all": replace_all,
        });
        let (executed, tree) = run(&[("a.txt", content)], "edit_file", arguments);
        let after = tree.content("a.txt").unwrap_or_default().to_vec();
        let prefix = "Tool error (edit_file): ";
        let text = executed.full;
        assert_eq!(executed.is_error, text.starts_with(prefix), "{text}");
        (after, text.strip_prefix(prefix).unwrap_or(&text).to_owned())
    }

    /// The first line of the output says how; the file is `after`.
    fn check(content: &str, old: &str, new: &str, after: &str, how: &str) {
        let (actual, text) = edit(content.as_bytes(), old, new, false);
        assert_eq!(String::from_utf8_lossy(&actual), after, "{text}");
        let first = text.lines().next().unwrap_or_default();
        assert_eq!(first, format!("Made 1 replacement in a.txt ({how}"));
    }

    fn check_error(content: &str, old: &str, new: &str, message: &str) {
        let (actual, text) = edit(content.as_bytes(), old, new, false);
        assert_eq!(text, message);
        assert_eq!(actual, content.as_bytes(), "the file is untouched");
    }

    const RELAXED: &str = "; old_string was not exact and matched ignoring ";

    #[test]
    fn exact() {
        check("a b c", "b", "B", "a B c", "line 1)");
        check("a\nb\nc\n", "b\n", "", "a\nc\n", "line 2)");
        check("a\nb", "b", "c", "a\nc", "line 2)");
        check("\u{FEFF}a\nb\n", "a\nb", "c", "\u{FEFF}c\n", "line 1)");
    }

    #[test]
    fn crlf_is_kept() {
        check("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n", "line 1)");
        let how = format!("line 1){RELAXED}line endings");
        check("a\r\nb\r\nc", "a\nb\n", "x\n", "x\r\nc", &how);
        check(
            "\u{FEFF}a\r\nb\r\nc",
            "a\nb",
            "x\ny",
            "\u{FEFF}x\r\ny\r\nc",
            &how,
        );
    }

    #[test]
    fn white_space() {
        let how = format!("line 1){RELAXED}trailing white space");
        check("a  \nb\nc", "a\nb", "x", "x\nc", &how);
        let how = format!("line 2){RELAXED}indentation and trailing white space");
        check(
            "if x:\n\ta = 1\n\tb = 2\nc",
            "    a = 1\n    b = 2\n",
            "\ta = 3\n",
            "if x:\n\ta = 3\nc",
            &how,
        );
    }

    #[test]
    fn punctuation() {
        let how = format!("line 1){RELAXED}typographic punctuation");
        check(
            "say \u{201C}hi\u{201D}\n",
            "\"hi\"",
            "\"ho\"",
            "say \"ho\"\n",
            &how,
        );
    }

    #[test]
    fn a_missing_final_newline_stays_missing() {
        let how = format!("line 2){RELAXED}indentation and trailing white space");
        check("a\n  b", "b \n", "  c\n", "a\n  c", &how);
    }

    #[test]
    fn output_has_a_short_diff() {
        let (_, text) = edit(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "5", "five", false);
        assert_eq!(
            text,
            "Made 1 replacement in a.txt (line 5)\n\n\
             @@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8"
        );
        let (_, text) = edit(b"a\r\n\r\nb\r\n", "b", "c", false);
        assert_eq!(
            text,
            "Made 1 replacement in a.txt (line 3)\n\n@@ -1,3 +1,3 @@\n a\n \n-b\n+c"
        );
    }

    #[test]
    fn a_long_change_has_no_diff() {
        let (_, text) = edit(b"a\n", "a", &"x\n".repeat(300), false);
        assert_eq!(text, "Made 1 replacement in a.txt (line 1)");
        let long = "y".repeat(10_000_000);
        let (after, text) = edit(format!("{long} z").as_bytes(), "z", "w", false);
        assert_eq!(text, "Made 1 replacement in a.txt (line 1)");
        assert!(after.ends_with(b"y w"));
    }

    #[test]
    fn every_occurrence() {
        let (after, text) = edit(b"a\nb a\n", "a", "aa", true);
        assert_eq!(after, b"aa\nb aa\n");
        assert!(text.starts_with("Made 2 replacements in a.txt (lines 1 and 2)"));
        let (after, _) = edit(b"a\r\nb\r\nx\r\na\r\nb\r\n", "a\nb", "c\nd", true);
        assert_eq!(after, b"c\r\nd\r\nx\r\nc\r\nd\r\n");
    }

    #[test]
    fn not_unique() {
        check_error(
            "a\nx\na\na\n",
            "a",
            "b",
            "old_string occurs 3 times in a.txt (lines 1, 3 and 4); include more of the lines \
             around it to name one, or set replace_all",
        );
        let (after, text) = edit(b"  a;\n\ta;\n", " a;", "b;", true);
        assert_eq!(after, b" b;\n\ta;\n", "one exact match is enough: {text}");
        let (after, text) = edit(b"  a;\n\ta;\n", "\t\ta;", "b;", true);
        assert_eq!(after, b"  a;\n\ta;\n");
        assert_eq!(
            text,
            "old_string is not in a.txt exactly; ignoring indentation and trailing white space it \
             occurs 2 times (lines 1 and 2); copy the text exactly and include more of the lines \
             around it"
        );
        let many = "a\n".repeat(12);
        check_error(
            &many,
            "a",
            "b",
            "old_string occurs 12 times in a.txt (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …); include \
             more of the lines around it to name one, or set replace_all",
        );
    }

    #[test]
    fn not_found_shows_the_nearest_place() {
        check_error(
            "fn a() {\n    one();\n    two();\n}\n",
            "    one();\n    three();\n}",
            "",
            "old_string not found in a.txt; the nearest place is line 2, which first differs in \
             line 3:\n  file:       \"    two();\"\n  old_string: \"    three();\"",
        );
        check_error(
            "a\n",
            "a\nb",
            "",
            "old_string not found in a.txt; the nearest place is line 1, which first differs in \
             line 2:\n  file:       (past the end)\n  old_string: \"b\"",
        );
        check_error(
            "abc\n",
            "x",
            "",
            "old_string not found in a.txt; nothing like it is there, read the file again",
        );
        check_error(
            "one\ntwo\n",
            "1 | one\n2 | two",
            "",
            "old_string not found in a.txt; leave out the line numbers that read_file shows",
        );
    }

    #[test]
    fn calls_that_make_no_sense() {
        check_error(
            "a",
            "",
            "b",
            "old_string is empty; give the text to replace, or use write_file to write a whole file",
        );
        check_error(
            "a",
            "a",
            "a",
            "old_string and new_string are the same; nothing would change",
        );
        check_error(
            "a\nb",
            "a \nb",
            "a\nb",
            "a.txt would not change: what old_string stands for is already new_string",
        );
    }

    #[test]
    fn a_file_cannot_explode() {
        let content = "a".repeat(100_000);
        let (after, text) = edit(content.as_bytes(), "a", &"b".repeat(1000), true);
        assert_eq!(after, content.as_bytes());
        assert_eq!(
            text,
            "a.txt would grow to some 100100000 bytes, the limit is 52428800 bytes"
        );
    }

    #[test]
    fn files_that_are_not_text() {
        let (after, text) = edit(b"a\xFF", "a", "b", false);
        assert_eq!(after, b"a\xFF");
        assert_eq!(
            text,
            "cannot edit a.txt: not valid UTF-8 (first bad byte at offset 1)"
        );
        let (_, text) = edit(b"a\0", "a", "b", false);
        assert_eq!(
            text,
            "cannot edit a.txt: binary file (it contains NUL bytes)"
        );
        let arguments = json!({"file_path": "b.txt", "old_string": "a", "new_string": "b"});
        let (executed, _) = run(&[("a.txt", b"a")], "edit_file", arguments);
        assert_eq!(
            executed.full,
            "Tool error (edit_file): file not found: b.txt; did you mean a.txt?"
        );
    }
}
