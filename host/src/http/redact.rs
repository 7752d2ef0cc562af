//! Keys that a server sends back, such as an error that quotes the one it
//! refuses, are replaced before anyone sees them. The host alone knows them.

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::effect::OutcomeKind;

use super::sink::OutcomeSink;
use crate::keys::Keys;

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
        let mut chunk = self.keys.replace(chunk);
        let end = self.keys.begun(&chunk).unwrap_or(chunk.len());
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
                    let without = self.keys.replace(Bytes::copy_from_slice(value.as_bytes()));
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
        let mut redacting = Redacting::new(&mut sink, Keys::new(KEYS.into_iter()));
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
            r"abcd/EFGH+ijkl\u003d\u003d",
            r"abcd/EFGH\u002Bijkl==",
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
    fn short_ones_are_words_unless_they_hold_a_digit() {
        check(&["a sk-1abcd word"], &["a [redacted] word"]);
        check(&["a short word"], &["a short word"]);
    }
}
