//! `SuiteError`: why a suite or a task cannot be used.

use std::fmt;

/// A suite or a task that cannot be used: one sentence that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError(String);

impl SuiteError {
    pub(in crate::eval) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SuiteError {}
