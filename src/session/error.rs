//! Errors of calls on a session or instance: the caller's mistakes, as types.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::SessionState;

/// A call that cannot be carried out; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionError {
    /// What kind of mistake.
    pub kind: SessionErrorKind,
    /// One sentence that names the thing and the way out.
    pub message: String,
}

/// Kinds of [`SessionError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionErrorKind {
    /// The call is not legal in the session's state (spec 2.3).
    IllegalState,
    /// The session is closed.
    Closed,
    /// A setting is unknown or out of range.
    InvalidConfig,
    /// No such provider.
    UnknownProvider,
    /// No such environment, session or job.
    NotFound,
    /// A tool definition cannot be used.
    InvalidTool,
    /// An archive, path or file list cannot be used.
    InvalidInput,
}

impl SessionError {
    /// An error of `kind` with its sentence.
    pub fn new(kind: SessionErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn invalid_config(message: impl Into<String>) -> Self {
        Self::new(
            SessionErrorKind::InvalidConfig,
            format!("invalid session configuration: {}", message.into()),
        )
    }

    /// `call` is not legal in `state`; `way_out` says what is.
    pub(crate) fn illegal(call: &str, state: SessionState, way_out: &str) -> Self {
        if state == SessionState::Closed {
            return Self::new(
                SessionErrorKind::Closed,
                format!("{call}: the session is closed; open a new one"),
            );
        }
        let state = match state {
            SessionState::Idle => "IDLE",
            SessionState::Processing => "PROCESSING",
            SessionState::AwaitingInput => "AWAITING_INPUT",
            SessionState::Closed => "CLOSED",
        };
        Self::new(
            SessionErrorKind::IllegalState,
            format!("{call}: not legal in state {state}; {way_out}"),
        )
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SessionError {}
