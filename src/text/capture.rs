//! Bounded capture of output: everything up to a limit, beyond it head and
//! tail. The spec wants the full output in an event; memory must stay bounded.

use std::collections::VecDeque;

/// Takes chunks of bytes and keeps at most a fixed number of them.
#[derive(Clone, Debug)]
pub struct CapturedOutput {
    max_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// What [`CapturedOutput`] kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The output; invalid UTF-8 becomes U+FFFD. Incomplete output has a mark
    /// where the middle is missing.
    pub text: String,
    /// Bytes of the whole output.
    pub output_bytes: u64,
    /// Whether `text` is all of it.
    pub output_complete: bool,
}

impl CapturedOutput {
    /// Keeps up to `max_bytes` bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Adds a chunk, cut anywhere.
    pub fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let room = self.head_room().saturating_sub(self.head.len());
        let (first, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(first);
        let tail_room = self.max_bytes - self.head_room();
        let rest = &rest[rest.len().saturating_sub(tail_room)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(tail_room);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Bytes kept so far.
    pub fn kept(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Lowers the limit, dropping more of the middle if need be.
    pub fn lower_limit(&mut self, max_bytes: usize) {
        if max_bytes >= self.max_bytes {
            return;
        }
        self.max_bytes = max_bytes;
        let head_room = self.head_room();
        if self.head.len() > head_room {
            let moved = self.head.split_off(head_room);
            for byte in moved.into_iter().rev() {
                self.tail.push_front(byte);
            }
        }
        let excess = self.tail.len().saturating_sub(max_bytes - head_room);
        self.tail.drain(..excess);
    }

    /// The text of what was kept.
    pub fn finish(self) -> Captured {
        let output_complete = self.kept() as u64 == self.total;
        let mut bytes = self.head;
        if output_complete {
            bytes.extend(self.tail);
            return Captured {
                text: lossy(bytes),
                output_bytes: self.total,
                output_complete,
            };
        }
        bytes.truncate(bytes.len() - incomplete_suffix(&bytes));
        let mut tail = Vec::from(self.tail);
        let skip = tail.iter().take(3).take_while(|b| is_continuation(**b));
        let skip = skip.count();
        tail.drain(..skip);
        let missing = self.total - (bytes.len() + tail.len()) as u64;
        Captured {
            text: format!(
                "{}\n\n[... {missing} bytes of output were not kept ...]\n\n{}",
                lossy(bytes),
                lossy(tail)
            ),
            output_bytes: self.total,
            output_complete,
        }
    }

    fn head_room(&self) -> usize {
        self.max_bytes / 2
    }
}

/// Bytes at the end of `bytes` that begin a character without ending it.
fn incomplete_suffix(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let needed = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ if is_continuation(byte) => continue,
            _ => return 0,
        };
        return if needed > back { back } else { 0 };
    }
    0
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(max: usize, chunks: &[&[u8]]) -> Captured {
        let mut output = CapturedOutput::new(max);
        for chunk in chunks {
            output.push(chunk);
        }
        output.finish()
    }

    fn check(max: usize, chunks: &[&[u8]], text: &str, complete: bool) {
        let expected = Captured {
            text: text.to_owned(),
            output_bytes: chunks.iter().map(|chunk| chunk.len() as u64).sum(),
            output_complete: complete,
        };
        assert_eq!(captured(max, chunks), expected);
        let joined = chunks.concat();
        let bytes: Vec<&[u8]> = joined.chunks(1).collect();
        assert_eq!(captured(max, &bytes), expected, "byte by byte");
        assert_eq!(captured(max, &[&joined]), expected, "at once");
    }

    #[test]
    fn keeps_all_up_to_the_limit() {
        check(0, &[], "", true);
        check(4, &[b"ab", b"cd"], "abcd", true);
    }

    #[test]
    fn keeps_head_and_tail_beyond_it() {
        check(
            4,
            &[b"abc", b"defgh"],
            "ab\n\n[... 4 bytes of output were not kept ...]\n\ngh",
            false,
        );
    }

    #[test]
    fn limits_zero_and_one() {
        check(
            0,
            &[b"abc"],
            "\n\n[... 3 bytes of output were not kept ...]\n\n",
            false,
        );
        check(
            1,
            &[b"abc"],
            "\n\n[... 2 bytes of output were not kept ...]\n\nc",
            false,
        );
    }

    #[test]
    fn never_splits_a_character() {
        // Two bytes each: the limits fall into the middle of one.
        check(
            6,
            &["äöüÄÖÜ".as_bytes()],
            "ä\n\n[... 8 bytes of output were not kept ...]\n\nÜ",
            false,
        );
        check(6, &["äöü".as_bytes()], "äöü", true);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        check(9, &[b"a\xFFb", b"\xC3"], "a\u{FFFD}b\u{FFFD}", true);
    }

    #[test]
    fn lowering_the_limit_drops_the_middle() {
        let mut output = CapturedOutput::new(100);
        output.push(b"abcdefgh");
        output.lower_limit(4);
        output.push(b"i");
        assert_eq!(
            output.finish(),
            Captured {
                text: "ab\n\n[... 5 bytes of output were not kept ...]\n\nhi".to_owned(),
                output_bytes: 9,
                output_complete: false,
            }
        );
    }
}
