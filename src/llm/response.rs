//! What a model call gave: answer, finish reason, usage (LLM-client brief §2,
//! §7.4, §7.5).

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::{ContentPart, Message, ToolCall};
use super::warning::Warning;

/// Code of the [`Warning`] that a limit cut off a call, which is left out.
pub(crate) const CALL_TRUNCATED: &str = "call_truncated";

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The provider's id of the answer.
    pub id: String,
    /// Model that answered, as the provider names it.
    pub model: String,
    /// Provider that answered.
    pub provider: String,
    /// The answer, with `replay` for the next request.
    pub message: Message,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Tokens used.
    pub usage: Usage,
    /// What was left out or changed on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// State of the rate limits, where the provider tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Token ids and log probabilities, where the provider options ask for them and the
    /// provider gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Box<Sampled>>,
}

/// The tokens of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sampled {
    /// Ids of the tokens of the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_token_ids: Vec<u64>,
    /// Ids of the tokens of the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_ids: Vec<u64>,
    /// Log probability of each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<f64>,
}

impl Response {
    /// All text joined.
    pub fn text(&self) -> String {
        self.message.joined_text()
    }

    /// The calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.tool_calls()
    }

    /// Whether a limit cut off a call.
    pub(crate) fn lacks_a_call(&self) -> bool {
        let truncated = |warning: &Warning| warning.code == CALL_TRUNCATED;
        self.warnings.iter().any(truncated)
    }

    /// All reasoning text joined; `None` when there is no reasoning part.
    pub fn reasoning(&self) -> Option<String> {
        let mut parts = self.message.content.iter().filter_map(|part| match part {
            ContentPart::Thinking { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let first = parts.next()?;
        Some(parts.fold(first.to_owned(), |joined, text| joined + text))
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishReason {
    /// In the words of every provider.
    pub reason: FinishKind,
    /// In the words of this provider.
    pub raw: String,
}

/// Why an answer ended, provider-neutral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishKind {
    /// The model was done.
    Stop,
    /// A token limit; the last part may be cut off.
    Length,
    /// The model wants tools run.
    ToolCalls,
    /// Refused or filtered.
    ContentFilter,
    /// The provider failed in a way that is still an answer.
    Error,
    /// Anything else, such as a pause; see `raw`.
    Other,
}

/// Tokens used by one call or a sum of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input as the provider counts it: Anthropic excludes cached tokens,
    /// OpenAI and Gemini include them. See [`Usage::prompt_tokens_total`].
    pub input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Input plus output, as the provider counts them.
    pub total_tokens: u64,
    /// Part of the output that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Input read from the prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input written to the prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens of the prompt that `input_tokens` leaves out.
    #[serde(skip_serializing_if = "is_zero")]
    pub uncounted_input_tokens: u64,
    /// The provider's own usage object; not kept in sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Usage {
    /// Every token the model read, cached or not: what fills the context window.
    pub fn prompt_tokens_total(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.uncounted_input_tokens)
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.cache_read_tokens = sum(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
        self.uncounted_input_tokens = self
            .uncounted_input_tokens
            .saturating_add(other.uncounted_input_tokens);
        self.raw = None;
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(mut self, other: Usage) -> Usage {
        self += &other;
        self
    }
}

/// `None` counts as 0 unless both are `None`.
fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (None, None) => None,
        (left, right) => Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0))),
    }
}

/// State of the provider's rate limits; informational only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimit {
    /// Requests allowed in the current window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_limit: Option<u64>,
    /// Requests left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_remaining: Option<u64>,
    /// Tokens allowed in the current window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_limit: Option<u64>,
    /// Tokens left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_remaining: Option<u64>,
    /// When the window ends, in the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<String>,
}
