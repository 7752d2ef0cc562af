//! Everything of a provider's request but its history, written once and used
//! again while everything that it is made from stays equal: between two rounds
//! of a session only the history changes.

use std::rc::Rc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::http::HttpRequest;
use super::message::Message;
use super::tool::ToolDefinition;
use super::warning::Warning;
use super::wire::{Wire, WireFormat};

/// What an adapter writes of a request that has no history.
#[derive(Debug)]
pub(super) struct Head {
    /// The exchange, still without its body.
    pub(super) http: HttpRequest,
    /// Text of the body up to the field of the history.
    fields: String,
    /// Text that begins this field: `"messages":[`, then elements that are not
    /// messages of the conversation, with a comma after each.
    pub(super) list: String,
    /// Text that goes to the last marks of the history, and to how many.
    pub(super) marker: (String, usize),
    /// How the history is written.
    pub(super) format: Box<dyn WireFormat>,
    /// What was left out or changed.
    pub(super) warnings: Vec<Warning>,
}

impl Head {
    /// A head with these `fields` in its body; the history becomes the last
    /// one, `list`.
    pub(super) fn new(
        http: HttpRequest,
        fields: &Map<String, Value>,
        list: &str,
        format: impl WireFormat + 'static,
        warnings: Vec<Warning>,
    ) -> Self {
        let mut text = serde_json::to_string(fields).unwrap_or_default();
        text.pop();
        if !fields.is_empty() {
            text.push(',');
        }
        Self {
            http,
            fields: text,
            list: format!("\"{list}\":["),
            marker: (String::new(), 0),
            format: Box::new(format),
            warnings,
        }
    }

    /// The whole body: one copy of the bytes, whatever the length of the
    /// history. `None` when nothing of the history is sent.
    pub(super) fn body(&self, wire: &Wire) -> Option<Bytes> {
        let (resume, sent) = match &wire.resume {
            Some(resume) => (resume.field.as_str(), &wire.bytes[..resume.sent]),
            None => ("", &wire.bytes[..]),
        };
        if sent.is_empty() {
            return None;
        }
        let comma = if resume.is_empty() { "" } else { "," };
        let mut pieces = Vec::from([&self.fields, resume, comma, &self.list].map(str::as_bytes));
        let (marker, most) = &self.marker;
        let marks = wire.marks.partition_point(|mark| *mark <= sent.len());
        let mut from = 0;
        for mark in &wire.marks[marks.saturating_sub(*most)..marks] {
            pieces.extend([&sent[from..*mark], marker.as_bytes()]);
            from = *mark;
        }
        pieces.extend([&sent[from..], b"]}"]);
        Some(Bytes::from(pieces.concat()))
    }
}

/// A head with what it is written from.
#[derive(Debug)]
pub(super) struct KeptHead {
    pub(super) head: Head,
    pub(super) source: HeadSource,
}

/// Everything that a head is written from.
#[derive(Debug)]
pub(super) struct HeadSource {
    pub(super) adapter: &'static str,
    pub(super) system: Vec<String>,
    pub(super) leading: Vec<Message>,
    pub(super) tools: Rc<[Rc<ToolDefinition>]>,
    /// The rest as debug text. `==` on the values would not do: to it the order
    /// of fields and the sign of a zero are nothing.
    pub(super) settings: String,
}

/// Equal sources give the same head.
impl PartialEq for HeadSource {
    fn eq(&self, other: &Self) -> bool {
        self.adapter == other.adapter
            && self.settings == other.settings
            && are_same(&self.tools, &other.tools)
            && self.leading == other.leading
            && self.system == other.system
    }
}

/// Whether the two lists are written alike; a session shares one list.
fn are_same(left: &Rc<[Rc<ToolDefinition>]>, right: &Rc<[Rc<ToolDefinition>]>) -> bool {
    Rc::ptr_eq(left, right)
        || left.len() == right.len()
            && left
                .iter()
                .zip(right.iter())
                .all(|(left, right)| Rc::ptr_eq(left, right) || is_same_text(left, right))
}

/// Whether the two are the same JSON text. `==` would not do: to it the order
/// of fields and the sign of a zero are nothing.
fn is_same_text<T: Serialize + ?Sized>(left: &T, right: &T) -> bool {
    let (left, right) = (serde_json::to_string(left), serde_json::to_string(right));
    matches!((left, right), (Ok(left), Ok(right)) if left == right)
}
