//! Messages as input items: bytes that are kept and appended.

use serde_json::{Value, json};

use super::NAME;
use crate::llm::adapter::call::{
    arguments_text, find_call, result_text, results, short_id, wire_name,
};
use crate::llm::adapter::media;
use crate::llm::error::LlmError;
use crate::llm::message::{ContentPart, Media, Message, Replay, Role, ToolCall, ToolResult};
use crate::llm::warning::Warning;
use crate::llm::wire::{Wire, WireFormat};

/// A call of this provider, as it came, except what the API would refuse: an
/// id, a name, or the arguments in `field`, which must be a text.
fn replayed(call: &Value, field: &str) -> Value {
    let mut call = call.clone();
    let id = short_id(call["call_id"].as_str().unwrap_or_default()).into_owned();
    let name = wire_name(call["name"].as_str().unwrap_or_default()).into_owned();
    call["call_id"] = Value::from(id);
    call["name"] = Value::from(name);
    if !call[field].is_string() {
        let text = match &*arguments_text(&call[field]) {
            "" if field == "arguments" => "{}".to_owned(),
            text => text.to_owned(),
        };
        call[field] = Value::from(text);
    }
    call
}

/// How messages are written for one class of models.
#[derive(Debug)]
pub(super) struct InputFormat {
    /// Whether the model sees images.
    pub(super) vision: bool,
    /// Whether reasoning goes back: models that do not reason refuse it.
    pub(super) reasoning: bool,
}

impl WireFormat for InputFormat {
    fn key(&self) -> String {
        format!("{NAME} vision={} reasoning={}", self.vision, self.reasoning)
    }

    fn append(
        &self,
        before: &[Message],
        group: &[Message],
        wire: &mut Wire,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), LlmError> {
        let mut writer = Writer {
            format: self,
            wire,
            warnings,
        };
        let mut calls = before;
        let is_assistant = |message: &Message| message.role == Role::Assistant;
        for run in group.chunk_by(|a, b| is_assistant(a) == is_assistant(b)) {
            if run.first().is_some_and(is_assistant) {
                run.iter().for_each(|message| writer.assistant(message));
                calls = run;
                continue;
            }
            for result in results(run) {
                let call = find_call(calls, &result.tool_call_id)
                    .or_else(|| find_call(before, &result.tool_call_id));
                writer.result(result, call)?;
            }
            for message in run {
                writer.other(message)?;
            }
        }
        Ok(())
    }
}

struct Writer<'a> {
    format: &'a InputFormat,
    wire: &'a mut Wire,
    warnings: &'a mut Vec<Warning>,
}

impl Writer<'_> {
    fn assistant(&mut self, message: &Message) {
        match &message.replay {
            Some(Replay {
                provider, items, ..
            }) if provider == NAME => {
                // Reasoning that nothing follows is refused.
                let is_reasoning = |item: &Value| item["type"] == "reasoning";
                let last = items.iter().rposition(|item| !is_reasoning(item));
                // Without it, what it led to must not be known by its id: the
                // API asks for the reasoning that belongs to that item.
                let parted = !self.format.reasoning && items.iter().any(is_reasoning);
                for item in &items[..last.map_or(0, |last| last + 1)] {
                    if parted && is_reasoning(item) {
                        continue;
                    }
                    let mut item = match item["type"].as_str() {
                        Some("function_call") => replayed(item, "arguments"),
                        Some("custom_tool_call") => replayed(item, "input"),
                        _ => item.clone(),
                    };
                    if parted && let Some(fields) = item.as_object_mut() {
                        fields.shift_remove("id");
                    }
                    self.item(&item);
                }
            }
            _ => {
                for part in &message.content {
                    self.assistant_part(part);
                }
            }
        }
    }

    /// An assistant's part without this provider's own item. Reasoning of
    /// other providers means nothing here.
    fn assistant_part(&mut self, part: &ContentPart) {
        match part {
            ContentPart::Text { text } if text.is_empty() => {}
            ContentPart::Text { text } => self.item(&json!({"role": "assistant", "content": text})),
            ContentPart::ToolCall(call) => {
                let (id, name) = (short_id(&call.id), wire_name(&call.name));
                let arguments = match call.arguments.as_str() {
                    "" if !call.custom => "{}",
                    arguments => arguments,
                };
                self.item(&if call.custom {
                    json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": arguments})
                } else {
                    json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
                });
            }
            ContentPart::Thinking { .. } | ContentPart::RedactedThinking { .. } => {}
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Other { .. } => {
                let message =
                    "a part of an assistant message cannot be sent to openai and is left out";
                self.warnings.push(Warning::new("part_dropped", message));
            }
        }
    }

    fn result(&mut self, result: &ToolResult, call: Option<&ToolCall>) -> Result<(), LlmError> {
        let text = result_text(result);
        let mut output = Value::from(&*text);
        if !result.media.is_empty() {
            let mut parts = Vec::new();
            if !text.trim().is_empty() {
                parts.push(json!({"type": "input_text", "text": text}));
            }
            for media in &result.media {
                parts.push(self.media(media)?);
            }
            output = Value::from(parts);
        }
        let kind = match call {
            Some(call) if call.custom => "custom_tool_call_output",
            _ => "function_call_output",
        };
        let id = short_id(&result.tool_call_id);
        self.item(&json!({"type": kind, "call_id": id, "output": output}));
        Ok(())
    }

    /// A user message, or a late system message, which stays in its place.
    fn other(&mut self, message: &Message) -> Result<(), LlmError> {
        let role = if message.role.is_system() {
            "developer"
        } else {
            "user"
        };
        let mut parts = Vec::new();
        for part in &message.content {
            match part {
                ContentPart::Text { text } if text.is_empty() => {}
                ContentPart::Text { text } => {
                    parts.push(json!({"type": "input_text", "text": text}));
                }
                ContentPart::Image(media)
                | ContentPart::Document(media)
                | ContentPart::Audio(media) => parts.push(self.media(media)?),
                ContentPart::ToolResult(_) => {}
                ContentPart::Other { value, .. } if value["type"].is_string() => {
                    parts.push(value.clone());
                }
                _ => {
                    let message =
                        "a part of a user message cannot be sent to openai and is left out";
                    self.warnings.push(Warning::new("part_dropped", message));
                }
            }
        }
        if !parts.is_empty() {
            self.item(&json!({"type": "message", "role": role, "content": parts}));
        }
        Ok(())
    }

    /// An image or a file; a text document becomes a text, and what the model
    /// cannot have, one that says so.
    fn media(&mut self, media: &Media) -> Result<Value, LlmError> {
        if let Some(text) = media::as_text(media) {
            return Ok(json!({"type": "input_text", "text": text}));
        }
        let media_type = media.media_type.as_str();
        if media::is_image(media) && self.format.vision {
            let detail = media.detail.as_deref().unwrap_or("auto");
            let address = media::address(NAME, media)?;
            return Ok(json!({"type": "input_image", "image_url": address, "detail": detail}));
        }
        let is_file = media_type.starts_with("text/") || media_type.starts_with("application/");
        if !is_file {
            let text = media::left_out(NAME, media, self.warnings);
            return Ok(json!({"type": "input_text", "text": text}));
        }
        let address = media::address(NAME, media)?;
        Ok(if address.starts_with("data:") {
            let name = media.file_name.as_deref().unwrap_or("document");
            json!({"type": "input_file", "filename": name, "file_data": address})
        } else {
            json!({"type": "input_file", "file_url": address})
        })
    }

    fn item(&mut self, item: &Value) {
        self.wire.separate();
        self.wire
            .bytes
            .extend_from_slice(item.to_string().as_bytes());
    }
}
