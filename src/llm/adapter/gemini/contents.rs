//! Messages as contents: bytes that are kept and appended.

use serde_json::{Value, json};

use super::{NAME, OWN_ID};
use crate::llm::adapter::call::{
    FAILED_SILENTLY, arguments_text, find_call, object, results, wire_name, with_raw,
};
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::media::{self, MediaAddress};
use crate::llm::calls::raw_object;
use crate::llm::error::LlmError;
use crate::llm::message::{ContentPart, Media, Message, Role, ToolCall, ToolResult};
use crate::llm::warning::Warning;
use crate::llm::wire::{Resume, Wire, WireFormat};

/// Stands for a signature that another model's call cannot have; from Gemini 3
/// on a call without one is refused (LLM-client brief §7.3).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// Image types that the API accepts.
const IMAGE_TYPES: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
];
/// Beginnings of the other types that it accepts.
const OTHER_TYPES: [&str; 5] = [
    "audio/",
    "video/",
    "text/",
    "application/pdf",
    "application/json",
];

/// How messages are written for one class of models.
#[derive(Debug)]
pub(super) struct ContentFormat {
    /// Whether the model sees images.
    pub(super) vision: bool,
    /// Whether the model is older than Gemini 3.
    pub(super) is_old: bool,
    /// Whether a result may carry media.
    pub(super) result_media: bool,
    /// How calls of freeform tools are wrapped.
    pub(super) freeform: Freeform,
}

impl WireFormat for ContentFormat {
    fn key(&self) -> String {
        let Self {
            vision,
            is_old,
            result_media,
            freeform,
        } = self;
        let freeform = freeform.key();
        format!("{NAME} vision={vision} old={is_old} media={result_media}{freeform}")
    }

    fn append(
        &self,
        before: &[Message],
        group: &[Message],
        wire: &mut Wire,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), LlmError> {
        let mut answer = wire.bytes.len();
        for run in group.chunk_by(|a, b| is_assistant(a) == is_assistant(b)) {
            let mut writer = Writer {
                format: self,
                history: [before, group],
                parts: Vec::new(),
                warnings,
            };
            let role = if run.first().is_some_and(is_assistant) {
                answer = wire.bytes.len();
                run.iter().for_each(|message| writer.model(message));
                "model"
            } else {
                writer.user(run)?;
                "user"
            };
            let parts = writer.parts;
            if !parts.is_empty() {
                wire.separate();
                let content = format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(","));
                wire.bytes.extend_from_slice(content.as_bytes());
            }
        }
        wire.resume = continuation(group).map(|token| Resume {
            field: format!("\"continuationToken\":{token}"),
            sent: answer,
        });
        Ok(())
    }
}

/// The token with which the provider goes on, when it paused in the last
/// message (finish reason `CONTINUATION`).
fn continuation(messages: &[Message]) -> Option<&Value> {
    let replay = messages
        .last()
        .filter(|last| is_assistant(last))?
        .replay
        .as_ref()?;
    let own = replay.provider == NAME;
    let items = replay.items.iter().filter(|_| own);
    items
        .filter_map(|item| item.get("continuationToken"))
        .next_back()
}

fn is_assistant(message: &Message) -> bool {
    message.role == Role::Assistant
}

struct Writer<'a> {
    format: &'a ContentFormat,
    /// Where the call of a result is found.
    history: [&'a [Message]; 2],
    /// Encoded parts of one content.
    parts: Vec<String>,
    warnings: &'a mut Vec<Warning>,
}

impl Writer<'_> {
    fn model(&mut self, message: &Message) {
        let mut unsigned = !self.format.is_old;
        match &message.replay {
            Some(replay) if replay.provider == NAME => {
                let mut calls = message.tool_calls();
                for item in &replay.items {
                    if item.get("continuationToken").is_some() {
                        continue;
                    }
                    let call = item.get("functionCall").and_then(|_| calls.next());
                    self.replayed(item, call, &mut unsigned);
                }
            }
            _ => {
                for part in &message.content {
                    self.model_part(part, &mut unsigned);
                }
            }
        }
    }

    /// A part of this provider, as it came, except what the API would refuse
    /// in a call: a name or arguments that cannot be. Only the first call of a
    /// content gets a stand-in for a signature that it lacks.
    fn replayed(&mut self, item: &Value, call: Option<&ToolCall>, unsigned: &mut bool) {
        let Some(part) = item.as_object() else {
            return;
        };
        let mut part = part.clone();
        if part.contains_key("functionCall") && std::mem::take(unsigned) {
            part.entry("thoughtSignature")
                .or_insert(NO_SIGNATURE.into());
        }
        // A number that does not fit a `f64` would change in a `Value`.
        let arguments = call
            .filter(|call| !call.custom)
            .and_then(|call| raw_object(&call.arguments));
        let json = match part.get("functionCall") {
            Some(Value::Object(inner)) => {
                let mut inner = inner.clone();
                let name = item["functionCall"]["name"].as_str().unwrap_or_default();
                inner.insert("name".to_owned(), Value::from(wire_name(name)));
                let arguments = match arguments {
                    Some(arguments) => arguments.to_owned(),
                    None => object(&arguments_text(&item["functionCall"]["args"])),
                };
                let inner = with_raw(&inner, "args", &arguments);
                with_raw(&part, "functionCall", &inner)
            }
            _ => Value::Object(part).to_string(),
        };
        self.parts.push(json);
    }

    /// A part without this provider's own. Signatures of other providers mean
    /// nothing here, so their reasoning is left out.
    fn model_part(&mut self, part: &ContentPart, unsigned: &mut bool) {
        match part {
            ContentPart::Text { text } => self.text(text),
            ContentPart::ToolCall(call) => {
                let json = self.call(call, std::mem::take(unsigned));
                self.parts.push(json);
            }
            ContentPart::Thinking { .. } | ContentPart::RedactedThinking { .. } => {}
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Other { .. } => {
                let message =
                    "a part of an assistant message cannot be sent to gemini and is left out";
                self.warnings.push(Warning::new("part_dropped", message));
            }
        }
    }

    fn call(&self, call: &ToolCall, stand_in: bool) -> String {
        let arguments = if call.custom {
            self.format
                .freeform
                .wrap(&call.name, &call.arguments)
                .to_string()
        } else {
            object(&call.arguments)
        };
        let mut inner = serde_json::Map::new();
        if !call.id.starts_with(OWN_ID) {
            inner.insert("id".to_owned(), Value::from(call.id.as_str()));
        }
        inner.insert("name".to_owned(), Value::from(wire_name(&call.name)));
        inner.insert("args".to_owned(), Value::Null);
        let mut part = serde_json::Map::new();
        part.insert("functionCall".to_owned(), Value::Null);
        if stand_in {
            part.insert("thoughtSignature".to_owned(), NO_SIGNATURE.into());
        }
        with_raw(&part, "functionCall", &with_raw(&inner, "args", &arguments))
    }

    /// A run of user, tool and late system messages as one content: the
    /// results of a step belong together, and come first.
    fn user(&mut self, run: &[Message]) -> Result<(), LlmError> {
        let mut media = Vec::new();
        for result in results(run) {
            self.result(result)?;
            if !self.format.result_media {
                media.extend(&result.media);
            }
        }
        for media in media {
            self.media(media)?;
        }
        for part in run.iter().flat_map(|message| &message.content) {
            match part {
                ContentPart::Text { text } => self.text(text),
                ContentPart::Image(media)
                | ContentPart::Document(media)
                | ContentPart::Audio(media) => self.media(media)?,
                ContentPart::ToolResult(_) => {}
                ContentPart::Other { value, .. } if value.is_object() => {
                    self.parts.push(value.to_string());
                }
                _ => {
                    let message =
                        "a part of a user message cannot be sent to gemini and is left out";
                    self.warnings.push(Warning::new("part_dropped", message));
                }
            }
        }
        Ok(())
    }

    fn result(&mut self, result: &ToolResult) -> Result<(), LlmError> {
        let field = if result.is_error { "error" } else { "output" };
        let text = match result.content.as_str() {
            text if result.is_error && text.trim().is_empty() => FAILED_SILENTLY,
            text => text,
        };
        let mut response = json!({});
        if !result.tool_call_id.starts_with(OWN_ID) {
            response["id"] = Value::from(result.tool_call_id.as_str());
        }
        response["name"] = Value::from(wire_name(self.name(result)));
        response["response"] = json!({field: text});
        if self.format.result_media && !result.media.is_empty() {
            let mut parts = Vec::new();
            for media in &result.media {
                match self.place(media)? {
                    Ok(part) => parts.push(part),
                    // Only media may stand there.
                    Err(instead) => {
                        let text = format!("{text}\n{instead}");
                        response["response"] = json!({field: text.trim_start()});
                    }
                }
            }
            if !parts.is_empty() {
                response["parts"] = Value::from(parts);
            }
        }
        self.parts
            .push(json!({"functionResponse": response}).to_string());
        Ok(())
    }

    /// The API matches by name: a result without one takes that of its call.
    fn name<'b>(&'b self, result: &'b ToolResult) -> &'b str {
        let [before, group] = self.history;
        let id = &result.tool_call_id;
        match result.tool_name.as_str() {
            "" => find_call(group, id)
                .or_else(|| find_call(before, id))
                .map_or("", |call| &call.name),
            name => name,
        }
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(json!({"text": text}).to_string());
        }
    }

    fn media(&mut self, media: &Media) -> Result<(), LlmError> {
        match self.place(media)? {
            Ok(part) => self.parts.push(part.to_string()),
            Err(text) => self.text(&text),
        }
        Ok(())
    }

    /// The part for `media`, or the text that stands for what is refused.
    fn place(&mut self, media: &Media) -> Result<Result<Value, String>, LlmError> {
        let media_type = media::media_type(media);
        let taken = (self.format.vision && IMAGE_TYPES.contains(&media_type))
            || OTHER_TYPES
                .iter()
                .any(|start| media_type.starts_with(start));
        if !taken {
            return Ok(Err(media::left_out(NAME, media, self.warnings)));
        }
        Ok(Ok(match media::place(NAME, media)? {
            MediaAddress::Web(url) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
            MediaAddress::Inline(media_type, data) => {
                json!({"inlineData": {"mimeType": media_type, "data": data}})
            }
        }))
    }
}
