//! Turns: the entries of a conversation (spec 2.4), and what the model sees of them.

use serde::{Deserialize, Serialize};

use super::compaction::summary;
use crate::llm::{Content, ContentPart, Message, Replay, Role, ToolCall, ToolResult, Usage};

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum Turn {
    /// An input of the user.
    User {
        /// What the user wrote and attached; as JSON a string, or a list of parts.
        content: Content,
        /// ms since 1970-01-01 UTC.
        timestamp_ms: u64,
    },
    /// An answer of the model.
    Assistant {
        /// Text of the answer.
        content: String,
        /// Calls that the model made, in order.
        tool_calls: Vec<ToolCall>,
        /// Reasoning text, if the provider shows it.
        reasoning: Option<String>,
        /// Tokens of this answer.
        usage: Box<Usage>,
        /// The provider's id of the response.
        response_id: Option<String>,
        /// The provider's own items, verbatim: what it is sent again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replay: Option<Box<Replay>>,
        /// ms since 1970-01-01 UTC.
        timestamp_ms: u64,
    },
    /// The results of one round of calls, one per call, in call order.
    ToolResults {
        /// What the model got.
        results: Vec<ToolResult>,
        /// ms since 1970-01-01 UTC.
        timestamp_ms: u64,
    },
    /// Instructions that the host added between inputs.
    System {
        /// The instructions.
        content: String,
        /// ms since 1970-01-01 UTC.
        timestamp_ms: u64,
    },
    /// A message injected between tool rounds; the model sees it as the user's.
    Steering {
        /// The message; as JSON a string, or a list of parts.
        content: Content,
        /// ms since 1970-01-01 UTC.
        timestamp_ms: u64,
    },
    /// From here on the model reads a summary in place of the turns before, except
    /// instructions, the last input and the turns that stay.
    Compaction {
        /// The summary.
        summary: String,
        /// How many of the turns directly before stay as they are.
        kept: usize,
        /// ms since 1970-01-01 UTC.
        timestamp_ms: u64,
    },
}

impl Turn {
    /// What the model sees of it.
    pub(crate) fn to_message(&self) -> Message {
        match self {
            Self::User { content, .. } | Self::Steering { content, .. } => user_message(content),
            Self::System { content, .. } => Message::text(Role::Developer, content.clone()),
            Self::ToolResults { results, .. } => results_message(results),
            Self::Compaction { summary, .. } => summary::message(summary),
            Self::Assistant {
                content,
                tool_calls,
                reasoning,
                replay,
                ..
            } => {
                let thinking = reasoning.iter().map(|text| ContentPart::Thinking {
                    text: text.clone(),
                    signature: None,
                });
                let text = Some(content).filter(|text| !text.is_empty());
                let text = text.map(|text| ContentPart::Text { text: text.clone() });
                let calls = tool_calls.iter().cloned().map(ContentPart::ToolCall);
                Message {
                    role: Role::Assistant,
                    content: thinking.chain(text).chain(calls).collect(),
                    replay: replay.as_deref().cloned(),
                }
            }
        }
    }
}

/// The message for what the user says.
pub(crate) fn user_message(content: &Content) -> Message {
    Message {
        role: Role::User,
        content: content.to_message_parts(),
        replay: None,
    }
}

/// The message for the results of one round: every call is answered in it.
pub(crate) fn results_message(results: &[ToolResult]) -> Message {
    Message {
        role: Role::Tool,
        content: results
            .iter()
            .cloned()
            .map(ContentPart::ToolResult)
            .collect(),
        replay: None,
    }
}
