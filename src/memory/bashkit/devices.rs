//! `/dev/zero` and `/dev/urandom`.
//!
//! bashkit reads a file whole: of one without end, the length must be known before. It
//! is as long as the longest `head -c`, or as long as it may be where that number is
//! known only later.
//!
//! Seen in bashkit 0.20.2; no test: bashkit streams its devices itself, and ours are
//! files of the tree.

use bashkit::parser::SimpleCommand;

use super::number;
use super::words::literal;

/// Bytes that a read of an endless device gives at most.
const MAX_DEVICE_BYTES: usize = 64 << 20;

/// How long an endless device must be for `call`, which may be a `head` or run one.
pub(super) fn needed_bytes(call: &SimpleCommand) -> usize {
    let words = std::iter::once(&call.name).chain(&call.args).map(literal);
    let mut words = words.skip_while(|word| word.as_deref() != Some("head"));
    let mut most = 0;
    while let Some(word) = words.next() {
        let Some(word) = word else { continue };
        let attached = word
            .strip_prefix("--bytes")
            .map(|rest| rest.trim_start_matches('='))
            .or_else(|| word.strip_prefix("-c"));
        let count = match attached {
            Some("") => words.next().flatten(),
            Some(count) => Some(count.to_owned()),
            // Behind other letters: `-qc 5`.
            None if word.starts_with('-') && word.ends_with('c') => words.next().flatten(),
            None => continue,
        };
        let bytes = count.and_then(|count| number::size(&count));
        most = most.max(bytes.unwrap_or(MAX_DEVICE_BYTES).min(MAX_DEVICE_BYTES));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::MAX_DEVICE_BYTES;
    use crate::memory::bashkit::script::read;

    #[test]
    fn devices_are_as_long_as_they_are_read() {
        for (script, expected) in [
            ("head -c 100000 /dev/zero", 100_000),
            ("head -c1M /dev/urandom | wc -c; head -qc 5 x", 1 << 20),
            ("timeout 5 head --bytes=7 < /dev/zero", 7),
            ("x=$(head -c $n /dev/zero)", MAX_DEVICE_BYTES),
            ("head -c 1G /dev/zero", MAX_DEVICE_BYTES),
            ("bash <<'E'\nhead -c 9 /dev/zero\nE", 9),
            ("head -3 /dev/zero; bash -c x", 0),
            ("head -c 100 file", 0),
        ] {
            assert_eq!(read(script).device_bytes, expected, "{script}");
        }
    }
}
