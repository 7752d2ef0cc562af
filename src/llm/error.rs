//! Errors of a model call, and the table that tells their kinds (LLM-client
//! brief §4). Kinds decide what a session does; messages are for people.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest piece of a provider's own words that goes into a message.
const MAX_DETAIL_CHARS: usize = 400;

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmError {
    /// What kind of failure.
    pub kind: LlmErrorKind,
    /// Provider that was called.
    pub provider: Box<str>,
    /// HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own code or type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Box<str>>,
    /// One sentence that names the thing and the way out; lower case, no full stop.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long the provider asks to wait, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Until when the provider asks to wait: ms since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<u64>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Box<str>>,
    /// The error as it came: JSON, or the beginning of the text as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<Value>>,
}

/// Kinds of [`LlmError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// The provider does not accept the request.
    InvalidRequest,
    /// No or a wrong key.
    Authentication,
    /// The key may not do this.
    AccessDenied,
    /// No such model or path.
    NotFound,
    /// The provider waited too long for the request.
    RequestTimeout,
    /// The conversation does not fit the model.
    ContextLength,
    /// Too many requests or tokens per time.
    RateLimit,
    /// No credit or quota left.
    QuotaExceeded,
    /// Refused for its content.
    ContentFilter,
    /// The provider failed or is overloaded.
    Server,
    /// No connection.
    Network,
    /// The answer broke off or is not what the protocol says.
    Stream,
    /// The caller gave up.
    Abort,
    /// A tool call that cannot be understood.
    InvalidToolCall,
    /// This model or provider does not take this tool choice.
    UnsupportedToolChoice,
    /// No object that fits the asked-for schema.
    NoObjectGenerated,
    /// The client is not set up for this.
    Configuration,
    /// A status that the table does not list.
    Unknown,
}

impl LlmErrorKind {
    /// Stable name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Authentication => "authentication",
            Self::AccessDenied => "access_denied",
            Self::NotFound => "not_found",
            Self::RequestTimeout => "request_timeout",
            Self::ContextLength => "context_length",
            Self::RateLimit => "rate_limit",
            Self::QuotaExceeded => "quota_exceeded",
            Self::ContentFilter => "content_filter",
            Self::Server => "server",
            Self::Network => "network",
            Self::Stream => "stream",
            Self::Abort => "abort",
            Self::InvalidToolCall => "invalid_tool_call",
            Self::UnsupportedToolChoice => "unsupported_tool_choice",
            Self::NoObjectGenerated => "no_object_generated",
            Self::Configuration => "configuration",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a failure of this kind may pass by itself.
    pub fn retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Server | Self::Network | Self::Stream | Self::Unknown
        )
    }

    /// The status table of LLM-client brief §4.
    pub fn of_status(status: u16) -> Self {
        match status {
            400 | 405 | 412 | 422 | 431 | 501 => Self::InvalidRequest,
            401 => Self::Authentication,
            402 => Self::QuotaExceeded,
            403 => Self::AccessDenied,
            404 => Self::NotFound,
            408 => Self::RequestTimeout,
            413 => Self::ContextLength,
            429 => Self::RateLimit,
            500..=599 => Self::Server,
            // The transport refuses redirects of authenticated requests; one
            // that arrives here means that the base URL is wrong.
            300..=399 => Self::Configuration,
            _ => Self::Unknown,
        }
    }

    /// The kind that a message's wording tells, for statuses that do not.
    pub fn of_wording(message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        WORDING
            .iter()
            .find(|(_, patterns)| {
                patterns
                    .iter()
                    .any(|pattern| contains_all(&message, pattern))
            })
            .map(|(kind, _)| *kind)
    }
}

/// Wordings by kind, first match wins; the pieces of a pattern, separated by
/// `*`, must occur in this order. Sources: LLM-client brief §4.
const WORDING: &[(LlmErrorKind, &[&str])] = &[
    (
        LlmErrorKind::ContextLength,
        &[
            "prompt is too long",
            "exceed context limit",
            "exceeds the context window",
            "context length",
            "context_length_exceeded",
            "input token count*exceeds the maximum",
            "exceeds the available context size",
            "reduce the length of the messages",
            "too many tokens",
            "maximum model length",
            "context overflow",
        ],
    ),
    (
        LlmErrorKind::QuotaExceeded,
        &["credit balance is too low", "insufficient_quota"],
    ),
    (
        LlmErrorKind::Authentication,
        &[
            "unauthorized",
            "invalid key",
            "invalid api key",
            "invalid x-api-key",
        ],
    ),
    (
        LlmErrorKind::ContentFilter,
        &["content filter", "content_filter", "safety"],
    ),
    (LlmErrorKind::NotFound, &["not found", "does not exist"]),
];

fn contains_all(message: &str, pattern: &str) -> bool {
    let mut rest = message;
    pattern.split('*').all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

impl LlmError {
    /// An error with the kind's own retryability and nothing else known.
    pub fn new(kind: LlmErrorKind, provider: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            provider: provider.into(),
            status: None,
            code: None,
            message: message.into(),
            retryable: kind.retryable(),
            retry_after_ms: None,
            retry_at_ms: None,
            request_id: None,
            raw: None,
        }
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LlmError {}

/// One line of at most [`MAX_DETAIL_CHARS`] characters.
pub(crate) fn clip(text: &str) -> String {
    let mut line = String::new();
    for (count, word) in text.split_whitespace().enumerate() {
        if count > 0 {
            line.push(' ');
        }
        line.extend(word.chars().take(MAX_DETAIL_CHARS));
        if line.chars().count() > MAX_DETAIL_CHARS {
            line = line.chars().take(MAX_DETAIL_CHARS).collect();
            line.push('…');
            break;
        }
    }
    line
}
