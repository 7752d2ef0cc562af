//! What a host should know of a call that went through.

use serde::{Deserialize, Serialize};

/// Something that the adapter had to leave out or change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Short stable name, such as `sampling_dropped`.
    pub code: String,
    /// One sentence; lower case, no full stop.
    pub message: String,
}

impl Warning {
    /// A warning.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}
