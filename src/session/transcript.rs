//! What was said in a session, and what follows from it for the next request.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use super::compaction::attempts::Attempts;
use super::context_watch::ContextWatch;
use super::history::History;
use super::repetition::Repetition;
use super::system_prompt::SystemPrompt;
use crate::event::EndReason;
use crate::llm::ToolResult;

/// The conversation and what is known about it.
#[derive(Default)]
pub(super) struct Transcript {
    pub(super) history: RefCell<History>,
    /// Results of the running round, in the order in which they came.
    pub(super) finished: RefCell<Vec<ToolResult>>,
    pub(super) prompt: RefCell<SystemPrompt>,
    pub(super) repetition: RefCell<Repetition>,
    pub(super) context: Cell<ContextWatch>,
    pub(super) compaction: Attempts,
    /// How the last input ended; what a subagent's parent asks.
    pub(super) outcome: RefCell<Outcome>,
}

impl Transcript {
    /// The value of the last input's final answer, where one was asked for.
    pub(super) fn output(&self) -> Option<Value> {
        self.outcome.borrow().output.clone()
    }
}

/// How the last input ended.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) reason: Option<EndReason>,
    /// Message of the last error.
    pub(super) error: Option<String>,
    /// Why the last answer is not one, if so.
    pub(super) doubt: Option<&'static str>,
    /// The final answer as the value that `output_schema` asks for.
    pub(super) output: Option<Value>,
}
