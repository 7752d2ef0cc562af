//! Messages and their parts, provider-neutral (LLM-client brief §2).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions; a leading run goes into the provider's system field.
    System,
    /// Instructions by the developer; treated like `System`.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Results of tools.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<ContentPart>,
    /// The provider's own items of an assistant message, verbatim. Any edit to
    /// `content` must clear it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Media),
    /// Audio.
    Audio(Media),
    /// A document such as a PDF.
    Document(Media),
    /// A call that the model makes.
    ToolCall(ToolCall),
    /// The result of a call.
    ToolResult(ToolResult),
    /// Reasoning text.
    Thinking {
        /// The text; may be empty while `signature` is not.
        text: String,
        /// Provider's signature, opaque.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Reasoning that the provider keeps secret.
    RedactedThinking {
        /// Opaque data.
        data: String,
    },
    /// A part that this client does not model; kept, never interpreted.
    Other {
        /// The provider's type name.
        kind: String,
        /// The part as it came.
        value: Value,
    },
}

/// An image, sound or document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Where it is.
    pub source: MediaSource,
    /// Media type such as `image/png`.
    pub media_type: String,
    /// `low`, `high` or `auto`, for images where the provider has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// File name, for documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

/// Where media is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// At this URL.
    Url(String),
    /// Here; base64 in JSON.
    Data(#[serde(with = "base64_bytes")] Bytes),
}

impl Media {
    /// Bytes that it has here; 0 of what is elsewhere.
    pub fn len(&self) -> usize {
        match &self.source {
            MediaSource::Data(data) => data.len(),
            MediaSource::Url(_) => 0,
        }
    }

    /// Whether it has no bytes here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a model reads where a conversation has no room for it.
    pub(crate) fn left_out(&self) -> String {
        let name = self.file_name.as_deref().map(|name| format!("{name}, "));
        format!(
            "[left out: {}{}, {} bytes; the conversation holds too many attachments already]",
            name.unwrap_or_default(),
            self.media_type,
            self.len()
        )
    }

    /// Its text, if it is a text document.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Data(data) if self.media_type == "text/plain" => {
                std::str::from_utf8(data).ok()
            }
            _ => None,
        }
    }

    /// See [`Message::approx_chars`].
    fn approx_chars(&self) -> u64 {
        self.as_text().map_or(MEDIA_CHARS, chars)
    }
}

mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD
            .decode(text)
            .map(Bytes::from)
            .map_err(de::Error::custom)
    }
}

/// A call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id that its result names.
    pub id: String,
    /// Tool to call.
    pub name: String,
    /// Arguments as the model wrote them: JSON text, or freeform text of a
    /// custom tool. Not yet parsed, so a bad call is a result, not a failure.
    pub arguments: String,
    /// Whether it is a freeform call.
    #[serde(default)]
    pub custom: bool,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool, for providers that match by name.
    pub tool_name: String,
    /// Text for the model.
    pub content: String,
    /// Images and documents beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// A provider's own output items, verbatim and in order, to be sent back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Provider that made them.
    pub provider: String,
    /// Model that made them.
    pub model: String,
    /// Items, blocks or parts.
    pub items: Vec<Value>,
}

impl Message {
    /// A message of one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![ContentPart::Text { text: text.into() }],
            replay: None,
        }
    }

    /// All text parts joined.
    pub fn joined_text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The images, sounds and documents in this message, those of results too.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        self.content.iter().flat_map(|part| match part {
            ContentPart::Image(media)
            | ContentPart::Audio(media)
            | ContentPart::Document(media) => std::slice::from_ref(media),
            ContentPart::ToolResult(result) => result.media.as_slice(),
            _ => &[],
        })
    }

    /// The calls in this message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Unicode characters that the model reads, an image or PDF document counted
    /// as [`MEDIA_CHARS`]. For estimates only.
    pub fn approx_chars(&self) -> u64 {
        self.content.iter().map(ContentPart::approx_chars).sum()
    }
}

/// What one image or PDF document counts in estimates: some 1,600 tokens.
pub const MEDIA_CHARS: u64 = 6_400;

impl ContentPart {
    /// See [`Message::approx_chars`].
    pub fn approx_chars(&self) -> u64 {
        match self {
            Self::Text { text } | Self::Thinking { text, .. } => chars(text),
            Self::Image(media) | Self::Audio(media) | Self::Document(media) => media.approx_chars(),
            Self::ToolCall(call) => chars(&call.name) + chars(&call.arguments),
            Self::ToolResult(result) => {
                chars(&result.content) + result.media.iter().map(Media::approx_chars).sum::<u64>()
            }
            Self::RedactedThinking { data } => data.len() as u64,
            Self::Other { value, .. } => value.to_string().len() as u64,
        }
    }
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}
