//! Files whose text is not UTF-8: decoded for the model, and encoded again so
//! that every byte outside of an edit stays what it was.
//!
//! UTF-16 is known by its byte-order mark. Everything else that is no UTF-8 is
//! shown as Windows-1252, in which every byte is a character (the WHATWG's
//! table, so Latin-1 is in it); in a file that is UTF-8 but for some stray
//! bytes, those alone become private characters.

use std::borrow::Cow;
use std::fmt;

use super::decode::{NotText, has_control, has_nul};

/// The characters of the bytes 0x80 to 0x9F; those of the others have the
/// number of the byte.
const WINDOWS_1252: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2C6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

/// A stray byte `b`, 0x80 or more, is shown as the private character 0xF700 + `b`.
const STRAY: u32 = 0xF700;

/// How characters are bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16 with a byte-order mark, the low byte first.
    Utf16Le,
    /// UTF-16 with a byte-order mark, the high byte first.
    Utf16Be,
    /// One byte a character.
    Windows1252,
    /// UTF-8 with so many bytes that belong to no character.
    StrayBytes(usize),
}

/// A character that an encoding does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotEncodable(Encoding, char);

impl fmt::Display for NotEncodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its encoding is {}, which has no {:?}; leave that character out, or convert the file \
             to UTF-8 first",
            self.0, self.1
        )
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 | Self::StrayBytes(_) => "UTF-8",
            Self::Utf16Le | Self::Utf16Be => "UTF-16",
            Self::Windows1252 => "Windows-1252",
        })
    }
}

/// The text of a file, or why it is none. [`Encoding::encode`] gives back the
/// same bytes.
pub(crate) fn decode_file(bytes: &[u8]) -> Result<(Cow<'_, str>, Encoding), NotText> {
    if let Some((text, encoding)) = utf16(bytes)? {
        return Ok((Cow::Owned(text), encoding));
    }
    if has_nul(bytes) {
        return Err(NotText::Binary);
    }
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok((Cow::Borrowed(text), Encoding::Utf8)),
        Err(error) => error,
    };
    if has_control(bytes) {
        return Err(NotText::Control);
    }
    let (mut characters, mut stray, mut private) = (0, 0, false);
    for chunk in bytes.utf8_chunks() {
        characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        stray += chunk.invalid().len();
        private |= chunk.valid().chars().any(|c| stray_byte(c).is_some());
    }
    if characters <= stray {
        let text = bytes.iter().map(|byte| match byte {
            0x80..0xA0 => WINDOWS_1252[usize::from(byte - 0x80)],
            byte => char::from(*byte),
        });
        return Ok((Cow::Owned(text.collect()), Encoding::Windows1252));
    }
    if private {
        return Err(NotText::InvalidUtf8(error.valid_up_to()));
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let shown = chunk.invalid().iter();
        text.extend(shown.filter_map(|byte| char::from_u32(STRAY + u32::from(*byte))));
    }
    Ok((Cow::Owned(text), Encoding::StrayBytes(stray)))
}

/// Text of UTF-16, if the bytes begin with its mark.
fn utf16(bytes: &[u8]) -> Result<Option<(String, Encoding)>, NotText> {
    let (encoding, unit): (_, fn([u8; 2]) -> u16) = match bytes {
        [0xFF, 0xFE, ..] => (Encoding::Utf16Le, u16::from_le_bytes),
        [0xFE, 0xFF, ..] => (Encoding::Utf16Be, u16::from_be_bytes),
        _ => return Ok(None),
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    match text {
        Ok(text) if rest.is_empty() && !text.contains('\0') => Ok(Some((text, encoding))),
        _ => Err(NotText::Utf16),
    }
}

fn stray_byte(c: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(c).checked_sub(STRAY)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

impl Encoding {
    /// `text` as bytes of this encoding.
    pub(crate) fn encode(self, text: String) -> Result<Vec<u8>, NotEncodable> {
        match self {
            Self::Utf8 => Ok(text.into_bytes()),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Windows1252 => text
                .chars()
                .map(|c| windows_1252(c).ok_or(NotEncodable(self, c)))
                .collect(),
            Self::StrayBytes(_) => {
                let mut bytes = Vec::with_capacity(text.len());
                for c in text.chars() {
                    match stray_byte(c) {
                        Some(byte) => bytes.push(byte),
                        None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                Ok(bytes)
            }
        }
    }

    /// What a reader must know of it, in brackets; nothing of UTF-8.
    pub(crate) fn note(self) -> Option<String> {
        let note = match self {
            Self::Utf8 => return None,
            Self::Utf16Le => "the file is UTF-16 (little-endian); edits keep that".to_owned(),
            Self::Utf16Be => "the file is UTF-16 (big-endian); edits keep that".to_owned(),
            Self::Windows1252 => "the file is not UTF-8; its bytes are shown as Windows-1252, and \
                                  edits keep them"
                .to_owned(),
            Self::StrayBytes(count) => format!(
                "bytes of the file that are not UTF-8: {count}; they are shown as characters from \
                 U+F780 to U+F7FF, and edits keep them"
            ),
        };
        Some(format!("[{note}]"))
    }
}

fn windows_1252(c: char) -> Option<u8> {
    match u8::try_from(u32::from(c)) {
        Ok(byte) if !(0x80..0xA0).contains(&byte) => Some(byte),
        _ => {
            let index = WINDOWS_1252.iter().position(|known| *known == c)?;
            u8::try_from(0x80 + index).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding::{StrayBytes, Utf8, Utf16Be, Utf16Le, Windows1252};
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], text: &str, encoding: Encoding) {
        let (found, of) = decode_file(bytes).expect("text");
        assert_eq!((&*found, of), (text, encoding));
        assert_eq!(of.encode(found.into_owned()).as_deref(), Ok(bytes));
    }

    #[test]
    fn every_encoding_comes_back() {
        check(b"", "", Utf8);
        check("grün".as_bytes(), "grün", Utf8);
        check(b"gr\xFCn \x80 \x93x\x94\n", "grün € “x”\n", Windows1252);
        check(b"\xFF", "ÿ", Windows1252);
        check(b"\xFF\xFEa\0\xFC\0", "\u{FEFF}aü", Utf16Le);
        check(b"\xFE\xFF\0a\xD8\x3D\xDE\0", "\u{FEFF}a😀", Utf16Be);
        // More stray bytes than characters: another encoding.
        check(b"\xC3\xBC \xE9", "Ã¼ é", Windows1252);
        check(
            b"\xC3\xBC\xC3\xB6\xC3\xA4 \xFF\xE2",
            "üöä \u{F7FF}\u{F7E2}",
            StrayBytes(2),
        );
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0x20..0x7F).chain(0x80..=0xFF).collect();
        let (text, encoding) = decode_file(&all).expect("text");
        assert_eq!(encoding, Windows1252);
        assert_eq!(encoding.encode(text.into_owned()), Ok(all));
    }

    #[test]
    fn what_is_no_text() {
        let check = |bytes: &[u8], expected| assert_eq!(decode_file(bytes), Err(expected));
        check(b"a\0b", NotText::Binary);
        check(b"\x89PNG\r\n\x1A\n", NotText::Control);
        check(b"\xFF\xFEa", NotText::Utf16);
        check(b"\xFF\xFE\0\xD8", NotText::Utf16);
        check(b"\xFF\xFE\0\0a\0\0\0", NotText::Utf16);
        let ambiguous = "üü\u{F7FF}".as_bytes();
        check(&[ambiguous, b"\xFF"].concat(), NotText::InvalidUtf8(7));
    }

    #[test]
    fn a_character_that_the_encoding_lacks() {
        let error = Windows1252.encode("a→".to_owned()).expect_err("no arrow");
        assert_eq!(
            error.to_string(),
            "its encoding is Windows-1252, which has no '→'; leave that character out, or convert \
             the file to UTF-8 first"
        );
        assert!(Windows1252.encode("\u{80}".to_owned()).is_err());
    }
}
