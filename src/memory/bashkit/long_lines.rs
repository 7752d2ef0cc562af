//! `grep` over a file with a very long line is refused.
//!
//! bashkit collects a line in pieces of 4 KiB and looks for its end from its beginning
//! each time, in a loop that nothing counts: a line of 8 MB keeps the core busy for four
//! seconds, whatever the time limit, one of 2 MB for a quarter of one.
//!
//! Seen in bashkit 0.20.2; `long lines 1` and `long lines 2` in
//! `tests/sandbox/commands.json` without this file.

use bashkit::{Error, Result};

/// Longest line that `grep` looks at, in bytes.
const LONGEST: usize = 2 << 20;

/// Refuses what `grep` would take too long for.
///
/// # Errors
/// `content` has a line that is too long.
pub(super) fn refuse(content: &[u8]) -> Result<()> {
    let mut begin = 0;
    let ends = memchr::memchr_iter(b'\n', content).chain([content.len()]);
    for end in ends {
        if end - begin > LONGEST {
            let why = "a line of more than 2 MiB is too long for grep here; rg searches it";
            return Err(Error::Io(std::io::Error::other(why)));
        }
        begin = end + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let line = vec![b'a'; LONGEST];
        let check = |content: &[u8], is_refused| assert_eq!(refuse(content).is_err(), is_refused);
        check(b"", false);
        check(&line, false);
        check(&[&line[..], b"\n", &line, b"\n"].concat(), false);
        check(&[&line[..], b"\nb", &line].concat(), true);
        check(&[b"a", &line[..], b"\n"].concat(), true);
    }
}
