//! Messages as chat completions want them: bytes that are kept and appended.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::llm::adapter::call::{arguments_text, object, result_text, results, wire_name};
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::media;
use crate::llm::error::LlmError;
use crate::llm::message::{ContentPart, Media, Message, Role, ToolCall};
use crate::llm::warning::Warning;
use crate::llm::wire::{Wire, WireFormat};

/// Sounds that the format has a name for.
const SOUNDS: [(&str, &str); 4] = [
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
];

/// How messages are written for one class of servers.
#[derive(Debug)]
pub(super) struct ChatFormat {
    /// Whether the model sees images.
    pub(super) vision: bool,
    /// Whether system messages may stand among the others.
    pub(super) system_in_messages: bool,
    /// How calls of freeform tools are wrapped.
    pub(super) freeform: Freeform,
}

impl WireFormat for ChatFormat {
    fn key(&self) -> String {
        format!(
            "{NAME} vision={} system={}{}",
            self.vision,
            self.system_in_messages,
            self.freeform.key()
        )
    }

    fn append(
        &self,
        _before: &[Message],
        group: &[Message],
        wire: &mut Wire,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), LlmError> {
        let mut writer = Writer {
            format: self,
            wire,
            warnings,
        };
        let is_assistant = |message: &Message| message.role == Role::Assistant;
        for run in group.chunk_by(|a, b| is_assistant(a) == is_assistant(b)) {
            if run.first().is_some_and(is_assistant) {
                run.iter().for_each(|message| writer.assistant(message));
            } else {
                writer.others(run)?;
            }
        }
        Ok(())
    }
}

struct Writer<'a> {
    format: &'a ChatFormat,
    wire: &'a mut Wire,
    warnings: &'a mut Vec<Warning>,
}

impl Writer<'_> {
    fn assistant(&mut self, message: &Message) {
        if let Some(replay) = message
            .replay
            .as_ref()
            .filter(|replay| replay.provider == NAME)
        {
            for item in &replay.items {
                self.message(&replayed(item));
            }
            return;
        }
        let dropped = |part: &&ContentPart| {
            matches!(
                part,
                ContentPart::Image(_)
                    | ContentPart::Audio(_)
                    | ContentPart::Document(_)
                    | ContentPart::ToolResult(_)
                    | ContentPart::Other { .. }
            )
        };
        for _ in message.content.iter().filter(dropped) {
            let message = "a part of an assistant message cannot be sent to chat and is left out";
            self.warnings.push(Warning::new("part_dropped", message));
        }
        let text = message.joined_text();
        let calls: Vec<Value> = message.tool_calls().map(|call| self.call(call)).collect();
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let mut value = Map::new();
        value.insert("role".to_owned(), Value::from("assistant"));
        value.insert("content".to_owned(), content(&text));
        if !calls.is_empty() {
            value.insert("tool_calls".to_owned(), Value::from(calls));
        }
        self.message(&Value::Object(value));
    }

    fn call(&self, call: &ToolCall) -> Value {
        let arguments = match call.arguments.as_str() {
            text if call.custom => self.format.freeform.wrap(&call.name, text).to_string(),
            text => object(text),
        };
        json!({
            "id": call.id,
            "type": "function",
            "function": {"name": wire_name(&call.name), "arguments": arguments},
        })
    }

    /// A run of user, tool and late system messages. The results come first,
    /// one message each; they hold only text, so their media follow as a user
    /// message.
    fn others(&mut self, run: &[Message]) -> Result<(), LlmError> {
        let mut shown = Vec::new();
        for result in results(run) {
            let text = result_text(result);
            self.message(&json!({
                "role": "tool", "tool_call_id": result.tool_call_id, "content": text,
            }));
            for media in &result.media {
                shown.push(json!({
                    "type": "text",
                    "text": format!("From the result of {}:", result.tool_name),
                }));
                shown.push(self.media(media)?);
            }
        }
        if !shown.is_empty() {
            self.message(&json!({"role": "user", "content": shown}));
        }
        for message in run {
            let role = match message.role.is_system() && self.format.system_in_messages {
                true => "system",
                false => "user",
            };
            let parts = self.parts(message)?;
            let content = match parts.as_slice() {
                [] => continue,
                [part] if part["type"] == "text" => part["text"].clone(),
                _ => Value::from(parts),
            };
            self.message(&json!({"role": role, "content": content}));
        }
        Ok(())
    }

    fn parts(&mut self, message: &Message) -> Result<Vec<Value>, LlmError> {
        let mut parts = Vec::new();
        for part in &message.content {
            match part {
                ContentPart::Text { text } if text.is_empty() => {}
                ContentPart::Text { text } => parts.push(json!({"type": "text", "text": text})),
                ContentPart::Image(media)
                | ContentPart::Document(media)
                | ContentPart::Audio(media) => parts.push(self.media(media)?),
                ContentPart::ToolResult(_) => {}
                ContentPart::Other { value, .. } if value["type"].is_string() => {
                    parts.push(value.clone());
                }
                _ => {
                    let message = "a part of a user message cannot be sent to chat and is left out";
                    self.warnings.push(Warning::new("part_dropped", message));
                }
            }
        }
        Ok(parts)
    }

    /// An image, a sound or a file. A text document becomes a text, for the
    /// format has no place for it; what it cannot hold, a text that says so.
    fn media(&mut self, media: &Media) -> Result<Value, LlmError> {
        if let Some(text) = media::as_text(media) {
            return Ok(json!({"type": "text", "text": text}));
        }
        if media::is_image(media) && self.format.vision {
            let mut image = json!({"url": media::address(NAME, media)?});
            if let Some(detail) = &media.detail {
                image["detail"] = Value::from(detail.as_str());
            }
            return Ok(json!({"type": "image_url", "image_url": image}));
        }
        let place = media::place(NAME, media)?;
        let sound = SOUNDS.iter().find(|(kind, _)| *kind == media.media_type);
        match (place, sound) {
            (media::MediaAddress::Inline(_, data), Some((_, format))) => Ok(json!({
                "type": "input_audio", "input_audio": {"data": data, "format": format},
            })),
            (media::MediaAddress::Inline(kind, data), None) if kind == "application/pdf" => {
                let name = media.file_name.as_deref().unwrap_or("document.pdf");
                let data = format!("data:{kind};base64,{data}");
                Ok(json!({"type": "file", "file": {"filename": name, "file_data": data}}))
            }
            _ => {
                let text = media::left_out(NAME, media, self.warnings);
                Ok(json!({"type": "text", "text": text}))
            }
        }
    }

    fn message(&mut self, message: &Value) {
        self.wire.separate();
        self.wire
            .bytes
            .extend_from_slice(message.to_string().as_bytes());
    }
}

/// A message of this format, as it came, except what servers refuse in a call:
/// a name that cannot be, and arguments that are not the text of an object,
/// which they parse for their chat templates.
fn replayed(message: &Value) -> Value {
    let mut message = message.clone();
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        let Some(Value::Object(function)) = call.get_mut("function") else {
            continue;
        };
        if let Some(name) = function.get_mut("name") {
            *name = Value::from(wire_name(name.as_str().unwrap_or_default()).into_owned());
        }
        if let Some(arguments) = function.get_mut("arguments") {
            *arguments = Value::from(object(&arguments_text(arguments)));
        }
    }
    message
}

/// The text of an assistant message; `null` beside calls, which every server
/// takes, while some refuse an empty one.
pub(super) fn content(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => Value::from(text),
    }
}
