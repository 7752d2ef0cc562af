//! Wire formats: how a provider says what a step says. A new provider is one
//! file with a [`Wire`] and one line in the table, `table.rs`.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::format::Step;

/// A provider's format.
pub(super) trait Wire: Sync {
    /// How the paths that it serves end, for people.
    fn route(&self) -> &'static str;

    /// Whether a request to `path` (without query) is for this provider.
    fn serves(&self, path: &str) -> bool {
        path.ends_with(self.route())
    }

    /// Whether the answer streams.
    fn streams(&self, _path: &str, head: &Head) -> bool {
        head.stream
    }

    /// Model that is asked for.
    fn model<'a>(&self, _path: &'a str, head: &'a Head) -> &'a str {
        &head.model
    }

    /// The text of the last tool result in a request.
    fn last_tool_result(&self, body: &Value) -> Option<String>;

    /// The answer as stream events, in order.
    fn stream(&self, answer: &ResponseParts<'_>) -> Vec<Piece>;

    /// The answer as one JSON value.
    fn whole(&self, answer: &ResponseParts<'_>) -> Value;

    /// An error inside a stream.
    fn stream_error(&self, kind: &str, message: &str) -> Bytes;

    /// The body of an HTTP error; `kind` absent means the usual one.
    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value;
}

/// What an answer is made from.
pub(super) struct ResponseParts<'a> {
    /// The request's number, from 1; ids derive from it.
    pub(super) number: u64,
    /// Model that the request asked for.
    pub(super) model: &'a str,
    /// What to say.
    pub(super) step: &'a Step,
}

/// One event of a stream.
pub(super) struct Piece {
    /// Which part of the answer it belongs to.
    pub(super) part: Part,
    /// Whether `delta_delay_ms` applies to it.
    pub(super) is_delta: bool,
    /// Its bytes.
    pub(super) bytes: Bytes,
}

/// Parts of a streamed answer, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Start,
    Thinking,
    Text,
    ToolCalls,
    End,
}

/// The few fields of a body that an answer needs; the rest is skipped unparsed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    pub(super) model: String,
    pub(super) stream: bool,
}

/// Whether a body is what every provider takes, one JSON object.
pub(super) fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// `text` in `count` pieces of about equal length; fewer if it is short.
pub(super) fn pieces(text: &str, count: usize) -> Vec<&str> {
    let length = text.len().div_ceil(count.max(1)).max(1);
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(length));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
