//! The history: turns for hosts, and the same conversation encoded for the model.
//!
//! Turns are only ever appended, and each is converted to a message exactly
//! once, so that the bytes of earlier messages never change (DESIGN §5).

use super::turn::{Turn, results_message};
use crate::llm::{Conversation, Message, Response, Role, ToolResult};

/// Turns of a session together with the conversation that the model sees.
#[derive(Default)]
pub(crate) struct History {
    turns: Vec<Turn>,
    conversation: Conversation,
    assistant_turns: u32,
}

impl History {
    /// The history of an earlier session. `requests` are the numbers of turns
    /// at which a request was sent; empty: one before every answer.
    pub(crate) fn restored(turns: Vec<Turn>, requests: &[usize]) -> Self {
        let mut history = Self::default();
        for (index, turn) in turns.iter().enumerate() {
            let answer = matches!(turn, Turn::Assistant { .. });
            history.assistant_turns += u32::from(answer);
            // One message per turn, so the numbers are those of messages, too.
            if requests.binary_search(&index).is_ok() || (requests.is_empty() && answer) {
                history.conversation.seal();
            }
            history.conversation.push(turn.to_message());
        }
        if requests.last() == Some(&turns.len()) {
            history.conversation.seal();
        }
        history.turns = turns;
        history
    }

    /// Whether the model has not yet had its say about all that is there.
    pub(crate) fn is_open(&self) -> bool {
        match self.turns.last() {
            Some(Turn::Assistant { tool_calls, .. }) => !tool_calls.is_empty(),
            Some(_) => true,
            None => false,
        }
    }

    pub(crate) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Assistant turns so far: what `max_turns` counts (DESIGN §6).
    pub(crate) fn assistant_turns(&self) -> u32 {
        self.assistant_turns
    }

    /// Text of the last answer.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.turns.iter().rev().find_map(|turn| match turn {
            Turn::Assistant { content, .. } => Some(content.as_str()),
            _ => None,
        })
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    pub(crate) fn push_user(&mut self, content: String, timestamp_ms: u64) {
        self.conversation
            .push(Message::text(Role::User, content.clone()));
        self.turns.push(Turn::User {
            content,
            timestamp_ms,
        });
    }

    /// A steering message; the model sees it as the user's (spec 2.6).
    pub(crate) fn push_steering(&mut self, content: String, timestamp_ms: u64) {
        self.conversation
            .push(Message::text(Role::User, content.clone()));
        self.turns.push(Turn::Steering {
            content,
            timestamp_ms,
        });
    }

    pub(crate) fn push_system(&mut self, content: String, timestamp_ms: u64) {
        self.conversation
            .push(Message::text(Role::Developer, content.clone()));
        self.turns.push(Turn::System {
            content,
            timestamp_ms,
        });
    }

    pub(crate) fn push_response(&mut self, response: Response, timestamp_ms: u64) {
        self.assistant_turns += 1;
        self.turns.push(Turn::Assistant {
            content: response.message.joined_text(),
            tool_calls: response.message.tool_calls().cloned().collect(),
            reasoning: response.reasoning(),
            usage: Box::new(response.usage),
            response_id: Some(response.id).filter(|id| !id.is_empty()),
            replay: response.message.replay.clone().map(Box::new),
            timestamp_ms,
        });
        self.conversation.push(response.message);
    }

    pub(crate) fn push_results(&mut self, results: Vec<ToolResult>, timestamp_ms: u64) {
        self.conversation.push(results_message(&results));
        self.turns.push(Turn::ToolResults {
            results,
            timestamp_ms,
        });
    }
}
