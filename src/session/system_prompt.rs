//! What a system prompt is built from, and the prompt itself.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::llm::ToolDefinition;
use crate::profile::{Document, GitSnapshot};

/// What a session finds around its working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Orientation {
    /// The repository around the working directory, if there is one.
    pub(super) git: Option<GitSnapshot>,
    /// Project documents, from the repository's root down.
    pub(super) documents: Vec<Document>,
    /// Why documents may be missing, if some may be.
    pub(super) documents_missing: Option<String>,
}

/// The prompt, with what it was built from.
pub(super) struct SystemPrompt {
    pub(super) text: Rc<str>,
    pub(super) model: String,
    pub(super) tools: Rc<[Rc<ToolDefinition>]>,
    pub(super) found: Found,
}

/// What was found when the session started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) orientation: Orientation,
    /// The session's start, ms since 1970-01-01 UTC; 0 before it.
    pub(super) now_ms: u64,
}

impl Default for SystemPrompt {
    fn default() -> Self {
        Self {
            text: Rc::from(""),
            model: String::new(),
            tools: Rc::from([]),
            found: Found::default(),
        }
    }
}

impl SystemPrompt {
    /// What it is built from.
    pub(super) fn found(&self) -> Found {
        self.found.clone()
    }
}
