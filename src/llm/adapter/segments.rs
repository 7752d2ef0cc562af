//! Answers whose pieces of text bear no number (chat completions, Gemini): the
//! segments of a stream are counted here, and text that changes its kind
//! begins a new one.

use crate::llm::builder::ResponseBuilder;
use crate::llm::request::Request;
use crate::llm::stream::{Misuse, StreamEvent};

/// The segments of an answer.
pub(super) struct Segments {
    pub(super) builder: ResponseBuilder,
    /// Makes ids of calls unique in the conversation: the answer's own id, or
    /// its place where it has none.
    pub(super) seed: String,
    /// Number of the next segment.
    next: u32,
    /// The segment that text goes to, and whether it is reasoning.
    open: Option<(u32, bool)>,
}

impl Segments {
    pub(super) fn new(provider: &str, request: &Request) -> Self {
        Self {
            builder: ResponseBuilder::new(provider, request),
            seed: request.conversation.len().to_string(),
            next: 0,
            open: None,
        }
    }

    /// Takes the names of the answer, which every chunk bears; the first
    /// chunk's count.
    pub(super) fn start(
        &mut self,
        id: &str,
        model: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        if !id.is_empty() && self.seed != id {
            id.clone_into(&mut self.seed);
        }
        match self.builder.has_started() {
            true => Ok(()),
            false => self.builder.start(id, model, out),
        }
    }

    /// More text, or more reasoning. Switching between them closes the other.
    pub(super) fn text(
        &mut self,
        text: &str,
        is_reasoning: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        if text.is_empty() {
            return Ok(());
        }
        let segment = match self.open {
            Some((segment, reasoning)) if reasoning == is_reasoning => segment,
            _ => {
                self.close(out)?;
                let segment = self.number();
                if is_reasoning {
                    self.builder.reasoning_start(segment, out)?;
                } else {
                    self.builder.text_start(segment, out)?;
                }
                self.open = Some((segment, is_reasoning));
                segment
            }
        };
        self.builder.delta(segment, text, out)
    }

    /// Closes the text that is open.
    pub(super) fn close(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        match self.open.take() {
            Some((segment, _)) => self.builder.end(segment, out),
            None => Ok(()),
        }
    }

    /// Number of a new segment.
    pub(super) fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}
