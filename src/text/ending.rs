//! Byte-order mark, line endings and final newline: what an edit must keep.

use std::borrow::Cow;

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnding {
    /// `\n`
    Lf,
    /// `\r\n`
    Crlf,
}

/// Marks of a text file that are not its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextFormat {
    /// Whether it begins with U+FEFF.
    pub bom: bool,
    /// The ending of most lines; `Lf` where there is none.
    pub ending: LineEnding,
    /// Whether the last line ends with a newline; true for an empty text.
    pub final_newline: bool,
}

impl TextFormat {
    /// The format of `text`.
    pub(crate) fn detect(text: &str) -> Self {
        let lines = text.bytes().filter(|byte| *byte == b'\n').count();
        let crlf = text.matches("\r\n").count();
        Self {
            bom: text.starts_with('\u{FEFF}'),
            ending: if crlf * 2 > lines {
                LineEnding::Crlf
            } else {
                LineEnding::Lf
            },
            final_newline: text.is_empty() || text.ends_with('\n'),
        }
    }

    /// `text` without its byte-order mark.
    pub(crate) fn strip_bom(text: &str) -> &str {
        text.strip_prefix('\u{FEFF}').unwrap_or(text)
    }
}

impl LineEnding {
    /// The bytes that end a line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
        }
    }

    /// `text` with every `\n` and `\r\n` turned into this ending.
    pub(crate) fn apply(self, text: &str) -> Cow<'_, str> {
        let unix = if text.contains("\r\n") {
            Cow::Owned(text.replace("\r\n", "\n"))
        } else {
            Cow::Borrowed(text)
        };
        match self {
            Self::Lf => unix,
            Self::Crlf if !unix.contains('\n') => unix,
            Self::Crlf => Cow::Owned(unix.replace('\n', "\r\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LineEnding::{Crlf, Lf};
    use super::*;

    fn check(text: &str, bom: bool, ending: LineEnding, final_newline: bool) {
        let expected = TextFormat {
            bom,
            ending,
            final_newline,
        };
        assert_eq!(TextFormat::detect(text), expected, "{text:?}");
    }

    #[test]
    fn detection() {
        check("", false, Lf, true);
        check("a", false, Lf, false);
        check("a\nb\n", false, Lf, true);
        check("a\r\nb\r\n", false, Crlf, true);
        check("a\r\nb\r\nc\n", false, Crlf, true);
        check("a\r\nb\n", false, Lf, true);
        check("\u{FEFF}a\r\nb", true, Crlf, false);
    }

    #[test]
    fn conversion() {
        assert_eq!(Crlf.apply("a\nb\r\nc"), "a\r\nb\r\nc");
        assert_eq!(Lf.apply("a\nb\r\nc\r"), "a\nb\nc\r");
        assert_eq!(Crlf.apply("abc"), "abc");
    }
}
