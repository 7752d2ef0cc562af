//! `diff`, as GNU's, for two files.
//!
//! bashkit's takes lines without their ends, so that files which differ in a last newline
//! or in `\r` are the same; it shows everything as changed where there are many lines,
//! knows few options, and ends with 1 for a file that is not there.
//!
//! Seen in bashkit 0.20.2; gone when `diff` of `tests/it/bashkit.rs` fails.

use std::fmt::Write as _;
use std::ops::Range;

use similar::DiffOp;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod builtin;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) use builtin::Diff;

use super::bytes;
use crate::text::diff::{changed_groups, lines, push_line, unified_groups};

/// Exit codes: the files differ, and trouble.
const DIFFERENT: i32 = 1;
const TROUBLE: i32 = 2;
/// Lines around a change.
const CONTEXT: usize = 3;

#[derive(Debug, Default, PartialEq)]
struct Call {
    /// Lines around a change, of the unified form.
    context: Option<usize>,
    brief: bool,
    says_same: bool,
    absent_is_empty: bool,
    is_text: bool,
    strips_cr: bool,
    ignores: Ignored,
    labels: Vec<String>,
    files: Vec<String>,
}

/// What of a line does not count.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Ignored {
    case: bool,
    /// The amount of white space.
    space: bool,
    /// All white space.
    all_space: bool,
}

/// What is said of two contents, text that stands for bytes, and the exit code.
fn compare(call: &Call, old: &[u8], new: &[u8]) -> (String, i32) {
    let (first, second) = (&call.files[0], &call.files[1]);
    let same = || match call.says_same {
        true => (format!("Files {first} and {second} are identical\n"), 0),
        false => (String::new(), 0),
    };
    if old == new {
        return same();
    }
    if !call.is_text && (old.contains(&0) || new.contains(&0)) {
        let what = if call.brief { "Files" } else { "Binary files" };
        return (format!("{what} {first} and {second} differ\n"), DIFFERENT);
    }
    let text = |content: &[u8]| {
        let text = String::from_utf8_lossy(&bytes::to_text(content)).into_owned();
        match call.strips_cr {
            true => text.replace("\r\n", "\n"),
            false => text,
        }
    };
    let (old, new) = (text(old), text(new));
    let (old, new) = (lines(&old), lines(&new));
    let keys = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| call.ignores.key(line)).collect()
    };
    let groups = changed_groups(&keys(&old), &keys(&new), call.context.unwrap_or(0));
    if groups.is_empty() {
        return same();
    }
    if call.brief {
        return (format!("Files {first} and {second} differ\n"), DIFFERENT);
    }
    if call.context.is_none() {
        return (normal(&old, &new, &groups), DIFFERENT);
    }
    let mut names = call
        .labels
        .iter()
        .chain(&call.files[call.labels.len().min(2)..]);
    let mut header = String::new();
    for mark in ["---", "+++"] {
        let _ = writeln!(header, "{mark} {}", names.next().map_or("", |name| name));
    }
    (header + &unified_groups(&old, &new, &groups, 1), DIFFERENT)
}

/// `groups` in the form that `diff` has without an option.
fn normal(old: &[&str], new: &[&str], groups: &[Vec<DiffOp>]) -> String {
    let mut text = String::new();
    for group in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let from = first.old_range().start..last.old_range().end;
        let to = first.new_range().start..last.new_range().end;
        let kind = match (from.is_empty(), to.is_empty()) {
            (true, _) => 'a',
            (_, true) => 'd',
            _ => 'c',
        };
        let _ = writeln!(text, "{}{kind}{}", span(&from), span(&to));
        for line in &old[from] {
            push_line(&mut text, "< ", line);
        }
        if kind == 'c' {
            text.push_str("---\n");
        }
        for line in &new[to] {
            push_line(&mut text, "> ", line);
        }
    }
    text
}

/// Lines as they are counted there: none is the line before.
fn span(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => lines.start.to_string(),
        1 => (lines.start + 1).to_string(),
        _ => format!("{},{}", lines.start + 1, lines.end),
    }
}

impl Ignored {
    /// What of `line` counts.
    fn key(self, line: &str) -> String {
        let mut key = String::with_capacity(line.len());
        if self.all_space {
            key.extend(line.chars().filter(|c| !c.is_ascii_whitespace()));
        } else if self.space {
            let mut pending = false;
            for c in line.chars() {
                if c.is_ascii_whitespace() {
                    pending = true;
                    continue;
                }
                if std::mem::take(&mut pending) {
                    key.push(' ');
                }
                key.push(c);
            }
        } else {
            key.push_str(line);
        }
        match self.case {
            true => key.to_lowercase(),
            false => key,
        }
    }
}

/// Reads the arguments; the error is what GNU's says.
fn parse(args: &[String]) -> Result<Call, String> {
    let mut call = Call::default();
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            call.files.extend(rest.by_ref().cloned());
        } else if let Some(long) = argument.strip_prefix("--") {
            call.long(long, &mut rest)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            call.short(&argument[1..], &mut rest)?;
        } else {
            call.files.push(argument.clone());
        }
    }
    match &call.files[..] {
        [] => Err("missing operand".to_owned()),
        [only] => Err(format!("missing operand after '{only}'")),
        [_, _] => Ok(call),
        [_, _, extra, ..] => Err(format!("extra operand '{extra}'")),
    }
}

impl Call {
    fn long<'a>(
        &mut self,
        long: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), String> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        match (name, value) {
            ("unified", None) => self.context = Some(CONTEXT),
            ("unified", Some(value)) => self.context = Some(number(value)?),
            ("brief", None) => self.brief = true,
            ("report-identical-files", None) => self.says_same = true,
            ("new-file", None) => self.absent_is_empty = true,
            ("text", None) => self.is_text = true,
            ("strip-trailing-cr", None) => self.strips_cr = true,
            ("ignore-case", None) => self.ignores.case = true,
            ("ignore-space-change", None) => self.ignores.space = true,
            ("ignore-all-space", None) => self.ignores.all_space = true,
            ("label", Some(value)) => self.labels.push(value.to_owned()),
            ("label", None) => self.label(rest.next())?,
            ("normal" | "minimal" | "speed-large-files", None) => {}
            ("color", Some("never" | "auto")) => {}
            _ => return Err(format!("unrecognized option '--{long}'")),
        }
        Ok(())
    }

    fn short<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), String> {
        let mut left = letters.chars();
        while let Some(letter) = left.next() {
            match letter {
                'u' => self.context = self.context.or(Some(CONTEXT)),
                'q' => self.brief = true,
                's' => self.says_same = true,
                'N' => self.absent_is_empty = true,
                'a' => self.is_text = true,
                'i' => self.ignores.case = true,
                'b' => self.ignores.space = true,
                'w' => self.ignores.all_space = true,
                'd' => {}
                'U' | 'L' => {
                    let value = match left.as_str() {
                        "" => rest.next().cloned(),
                        attached => Some(attached.to_owned()),
                    };
                    match letter {
                        'L' => self.label(value.as_ref())?,
                        _ => self.context = Some(number(&value.unwrap_or_default())?),
                    }
                    return Ok(());
                }
                _ => return Err(format!("invalid option -- '{letter}'")),
            }
        }
        Ok(())
    }

    fn label(&mut self, label: Option<&String>) -> Result<(), String> {
        let label = label.ok_or("option requires an argument -- 'L'")?;
        self.labels.push(label.clone());
        Ok(())
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse::<u32>();
    number
        .map(|number| number as usize)
        .map_err(|_| format!("invalid context length '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &str, old: &str, new: &str, expected: &str, code: i32) {
        let args: Vec<_> = args.split_whitespace().map(str::to_owned).collect();
        let call = parse(&[args, vec!["a".to_owned(), "b".to_owned()]].concat());
        let compared = compare(&call.expect("a call"), old.as_bytes(), new.as_bytes());
        assert_eq!(compared, (expected.to_owned(), code));
    }

    #[test]
    fn what_is_said() {
        check("", "1\n2\n", "1\n2\n", "", 0);
        check("-s", "1\n", "1\n", "Files a and b are identical\n", 0);
        check("-q", "1\n", "2\n", "Files a and b differ\n", 1);
        check("", "\0", "1", "Binary files a and b differ\n", 1);
        check("", "1\n2\n3\n", "1\n3\n", "2d1\n< 2\n", 1);
        check("", "", "1\n2\n", "0a1,2\n> 1\n> 2\n", 1);
        check(
            "",
            "1",
            "1\n",
            "1c1\n< 1\n\\ No newline at end of file\n---\n> 1\n",
            1,
        );
        check("-q", "1\r\n", "1\n", "Files a and b differ\n", 1);
        check("--strip-trailing-cr", "1\r\n", "1\n", "", 0);
        check("-bi", "a  B\n", "A b \n", "", 0);
        check("-b", "a b\n", "ab\n", "1c1\n< a b\n---\n> ab\n", 1);
        check("-b", "a  b \n", "a b\n", "", 0);
        check("-wi", "a  B\n", " ab\n", "", 0);
        check(
            "-u --label x",
            "1\n",
            "2\n",
            "--- x\n+++ b\n@@ -1 +1 @@\n-1\n+2\n",
            1,
        );
        check(
            "-U1 -L x -L y",
            "1\n2\n3\n",
            "1\n2\n",
            "--- x\n+++ y\n@@ -2,2 +2 @@\n 2\n-3\n",
            1,
        );
    }

    #[test]
    fn bytes_count() {
        let call = parse(&["-q", "a", "b"].map(str::to_owned)).expect("a call");
        assert_eq!(compare(&call, b"\xe8\n", b"\xe9\n").1, 1);
        check("", "a\rb\n", "a\rc\n", "1c1\n< a\rb\n---\n> a\rc\n", 1);
    }

    #[test]
    fn what_is_refused() {
        let check = |args: &[&str], expected: &str| {
            let args: Vec<_> = args.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(parse(&args), Err(expected.to_owned()));
        };
        check(&[], "missing operand");
        check(&["a"], "missing operand after 'a'");
        check(&["a", "b", "c"], "extra operand 'c'");
        check(&["-y", "a", "b"], "invalid option -- 'y'");
        check(&["-U", "x", "a", "b"], "invalid context length 'x'");
        check(
            &["--side-by-side", "a", "b"],
            "unrecognized option '--side-by-side'",
        );
    }
}
