//! `Chat`: what a conversation leaves to who began it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a conversation leaves to who began it.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    /// Set where an error closed the session and the conversation goes on with it: what
    /// was being written then.
    pub(crate) draft: Option<String>,
    after: Mutex<After>,
}

/// What is to be done when it has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// A session in which nothing was said.
    pub(crate) unused: Option<String>,
    /// Whether something was said.
    pub(crate) said: bool,
    /// A session to go on with.
    pub(crate) resume: Option<Resume>,
}

/// A session to go on with.
#[derive(Clone, Debug)]
pub(crate) struct Resume {
    /// The session.
    pub(crate) id: String,
    /// Where it is the same one, which an error has closed: what was being written.
    pub(crate) draft: Option<String>,
    /// Options of what the person has chosen in the conversation.
    pub(crate) options: Vec<String>,
}

impl Resume {
    /// Another session.
    pub(crate) fn other(id: String) -> Self {
        Self {
            id,
            draft: None,
            options: Vec::new(),
        }
    }
}

impl Chat {
    /// A conversation; with a draft where it goes on after an error.
    pub(crate) fn new(draft: Option<String>) -> Self {
        Self {
            draft,
            ..Self::default()
        }
    }

    /// Whether the person wants to know how to go on with it.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.after().said
    }

    pub(crate) fn after(&self) -> MutexGuard<'_, After> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
