//! Applies the hunks of one file to its text. Pure: old text in, new text out.
//!
//! Where spec appendix A is silent this does what codex does (seen by running
//! it): anchors and hunks go forward through the file only; a hunk without old
//! lines appends to the file; context keeps the bytes that it has in the file;
//! new lines get the line ending that the file has first (`\n`, `\r\n` or a
//! lone `\r`); a missing final newline is added. A byte-order mark is
//! overlooked and stays.

use std::ops::Range;

use super::parser::{Anchor, Hunk, HunkLine, PatchError};
use super::seek::{Exhausted, Work, seek};
use crate::text::nearest;
use crate::tool::edit_file::quote;

/// The text of the file at `path` with `hunks` applied.
pub fn apply(path: &str, old: &str, hunks: &[Hunk]) -> Result<String, PatchError> {
    let file = File::new(old);
    let mut edits = Vec::with_capacity(hunks.len());
    let mut work = Work::default();
    let mut at = 0;
    for hunk in hunks {
        let edit = place(&file, hunk, &mut at, &mut work);
        edits.push(edit.map_err(|(line, message)| PatchError {
            line,
            path: Some(path.to_owned()),
            message,
        })?);
    }
    // Appended lines come last, wherever in the patch they stand.
    edits.sort_by_key(|edit| edit.range.start);
    Ok(file.rewrite(&edits))
}

/// A file as lines.
struct File<'a> {
    mark: &'a str,
    lines: Vec<&'a str>,
    /// What ends each line; nothing after a last line that lacks it.
    endings: Vec<&'a str>,
}

/// Lines to put in the place of others.
struct Edit<'a> {
    range: Range<usize>,
    new: Vec<NewLine<'a>>,
}

#[derive(Clone, Copy)]
enum NewLine<'a> {
    /// The old line of this index, counted from the start of the range.
    Keep(usize),
    Add(&'a str),
}

const MARK: &str = "\u{FEFF}";

impl<'a> File<'a> {
    fn new(text: &'a str) -> Self {
        let (mark, mut rest) = match text.strip_prefix(MARK) {
            Some(rest) => (MARK, rest),
            None => ("", text),
        };
        let (mut lines, mut endings) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
            let (line, tail) = rest.split_at(end);
            let ending = tail.len().min(if tail.starts_with("\r\n") { 2 } else { 1 });
            lines.push(line);
            endings.push(&tail[..ending]);
            rest = &tail[ending..];
        }
        Self {
            mark,
            lines,
            endings,
        }
    }

    /// A line of the patch as it is to be compared and written.
    fn bare<'b>(&self, line: &'b str) -> &'b str {
        if self.mark.is_empty() {
            return line;
        }
        line.strip_prefix(MARK).unwrap_or(line)
    }

    fn rewrite(&self, edits: &[Edit<'_>]) -> String {
        let ending = match self.endings.first() {
            Some(ending) if !ending.is_empty() => ending,
            _ => "\n",
        };
        let mut text = String::from(self.mark);
        let keep = |text: &mut String, index: usize| {
            text.push_str(self.lines[index]);
            let own = self.endings[index];
            text.push_str(if own.is_empty() { ending } else { own });
        };
        let mut at = 0;
        for edit in edits {
            (at..edit.range.start).for_each(|index| keep(&mut text, index));
            for line in &edit.new {
                match line {
                    NewLine::Keep(index) => keep(&mut text, edit.range.start + index),
                    NewLine::Add(line) => {
                        text.push_str(line);
                        text.push_str(ending);
                    }
                }
            }
            at = edit.range.end;
        }
        (at..self.lines.len()).for_each(|index| keep(&mut text, index));
        text
    }
}

/// A line of the patch and what is wrong with it.
type Wrong = (usize, String);

/// Where `hunk` goes, from line index `at` on, which moves past it.
fn place<'a>(
    file: &File<'_>,
    hunk: &'a Hunk,
    at: &mut usize,
    work: &mut Work,
) -> Result<Edit<'a>, Wrong> {
    let exhausted = |Exhausted| {
        let message = "finding its place among so many equal lines takes too long; use smaller \
                       hunks or write the whole file";
        (hunk.line, message.to_owned())
    };
    for anchor in &hunk.anchors {
        let wanted = [file.bare(&anchor.text)];
        match seek(&file.lines, &wanted, *at, work).map_err(exhausted)? {
            Some(found) => *at = found + 1,
            None => return Err((anchor.line, lost_anchor(file, anchor, *at, work))),
        }
    }
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for line in &hunk.lines {
        match line {
            HunkLine::Context(text) => {
                new.push((NewLine::Keep(old.len()), text.as_str()));
                old.push(file.bare(text));
            }
            HunkLine::Remove(text) => old.push(file.bare(text)),
            HunkLine::Add(text) => new.push((NewLine::Add(file.bare(text)), text.as_str())),
        }
    }
    if old.is_empty() {
        let end = file.lines.len();
        return Ok(Edit {
            range: end..end,
            new: new.into_iter().map(|(line, _)| line).collect(),
        });
    }
    let mut find = |old: &[&str]| {
        let start = match file.lines.len().checked_sub(old.len()) {
            Some(last) if hunk.end_of_file => last.max(*at),
            _ => *at,
        };
        seek(&file.lines, old, start, work).map_err(exhausted)
    };
    let mut found = find(&old)?;
    if found.is_none() && old.last() == Some(&"") {
        // A hunk often ends with one empty line too many.
        old.pop();
        found = find(&old)?;
        if new.last().is_some_and(|(_, text)| text.is_empty()) {
            new.pop();
        }
        for (line, text) in &mut new {
            if matches!(line, NewLine::Keep(index) if *index == old.len()) {
                *line = NewLine::Add(text);
            }
        }
    }
    let Some(first) = found else {
        return Err((hunk.line, lost_hunk(file, hunk, &old, *at, work)));
    };
    *at = first + old.len();
    Ok(Edit {
        range: first..*at,
        new: new.into_iter().map(|(line, _)| line).collect(),
    })
}

fn lost_anchor(file: &File<'_>, anchor: &Anchor, at: usize, work: &mut Work) -> String {
    let mut message = format!("no line is {}{}", quote(&anchor.text), after(at));
    let is_range = anchor.text.starts_with('-') && anchor.text.ends_with("@@");
    if is_range {
        message += "; put no line numbers after @@, but a line of the file or nothing";
        return message;
    }
    message + &elsewhere(file, &[file.bare(&anchor.text)], at, false, work)
}

fn lost_hunk(file: &File<'_>, hunk: &Hunk, old: &[&str], at: usize, work: &mut Work) -> String {
    let place = if hunk.end_of_file {
        " at the end of the file".to_owned()
    } else {
        after(at)
    };
    let message = format!("the old lines of this hunk do not stand in the file{place}");
    message + &elsewhere(file, old, at, hunk.end_of_file, work)
}

/// ` after line 12`, which anchors or the hunk before have reached.
fn after(at: usize) -> String {
    match at {
        0 => String::new(),
        line => format!(" after line {line}"),
    }
}

/// Where `wanted` stands although it may not, or almost stands.
fn elsewhere(
    file: &File<'_>,
    wanted: &[&str],
    at: usize,
    end_of_file: bool,
    work: &mut Work,
) -> String {
    if let Ok(Some(found)) = seek(&file.lines, wanted, 0, work) {
        let line = found + 1;
        return if found < at {
            format!("; line {line} has them, but hunks and @@ lines follow the order of the file")
        } else if end_of_file {
            format!("; line {line} has them, but is not at the end")
        } else {
            format!("; line {line} has them")
        };
    }
    let Some(near) = nearest(&file.lines.join("\n"), &wanted.join("\n")) else {
        return "; nothing like it is there, read the file again".to_owned();
    };
    let mut message = format!("; the nearest place is line {}", near.line);
    if let Some((line, there, wanted)) = &near.first_difference {
        let there = there.as_deref().map_or("(past the end)".to_owned(), quote);
        message += &format!(
            ", which first differs in line {line}:\n  file:  {there}\n  patch: {}",
            quote(wanted)
        );
    }
    message
}
