//! Parser of v4a patches: text to [`Patch`]. Pure; it never looks at a file.
//!
//! The grammar is that of spec appendix A, widened where models stray from it
//! and codex lets them:
//!
//! ```text
//! patch    = [heredoc] begin file* end [heredoc_end]
//! begin    = "*** Begin Patch"               (padding allowed)
//! end      = "*** End Patch"                 (padding allowed)
//! file     = add | delete | update           (padding allowed before the first
//!                                             and after Add and Delete)
//! add      = "*** Add File: " path  ("+" text)*
//! delete   = "*** Delete File: " path
//! update   = "*** Update File: " path  ["*** Move to: " path]  first hunk*
//! first    = anchor* line+ [eof]
//! hunk     = anchor+ line+ [eof]
//! anchor   = "@@" [" " text]                 (several nest, from the outside in)
//! line     = " " text | "-" text | "+" text | ""       ("" is an empty context line)
//! eof      = "*** End of File"               (blank lines may follow it)
//!
//! heredoc  = ["apply_patch "] "<<" ["-"] word | …'word' | …"word"
//! ```
//!
//! Every line ends with `\n` or `\r\n`. Blank lines around the whole are
//! overlooked. What the grammar cannot say: a patch changes at least one file.

use super::patch::{Action, Anchor, FilePatch, Hunk, HunkLine, Patch, PatchError};
use crate::text::near_names;
use crate::tool::edit_file::quote;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Every line that begins with `***`, without its path.
const MARKERS: [&str; 7] = [
    BEGIN,
    END,
    "*** Add File:",
    "*** Delete File:",
    "*** Update File:",
    "*** Move to:",
    END_OF_FILE,
];

/// Reads a patch.
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    let body = body(&lines)?;
    let end_line = body.end + 1;
    let mut parser = Parser {
        lines: &lines[..body.end],
        at: body.start,
    };
    let mut files = Vec::new();
    while let Some(line) = parser.peek() {
        files.push(parser.file(line)?);
    }
    if files.is_empty() {
        return Err(PatchError {
            line: end_line,
            path: None,
            message: format!(
                "the patch changes no file; put {ADD}PATH, {DELETE}PATH or {UPDATE}PATH before \
                 this line"
            ),
        });
    }
    Ok(Patch { files })
}

/// The lines between the outer markers.
fn body(lines: &[&str]) -> Result<std::ops::Range<usize>, PatchError> {
    let (mut first, mut last) = outermost(lines, 0..lines.len());
    if heredoc_word(lines[first]).is_some_and(|word| lines[last].trim().ends_with(word)) {
        (first, last) = outermost(lines, first + 1..last);
    }
    let wrong = |index: usize, marker: &str, which: &str| {
        let mut message = format!("the {which} line of a patch is {marker}");
        let place = lines.iter().position(|line| line.trim() == marker);
        match place {
            Some(place) if place != index => {
                message += &format!("; it stands in line {}, leave out what is ", place + 1);
                message += if place > index {
                    "before it"
                } else {
                    "after it"
                };
            }
            _ => message += &format!(", not {}", quote(lines[index])),
        }
        PatchError {
            line: index + 1,
            path: None,
            message,
        }
    };
    if lines[first].trim() != BEGIN {
        return Err(wrong(first, BEGIN, "first"));
    }
    if lines[last].trim() != END {
        return Err(wrong(last, END, "last"));
    }
    Ok(first + 1..last)
}

/// First and last line of `range` that are not blank; its first line twice if
/// all are.
fn outermost(lines: &[&str], range: std::ops::Range<usize>) -> (usize, usize) {
    let start = range.start.min(lines.len() - 1);
    let mut filled = range.filter(|index| !lines[*index].trim().is_empty());
    let first = filled.next().unwrap_or(start);
    (first, filled.next_back().unwrap_or(first))
}

/// The word that ends a heredoc which `line` opens.
fn heredoc_word(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.strip_prefix("apply_patch").unwrap_or(line).trim();
    let word = line.strip_prefix("<<")?;
    let word = word.strip_prefix('-').unwrap_or(word).trim();
    let bare = ['\'', '"']
        .into_iter()
        .find_map(|mark| word.strip_prefix(mark)?.strip_suffix(mark))
        .unwrap_or(word);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!bare.is_empty() && bare.chars().all(is_word)).then_some(bare)
}

struct Parser<'a> {
    /// All lines up to the end marker.
    lines: &'a [&'a str],
    /// The next line, from 0.
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// The next line if `accept` makes something of it.
    fn take<T>(&mut self, accept: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let accepted = self.peek().and_then(accept)?;
        self.at += 1;
        Some(accepted)
    }

    /// An error about line `line`, from 1.
    fn error<T>(line: usize, path: Option<&str>, message: String) -> Result<T, PatchError> {
        Err(PatchError {
            line,
            path: path.map(str::to_owned),
            message,
        })
    }

    fn file(&mut self, line: &'a str) -> Result<FilePatch, PatchError> {
        self.at += 1;
        let number = self.at;
        let line = line.trim();
        let (path, action) = if let Some(path) = line.strip_prefix(ADD) {
            let mut content = String::new();
            while let Some(added) = self.take(|line| line.strip_prefix('+')) {
                content.push_str(added);
                content.push('\n');
            }
            self.check_after_add(path)?;
            (path, Action::Add { content })
        } else if let Some(path) = line.strip_prefix(DELETE) {
            (path, Action::Delete)
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            (path, self.update(number, path)?)
        } else {
            return Self::error(number, None, bad_header(line));
        };
        Ok(FilePatch {
            line: number,
            path: path.to_owned(),
            action,
        })
    }

    /// A line between an added file and the next header is one whose `+` is missing.
    fn check_after_add(&self, path: &str) -> Result<(), PatchError> {
        match self.peek() {
            Some(line) if !line.trim_start().starts_with("***") => Self::error(
                self.at + 1,
                Some(path),
                format!(
                    "every line of an added file begins with +, also an empty one; this one is {}",
                    quote(line)
                ),
            ),
            _ => Ok(()),
        }
    }

    fn update(&mut self, number: usize, path: &str) -> Result<Action, PatchError> {
        let move_to = self.take(|line| {
            let target = line.strip_prefix(MOVE)?.trim_end();
            (!target.is_empty()).then(|| target.to_owned())
        });
        let mut hunks: Vec<Hunk> = Vec::new();
        while let Some(line) = self.peek() {
            if header(line.trim_end()).is_some() {
                break;
            }
            let closed = hunks.last().is_some_and(|hunk| hunk.end_of_file);
            if closed && line.trim().is_empty() {
                self.at += 1;
                continue;
            }
            hunks.push(self.hunk(path, hunks.is_empty())?);
        }
        if hunks.is_empty() {
            return Self::error(
                number,
                Some(path),
                "the update has no hunk; give the lines to change, each after a space, - or +"
                    .to_owned(),
            );
        }
        Ok(Action::Update { move_to, hunks })
    }

    /// One hunk; only the first of a file may lack an anchor.
    fn hunk(&mut self, path: &str, is_first: bool) -> Result<Hunk, PatchError> {
        let mut hunk = Hunk {
            line: self.at + 1,
            ..Hunk::default()
        };
        let mut has_anchor = is_first;
        while let Some(text) = self.take(anchor) {
            has_anchor = true;
            if !text.is_empty() {
                hunk.anchors.push(Anchor {
                    line: self.at,
                    text: text.to_owned(),
                });
            }
        }
        if !has_anchor {
            let line = self.peek().unwrap_or_default();
            let message = if line.starts_with("***") {
                unknown_marker(line)
            } else {
                format!(
                    "a further hunk begins with @@; this line after {END_OF_FILE} is {}",
                    quote(line)
                )
            };
            return Self::error(self.at + 1, Some(path), message);
        }
        while let Some(line) = self.take(hunk_line) {
            hunk.lines.push(line);
        }
        if hunk.lines.is_empty() {
            return match self.peek() {
                Some(line) if header(line.trim_end()).is_none() && !is_end_of_file(line) => {
                    Self::error(self.at + 1, Some(path), bad_line(line))
                }
                _ => Self::error(
                    hunk.line,
                    Some(path),
                    "the hunk is empty; give the lines to change, each after a space, - or +"
                        .to_owned(),
                ),
            };
        }
        hunk.end_of_file = self
            .take(|line| is_end_of_file(line).then_some(()))
            .is_some();
        match self.peek() {
            Some(line)
                if !hunk.end_of_file
                    && anchor(line).is_none()
                    && header(line.trim_end()).is_none() =>
            {
                Self::error(self.at + 1, Some(path), bad_line(line))
            }
            _ => Ok(hunk),
        }
    }
}

/// The path of a line that begins the next file.
fn header(line: &str) -> Option<&str> {
    [ADD, DELETE, UPDATE]
        .into_iter()
        .find_map(|marker| line.strip_prefix(marker))
}

fn is_end_of_file(line: &str) -> bool {
    line.trim_end() == END_OF_FILE
}

/// What follows `@@`, without white space at its end.
fn anchor(line: &str) -> Option<&str> {
    let line = line.trim_end();
    if line == "@@" {
        return Some("");
    }
    line.strip_prefix("@@ ")
}

fn hunk_line(line: &str) -> Option<HunkLine> {
    let Some(mark) = line.chars().next() else {
        // Editors and models strip the one space of an empty context line.
        return Some(HunkLine::Context(String::new()));
    };
    let make = match mark {
        ' ' => HunkLine::Context,
        '-' => HunkLine::Remove,
        '+' => HunkLine::Add,
        _ => return None,
    };
    Some(make(line[1..].to_owned()))
}

fn bad_header(line: &str) -> String {
    if line == END || line == BEGIN {
        return format!(
            "{line} may stand only once, at the {}",
            if line == END { "end" } else { "beginning" }
        );
    }
    let known = format!("{ADD}PATH, {DELETE}PATH or {UPDATE}PATH");
    let name = line.split_inclusive(':').next().unwrap_or_default();
    if MARKERS[2..5].contains(&line) {
        return format!("{} lacks its path; write {known}", quote(line));
    }
    if MARKERS.contains(&name) {
        return format!("{} has no place here; expected {known}", quote(line));
    }
    format!(
        "expected {known}, found {}{}",
        quote(line),
        did_you_mean(line)
    )
}

fn bad_line(line: &str) -> String {
    if line.starts_with("***") {
        return unknown_marker(line);
    }
    let mut message = format!(
        "every line of a hunk begins with a space (context), - (removed) or + (added); this one \
         is {}",
        quote(line)
    );
    if line.starts_with("@@") {
        message += "; put a space after @@";
    } else if line.starts_with(char::is_whitespace) {
        message += "; put a space before its indentation";
    }
    message
}

fn unknown_marker(line: &str) -> String {
    let line = line.trim_end();
    if MARKERS[2..6].contains(&line) {
        return format!("{} lacks its path", quote(line));
    }
    let name = line.split_inclusive(':').next().unwrap_or_default();
    match name {
        BEGIN => format!("{BEGIN} may stand only once, at the beginning"),
        END => format!("{END} may stand only once, at the end"),
        "*** Move to:" => format!("{MOVE}PATH may stand only in the line after {UPDATE}PATH"),
        _ => format!(
            "{} is no marker of a patch; to keep a line that begins so, put a space before it{}",
            quote(line),
            did_you_mean(line)
        ),
    }
}

/// The marker that `line` is almost.
fn did_you_mean(line: &str) -> String {
    let name = line.split_inclusive(':').next().unwrap_or_default();
    match near_names(name, MARKERS.into_iter(), 1).first() {
        Some(marker) => format!("; did you mean {}?", quote(marker)),
        None => String::new(),
    }
}
