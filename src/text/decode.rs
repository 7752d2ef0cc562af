//! Bytes to text: telling text from binary, and decoding streamed UTF-8.

use std::fmt;

/// Bytes looked at for a NUL; the same window as git's.
const BINARY_WINDOW: usize = 8 * 1024;

/// Why bytes are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotText {
    /// A NUL byte in the first 8 KiB.
    Binary,
    /// Not UTF-8, and another control character there.
    Control,
    /// A byte-order mark of UTF-16, but other bytes.
    Utf16,
    /// Invalid UTF-8 at this byte offset.
    InvalidUtf8(usize),
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary => f.write_str("binary file (it contains NUL bytes)"),
            Self::Control => f.write_str("binary file (it contains control characters)"),
            Self::Utf16 => f.write_str("not valid UTF-16, although it begins with its mark"),
            Self::InvalidUtf8(offset) => {
                write!(f, "not valid UTF-8 (first bad byte at offset {offset})")
            }
        }
    }
}

/// `bytes` as text, or why they are none.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<&str, NotText> {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err(NotText::Utf16);
    }
    if has_nul(bytes) {
        return Err(NotText::Binary);
    }
    std::str::from_utf8(bytes).map_err(|error| NotText::InvalidUtf8(error.valid_up_to()))
}

/// Whether there is a NUL byte in the first 8 KiB: what search calls binary.
pub(crate) fn has_nul(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_WINDOW)].contains(&0)
}

/// Whether there is a control character in the first 8 KiB that no text has.
pub(super) fn has_control(bytes: &[u8]) -> bool {
    let no_text = |byte: &u8| matches!(byte, 0..=7 | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F);
    bytes.iter().take(BINARY_WINDOW).any(no_text)
}

/// Decodes chunks that may end inside a character. Invalid bytes become U+FFFD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8Decoder {
    carry: Vec<u8>,
}

impl Utf8Decoder {
    /// The text that `chunk` completes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> String {
        if self.carry.is_empty() {
            return self.decode(chunk);
        }
        let mut bytes = std::mem::take(&mut self.carry);
        bytes.extend_from_slice(chunk);
        self.decode(&bytes)
    }

    /// What is left at the end of the stream.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.carry)).into_owned()
    }

    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_unfinished(invalid) {
                self.carry = invalid.to_vec();
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }
}

fn is_unfinished(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<&str, NotText>) {
        assert_eq!(decode_text(bytes), expected);
    }

    #[test]
    fn text_and_binary() {
        check(b"", Ok(""));
        check("grün".as_bytes(), Ok("grün"));
        check(b"a\0b", Err(NotText::Binary));
        check(b"\xFF\xFEa\0", Err(NotText::Utf16));
        check(b"ab\xFFc", Err(NotText::InvalidUtf8(2)));
    }

    #[test]
    fn a_nul_counts_in_the_first_8_kib_only() {
        let mut bytes = vec![b'a'; BINARY_WINDOW];
        bytes.push(0);
        assert!(decode_text(&bytes).is_ok());
        bytes[BINARY_WINDOW - 1] = 0;
        check(&bytes, Err(NotText::Binary));
    }

    #[test]
    fn streamed_text_survives_any_cut() {
        let bytes = b"a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xFFz\xE2\x82";
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut decoder = Utf8Decoder::default();
                let mut text = decoder.push(&bytes[..first]);
                text += &decoder.push(&bytes[first..second]);
                text += &decoder.push(&bytes[second..]);
                text += &decoder.finish();
                assert_eq!(text, "aä€😀\u{FFFD}z\u{FFFD}", "{first} {second}");
            }
        }
    }
}
