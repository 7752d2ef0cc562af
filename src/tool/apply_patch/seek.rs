//! Finding the lines that a hunk speaks of, with the differences that models
//! introduce, from the most harmless on: exactly, but for trailing white space,
//! but for all white space around a line, but for Unicode punctuation too. A
//! laxer way is tried only where no place fits by a stricter one (as codex).

use std::fmt;

use crate::text::plain;

/// How lines may differ and count as the same, strictest first.
const LEVELS: [fn(&str, &str) -> bool; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| {
        let (a, b) = (a.trim().chars(), b.trim().chars());
        a.map(plain).eq(b.map(plain))
    },
];

/// Bytes of a line that one unit of work compares.
const UNIT_BYTES: usize = 64;

/// What a patch may spend on comparing lines. The search takes time in the
/// product of file and hunk where lines repeat; a step of the core must end.
#[derive(Debug)]
pub(super) struct Work(u64);

impl Default for Work {
    fn default() -> Self {
        Self(20_000_000)
    }
}

/// The work is used up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the patch takes too long, there are too many equal lines to look through; use \
             smaller patches, or write the whole file",
        )
    }
}

impl Work {
    /// Accounts for a look at a line of `bytes` bytes.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let left = self.0.checked_sub(1 + (bytes / UNIT_BYTES) as u64);
        self.0 = left.ok_or(Exhausted)?;
        Ok(())
    }
}

/// Index of the first place in `lines`, at `start` or later, where `wanted`
/// stands. `wanted` of no lines stands at `start`.
pub(super) fn seek(
    lines: &[&str],
    wanted: &[&str],
    start: usize,
    work: &mut Work,
) -> Result<Option<usize>, Exhausted> {
    let Some(last) = lines.len().checked_sub(wanted.len()) else {
        return Ok(None);
    };
    for same in LEVELS {
        for first in start..=last {
            if all_same(same, &lines[first..first + wanted.len()], wanted, work)? {
                return Ok(Some(first));
            }
        }
    }
    Ok(None)
}

fn all_same(
    same: fn(&str, &str) -> bool,
    lines: &[&str],
    wanted: &[&str],
    work: &mut Work,
) -> Result<bool, Exhausted> {
    for (line, wanted) in lines.iter().zip(wanted) {
        work.spend(line.len().min(wanted.len()))?;
        if !same(line, wanted) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], wanted: &[&str], start: usize, expected: Option<usize>) {
        let found = seek(lines, wanted, start, &mut Work::default());
        assert_eq!(found, Ok(expected), "{wanted:?} in {lines:?}");
    }

    #[test]
    fn the_strictest_match_wins() {
        check(&["a", "b", "a"], &["a"], 0, Some(0));
        check(&["a", "b", "a"], &["a"], 1, Some(2));
        check(&["a ", "\ta", "a"], &["a"], 0, Some(2));
        check(&["\ta", "a\t"], &["a"], 0, Some(1));
        check(&["a\u{2014}b", " a-b "], &["a-b"], 0, Some(1));
        check(&["x", "a\u{2014}b\u{A0}c"], &[" a-b c"], 0, Some(1));
        check(&["a  b"], &["a b"], 0, None);
    }

    #[test]
    fn edges() {
        check(&[], &[], 0, Some(0));
        check(&["a"], &[], 1, Some(1));
        check(&["a"], &["a"], 1, None);
        check(&["a"], &["a"], 9, None);
        check(&["a"], &["a", "b"], 0, None);
    }

    #[test]
    fn repeating_lines_cannot_take_forever() {
        let lines = vec![""; 100_000];
        let mut wanted = vec![""; 50_000];
        wanted.push("x");
        let found = seek(&lines, &wanted, 0, &mut Work::default());
        assert_eq!(found, Err(Exhausted));
    }
}
