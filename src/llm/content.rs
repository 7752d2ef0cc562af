//! What a user or a tool says: text, images and documents, in order.
//!
//! A history is append-only, so a part that a provider refuses would be refused
//! with every later request. Therefore parts are checked before they enter it:
//! images and documents are bytes, never addresses, and what they hold decides
//! what they are.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::message::{ContentPart, Media, MediaSource};
use crate::text::{check_document, check_image, named_as_image, sniff_image, sniff_pdf};

/// An image or a document among the parts of a [`Content`], or a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image: PNG, JPEG, GIF or WebP, at most 5 MiB.
    Image(Media),
    /// A document: PDF, at most 16 MiB, or UTF-8 text, at most 1 MiB.
    Document(Media),
}

/// Parts in order. A plain text is one, and as JSON it is a string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Content(Vec<Part>);

/// A part that must not enter a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPart {
    /// Its number, from 1.
    pub number: usize,
    /// What is wrong with it, such as `image a.png: damaged or incomplete PNG image`.
    pub reason: String,
}

impl fmt::Display for BadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {}: {}", self.number, self.reason)
    }
}

impl std::error::Error for BadPart {}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// An image of these bytes.
    pub fn image(data: impl Into<Bytes>) -> Self {
        Self::Image(unnamed(data.into()))
    }

    /// A document of these bytes.
    pub fn document(data: impl Into<Bytes>) -> Self {
        Self::Document(unnamed(data.into()))
    }

    /// An image or a document, whichever the bytes of the file `name` are.
    pub fn file(name: impl Into<String>, data: impl Into<Bytes>) -> Self {
        let (name, data) = (name.into(), data.into());
        let is_image = sniff_image(&data).is_some() || (named_as_image(&name) && !sniff_pdf(&data));
        let part = match is_image {
            true => Self::image(data),
            false => Self::document(data),
        };
        part.named(name)
    }

    /// The same part with the name of a file; a text has none.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Self::Image(media) | Self::Document(media) = &mut self {
            media.file_name = Some(name.into());
        }
        self
    }

    /// The image or document, if it is one.
    pub fn media(&self) -> Option<&Media> {
        match self {
            Self::Text { .. } => None,
            Self::Image(media) | Self::Document(media) => Some(media),
        }
    }

    /// The part with the media type of its bytes, or why it must not enter a
    /// history.
    fn checked(mut self) -> Result<Self, String> {
        match &mut self {
            Self::Text { .. } => {}
            Self::Image(media) => media.media_type = media.image_type()?.to_owned(),
            Self::Document(media) => media.media_type = media.document_type()?.to_owned(),
        }
        Ok(self)
    }
}

fn unnamed(data: Bytes) -> Media {
    Media {
        source: MediaSource::Data(data),
        media_type: String::new(),
        detail: None,
        file_name: None,
    }
}

impl Media {
    /// Media type of its bytes as an image, or why it must not enter a history.
    pub(crate) fn image_type(&self) -> Result<&'static str, String> {
        let data = self.data("image")?;
        check_image(data).map_err(|bad| self.problem("image", bad))
    }

    /// Media type of its bytes as a document, or why it must not enter a history.
    pub(crate) fn document_type(&self) -> Result<&'static str, String> {
        let data = self.data("document")?;
        check_document(data).map_err(|bad| self.problem("document", bad))
    }

    fn data(&self, kind: &str) -> Result<&Bytes, String> {
        match &self.source {
            MediaSource::Data(data) => Ok(data),
            MediaSource::Url(_) => {
                Err(self.problem(kind, "it is an address; fetch it and give its bytes"))
            }
        }
    }

    fn problem(&self, kind: &str, problem: impl fmt::Display) -> String {
        match &self.file_name {
            Some(name) => format!("{kind} {name}: {problem}"),
            None => format!("{kind}: {problem}"),
        }
    }
}

impl Content {
    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Whether there is neither a text that is not empty nor anything else.
    pub fn is_empty(&self) -> bool {
        let is_empty = |part: &Part| matches!(part, Part::Text { text } if text.is_empty());
        self.0.iter().all(is_empty)
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Text { text } => text.len(),
            Part::Image(media) | Part::Document(media) => media.len(),
        };
        self.0.iter().map(bytes).sum()
    }

    /// The texts, one a line.
    pub fn text(&self) -> String {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The images and documents, in order.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        self.0.iter().filter_map(Part::media)
    }

    /// The same parts with the media types of their bytes.
    ///
    /// # Errors
    /// The first part that must not enter a history.
    pub fn checked(self) -> Result<Self, BadPart> {
        let parts = self.0.into_iter().zip(1..);
        let parts = parts.map(|(part, number)| {
            let bad = |reason| BadPart { number, reason };
            part.checked().map_err(bad)
        });
        parts.collect::<Result<_, _>>().map(Self)
    }

    /// Text and media as a model may have them: of a part that must not enter a
    /// history the text says why it is missing.
    pub fn admitted(self) -> (String, Vec<Media>) {
        let (mut texts, mut all) = (Vec::new(), Vec::new());
        for part in self.0 {
            match part.checked() {
                Ok(Part::Text { text }) => texts.push(text),
                Ok(Part::Image(media) | Part::Document(media)) => all.push(media),
                Err(reason) => texts.push(format!("[left out: {reason}]")),
            }
        }
        (texts.join("\n"), all)
    }

    /// The content with the media replaced for which `keep` says no.
    pub(crate) fn keeping(self, mut keep: impl FnMut(&Media) -> bool) -> Self {
        let parts = self.0.into_iter().map(|part| match part.media() {
            Some(media) if !keep(media) => Part::text(media.left_out()),
            _ => part,
        });
        Self(parts.collect())
    }

    /// The parts as a message has them.
    pub(crate) fn to_message_parts(&self) -> Vec<ContentPart> {
        let part = |part: &Part| match part {
            Part::Text { text } => ContentPart::Text { text: text.clone() },
            Part::Image(media) => ContentPart::Image(media.clone()),
            Part::Document(media) => ContentPart::Document(media.clone()),
        };
        self.0.iter().map(part).collect()
    }
}

/// A string where there is nothing but one text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Saved {
    Text(String),
    Parts(Vec<Part>),
}

impl From<Saved> for Content {
    fn from(saved: Saved) -> Self {
        match saved {
            Saved::Text(text) => text.into(),
            Saved::Parts(parts) => parts.into(),
        }
    }
}

impl From<Content> for Saved {
    fn from(Content(mut parts): Content) -> Self {
        match parts.as_mut_slice() {
            [Part::Text { text }] => Self::Text(std::mem::take(text)),
            _ => Self::Parts(parts),
        }
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self(vec![Part::Text { text }])
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Content {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::text::PNG;

    fn check(parts: Vec<Part>, expected: Result<&[&str], &str>) {
        let actual = Content::from(parts).checked();
        let types = |content: &Content| -> Vec<String> {
            content
                .media()
                .map(|media| media.media_type.clone())
                .collect()
        };
        let actual = actual.as_ref().map(types).map_err(BadPart::to_string);
        let expected = expected.map(|types| types.iter().map(|t| (*t).to_owned()).collect());
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_bytes_decide() {
        let named = Media {
            media_type: "image/jpeg".to_owned(),
            ..unnamed(Bytes::from_static(PNG))
        };
        check(
            vec![Part::text("a"), Part::Image(named)],
            Ok(&["image/png"]),
        );
        let files = vec![
            Part::file("a.txt", PNG),
            Part::file("a.png", "%PDF-1.4 %%EOF"),
            Part::file("a.rs", "fn main() {}"),
        ];
        check(files, Ok(&["image/png", "application/pdf", "text/plain"]));
    }

    #[test]
    fn bad_parts_are_named() {
        check(
            vec![Part::text("a"), Part::file("a.png", &PNG[..40])],
            Err("part 2: image a.png: damaged or incomplete PNG image"),
        );
        check(
            vec![Part::file("a.png", "text")],
            Err("part 1: image a.png: not a PNG, JPEG, GIF or WebP image"),
        );
        check(
            vec![Part::document("")],
            Err("part 1: document: an empty document"),
        );
        let elsewhere = Media {
            source: MediaSource::Url("https://example.com/a.png".to_owned()),
            ..unnamed(Bytes::new())
        };
        check(
            vec![Part::Image(elsewhere)],
            Err("part 1: image: it is an address; fetch it and give its bytes"),
        );
    }

    #[test]
    fn a_tool_s_bad_parts_become_notes() {
        let parts = vec![
            Part::text("two"),
            Part::image(PNG),
            Part::image("no"),
            Part::text("end"),
        ];
        let (text, media) = Content::from(parts).admitted();
        let note = "[left out: image: not a PNG, JPEG, GIF or WebP image]";
        assert_eq!(text, format!("two\n{note}\nend"));
        assert_eq!(media.len(), 1);
    }

    fn check_json(content: Content, expected: Value) {
        assert_eq!(serde_json::to_value(&content).expect("JSON"), expected);
        let back: Content = serde_json::from_value(expected).expect("content");
        assert_eq!(back, content);
    }

    #[test]
    fn one_text_is_a_string() {
        check_json("a".into(), json!("a"));
        check_json(
            vec![Part::text("a"), Part::document("b").named("c")].into(),
            json!([
                {"type": "text", "text": "a"},
                {"type": "document", "source": {"data": "Yg=="}, "media_type": "", "file_name": "c"},
            ]),
        );
    }
}
