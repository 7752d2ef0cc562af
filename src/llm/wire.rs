//! The encoded history of a conversation, and how an adapter writes it.

use std::fmt;

use super::error::LlmError;
use super::message::Message;
use super::warning::Warning;

/// The kept bytes of one adapter.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// [`WireFormat::key`] of what wrote them.
    pub(super) key: String,
    /// Messages of the conversation that are encoded.
    pub(super) encoded: usize,
    /// Encoded messages joined by commas, without the array's brackets.
    pub bytes: Vec<u8>,
    /// Offsets into `bytes` where a cache marker may go, ascending.
    pub marks: Vec<usize>,
    /// Set while the last message is one in which the provider paused.
    pub resume: Option<Resume>,
}

/// How a provider goes on where it paused: from its own copy of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Field of the body that asks for it: `"name":value`.
    pub field: String,
    /// Bytes of the history that are sent: those before the answer.
    pub sent: usize,
}

/// How an adapter writes messages. `group` is a run of messages that were sent
/// for the first time together.
pub trait WireFormat: fmt::Debug {
    /// Names the adapter and every setting that changes its bytes; another key
    /// means that everything is encoded afresh.
    fn key(&self) -> String;

    /// Appends the encoding of `group`, which stands right after `before`.
    ///
    /// # Errors
    ///
    /// When a part cannot be sent at all; `wire` is then discarded.
    fn append(
        &self,
        before: &[Message],
        group: &[Message],
        wire: &mut Wire,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), LlmError>;
}

impl Wire {
    /// Starts the next element: adds the comma if one is needed.
    pub fn separate(&mut self) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
    }
}
