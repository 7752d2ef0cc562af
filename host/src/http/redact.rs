//! Keys that a server sends back, such as an error that quotes the one it
//! refuses, are replaced before anyone sees them. The host alone knows them.
//!
//! A key is found as it is and as JSON may write it: with a backslash before
//! some of its letters (`\/`), or with `\u002f` in their place. In a text within
//! a text the backslashes are several.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::effect::OutcomeKind;
use memchr::memchr2_iter;

use super::sink::OutcomeSink;

/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";

/// Shortest key that is looked for: names that servers without keys want in the
/// place of one (`ollama`, `lm-studio`, `not-needed`) are words that an answer may
/// hold.
const SHORTEST: usize = 12;
/// The same for one that holds a digit, as those words do not.
const SHORTEST_WITH_DIGIT: usize = 8;

/// Backslashes in a row that are looked over.
const MOST_BACKSLASHES: usize = 8;

/// The keys to look for.
pub(super) type Keys = Arc<[Box<[u8]>]>;

/// Those of `keys` that can be told from other text.
pub(super) fn searched<'a>(keys: impl Iterator<Item = &'a str>) -> Keys {
    keys.filter(|key| is_searched(key))
        .map(|key| key.as_bytes().into())
        .collect()
}

fn is_searched(key: &str) -> bool {
    let shortest = match key.bytes().any(|byte| byte.is_ascii_digit()) {
        true => SHORTEST_WITH_DIGIT,
        false => SHORTEST,
    };
    key.len() >= shortest
}

/// Passes the outcomes of one exchange on, without keys.
pub(super) struct Redacting<'a> {
    sink: &'a mut dyn OutcomeSink,
    keys: Keys,
    /// End of the last chunk that may be the beginning of a key.
    held: Vec<u8>,
}

impl<'a> Redacting<'a> {
    pub(super) fn new(sink: &'a mut dyn OutcomeSink, keys: Keys) -> Self {
        Self {
            sink,
            keys,
            held: Vec::new(),
        }
    }

    /// What may be passed on of the body once `chunk` has arrived.
    fn chunk(&mut self, chunk: Bytes) -> Bytes {
        let chunk = match self.held.is_empty() {
            true => chunk,
            false => {
                let mut joined = std::mem::take(&mut self.held);
                joined.extend_from_slice(&chunk);
                joined.into()
            }
        };
        let mut chunk = replace(&self.keys, chunk);
        let begun = self.keys.iter().filter_map(|key| begun(key, &chunk));
        let end = begun.min().unwrap_or(chunk.len());
        self.held = chunk.split_off(end).to_vec();
        chunk
    }
}

#[async_trait]
impl OutcomeSink for Redacting<'_> {
    async fn put(&mut self, outcome: OutcomeKind) {
        let outcome = match outcome {
            OutcomeKind::HttpChunk(chunk) => {
                let chunk = self.chunk(chunk);
                if chunk.is_empty() {
                    return;
                }
                OutcomeKind::HttpChunk(chunk)
            }
            OutcomeKind::HttpHead {
                status,
                mut headers,
            } => {
                for (_, value) in &mut headers {
                    let without = replace(&self.keys, Bytes::copy_from_slice(value.as_bytes()));
                    if without != value.as_bytes() {
                        *value = String::from_utf8_lossy(&without).into_owned();
                    }
                }
                OutcomeKind::HttpHead { status, headers }
            }
            last => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    self.sink.put(OutcomeKind::HttpChunk(held.into())).await;
                }
                last
            }
        };
        self.sink.put(outcome).await;
    }
}

/// `bytes` without keys; the same bytes if they hold none.
fn replace(keys: &[Box<[u8]>], mut bytes: Bytes) -> Bytes {
    for key in keys {
        let mut without = Vec::new();
        let mut end = 0;
        for start in memchr2_iter(key[0], b'\\', &bytes) {
            if start < end {
                continue;
            }
            if let Begins::Whole(length) = begins(&bytes[start..], key) {
                without.extend_from_slice(&bytes[end..start]);
                without.extend_from_slice(REDACTED.as_bytes());
                end = start + length;
            }
        }
        if end > 0 {
            without.extend_from_slice(&bytes[end..]);
            bytes = without.into();
        }
    }
    bytes
}

/// Where at the end of `bytes` something begins that may become `key`.
fn begun(key: &[u8], bytes: &[u8]) -> Option<usize> {
    let longest = key.len() * (MOST_BACKSLASHES + "u002f".len());
    let from = bytes.len().saturating_sub(longest);
    let mut starts = memchr2_iter(key[0], b'\\', &bytes[from..]).map(|start| from + start);
    starts.find(|start| matches!(begins(&bytes[*start..], key), Begins::Cut))
}

/// How some bytes begin with what is looked for.
enum Begins {
    /// With all of it, which takes this many bytes.
    Whole(usize),
    /// They end too early to say.
    Cut,
    Not,
}

fn begins(bytes: &[u8], key: &[u8]) -> Begins {
    let mut at = 0;
    for letter in key {
        match begins_with_letter(&bytes[at..], *letter) {
            Begins::Whole(length) => at += length,
            other => return other,
        }
    }
    Begins::Whole(at)
}

fn begins_with_letter(bytes: &[u8], letter: u8) -> Begins {
    let bounded = &bytes[..bytes.len().min(MOST_BACKSLASHES + 1)];
    let backslashes = bounded.iter().take_while(|byte| **byte == b'\\').count();
    match &bytes[backslashes..] {
        _ if backslashes > MOST_BACKSLASHES => Begins::Not,
        [] => Begins::Cut,
        _ if letter == b'\\' && backslashes > 0 => Begins::Whole(backslashes),
        [b'u', digits @ ..] if backslashes > 0 => {
            let expected = format!("{letter:04x}");
            let given = &digits[..digits.len().min(expected.len())];
            match expected.as_bytes()[..given.len()].eq_ignore_ascii_case(given) {
                true if given.len() == expected.len() => Begins::Whole(backslashes + 5),
                true => Begins::Cut,
                false => Begins::Not,
            }
        }
        [first, ..] if *first == letter => Begins::Whole(backslashes + 1),
        _ => Begins::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 6] = [
        "sk-canary-0123456789",
        "sk-other-9876543210",
        "abcd/EFGH+ijkl==",
        "short",
        "sk-1abcd",
        "sk-12ab",
    ];

    /// Sends `chunks` and compares what arrives, chunk by chunk.
    #[track_caller]
    fn check(chunks: &[&str], expected: &[&str]) {
        let mut arrived = Vec::new();
        let mut sink = |outcome: OutcomeKind| arrived.push(outcome);
        let mut redacting = Redacting::new(&mut sink, searched(KEYS.into_iter()));
        let send = async {
            for chunk in chunks {
                let chunk = Bytes::copy_from_slice(chunk.as_bytes());
                redacting.put(OutcomeKind::HttpChunk(chunk)).await;
            }
            redacting.put(OutcomeKind::HttpEnd).await;
        };
        futures_util::FutureExt::now_or_never(send).expect("a sink that does not wait");
        let mut expected: Vec<_> = expected
            .iter()
            .map(|chunk| OutcomeKind::HttpChunk(Bytes::copy_from_slice(chunk.as_bytes())))
            .collect();
        expected.push(OutcomeKind::HttpEnd);
        assert_eq!(arrived, expected);
    }

    #[test]
    fn a_key_in_one_chunk() {
        check(
            &["no sk-canary-0123456789sk-canary-0123456789, sk-other-9876543210.\n"],
            &["no [redacted][redacted], [redacted].\n"],
        );
    }

    #[test]
    fn a_key_across_chunks() {
        check(
            &["no sk-can", "ary-01234", "56789 on", " file"],
            &["no ", "[redacted] on", " file"],
        );
        let bytes: Vec<String> = "x sk-canary-0123456789 y"
            .chars()
            .map(String::from)
            .collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        check(&bytes, &["x", " ", "[redacted]", " ", "y"]);
    }

    #[test]
    fn the_beginning_of_a_key_is_no_key() {
        check(&["sk-", "sk-canary-", "x"], &["sk-", "sk-canary-x"]);
        check(&["ends with sk-canary"], &["ends with ", "sk-canary"]);
    }

    #[test]
    fn a_key_as_json_writes_it() {
        for written in [
            r"abcd\/EFGH+ijkl==",
            r"abcd\\/EFGH+ijkl==",
            r"abcd\u002fEFGH\u002Bijkl\u003d\u003D",
            r"\u0061bcd/EFGH+ijkl=\\\u003d",
        ] {
            check(&[&format!("<{written}>")], &["<[redacted]>"]);
            for cut in 1..written.len() {
                let (first, second) = written.split_at(cut);
                check(
                    &[&format!("<{first}"), &format!("{second}>")],
                    &["<", "[redacted]>"],
                );
            }
        }
    }

    #[test]
    fn backslashes_are_no_key() {
        let many = r"\".repeat(100);
        check(&[&many, "a"], &[&many[..92], &format!("{}a", &many[92..])]);
        check(&[r"abcd\u00", "30"], &[r"abcd\u0030"]);
        check(&[r"abcd\", "n"], &[r"abcd\n"]);
    }

    #[test]
    fn short_ones_are_words_unless_they_hold_a_digit() {
        check(&["a sk-1abcd word"], &["a [redacted] word"]);
        check(&["a short word"], &["a short word"]);
    }
}
