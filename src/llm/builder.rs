//! What every decoder shares: it keeps the order that [`StreamEvent`] promises
//! and collects the parts of the response.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use super::calls::{Settled, Written, cut_off};
use super::error::LlmError;
use super::message::{ContentPart, Replay, ToolCall};
use super::request::Request;
use super::response::{FinishKind, FinishReason, Response, Usage};
use super::stream::{Misuse, StreamEvent, empty_response};
use super::warning::Warning;

/// Collects one answer.
#[derive(Debug)]
pub(crate) struct ResponseBuilder {
    /// Ids of earlier calls.
    call_ids: Rc<BTreeSet<String>>,
    response: Response,
    parts: Vec<Part>,
    /// Bytes of all text, reasoning and arguments.
    bytes: usize,
    started: bool,
    ended: bool,
}

#[derive(Debug)]
struct Part {
    segment: u32,
    kind: PartKind,
    text: String,
    open: bool,
}

#[derive(Debug)]
enum PartKind {
    Text,
    Reasoning {
        signature: Option<String>,
    },
    Call {
        id: String,
        name: String,
        custom: bool,
        /// The arguments are known to be whole, JSON or not.
        given: bool,
    },
    Whole(ContentPart),
}

/// Bytes of an answer after which it counts as broken: a hundred times what any
/// model may write.
const MAX_ANSWER_BYTES: usize = 64 << 20;

impl ResponseBuilder {
    pub(crate) fn new(provider: &str, request: &Request) -> Self {
        Self {
            call_ids: request.conversation.call_ids(),
            response: empty_response(provider, &request.model),
            parts: Vec::new(),
            bytes: 0,
            started: false,
            ended: false,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Model that answers, as far as known.
    pub(crate) fn model(&self) -> &str {
        &self.response.model
    }

    pub(crate) fn start(
        &mut self,
        id: &str,
        model: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        if self.started {
            return Err(Misuse("the answer began twice".to_owned()));
        }
        self.started = true;
        id.clone_into(&mut self.response.id);
        if !model.is_empty() {
            model.clone_into(&mut self.response.model);
        }
        out.push(StreamEvent::Start {
            id: self.response.id.clone(),
            model: self.response.model.clone(),
        });
        Ok(())
    }

    pub(crate) fn text_start(
        &mut self,
        segment: u32,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        self.open(segment, PartKind::Text)?;
        out.push(StreamEvent::TextStart { segment });
        Ok(())
    }

    pub(crate) fn reasoning_start(
        &mut self,
        segment: u32,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        self.open(segment, PartKind::Reasoning { signature: None })?;
        out.push(StreamEvent::ReasoningStart { segment });
        Ok(())
    }

    pub(crate) fn call_start(
        &mut self,
        segment: u32,
        id: &str,
        name: &str,
        custom: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        let (id, name) = (id.to_owned(), name.to_owned());
        let kind = PartKind::Call {
            id: id.clone(),
            name: name.clone(),
            custom,
            given: false,
        };
        self.open(segment, kind)?;
        out.push(StreamEvent::ToolCallStart { segment, id, name });
        Ok(())
    }

    /// A part that arrives whole, without events. It stays open,
    /// so that [`ResponseBuilder::replace`] can complete it, until `end`.
    pub(crate) fn whole(&mut self, segment: u32, part: ContentPart) -> Result<(), Misuse> {
        self.open(segment, PartKind::Whole(part))
    }

    pub(crate) fn replace(&mut self, segment: u32, part: ContentPart) -> Result<(), Misuse> {
        self.find(segment)?.kind = PartKind::Whole(part);
        Ok(())
    }

    /// More of the text, the reasoning or the arguments of `segment`.
    pub(crate) fn delta(
        &mut self,
        segment: u32,
        more: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        self.bytes += more.len();
        if self.bytes > MAX_ANSWER_BYTES {
            let mib = MAX_ANSWER_BYTES >> 20;
            return Err(Misuse(format!("it is longer than {mib} MiB")));
        }
        let part = self.find(segment)?;
        if more.is_empty() {
            return Ok(());
        }
        part.text.push_str(more);
        let text = more.to_owned();
        match part.kind {
            PartKind::Text => out.push(StreamEvent::TextDelta { segment, text }),
            PartKind::Reasoning { .. } => out.push(StreamEvent::ReasoningDelta { segment, text }),
            PartKind::Call { .. } => out.push(StreamEvent::ToolCallDelta {
                segment,
                arguments: text,
            }),
            PartKind::Whole(_) => {}
        }
        Ok(())
    }

    pub(crate) fn sign(&mut self, segment: u32, new: &str) -> Result<(), Misuse> {
        match &mut self.find(segment)?.kind {
            PartKind::Reasoning { signature } => *signature = Some(new.to_owned()),
            _ => return Err(Misuse(format!("part {segment} cannot be signed"))),
        }
        Ok(())
    }

    /// What `delta` collected for `segment`.
    pub(crate) fn collected(&self, segment: u32) -> &str {
        self.parts
            .iter()
            .rev()
            .find(|part| part.segment == segment)
            .map_or("", |part| &part.text)
    }

    /// Replaces the collected arguments before a call ends, when the text on
    /// the wire is only a wrapping of what the model meant.
    pub(crate) fn set_arguments(&mut self, segment: u32, text: String) -> Result<(), Misuse> {
        let part = self.find(segment)?;
        part.text = text;
        if let PartKind::Call { custom, given, .. } = &mut part.kind {
            *given = *custom;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, segment: u32, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let part = self.find(segment)?;
        part.open = false;
        out.extend(part.end_event());
        Ok(())
    }

    /// Characters of all reasoning so far.
    pub(crate) fn reasoning_chars(&self) -> u64 {
        let reasoning = |part: &&Part| matches!(part.kind, PartKind::Reasoning { .. });
        self.parts
            .iter()
            .filter(reasoning)
            .map(|part| part.text.chars().count() as u64)
            .sum()
    }

    /// Something of the provider; before the answer begins it is dropped,
    /// because nothing may come before the start.
    pub(crate) fn provider_event(&mut self, raw: Value, out: &mut Vec<StreamEvent>) {
        if self.started && !self.ended {
            out.push(StreamEvent::ProviderEvent { raw });
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        self.response.warnings.push(warning);
    }

    /// A limit cut off a call before it had a name.
    pub(crate) fn cut_off(&mut self) {
        self.response.warnings.push(cut_off());
    }

    /// Says what becomes of the calls of an answer that ends for `reason`; no
    /// answer finishes without it.
    pub(crate) fn settle(&mut self, reason: FinishKind) -> Result<Settled, Misuse> {
        let calls = self.parts.iter().filter_map(Part::written).collect();
        let last = self.parts.last().map(|part| part.segment);
        let settled = Settled::new(reason, calls, last, &self.call_ids)?;
        self.response.warnings.extend(settled.warnings());
        Ok(settled)
    }

    pub(crate) fn finish(
        &mut self,
        settled: &Settled,
        raw: String,
        usage: Usage,
        replay: Option<Replay>,
        out: &mut Vec<StreamEvent>,
    ) {
        if self.ended {
            return;
        }
        self.parts.retain_mut(|part| match &mut part.kind {
            PartKind::Call { id, .. } => settled.keep(part.segment, |new| new.clone_into(id)),
            _ => true,
        });
        let mut response = self.close(out);
        response.finish_reason = FinishReason {
            reason: settled.reason,
            raw,
        };
        response.usage = usage;
        response.message.replay = replay;
        out.push(StreamEvent::Finish {
            response: Box::new(response),
        });
    }

    pub(crate) fn error(&mut self, error: LlmError, usage: Usage, out: &mut Vec<StreamEvent>) {
        if self.ended {
            return;
        }
        let mut partial = self.close(out);
        partial.usage = usage;
        out.push(StreamEvent::Error {
            error,
            partial: Box::new(partial),
        });
    }

    /// Ends what is open, except calls: an end would say that they are complete.
    fn close(&mut self, out: &mut Vec<StreamEvent>) -> Response {
        if !self.started {
            self.started = true;
            out.push(StreamEvent::Start {
                id: String::new(),
                model: self.response.model.clone(),
            });
        }
        self.ended = true;
        let mut response = self.response.clone();
        for part in self.parts.drain(..) {
            if part.open {
                if matches!(part.kind, PartKind::Call { .. }) {
                    continue;
                }
                out.extend(part.end_event());
            }
            response.message.content.push(part.into_content());
        }
        response
    }

    fn open(&mut self, segment: u32, kind: PartKind) -> Result<(), Misuse> {
        if !self.started {
            return Err(Misuse(format!("part {segment} began before the answer")));
        }
        if self.parts.iter().any(|part| part.segment == segment) {
            return Err(Misuse(format!("part {segment} began twice")));
        }
        self.parts.push(Part {
            segment,
            kind,
            text: String::new(),
            open: true,
        });
        Ok(())
    }

    fn find(&mut self, segment: u32) -> Result<&mut Part, Misuse> {
        self.parts
            .iter_mut()
            .rev()
            .find(|part| part.segment == segment && part.open)
            .ok_or_else(|| Misuse(format!("part {segment} is not open")))
    }
}

impl Part {
    fn end_event(&self) -> Option<StreamEvent> {
        let segment = self.segment;
        match &self.kind {
            PartKind::Text => Some(StreamEvent::TextEnd {
                segment,
                text: self.text.clone(),
            }),
            PartKind::Reasoning { .. } => Some(StreamEvent::ReasoningEnd {
                segment,
                text: self.text.clone(),
            }),
            PartKind::Call {
                id, name, custom, ..
            } => Some(StreamEvent::ToolCallEnd {
                segment,
                call: call(id.clone(), name.clone(), *custom, self.text.clone()),
            }),
            PartKind::Whole(_) => None,
        }
    }

    fn into_content(self) -> ContentPart {
        match self.kind {
            PartKind::Text => ContentPart::Text { text: self.text },
            PartKind::Reasoning { signature } => ContentPart::Thinking {
                text: self.text,
                signature,
            },
            PartKind::Call {
                id, name, custom, ..
            } => ContentPart::ToolCall(call(id, name, custom, self.text)),
            PartKind::Whole(part) => part,
        }
    }

    fn written(&self) -> Option<Written<'_>> {
        let PartKind::Call {
            id, name, given, ..
        } = &self.kind
        else {
            return None;
        };
        Some(Written {
            segment: self.segment,
            id,
            name,
            arguments: &self.text,
            is_open: self.open,
            is_given: *given,
        })
    }
}

fn call(id: String, name: String, custom: bool, text: String) -> ToolCall {
    let arguments = if text.is_empty() && !custom {
        "{}".to_owned()
    } else {
        text
    };
    ToolCall {
        id,
        name,
        arguments,
        custom,
    }
}
