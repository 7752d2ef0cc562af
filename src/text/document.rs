//! Documents by their bytes: PDF files and texts, fit for a model or not.
//!
//! As with images, what a provider refuses must never enter a history.

use std::fmt;

use super::{NotText, decode_text};

/// Largest PDF file: what stays below every provider's limit on a request once
/// it is base64.
pub(crate) const MAX_PDF_BYTES: usize = 16 * 1024 * 1024;

/// Largest text: some 260,000 tokens.
pub(crate) const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Where the end marker of a PDF file must stand, in bytes from its end.
const PDF_TAIL: usize = 2048;

/// Why a document must not reach a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadDocument {
    /// There are no bytes.
    Empty,
    /// Neither a PDF file nor text.
    Unknown(NotText),
    /// More than the second number of bytes.
    TooLarge(usize, usize),
    /// A PDF file that ends early.
    Damaged,
    /// A PDF file that needs a password.
    Encrypted,
}

impl fmt::Display for BadDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty document"),
            Self::Unknown(reason) => write!(f, "neither a PDF document nor UTF-8 text: {reason}"),
            Self::TooLarge(size, limit) => {
                write!(f, "document of {size} bytes, the limit is {limit} bytes")
            }
            Self::Damaged => f.write_str("damaged or incomplete PDF document"),
            Self::Encrypted => f.write_str("PDF document with a password; remove the password"),
        }
    }
}

/// Whether the first bytes are those of a PDF file.
pub(crate) fn sniff_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// Media type of a document that is fit for a model, or why it is not:
/// `application/pdf`, or `text/plain` for every text.
pub(crate) fn check_document(bytes: &[u8]) -> Result<&'static str, BadDocument> {
    if bytes.is_empty() {
        return Err(BadDocument::Empty);
    }
    if !sniff_pdf(bytes) {
        decode_text(bytes).map_err(BadDocument::Unknown)?;
        return within(bytes, MAX_TEXT_BYTES).map(|()| "text/plain");
    }
    within(bytes, MAX_PDF_BYTES)?;
    let tail = &bytes[bytes.len().saturating_sub(PDF_TAIL)..];
    if !has(tail, b"%%EOF") {
        return Err(BadDocument::Damaged);
    }
    if is_encrypted(bytes) {
        return Err(BadDocument::Encrypted);
    }
    Ok("application/pdf")
}

fn within(bytes: &[u8], limit: usize) -> Result<(), BadDocument> {
    match bytes.len() {
        size if size > limit => Err(BadDocument::TooLarge(size, limit)),
        _ => Ok(()),
    }
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(bytes, word).is_some()
}

/// Whether a trailer refers to an encryption dictionary: `/Encrypt 12 0 R` (ISO
/// 32000-1, 7.5.5).
fn is_encrypted(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"/Encrypt";
    memchr::memmem::find_iter(bytes, KEY).any(|at| {
        let rest = &bytes[at + KEY.len()..];
        let rest = &rest[..rest.len().min(32)];
        let text = String::from_utf8_lossy(rest);
        let mut words = text.split_ascii_whitespace();
        let number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u32>().is_ok());
        rest.first().is_some_and(u8::is_ascii_whitespace)
            && number(words.next())
            && number(words.next())
            && words.next().is_some_and(|word| word.starts_with('R'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PDF: &[u8] = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n";

    fn check(bytes: &[u8], expected: Result<&str, &str>) {
        let actual = check_document(bytes).map_err(|bad| bad.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn good_documents() {
        check(PDF, Ok("application/pdf"));
        check("grün".as_bytes(), Ok("text/plain"));
        check(b"a /Encrypt 1 0 R", Ok("text/plain"));
    }

    #[test]
    fn bad_documents() {
        check(b"", Err("an empty document"));
        check(
            &PDF[..PDF.len() - 3],
            Err("damaged or incomplete PDF document"),
        );
        check(
            b"PK\x03\x04\0",
            Err("neither a PDF document nor UTF-8 text: binary file (it contains NUL bytes)"),
        );
        let locked = String::from_utf8_lossy(PDF).replace("<</Root", "<</Encrypt 9 0 R/Root");
        check(
            locked.as_bytes(),
            Err("PDF document with a password; remove the password"),
        );
    }

    #[test]
    fn limits() {
        let text = vec![b'a'; MAX_TEXT_BYTES + 1];
        check(
            &text,
            Err("document of 1048577 bytes, the limit is 1048576 bytes"),
        );
        let mut pdf = PDF.to_vec();
        pdf.resize(MAX_PDF_BYTES + 1, b'\n');
        check(
            &pdf,
            Err("document of 16777217 bytes, the limit is 16777216 bytes"),
        );
    }
}
