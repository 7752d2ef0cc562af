//! Applies the hunks of one file to its text. Pure: old text in, new text out.
//!
//! Where spec appendix A is silent this does what codex does (seen by running
//! it): anchors and hunks go forward through the file only; a hunk without old
//! lines and without an anchor appends to the file; context keeps the bytes that
//! it has in the file;
//! new lines get the line ending that the file has first (`\n`, `\r\n` or a
//! lone `\r`). A byte-order mark is overlooked and stays. Three things differ from
//! codex: added lines alone go behind their anchor, the anchor may be the first old
//! line itself, and a file whose last line has no newline stays so.

use std::ops::Range;

use super::patch::{Anchor, Hunk, HunkLine, PatchError};
use super::seek::{Exhausted, Work, seek};
use crate::text::{NearMiss, nearest};
use crate::tool::edit_file::quote;

/// The text of the file at `path` with `hunks` applied.
pub fn apply(path: &str, old: &str, hunks: &[Hunk]) -> Result<String, PatchError> {
    apply_within(path, old, hunks, &mut Work::default())
}

/// [`apply`] as a part of a patch that may spend `work` in all.
pub(super) fn apply_within(
    path: &str,
    old: &str,
    hunks: &[Hunk],
    work: &mut Work,
) -> Result<String, PatchError> {
    let wrong = |(line, message)| PatchError {
        line,
        path: Some(path.to_owned()),
        message,
    };
    let file = File::new(old);
    let first_line = hunks.first().map_or(1, |hunk| hunk.line);
    for line in &file.lines {
        let spent = work.spend(line.len());
        spent.map_err(|exhausted| wrong((first_line, exhausted.to_string())))?;
    }
    let mut edits = Vec::with_capacity(hunks.len());
    let mut at = 0;
    for hunk in hunks {
        edits.extend(place(&file, hunk, &mut at, work).map_err(wrong)?);
    }
    // Appended lines come last, wherever in the patch they stand; of several
    // edits in one place the first in the patch comes first.
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

/// Neighbouring lines to put in the place of others, or between two.
struct Edit<'a> {
    range: Range<usize>,
    new: Vec<&'a str>,
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
                text.push_str(line);
                text.push_str(ending);
            }
            at = edit.range.end;
        }
        (at..self.lines.len()).for_each(|index| keep(&mut text, index));
        if self.endings.last().is_some_and(|last| last.is_empty()) && text.ends_with(ending) {
            text.truncate(text.len() - ending.len());
        }
        text
    }
}

static ADDED_EMPTY: HunkLine = HunkLine::Add(String::new());
static REMOVED_EMPTY: HunkLine = HunkLine::Remove(String::new());

/// A line of the patch and what is wrong with it.
type Wrong = (usize, String);

/// The edits of `hunk`, looked for from line index `at` on, which moves past it.
fn place<'a>(
    file: &File<'_>,
    hunk: &'a Hunk,
    at: &mut usize,
    work: &mut Work,
) -> Result<Vec<Edit<'a>>, Wrong> {
    let exhausted = |exhausted: Exhausted| (hunk.line, exhausted.to_string());
    let mut hint = None;
    for anchor in &hunk.anchors {
        let wanted = [file.bare(&anchor.text)];
        hint = seek(&file.lines, &wanted, *at, work).map_err(exhausted)?;
        match hint {
            Some(found) => *at = found + 1,
            None => return Err((anchor.line, lost_anchor(file, anchor, *at, work))),
        }
    }
    let lines: Vec<&HunkLine> = hunk.lines.iter().collect();
    let old = old_lines(file, hunk);
    if old.is_empty() {
        let behind_hint = hint.is_some() && !hunk.end_of_file;
        let line = if behind_hint { *at } else { file.lines.len() };
        return Ok(edits(file, &lines, line));
    }
    let shorter = old.strip_suffix(&[""]);
    // Behind the hint, else from its own line: models also name a line that
    // they then show or remove.
    for from in [Some(*at), hint].into_iter().flatten() {
        let mut find = |old: &[&str]| {
            let start = match file.lines.len().checked_sub(old.len()) {
                Some(last) if hunk.end_of_file => last.max(from),
                _ => from,
            };
            seek(&file.lines, old, start, work).map_err(exhausted)
        };
        if let Some(first) = find(&old)? {
            *at = first + old.len();
            return Ok(edits(file, &lines, first));
        }
        let Some(shorter) = shorter else { continue };
        if let Some(first) = find(shorter)? {
            *at = first + shorter.len();
            return Ok(edits(file, &without_surplus(lines), first));
        }
    }
    Err((hunk.line, lost_hunk(file, hunk, *at, work)))
}

/// The lines that stand in the file.
fn old_lines<'a>(file: &File<'_>, hunk: &'a Hunk) -> Vec<&'a str> {
    let old = hunk.lines.iter().filter_map(|line| match line {
        HunkLine::Context(text) | HunkLine::Remove(text) => Some(file.bare(text)),
        HunkLine::Add(_) => None,
    });
    old.collect()
}

/// A hunk whose last old line, an empty one, is not in the file: models often
/// end a hunk with one empty line too many. It goes, and with it an empty line
/// at the end of the new ones; if others follow it there, it is a new line.
fn without_surplus(mut lines: Vec<&HunkLine>) -> Vec<&HunkLine> {
    let is_old = |line: &&HunkLine| !matches!(line, HunkLine::Add(_));
    let is_new = |line: &&HunkLine| !matches!(line, HunkLine::Remove(_));
    if let Some(surplus) = lines.iter().rposition(is_old) {
        match lines[surplus] {
            HunkLine::Context(_) => lines[surplus] = &ADDED_EMPTY,
            _ => drop(lines.remove(surplus)),
        }
    }
    if let Some(last) = lines.iter().rposition(is_new) {
        match lines[last] {
            HunkLine::Add(text) if text.is_empty() => drop(lines.remove(last)),
            // The file has it, but the new lines have one less.
            HunkLine::Context(text) if text.is_empty() => lines[last] = &REMOVED_EMPTY,
            _ => {}
        }
    }
    lines
}

/// The changes of `lines`, the first old one of which is line index `at`.
/// Context belongs to none of them, so that it keeps its place and its bytes.
fn edits<'a>(file: &File<'_>, lines: &[&'a HunkLine], mut at: usize) -> Vec<Edit<'a>> {
    let mut edits: Vec<Edit<'a>> = Vec::new();
    let mut open = false;
    for line in lines {
        if let HunkLine::Context(_) = line {
            at += 1;
            open = false;
            continue;
        }
        if !open {
            edits.push(Edit {
                range: at..at,
                new: Vec::new(),
            });
            open = true;
        }
        let Some(edit) = edits.last_mut() else { break };
        match line {
            HunkLine::Add(text) => edit.new.push(file.bare(text)),
            _ => {
                at += 1;
                edit.range.end = at;
            }
        }
    }
    edits
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

fn lost_hunk(file: &File<'_>, hunk: &Hunk, at: usize, work: &mut Work) -> String {
    let old = old_lines(file, hunk);
    let message = if hunk.end_of_file {
        "the old lines of this hunk are not the end of the file".to_owned()
    } else {
        format!(
            "the old lines of this hunk do not stand in the file{}",
            after(at)
        )
    };
    message + &elsewhere(file, &old, at, hunk.end_of_file, work)
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
        return if found >= at && end_of_file {
            format!("; line {line} is such a place, but not at the end")
        } else {
            format!(
                "; line {line} is such a place, but hunks and @@ lines follow the order of the file"
            )
        };
    }
    let Some(near) = near(file, wanted, at) else {
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

/// The place most like `wanted`; of equal ones one after `at`.
fn near(file: &File<'_>, wanted: &[&str], at: usize) -> Option<NearMiss> {
    // With a final newline each, so that a last empty line counts as one.
    let text = |lines: &[&str]| lines.join("\n") + "\n";
    let wanted = text(wanted);
    let near = nearest(&text(&file.lines), &wanted)?;
    if near.line > at {
        return Some(near);
    }
    let later = file.lines.get(at..).unwrap_or_default();
    match nearest(&text(later), &wanted) {
        Some(mut later) if later.equal_lines >= near.equal_lines => {
            later.line += at;
            if let Some((line, ..)) = &mut later.first_difference {
                *line += at;
            }
            Some(later)
        }
        _ => Some(near),
    }
}
