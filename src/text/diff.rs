//! Unified diffs, for people and models to read.

use std::fmt::Write as _;
use std::ops::Range;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{ChangeTag, DiffOp};

/// Hunks that turn `old` into `new`, with `context` lines around each change;
/// empty when they are equal. There are no file headers.
pub fn unified_diff(old: &str, new: &str, context: usize) -> String {
    unified_diff_from(old, new, context, 1)
}

/// The same for pieces of files that both begin at line `first_line`.
pub(crate) fn unified_diff_from(old: &str, new: &str, context: usize, first_line: usize) -> String {
    let (old, new) = (lines(old), lines(new));
    let groups = changed_groups(&old, &new, context);
    unified_groups(&old, &new, &groups, first_line)
}

/// The lines of `text` with their ends, as git and GNU's `diff` count them.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// What turns `old` into `new`, in groups with `context` lines around each change.
pub(crate) fn changed_groups<T: AsRef<str>>(
    old: &[T],
    new: &[T],
    context: usize,
) -> Vec<Vec<DiffOp>> {
    let old: Vec<&str> = old.iter().map(AsRef::as_ref).collect();
    let new: Vec<&str> = new.iter().map(AsRef::as_ref).collect();
    // Myers by name: what chooses among algorithms brings all six into the core.
    let mut changes = Compact::new(Replace::new(Capture::new()), &old[..], &new[..]);
    let Ok(()) = myers::diff(&mut changes, &old[..], 0..old.len(), &new[..], 0..new.len());
    changes.into_inner().into_inner().into_grouped_ops(context)
}

/// The hunks of `groups`; of lines that are equal in both, those of `old` are shown.
pub(crate) fn unified_groups(
    old: &[&str],
    new: &[&str],
    groups: &[Vec<DiffOp>],
    first_line: usize,
) -> String {
    let mut text = String::new();
    for group in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let range =
            |first: Range<usize>, last: Range<usize>| span(first.start..last.end, first_line);
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            range(first.old_range(), last.old_range()),
            range(first.new_range(), last.new_range()),
        );
        for (tag, lines) in group.iter().flat_map(|op| op.iter_slices(old, new)) {
            let mark = match tag {
                ChangeTag::Equal => " ",
                ChangeTag::Delete => "-",
                ChangeTag::Insert => "+",
            };
            for line in lines {
                push_line(&mut text, mark, line);
            }
        }
    }
    text
}

/// Adds `line` behind `mark`, and says where it has no end.
pub(crate) fn push_line(text: &mut String, mark: &str, line: &str) {
    text.push_str(mark);
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// Lines as in a hunk header: start and count, the count left out when it is 1.
fn span(lines: Range<usize>, first_line: usize) -> String {
    let start = lines.start + first_line;
    match lines.len() {
        0 => format!("{},0", start - 1),
        1 => start.to_string(),
        count => format!("{start},{count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(unified_diff(old, new, 1), expected);
    }

    #[test]
    fn hunks() {
        check("a\n", "a\n", "");
        check(
            "a\nb\nc\nd\n",
            "a\nB\nc\nd\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        );
        check("", "x\n", "@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn pieces_of_files() {
        assert_eq!(
            unified_diff_from("a\nb\n", "a\n", 1, 7),
            "@@ -7,2 +7 @@\n a\n-b\n"
        );
    }

    #[test]
    fn missing_final_newline() {
        check(
            "a\nb",
            "a\nc",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
        );
    }
}
