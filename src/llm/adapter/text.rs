//! Text inside an event, read in place: what comes thousands of times in an
//! answer is not copied before its decoder has seen it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A string of an event, borrowed from it unless it holds escapes. `null`
/// reads as the empty text: servers write it for what a delta has none of.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or null")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, and whether it was copied.
    fn check(json: &str, expected: Option<(&str, bool)>) {
        let text: Option<Text<'_>> = serde_json::from_str(json).ok();
        let actual = text
            .as_ref()
            .map(|text| (&**text, matches!(text.0, Cow::Owned(_))));
        assert_eq!(actual, expected, "{json}");
    }

    #[test]
    fn only_escapes_are_copied() {
        check(r#""é ""#, Some(("é ", false)));
        check(r#""a\nb""#, Some(("a\nb", true)));
        check("7", None);
        check(r#"["a"]"#, None);
    }
}
