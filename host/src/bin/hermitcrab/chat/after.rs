//! `Chat`: what a conversation leaves to who began it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a conversation leaves to who began it.
#[derive(Debug, Default)]
pub(crate) struct Chat {
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
    pub(crate) resume: Option<String>,
}

impl Chat {
    /// Whether the person wants to know how to go on with it.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.after().said
    }

    pub(crate) fn after(&self) -> MutexGuard<'_, After> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
