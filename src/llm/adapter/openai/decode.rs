//! The event stream of an answer (LLM-client brief §8). An item's `done` event
//! is authoritative; deltas are for showing what arrives.
//!
//! Servers that copy this API, such as llama.cpp, leave out `output_index` and
//! `content_index`: there an item is known by its id, a call also by its call
//! id, and a text without an index is the first one.

use serde::Deserialize;
use serde_json::Value;

use super::NAME;
use crate::llm::adapter::call::arguments_text;
use crate::llm::adapter::openai_error::of_body;
use crate::llm::adapter::reader::ResponseDecoder;
use crate::llm::adapter::text::Text;
use crate::llm::builder::ResponseBuilder;
use crate::llm::calls::Settled;
use crate::llm::error::clip;
use crate::llm::message::{ContentPart, Replay};
use crate::llm::names::Names;
use crate::llm::request::Request;
use crate::llm::response::{FinishKind, Usage};
use crate::llm::stream::{Misuse, StreamEvent};
use crate::llm::warning::Warning;
use crate::text::SortedMap;

/// The answer so far.
pub(in crate::llm::adapter) struct Events {
    names: Names,
    builder: ResponseBuilder,
    /// Output items by index.
    items: SortedMap<u32, Item>,
    /// Number of the next segment.
    next: u32,
    refused: bool,
    usage: Value,
}

struct Item {
    kind: ItemKind,
    /// The item's id, and the call id of a call; empty where there is none.
    ids: [String; 2],
    /// Texts of a message by content index: segment, and whether it is open.
    texts: SortedMap<u32, (u32, bool)>,
    /// The item as it goes back, once it is complete.
    done: Option<Value>,
    /// Whether its end has come, complete or not.
    ended: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum ItemKind {
    Message,
    /// With its segment.
    Reasoning(u32),
    /// With its segment.
    Call(u32),
    Other,
}

impl Events {
    pub(super) fn new(request: &Request, names: Names) -> Self {
        Self {
            builder: ResponseBuilder::new(&names.provider, request),
            names,
            items: SortedMap::new(),
            next: 0,
            refused: false,
            usage: Value::Null,
        }
    }
}

/// The events that come thousands of times, read without building a tree.
#[derive(Deserialize)]
struct DeltaEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    output_index: Option<u32>,
    content_index: Option<u32>,
    #[serde(borrow, default)]
    item_id: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
}

impl ResponseDecoder for Events {
    fn data(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if let Ok(event) = serde_json::from_str::<DeltaEvent<'_>>(data)
            && self.delta(&event, out)?
        {
            return Ok(());
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|_| Misuse(format!("an event is not JSON: `{}`", clip(data))))?;
        match event["type"].as_str() {
            Some("response.created" | "response.in_progress" | "response.queued") => {
                self.start(&event["response"], out);
                Ok(())
            }
            Some("response.output_item.added") => {
                self.start(&Value::Null, out);
                self.added(self.place(&event)?, &event["item"], out)
            }
            Some("response.output_item.done") => {
                self.start(&Value::Null, out);
                self.done(self.place(&event)?, &event["item"], out)
            }
            Some("response.content_part.added") => self.part_added(&event, out),
            Some("response.output_text.done") => self.text_done(&event, "text", out),
            Some("response.refusal.done") => self.text_done(&event, "refusal", out),
            Some("response.reasoning_summary_part.added") => self.summary_part(&event, out),
            // Their items say it all once more.
            Some(
                "response.content_part.done"
                | "response.function_call_arguments.done"
                | "response.custom_tool_call_input.done"
                | "response.reasoning_summary_part.done"
                | "response.reasoning_summary_text.done"
                | "response.reasoning_text.done",
            ) => Ok(()),
            Some(
                "response.completed"
                | "response.incomplete"
                | "response.failed"
                | "response.cancelled",
            ) => self.end(event, out),
            Some("error") => {
                self.fail(of_body(&self.names, None, event), out);
                Ok(())
            }
            Some("response.function_call_arguments.delta") if event["delta"].is_object() => {
                let item = self.item_of(&event)?;
                match self.open_item(item)?.kind {
                    ItemKind::Call(segment) => {
                        let arguments = arguments_text(&event["delta"]);
                        self.builder.delta(segment, &arguments, out)
                    }
                    _ => Err(Misuse(format!("output item {item} got arguments"))),
                }
            }
            Some(kind) if kind.ends_with(".delta") && MODELED.contains(&kind) => {
                Err(Misuse(format!("a {kind} event is malformed")))
            }
            Some(_) => {
                self.builder.provider_event(event, out);
                Ok(())
            }
            None if event.get("error").is_some_and(|error| !error.is_null()) => {
                self.fail(of_body(&self.names, None, event), out);
                Ok(())
            }
            None => Err(Misuse(format!("an event has no type: `{}`", clip(data)))),
        }
    }

    fn builder(&mut self) -> &mut ResponseBuilder {
        &mut self.builder
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn usage(&self) -> Usage {
        let count = |value: &Value| value.as_u64();
        let usage = &self.usage;
        let input = count(&usage["input_tokens"]).unwrap_or(0);
        let output = count(&usage["output_tokens"]).unwrap_or(0);
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: count(&usage["total_tokens"]).unwrap_or(input.saturating_add(output)),
            reasoning_tokens: count(&usage["output_tokens_details"]["reasoning_tokens"]),
            cache_read_tokens: count(&usage["input_tokens_details"]["cached_tokens"]),
            cache_write_tokens: count(&usage["input_tokens_details"]["cache_write_tokens"]),
            uncounted_input_tokens: 0,
            raw: usage.is_object().then(|| usage.clone()),
        }
    }
}

impl Events {
    fn start(&mut self, response: &Value, out: &mut Vec<StreamEvent>) {
        let text = |name: &str| response[name].as_str().unwrap_or_default();
        // Several events may tell of the beginning; the first one counts.
        let _ = self.builder.start(text("id"), text("model"), out);
    }

    /// `false` for an event that is not one of these deltas.
    fn delta(
        &mut self,
        event: &DeltaEvent<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<bool, Misuse> {
        if !MODELED.contains(&&*event.kind) {
            return Ok(false);
        }
        let item = match event.output_index {
            Some(index) => index,
            None => self.known([&*event.item_id]).ok_or_else(nameless)?,
        };
        let kind = self.open_item(item)?.kind;
        let segment = match (&*event.kind, kind) {
            ("response.output_text.delta" | "response.refusal.delta", ItemKind::Message) => {
                self.refused |= *event.kind == *"response.refusal.delta";
                self.text(item, event.content_index.unwrap_or(0), out)?
            }
            (
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
                ItemKind::Call(segment),
            )
            | (
                "response.reasoning_summary_text.delta" | "response.reasoning_text.delta",
                ItemKind::Reasoning(segment),
            ) => segment,
            _ => {
                let message = format!("output item {item} got a {}", &*event.kind);
                return Err(Misuse(message));
            }
        };
        self.builder.delta(segment, &event.delta, out)?;
        Ok(true)
    }

    fn added(
        &mut self,
        index: u32,
        item: &Value,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        if self.items.contains_key(&index) {
            return Err(Misuse(format!("output item {index} began twice")));
        }
        let text = |name: &str| match item[name].as_str() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(Misuse(format!("output item {index} has no {name}"))),
        };
        let kind = match text("type")? {
            "message" => ItemKind::Message,
            "reasoning" => {
                let segment = self.number();
                self.builder.reasoning_start(segment, out)?;
                ItemKind::Reasoning(segment)
            }
            kind @ ("function_call" | "custom_tool_call") => {
                let segment = self.number();
                let custom = kind == "custom_tool_call";
                let (id, name) = (text("call_id")?, text("name")?);
                self.builder.call_start(segment, id, name, custom, out)?;
                ItemKind::Call(segment)
            }
            _ => ItemKind::Other,
        };
        self.items.insert(
            index,
            Item {
                kind,
                ids: ["id", "call_id"]
                    .map(|name| item[name].as_str().unwrap_or_default().to_owned()),
                texts: SortedMap::new(),
                done: None,
                ended: false,
            },
        );
        Ok(())
    }

    fn part_added(&mut self, event: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let item = self.item_of(event)?;
        let content = index(event, "content_index")?.unwrap_or(0);
        if self.open_item(item)?.kind != ItemKind::Message {
            return Ok(());
        }
        match event["part"]["type"].as_str() {
            Some("output_text") => self.text(item, content, out).map(drop),
            Some("refusal") => {
                self.refused = true;
                self.text(item, content, out).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The segment of a message's text, opened if it is new.
    fn text(&mut self, item: u32, content: u32, out: &mut Vec<StreamEvent>) -> Result<u32, Misuse> {
        if let Some((segment, _)) = self.open_item(item)?.texts.get(&content) {
            return Ok(*segment);
        }
        let segment = self.number();
        self.builder.text_start(segment, out)?;
        self.open_item(item)?.texts.insert(content, (segment, true));
        Ok(segment)
    }

    fn text_done(
        &mut self,
        event: &Value,
        field: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        let item = self.item_of(event)?;
        let content = index(event, "content_index")?.unwrap_or(0);
        self.refused |= field == "refusal";
        self.close_text(
            item,
            content,
            event[field].as_str().unwrap_or_default(),
            out,
        )
    }

    /// Ends a message's text, with what the deltas left out of `whole`.
    fn close_text(
        &mut self,
        item: u32,
        content: u32,
        whole: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        let segment = self.text(item, content, out)?;
        let texts = &mut self.open_item(item)?.texts;
        match texts.insert(content, (segment, false)) {
            Some((_, true)) => {
                self.complete(segment, whole, out)?;
                self.builder.end(segment, out)
            }
            _ => Ok(()),
        }
    }

    fn summary_part(&mut self, event: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let item = self.item_of(event)?;
        let kind = self.open_item(item)?.kind;
        match kind {
            ItemKind::Reasoning(segment) if !self.builder.collected(segment).is_empty() => {
                self.builder.delta(segment, "\n\n", out)
            }
            _ => Ok(()),
        }
    }

    /// The item's last word.
    fn done(&mut self, index: u32, item: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        match self.items.get(&index) {
            None => self.added(index, item, out)?,
            Some(known) if known.ended => return Ok(()),
            Some(_) => {}
        }
        let kind = self.open_item(index)?.kind;
        // A call that a limit cut off has no end: it must not be run.
        let cut_off = matches!(kind, ItemKind::Call(_)) && item["status"] == "incomplete";
        match kind {
            ItemKind::Message => self.message_done(index, item, out)?,
            ItemKind::Reasoning(segment) => {
                self.complete(segment, &reasoning_text(item), out)?;
                self.builder.end(segment, out)?;
            }
            ItemKind::Call(_) if cut_off => {}
            ItemKind::Call(segment) => {
                let fields = [&item["arguments"], &item["input"]];
                if let Some(value) = fields.into_iter().find(|value| !value.is_null()) {
                    let text = arguments_text(value);
                    self.complete(segment, &text, out)?;
                    if !text.is_empty() || self.builder.collected(segment).is_empty() {
                        self.builder.set_arguments(segment, text.into_owned())?;
                    }
                }
                self.builder.end(segment, out)?;
            }
            ItemKind::Other => {
                let segment = self.number();
                let part = ContentPart::Other {
                    kind: item["type"].as_str().unwrap_or_default().to_owned(),
                    value: item.clone(),
                };
                self.builder.whole(segment, part)?;
                self.builder.end(segment, out)?;
                self.builder.provider_event(item.clone(), out);
            }
        }
        let known = self.open_item(index)?;
        known.ended = true;
        known.done = (!cut_off).then(|| item.clone());
        Ok(())
    }

    fn message_done(
        &mut self,
        index: u32,
        item: &Value,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        for (content, part) in (0_u32..).zip(item["content"].as_array().into_iter().flatten()) {
            let field = match part["type"].as_str() {
                Some("output_text") => "text",
                Some("refusal") => {
                    self.refused = true;
                    "refusal"
                }
                _ => continue,
            };
            let whole = part[field].as_str().unwrap_or_default();
            if !whole.is_empty() || self.open_item(index)?.texts.contains_key(&content) {
                self.close_text(index, content, whole, out)?;
            }
        }
        let open: Vec<u32> = self.open_item(index)?.texts.keys().copied().collect();
        open.into_iter()
            .try_for_each(|content| self.close_text(index, content, "", out))
    }

    /// Adds what `whole` has beyond the deltas.
    fn complete(
        &mut self,
        segment: u32,
        whole: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        match whole.strip_prefix(self.builder.collected(segment)) {
            Some(rest) => self.builder.delta(segment, rest, out),
            None => Ok(()),
        }
    }

    fn end(&mut self, mut event: Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let response = event["response"].take();
        if !response.is_object() {
            return Err(Misuse("the last event has no response".to_owned()));
        }
        self.start(&response, out);
        self.usage = response["usage"].clone();
        let error = &response["error"];
        if event["type"] == "response.failed" || response["status"] == "failed" {
            let body = serde_json::json!({"error": error});
            self.fail(of_body(&self.names, None, body), out);
            return Ok(());
        }
        // What was not streamed item by item.
        for (position, item) in (0_u32..).zip(response["output"].as_array().into_iter().flatten()) {
            let index = self.known(names(item)).unwrap_or(position);
            if self.items.get(&index).is_none_or(|known| !known.ended) {
                self.done(index, item, out)?;
            }
        }
        let detail = response["incomplete_details"]["reason"].as_str();
        let status = match event["type"].as_str() {
            Some("response.incomplete") => "incomplete",
            Some("response.cancelled") => "cancelled",
            _ => response["status"].as_str().unwrap_or("completed"),
        };
        let (reason, mut raw) = match (status, detail) {
            ("completed", _) => (FinishKind::Stop, "completed"),
            ("incomplete", Some("max_output_tokens")) => (FinishKind::Length, "max_output_tokens"),
            ("incomplete", Some("content_filter")) => (FinishKind::ContentFilter, "content_filter"),
            ("incomplete", detail) => (FinishKind::Other, detail.unwrap_or("incomplete")),
            ("cancelled", _) => (FinishKind::Error, "cancelled"),
            (status, _) => (FinishKind::Other, status),
        };
        let mut settled = self.builder.settle(reason)?;
        if settled.reason == FinishKind::Stop && self.refused {
            (settled.reason, raw) = (FinishKind::ContentFilter, "refusal");
        }
        let removed = response["input_transformations"].as_array();
        for removed in removed.into_iter().flatten() {
            let message = clip(&format!("openai changed the input: {removed}"));
            self.builder
                .warn(Warning::new("input_transformed", message));
        }
        let (usage, replay) = (self.usage(), self.replay(&settled));
        self.builder
            .finish(&settled, raw.to_owned(), usage, replay, out);
        Ok(())
    }

    /// `None` when an item other than a cut-off call never came to its end:
    /// then the parts of the answer are all that there is.
    fn replay(&mut self, settled: &Settled) -> Option<Replay> {
        let lost = |item: &Item| !item.ended && !matches!(item.kind, ItemKind::Call(_));
        if self.items.values().any(lost) {
            return None;
        }
        let items = std::mem::take(&mut self.items);
        Some(Replay {
            provider: NAME.to_owned(),
            model: self.builder.model().to_owned(),
            items: items
                .into_values()
                .filter_map(|item| match (item.kind, item.done) {
                    (ItemKind::Call(segment), Some(mut done)) => settled
                        .keep(segment, |id| done["call_id"] = Value::from(id))
                        .then_some(done),
                    (_, done) => done,
                })
                .collect(),
        })
    }

    /// The item that bears one of `names`.
    fn known<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<u32> {
        let mut names = names.into_iter().filter(|name| !name.is_empty());
        names.find_map(|name| {
            let mut items = self.items.iter();
            items.find_map(|(index, item)| item.ids.iter().any(|id| id == name).then_some(*index))
        })
    }

    /// The item that an event speaks of.
    fn item_of(&self, event: &Value) -> Result<u32, Misuse> {
        match index(event, "output_index")? {
            Some(index) => Ok(index),
            None => self.known(event["item_id"].as_str()).ok_or_else(nameless),
        }
    }

    /// The place of the item that an event brings: a new one is the next.
    fn place(&self, event: &Value) -> Result<u32, Misuse> {
        let next = || match self.items.keys().last() {
            Some(last) => last.saturating_add(1),
            None => 0,
        };
        let given = index(event, "output_index")?;
        Ok(given.unwrap_or_else(|| self.known(names(&event["item"])).unwrap_or_else(next)))
    }

    fn open_item(&mut self, index: u32) -> Result<&mut Item, Misuse> {
        match self.items.get_mut(&index) {
            Some(item) if !item.ended => Ok(item),
            _ => Err(Misuse(format!("output item {index} is not open"))),
        }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// The deltas that become events.
const MODELED: [&str; 6] = [
    "response.output_text.delta",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
];

/// The text of a reasoning item, its parts separated by blank lines.
fn reasoning_text(item: &Value) -> String {
    let texts = |field: &str| -> Vec<&str> {
        let parts = item[field].as_array().into_iter().flatten();
        parts.filter_map(|part| part["text"].as_str()).collect()
    };
    match texts("summary") {
        summary if summary.is_empty() => texts("content").concat(),
        summary => summary.join("\n\n"),
    }
}

/// The names under which events may speak of an item.
fn names(item: &Value) -> impl Iterator<Item = &str> {
    let names = ["id", "call_id"].into_iter();
    names.filter_map(|name| item[name].as_str())
}

/// `None` where the event has no such field.
fn index(event: &Value, field: &str) -> Result<Option<u32>, Misuse> {
    match &event[field] {
        Value::Null => Ok(None),
        given => match given.as_u64().map(u32::try_from) {
            Some(Ok(index)) => Ok(Some(index)),
            _ => Err(Misuse(format!("an event has no usable {field}"))),
        },
    }
}

fn nameless() -> Misuse {
    Misuse("an event names no output item that is there".to_owned())
}
