//! Messages as the Messages API wants them: bytes that are kept and appended.

use serde_json::{Value, json};

use super::NAME;
use crate::llm::adapter::call::{
    FAILED_SILENTLY, arguments_text, object, plain_id, results, wire_name, with_raw,
};
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::media::{self, MediaAddress};
use crate::llm::calls::raw_object;
use crate::llm::error::LlmError;
use crate::llm::message::{ContentPart, Media, MediaSource, Message, Role, ToolCall, ToolResult};
use crate::llm::warning::Warning;
use crate::llm::wire::{Wire, WireFormat};

/// Cache markers go on the last two user messages.
const MARKED_MESSAGES: usize = 2;

/// How messages are written for one class of models.
#[derive(Debug)]
pub(super) struct MessageFormat {
    /// Whether the model sees images.
    pub(super) vision: bool,
    /// Whether system messages may stand among the others.
    pub(super) system_in_messages: bool,
    /// How calls of freeform tools are wrapped.
    pub(super) freeform: Freeform,
}

impl WireFormat for MessageFormat {
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
        let is_assistant = |message: &Message| message.role == Role::Assistant;
        for run in group.chunk_by(|a, b| is_assistant(a) == is_assistant(b)) {
            let mut writer = Writer {
                format: self,
                wire,
                warnings,
            };
            if run.first().is_some_and(is_assistant) {
                writer.assistant(run);
            } else {
                writer.others(run)?;
            }
        }
        Ok(())
    }
}

struct Writer<'a> {
    format: &'a MessageFormat,
    wire: &'a mut Wire,
    warnings: &'a mut Vec<Warning>,
}

/// One encoded content block.
struct Block {
    json: String,
    cacheable: bool,
    reasoning: bool,
}

impl Block {
    fn new(value: &Value) -> Self {
        Self {
            json: value.to_string(),
            cacheable: true,
            reasoning: false,
        }
    }

    fn reasoning(value: &Value) -> Self {
        Self {
            reasoning: true,
            cacheable: false,
            ..Self::new(value)
        }
    }

    /// `None` for text that the API refuses to take: empty or only white space.
    fn text(text: &str) -> Option<Self> {
        let block = || Self::new(&json!({"type": "text", "text": text}));
        (!text.trim().is_empty()).then(block)
    }
}

impl Writer<'_> {
    /// A run of assistant messages as one message.
    fn assistant(&mut self, run: &[Message]) {
        let mut blocks = Vec::new();
        for message in run {
            match &message.replay {
                Some(replay) if replay.provider == NAME => {
                    for item in &replay.items {
                        blocks.extend(replayed(item, message));
                    }
                }
                replay => {
                    for part in &message.content {
                        blocks.extend(self.assistant_part(part, replay.is_some()));
                    }
                }
            }
        }
        // An answer that was cut off while reasoning: the API refuses a message
        // that ends in a reasoning block.
        while blocks.last().is_some_and(|block: &Block| block.reasoning) {
            blocks.pop();
        }
        self.message("assistant", &blocks);
    }

    /// An assistant's part without this provider's own block. Signatures of
    /// other providers mean nothing here, so their reasoning is left out.
    fn assistant_part(&mut self, part: &ContentPart, foreign: bool) -> Option<Block> {
        match part {
            ContentPart::Text { text } => Block::text(text),
            ContentPart::ToolCall(call) => Some(Block {
                json: tool_use(call, &self.format.freeform),
                cacheable: true,
                reasoning: false,
            }),
            ContentPart::Thinking {
                text,
                signature: Some(signature),
            } if !foreign => Some(Block::reasoning(
                &json!({"type": "thinking", "thinking": text, "signature": signature}),
            )),
            ContentPart::RedactedThinking { data } if !foreign => Some(Block::reasoning(
                &json!({"type": "redacted_thinking", "data": data}),
            )),
            ContentPart::Thinking { .. } | ContentPart::RedactedThinking { .. } => None,
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Other { .. } => {
                self.warn(
                    "part_dropped",
                    "a part of an assistant message cannot be sent to anthropic and is left out",
                );
                None
            }
        }
    }

    /// A run of user, tool and late system messages. The results come first in
    /// one user message: the API wants them right after the calls.
    fn others(&mut self, run: &[Message]) -> Result<(), LlmError> {
        let mut blocks = Vec::new();
        for result in results(run) {
            blocks.push(self.tool_result(result)?);
        }
        // A system message is accepted only right after a user message, so
        // only those at the end of the run stand as such.
        let trailing = run
            .iter()
            .rev()
            .take_while(|message| message.role.is_system())
            .count();
        let (before, trailing) = run.split_at(run.len() - trailing);
        for part in before.iter().flat_map(|message| &message.content) {
            blocks.extend(self.user_part(part)?);
        }
        let system = trailing
            .iter()
            .filter_map(|message| Block::text(&message.joined_text()));
        if !self.format.system_in_messages || blocks.is_empty() {
            blocks.extend(system);
            self.message("user", &blocks);
            return Ok(());
        }
        let system: Vec<Block> = system.collect();
        self.message("user", &blocks);
        self.message("system", &system);
        Ok(())
    }

    fn user_part(&mut self, part: &ContentPart) -> Result<Option<Block>, LlmError> {
        Ok(match part {
            ContentPart::Text { text } => Block::text(text),
            ContentPart::Image(media)
            | ContentPart::Document(media)
            | ContentPart::Audio(media) => Some(Block::new(&self.media(media)?)),
            ContentPart::ToolResult(_) => None,
            ContentPart::Other { value, .. } if value.get("type").is_some_and(Value::is_string) => {
                Some(Block {
                    json: value.to_string(),
                    cacheable: false,
                    reasoning: false,
                })
            }
            _ => {
                self.warn(
                    "part_dropped",
                    "a part of a user message cannot be sent to anthropic and is left out",
                );
                None
            }
        })
    }

    fn tool_result(&mut self, result: &ToolResult) -> Result<Block, LlmError> {
        let mut content = Value::from(result.content.as_str());
        if !result.media.is_empty() {
            let mut parts = Vec::new();
            if !result.content.trim().is_empty() {
                parts.push(json!({"type": "text", "text": result.content}));
            }
            for media in &result.media {
                parts.push(self.media(media)?);
            }
            content = Value::from(parts);
        } else if result.is_error && result.content.trim().is_empty() {
            // An error without content is a 400.
            content = Value::from(FAILED_SILENTLY);
        }
        let mut block = json!({
            "type": "tool_result",
            "tool_use_id": plain_id(&result.tool_call_id),
            "content": content,
        });
        if result.is_error {
            block["is_error"] = Value::Bool(true);
        }
        Ok(Block::new(&block))
    }

    /// An image or a document; what the API refuses becomes a text that says so.
    fn media(&mut self, media: &Media) -> Result<Value, LlmError> {
        let kind = match media.media_type.as_str() {
            _ if media::is_image(media) && self.format.vision => "image",
            "application/pdf" | "text/plain" => "document",
            _ => {
                let text = media::left_out(NAME, media, self.warnings);
                return Ok(json!({"type": "text", "text": text}));
            }
        };
        let source = match (&media.source, media::place(NAME, media)?) {
            (_, MediaAddress::Web(url)) => json!({"type": "url", "url": url}),
            (MediaSource::Data(data), _) if media.media_type == "text/plain" => json!({
                "type": "text", "media_type": "text/plain", "data": String::from_utf8_lossy(data),
            }),
            (_, MediaAddress::Inline(media_type, data)) => {
                json!({"type": "base64", "media_type": media_type, "data": data})
            }
        };
        let mut block = json!({"type": kind, "source": source});
        if let (Some(name), "document") = (&media.file_name, kind) {
            block["title"] = Value::from(name.as_str());
        }
        Ok(block)
    }

    /// Writes a message of `blocks`; nothing when there are none, because an
    /// empty message is refused.
    fn message(&mut self, role: &str, blocks: &[Block]) {
        if blocks.is_empty() {
            return;
        }
        let wire = &mut *self.wire;
        wire.separate();
        wire.bytes.extend_from_slice(b"{\"role\":\"");
        wire.bytes.extend_from_slice(role.as_bytes());
        wire.bytes.extend_from_slice(b"\",\"content\":[");
        let mut mark = None;
        for (index, block) in blocks.iter().enumerate() {
            if index > 0 {
                wire.bytes.push(b',');
            }
            wire.bytes.extend_from_slice(block.json.as_bytes());
            if block.cacheable {
                mark = Some(wire.bytes.len() - 1);
            }
        }
        wire.bytes.extend_from_slice(b"]}");
        if let (Some(mark), "user") = (mark, role) {
            wire.marks.push(mark);
            let surplus = wire.marks.len().saturating_sub(MARKED_MESSAGES);
            wire.marks.drain(..surplus);
        }
    }

    fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.warnings.push(Warning::new(code, message));
    }
}

/// A block of this provider, as it came, except what the API would refuse:
/// unsigned reasoning, empty text, and in a call a name, an id or an input
/// that cannot be.
fn replayed(item: &Value, message: &Message) -> Option<Block> {
    let block = item.as_object()?;
    let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    let json = match field("type") {
        "thinking" if field("signature").is_empty() => return None,
        "text" if field("text").trim().is_empty() => return None,
        "tool_use" => {
            let id = field("id");
            let call = message
                .tool_calls()
                .find(|call| call.id == id && !call.custom);
            let input = match call.and_then(|call| raw_object(&call.arguments)) {
                Some(arguments) => arguments.to_owned(),
                None => object(&arguments_text(&item["input"])),
            };
            let mut block = block.clone();
            block.insert("id".to_owned(), Value::from(plain_id(id)));
            block.insert("name".to_owned(), Value::from(wire_name(field("name"))));
            block.insert("input".to_owned(), Value::Null);
            with_raw(&block, "input", &input)
        }
        _ => item.to_string(),
    };
    Some(Block {
        json,
        cacheable: false,
        reasoning: matches!(field("type"), "thinking" | "redacted_thinking"),
    })
}

fn tool_use(call: &ToolCall, freeform: &Freeform) -> String {
    let input = if call.custom {
        freeform.wrap(&call.name, &call.arguments).to_string()
    } else {
        object(&call.arguments)
    };
    let block = json!({
        "type": "tool_use",
        "id": plain_id(&call.id),
        "name": wire_name(&call.name),
        "input": null,
    });
    match block.as_object() {
        Some(block) => with_raw(block, "input", &input),
        None => block.to_string(),
    }
}
