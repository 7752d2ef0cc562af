//! Stream events and the accumulator that folds them (LLM-client brief §3).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{LlmError, LlmErrorKind};
use super::message::{ContentPart, Message, Role, ToolCall};
use super::response::{FinishKind, FinishReason, Response, Usage};

/// One event of an answer as it arrives.
///
/// The order is fixed: one `Start`; segments, each `…Start`, any number of
/// `…Delta`, `…End`, which may interleave; then exactly one of `Finish` and
/// `Error`, and nothing after it. `ProviderEvent`s may come anywhere between.
/// A tool call whose answer broke off has no end: it must not be executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The answer begins.
    Start {
        /// The provider's id of the answer.
        id: String,
        /// Model that answers.
        model: String,
    },
    /// A text begins.
    TextStart {
        /// Number of the segment, unique within the answer.
        segment: u32,
    },
    /// More text.
    TextDelta {
        /// Number of the segment.
        segment: u32,
        /// What is new.
        text: String,
    },
    /// A text is complete.
    TextEnd {
        /// Number of the segment.
        segment: u32,
        /// All of it.
        text: String,
    },
    /// Reasoning begins.
    ReasoningStart {
        /// Number of the segment.
        segment: u32,
    },
    /// More reasoning.
    ReasoningDelta {
        /// Number of the segment.
        segment: u32,
        /// What is new.
        text: String,
    },
    /// Reasoning is complete.
    ReasoningEnd {
        /// Number of the segment.
        segment: u32,
        /// All of it; empty where the provider keeps it secret.
        text: String,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Number of the segment.
        segment: u32,
        /// Id of the call.
        id: String,
        /// Tool to call.
        name: String,
    },
    /// More of the arguments' text.
    ToolCallDelta {
        /// Number of the segment.
        segment: u32,
        /// What is new.
        arguments: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// Number of the segment.
        segment: u32,
        /// The call; its arguments are unparsed, `{}` if there were none.
        call: ToolCall,
    },
    /// Something of the provider that this client does not model.
    ProviderEvent {
        /// As it came.
        raw: Value,
    },
    /// The answer is complete. Terminal.
    Finish {
        /// All of it; where it differs from the segments, it is right.
        response: Box<Response>,
    },
    /// The answer failed. Terminal.
    Error {
        /// Why.
        error: LlmError,
        /// What had arrived, without `replay`; to show, not to send back.
        partial: Box<Response>,
    },
}

impl StreamEvent {
    /// Whether nothing follows.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Finish { .. } | Self::Error { .. })
    }

    /// Whether the model's own words are in it: after one of these, a retry
    /// would say things twice.
    pub fn is_content(&self) -> bool {
        !self.is_terminal() && !matches!(self, Self::Start { .. } | Self::ProviderEvent { .. })
    }
}

/// A provider broke its own protocol; says how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misuse(pub(crate) String);

/// Turns bytes of a response body into events.
pub trait StreamDecoder {
    /// Takes the next bytes, cut anywhere, and appends what they complete.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>);

    /// The body ended. Appends an error unless the answer was complete.
    fn finish(&mut self, out: &mut Vec<StreamEvent>);

    /// The transport failed. Appends `error` unless the answer was complete.
    fn fail(&mut self, error: LlmError, out: &mut Vec<StreamEvent>);
}

/// Folds events into the [`Response`] that a complete call returns.
#[derive(Clone, Debug)]
pub struct StreamAccumulator {
    segments: Vec<(u32, ContentPart)>,
    response: Response,
    outcome: Option<Result<(), LlmError>>,
}

impl StreamAccumulator {
    /// Nothing has arrived from `provider` yet.
    pub fn new(provider: &str) -> Self {
        Self {
            segments: Vec::new(),
            response: empty_response(provider, ""),
            outcome: None,
        }
    }

    /// Takes the next event. Events after a terminal one are ignored.
    pub fn push(&mut self, event: &StreamEvent) {
        if self.outcome.is_some() {
            return;
        }
        match event {
            StreamEvent::Start { id, model } => {
                self.response.id.clone_from(id);
                self.response.model.clone_from(model);
            }
            StreamEvent::TextStart { segment } => self.open(*segment, text_part("")),
            StreamEvent::ReasoningStart { segment } => self.open(*segment, thinking_part("")),
            StreamEvent::TextDelta { segment, text }
            | StreamEvent::ReasoningDelta { segment, text } => self.extend(*segment, text),
            StreamEvent::TextEnd { segment, text } => self.replace(*segment, text_part(text)),
            StreamEvent::ReasoningEnd { segment, text } => {
                self.replace(*segment, thinking_part(text));
            }
            StreamEvent::ToolCallEnd { segment, call } => {
                self.open(*segment, ContentPart::ToolCall(call.clone()));
            }
            StreamEvent::ToolCallStart { .. }
            | StreamEvent::ToolCallDelta { .. }
            | StreamEvent::ProviderEvent { .. } => {}
            StreamEvent::Finish { response } => {
                self.response = (**response).clone();
                self.outcome = Some(Ok(()));
            }
            StreamEvent::Error { error, partial } => {
                self.response = (**partial).clone();
                self.outcome = Some(Err(error.clone()));
            }
        }
    }

    /// What has arrived so far; after the terminal event, the final answer.
    pub fn response(&self) -> Response {
        let mut response = self.response.clone();
        if self.outcome.is_none() {
            let parts = self.segments.iter().map(|(_, part)| part.clone());
            response.message.content = parts.collect();
        }
        response
    }

    /// The complete answer.
    ///
    /// # Errors
    ///
    /// The stream's error; [`LlmErrorKind::Stream`] when no terminal event came.
    pub fn into_result(self) -> Result<Response, LlmError> {
        match self.outcome {
            Some(Ok(())) => Ok(self.response),
            Some(Err(error)) => Err(error),
            None => Err(LlmError::new(
                LlmErrorKind::Stream,
                &self.response.provider,
                format!(
                    "the answer of {} has no end; try again",
                    self.response.provider
                ),
            )),
        }
    }

    fn open(&mut self, segment: u32, part: ContentPart) {
        self.segments.push((segment, part));
    }

    fn find(&mut self, segment: u32) -> Option<&mut ContentPart> {
        self.segments
            .iter_mut()
            .rev()
            .find(|(number, _)| *number == segment)
            .map(|(_, part)| part)
    }

    fn extend(&mut self, segment: u32, more: &str) {
        if let Some(ContentPart::Text { text } | ContentPart::Thinking { text, .. }) =
            self.find(segment)
        {
            text.push_str(more);
        }
    }

    fn replace(&mut self, segment: u32, part: ContentPart) {
        if let Some(slot) = self.find(segment) {
            *slot = part;
        }
    }
}

fn text_part(text: &str) -> ContentPart {
    ContentPart::Text {
        text: text.to_owned(),
    }
}

fn thinking_part(text: &str) -> ContentPart {
    ContentPart::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

/// A response in which nothing has been said yet.
pub(crate) fn empty_response(provider: &str, model: &str) -> Response {
    Response {
        id: String::new(),
        model: model.to_owned(),
        provider: provider.to_owned(),
        message: Message {
            role: Role::Assistant,
            content: Vec::new(),
            replay: None,
        },
        finish_reason: FinishReason {
            reason: FinishKind::Other,
            raw: String::new(),
        },
        usage: Usage::default(),
        warnings: Vec::new(),
        rate_limit: None,
        sampled: None,
    }
}
