//! `HostError`: what a call on the host can answer instead of a result.

use hermitcrab_engine::EngineError;
use std::{fmt, io};

use hermitcrab::environment::EnvironmentError;
use hermitcrab::session::SessionError;

use crate::core::{CoreError, CoreFailure};
use crate::credential::CredentialError;

/// Why a call on the host did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// The core refused the call; nothing has changed.
    Session(SessionError),
    /// An environment could not do what was asked.
    Environment(EnvironmentError),
    /// The instance is dead; open another one.
    Core(CoreFailure),
    /// The instance has been stopped: its last handle is gone.
    Stopped,
    /// The host cannot be set up as asked: a core, a credential, a file.
    Setup(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::Environment(error) => error.fmt(f),
            Self::Core(failure) => failure.fmt(f),
            Self::Stopped => f.write_str("the instance has been stopped; open another one"),
            Self::Setup(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for HostError {}

impl From<CoreError> for HostError {
    fn from(error: CoreError) -> Self {
        match error {
            CoreError::Refused(error) => Self::Session(error),
            CoreError::Environment(error) => Self::Environment(error),
            CoreError::Failed(failure) => Self::Core(failure),
        }
    }
}

impl From<SessionError> for HostError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<EnvironmentError> for HostError {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}

impl From<CredentialError> for HostError {
    fn from(error: CredentialError) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<EngineError> for HostError {
    fn from(error: EngineError) -> Self {
        Self::Setup(format!("cannot set up the core: {error}"))
    }
}

/// Why a file operation failed, for a sentence: without the "(os error 2)" that helps nobody.
pub fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return "the file would be larger than the system allows (see `ulimit -f`)".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}
