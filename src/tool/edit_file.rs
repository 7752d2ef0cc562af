//! `edit_file` (spec 3.3): replaces a piece of text.
//!
//! The text is looked for exactly, then with the differences that models
//! introduce; a relaxed match must be the only one. Everything outside of it
//! keeps its bytes: line endings, byte-order mark, missing final newline, and
//! what is not UTF-8.

use std::fmt::Write as _;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional, required};
use super::read_file::read_existing;
use super::{CallContext, Declared, MAX_FILE_BYTES, ToolError, ToolOutput};
use crate::text::{
    Located, MatchKind, decode_file, locate, nearest, replace_ranges, unified_diff_from,
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

pub(super) const PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text),
    required("old_string", Kind::Text),
    required("new_string", Kind::Text),
    optional("replace_all", Kind::Flag),
    optional("expected_replacements", Kind::Count),
];

/// Edits files.
pub(super) struct EditFile;

#[derive(Deserialize)]
pub(super) struct Arguments {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
    /// How often `old_string` must occur; every occurrence is replaced.
    expected_replacements: Option<u64>,
}

#[async_trait(?Send)]
impl Executor for EditFile {
    type Arguments = Arguments;

    const KIND: &'static str = "edit_file";

    fn writes(&self, arguments: &Arguments) -> Vec<String> {
        vec![arguments.file_path.clone()]
    }

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let path = &arguments.file_path;
        if path.is_empty() {
            let name = declared.named("file_path");
            return Err(ToolError::new(format!(
                "{name} is empty; name the file to edit"
            )));
        }
        if arguments.old_string.is_empty() {
            let way_out = match declared.others(&["write_file"]) {
                Some(write) => format!(", or use {write} to write a whole file"),
                None => String::new(),
            };
            return Err(ToolError::new(format!(
                "{} is empty; give the text to replace{way_out}",
                declared.named("old_string")
            )));
        }
        if arguments.old_string == arguments.new_string {
            return Err(ToolError::new(format!(
                "{} and {} are the same; nothing would change",
                declared.named("old_string"),
                declared.named("new_string")
            )));
        }
        let absolute = call.environment.absolute(path);
        let _turn = call.files.lock(&call.environment, [absolute.clone()]).await;
        let content = read_existing(&call.environment, declared, path).await?;
        let (text, encoding) = decode_file(&content)
            .map_err(|reason| ToolError::new(format!("cannot edit {path}: {reason}")))?;
        let text = &*text;
        let located = find(text, &arguments, declared)?;
        check_size(text, &located, &arguments)?;
        let edited = replace_ranges(text, &located, &arguments.new_string);
        if edited == text {
            return Err(ToolError::new(format!(
                "{path} would not change: what {} stands for is already {}",
                declared.named("old_string"),
                declared.named("new_string")
            )));
        }
        let summary = summary(path, text, &located, declared);
        let diff = diff(text, &edited, &located);
        let bytes = encoding
            .encode(edited)
            .map_err(|reason| ToolError::new(format!("cannot edit {path}: {reason}")))?;
        let bytes = Bytes::from(bytes);
        call.environment.write(path, bytes.clone()).await?;
        call.known.note(&absolute, bytes);
        Ok(ToolOutput::bounded(
            format!("{summary}{diff}"),
            call.max_captured_bytes,
        ))
    }
}

/// Where to replace, or why nowhere.
fn find(text: &str, arguments: &Arguments, declared: &Declared) -> Result<Located, ToolError> {
    let path = &arguments.file_path;
    let old = declared.named("old_string");
    let Some(located) = locate(text, &arguments.old_string) else {
        return Err(ToolError::new(not_found(text, arguments, declared)));
    };
    let count = located.ranges.len();
    // Overlooking white space in many places at once is more than was asked for.
    let exact = matches!(located.kind, MatchKind::Exact | MatchKind::LineEndings);
    let fits = match arguments.expected_replacements {
        Some(expected) => expected == count as u64 && (exact || count == 1),
        None => count == 1 || (arguments.replace_all && exact),
    };
    if fits {
        return Ok(located);
    }
    let lines = line_numbers(text, &located);
    let times = if count == 1 { "time" } else { "times" };
    Err(ToolError::new(match located.kind.ignoring() {
        None => {
            let found = format!("{old} occurs {count} {times} in {path} ({lines})");
            match arguments.expected_replacements {
                Some(expected) if expected != 1 => format!(
                    "{found}, not the {expected} that {} says; nothing was replaced",
                    declared.named("expected_replacements")
                ),
                _ => format!(
                    "{found}; include more of the lines around it to name one{}",
                    or_all(declared, count)
                ),
            }
        }
        Some(ignoring) => format!(
            "{old} is not in {path} exactly; ignoring {ignoring} it occurs {count} {times} \
             ({lines}); copy the text exactly and include more of the lines around it"
        ),
    }))
}

/// How the model asks for every one of `count` occurrences.
fn or_all(declared: &Declared, count: usize) -> String {
    match (
        declared.advertised("replace_all"),
        declared.advertised("expected_replacements"),
    ) {
        (Some(all), _) => format!(", or set {all}"),
        (None, Some(expected)) => format!(", or set {expected} to {count}"),
        (None, None) => String::new(),
    }
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
    let mut lines = Vec::new();
    let mut line = 1;
    let mut at = 0;
    for range in &located.ranges {
        line += count_breaks(&text[at..range.start]);
        at = range.start;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        if lines.len() > MAX_LISTED {
            break;
        }
    }
    let numbers: Vec<_> = lines
        .iter()
        .take(MAX_LISTED)
        .map(usize::to_string)
        .collect();
    if lines.len() > MAX_LISTED {
        return format!("lines {}, …", numbers.join(", "));
    }
    match numbers.as_slice() {
        [] => String::new(),
        [only] => format!("line {only}"),
        [first @ .., last] => format!("lines {} and {last}", first.join(", ")),
    }
}

fn not_found(text: &str, arguments: &Arguments, declared: &Declared) -> String {
    let old = declared.named("old_string");
    let mut message = format!("{old} not found in {}", arguments.file_path);
    if has_line_numbers(&arguments.old_string) {
        message.push_str("; leave out the line numbers");
        if let Some(read) = declared.others(&["read_file"]) {
            let _ = write!(message, " that {read} shows");
        }
        return message;
    }
    let Some(near) = nearest(text, &arguments.old_string) else {
        message.push_str("; nothing like it is there, read the file again");
        return message;
    };
    let _ = write!(message, "; the nearest place is line {}", near.line);
    // The quoted lines stand one below the other.
    let width = "file".len().max(old.len()) + 2;
    if let Some((line, there, quoted)) = &near.first_difference {
        let _ = write!(
            message,
            ", which first differs in line {line}:\n  {:width$}",
            "file:"
        );
        match there {
            Some(there) => message.push_str(&quote(there)),
            None => message.push_str("(past the end)"),
        }
        let label = format!("{old}:");
        let _ = write!(message, "\n  {label:width$}{}", quote(quoted));
    }
    message
}

/// The line in quotes, with invisible characters shown.
pub(super) fn quote(line: &str) -> String {
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

fn summary(path: &str, text: &str, located: &Located, declared: &Declared) -> String {
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
            "; {} was not exact and matched ignoring {ignoring}",
            declared.named("old_string")
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
mod tests;
