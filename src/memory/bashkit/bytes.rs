//! Bytes that are not UTF-8 in builtins that work on text.
//!
//! bashkit's put U+FFFD in their place, with exit code 0: `sort -o f f` damages a file
//! in Latin-1, and `uniq` takes different lines for the same. Such a call gets a text in
//! which each of these bytes has a character that stands for it, from the last 128 of Unicode,
//! which nobody uses; what it prints and writes becomes bytes again.
//!
//! Seen in bashkit 0.20.2; gone when `bytes` of `tests/it/bashkit.rs` fails.

use std::borrow::Cow;

/// The character that stands for the byte 0.
const FIRST: u32 = 0x0010_FF00;
/// How all of these characters begin in UTF-8.
const START: [u8; 2] = [0xF4, 0x8F];
/// Bytes of one of them in UTF-8.
const LENGTH: usize = 4;

/// Whether `bytes` cannot be read as text without loss.
pub(super) fn are_other(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err()
}

/// The text that stands for `bytes`.
pub(super) fn to_text(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !are_other(bytes) && find(bytes).is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut text = String::with_capacity(bytes.len() * 2);
    let push = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().filter_map(|byte| character(*byte)));
    };
    for chunk in bytes.utf8_chunks() {
        let mut valid = chunk.valid();
        while let Some(at) = find(valid.as_bytes()) {
            text.push_str(&valid[..at]);
            push(&mut text, &valid.as_bytes()[at..at + LENGTH]);
            valid = &valid[at + LENGTH..];
        }
        text.push_str(valid);
        push(&mut text, chunk.invalid());
    }
    Cow::Owned(text.into_bytes())
}

/// The bytes that `text` stands for.
pub(super) fn to_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    if find(text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest) {
        bytes.extend_from_slice(&rest[..at]);
        let [_, _, high, low] = rest[at..at + LENGTH] else {
            break;
        };
        bytes.push(high << 6 | low & 0x3F);
        rest = &rest[at + LENGTH..];
    }
    bytes.extend_from_slice(rest);
    Cow::Owned(bytes)
}

/// The character that stands for `byte`, which is not ASCII.
fn character(byte: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(byte))
}

/// Where the first character that stands for a byte begins.
fn find(text: &[u8]) -> Option<usize> {
    if !text.contains(&START[0]) {
        return None;
    }
    text.windows(LENGTH)
        .position(|it| it[..2] == START && matches!(it[2], 0xBE | 0xBF) && it[3] & 0xC0 == 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], text: &str) {
        assert_eq!(to_text(bytes), text.as_bytes(), "{bytes:?}");
        assert_eq!(to_bytes(text.as_bytes()), bytes, "{bytes:?}");
    }

    #[test]
    fn bytes_become_characters_and_back() {
        check(b"", "");
        check("größer".as_bytes(), "größer");
        check(b"gr\xF6\xDFer\n", "gr\u{10FFF6}\u{10FFDF}er\n");
        check(b"\x80\xFF", "\u{10FF80}\u{10FFFF}");
        // The start of a character that is cut off.
        check(b"a\xE2\x82", "a\u{10FFE2}\u{10FF82}");
        // One of the characters themselves, as it stands in a file.
        check(
            "a\u{10FF80}b".as_bytes(),
            "a\u{10FFF4}\u{10FF8F}\u{10FFBE}\u{10FF80}b",
        );
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(to_bytes(&to_text(&all)), all);
    }

    #[test]
    fn order_is_kept() {
        let mut texts: Vec<_> = (0..=255)
            .map(|byte| to_text(&[byte]).into_owned())
            .collect();
        texts.sort();
        let bytes: Vec<_> = texts
            .iter()
            .flat_map(|it| to_bytes(it).into_owned())
            .collect();
        assert!(bytes.is_sorted());
    }

    #[test]
    fn what_is_no_such_character_stays() {
        for text in [
            &b"\xF4"[..],
            b"\xF4\x8F",
            b"\xF4\x8F\xBD\xBF",
            b"\xF4\x8F\xBE",
            b"\xF4\x8F\xBE(",
        ] {
            assert_eq!(to_bytes(text), text);
        }
        assert_eq!(to_bytes("\u{10FEFF}".as_bytes()), "\u{10FEFF}".as_bytes());
    }
}
