//! Keys that a server sends back, such as an error that quotes the one it
//! refuses, are replaced before anyone sees them. The host alone knows them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::effect::OutcomeKind;
use memchr::memmem::Finder;

use super::OutcomeSink;

/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";

/// Shortest key that is looked for: names that servers without keys want in the
/// place of one (`ollama`, `lm-studio`) are words that an answer may hold.
const SHORTEST: usize = 12;

/// The keys to look for.
pub(super) type Keys = Arc<[Finder<'static>]>;

/// Those of `keys` that can be told from other text.
pub(super) fn searched<'a>(keys: impl Iterator<Item = &'a str>) -> Keys {
    keys.filter(|key| key.len() >= SHORTEST)
        .map(|key| Finder::new(key).into_owned())
        .collect()
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
        let held = self.keys.iter().map(|key| begun(key.needle(), &chunk));
        let held = held.max().unwrap_or_default();
        self.held = chunk.split_off(chunk.len() - held).to_vec();
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
                    for key in &*self.keys {
                        if let Ok(key) = std::str::from_utf8(key.needle())
                            && value.contains(key)
                        {
                            *value = value.replace(key, REDACTED);
                        }
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
fn replace(keys: &[Finder<'static>], mut bytes: Bytes) -> Bytes {
    for key in keys {
        let mut found = key.find_iter(&bytes).peekable();
        if found.peek().is_none() {
            continue;
        }
        let mut without = Vec::with_capacity(bytes.len());
        let mut end = 0;
        for start in found {
            without.extend_from_slice(&bytes[end..start]);
            without.extend_from_slice(REDACTED.as_bytes());
            end = start + key.needle().len();
        }
        without.extend_from_slice(&bytes[end..]);
        bytes = without.into();
    }
    bytes
}

/// Length of the longest end of `bytes` that `key` begins with.
fn begun(key: &[u8], bytes: &[u8]) -> usize {
    let longest = bytes.len().min(key.len() - 1);
    let lengths = (1..=longest).rev();
    lengths
        .into_iter()
        .find(|length| key.starts_with(&bytes[bytes.len() - length..]))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 3] = ["sk-canary-0123456789", "sk-other-9876543210", "short"];

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
        let bytes: Vec<String> = "a sk-canary-0123456789 b"
            .chars()
            .map(String::from)
            .collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        check(&bytes, &["a", " ", "[redacted]", " ", "b"]);
    }

    #[test]
    fn the_beginning_of_a_key_is_no_key() {
        check(&["sk-", "sk-canary-", "x"], &["sk-", "sk-canary-x"]);
        check(&["ends with sk-canary"], &["ends with ", "sk-canary"]);
    }

    #[test]
    fn short_ones_are_words() {
        check(&["a short word"], &["a short word"]);
    }
}
