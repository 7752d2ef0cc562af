//! The event stream of an answer (LLM-client brief §9.4).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::NAME;
use super::error::of_body;
use crate::llm::adapter::call::{arguments_text, invalid_input};
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::reader::ResponseDecoder;
use crate::llm::adapter::text::Text;
use crate::llm::builder::ResponseBuilder;
use crate::llm::calls::raw_object;
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
    freeform: Freeform,
    builder: ResponseBuilder,
    /// Content blocks by index, in the shape in which they go back.
    blocks: SortedMap<u32, Block>,
    usage: Map<String, Value>,
    stop: Option<Stop>,
}

struct Block {
    value: Map<String, Value>,
    kind: BlockKind,
    open: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum BlockKind {
    Text,
    Thinking,
    Redacted,
    ToolUse,
    Other,
}

struct Stop {
    reason: String,
    details: Value,
}

impl Events {
    pub(super) fn new(request: &Request, names: Names) -> Self {
        Self {
            freeform: Freeform::of(&request.tools),
            builder: ResponseBuilder::new(&names.provider, request),
            names,
            blocks: SortedMap::new(),
            usage: Map::new(),
            stop: None,
        }
    }
}

/// The one event that comes thousands of times, read without building a tree.
#[derive(Deserialize)]
struct DeltaEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    index: u32,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
}

impl ResponseDecoder for Events {
    fn data(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if let Ok(event) = serde_json::from_str::<DeltaEvent<'_>>(data)
            && *event.kind == *"content_block_delta"
            && self.delta(&event, out)?
        {
            return Ok(());
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|_| Misuse(format!("an event is not JSON: `{}`", clip(data))))?;
        match event["type"].as_str() {
            Some("message_start") => self.message_start(&event["message"], out),
            Some("content_block_start") => self.block_start(event, out),
            Some("content_block_delta") => self.other_delta(event, out),
            Some("content_block_stop") => self.block_stop(index(&event)?, out),
            Some("message_delta") => {
                self.message_delta(&event);
                Ok(())
            }
            Some("message_stop") => self.message_stop(out),
            Some("error") => {
                self.fail(of_body(&self.names, None, event), out);
                Ok(())
            }
            _ if event.get("error").is_some_and(Value::is_object) => {
                self.fail(of_body(&self.names, None, event), out);
                Ok(())
            }
            Some(_) => {
                self.builder.provider_event(event, out);
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
        let count = |name: &str| self.usage.get(name).and_then(Value::as_u64);
        let input = count("input_tokens").unwrap_or(0);
        let output = count("output_tokens").unwrap_or(0);
        let read = count("cache_read_input_tokens");
        let write = count("cache_creation_input_tokens");
        // Older models do not tell how much was reasoning: then it is estimated
        // as a quarter of its characters, as the spec asks.
        let told = self.usage.get("output_tokens_details");
        let told = told.and_then(|details| details["thinking_tokens"].as_u64());
        let estimate = || match self.builder.reasoning_chars() / 4 {
            0 => None,
            tokens => Some(tokens.min(output)),
        };
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            reasoning_tokens: told.or_else(estimate),
            cache_read_tokens: read,
            cache_write_tokens: write,
            uncounted_input_tokens: read.unwrap_or(0).saturating_add(write.unwrap_or(0)),
            raw: (!self.usage.is_empty()).then(|| Value::Object(self.usage.clone())),
        }
    }
}

impl Events {
    fn message_start(&mut self, message: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if !message.is_object() {
            return Err(Misuse("message_start has no message".to_owned()));
        }
        self.count(&message["usage"]);
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        self.builder.start(text("id"), text("model"), out)
    }

    fn block_start(&mut self, event: Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let index = index(&event)?;
        let Value::Object(value) = event["content_block"].clone() else {
            return Err(Misuse(format!("content block {index} is not an object")));
        };
        let text = |name: &str| match value.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(Misuse(format!("content block {index} has no {name}"))),
        };
        let kind = match text("type")?.as_str() {
            "text" => {
                self.builder.text_start(index, out)?;
                self.builder.delta(index, &text("text")?, out)?;
                BlockKind::Text
            }
            "thinking" => {
                self.builder.reasoning_start(index, out)?;
                self.builder.delta(index, &text("thinking")?, out)?;
                BlockKind::Thinking
            }
            "redacted_thinking" => {
                let part = ContentPart::RedactedThinking {
                    data: text("data")?,
                };
                self.builder.whole(index, part)?;
                out.push(StreamEvent::ReasoningStart { segment: index });
                out.push(StreamEvent::ReasoningEnd {
                    segment: index,
                    text: String::new(),
                });
                BlockKind::Redacted
            }
            "tool_use" => {
                let (id, name) = (text("id")?, text("name")?);
                let custom = self.freeform.contains(&name);
                self.builder.call_start(index, &id, &name, custom, out)?;
                BlockKind::ToolUse
            }
            kind => {
                let value = event["content_block"].clone();
                self.builder.whole(
                    index,
                    ContentPart::Other {
                        kind: kind.to_owned(),
                        value,
                    },
                )?;
                self.builder.provider_event(event, out);
                BlockKind::Other
            }
        };
        self.blocks.insert(
            index,
            Block {
                value,
                kind,
                open: true,
            },
        );
        Ok(())
    }

    /// `false` for a kind of delta that has no fast path.
    fn delta(
        &mut self,
        event: &DeltaEvent<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<bool, Misuse> {
        let DeltaEvent { index, delta, .. } = event;
        let kind = self.open_block(*index)?.kind;
        let text = match (&*delta.kind, kind) {
            ("text_delta", BlockKind::Text) => &delta.text,
            ("thinking_delta", BlockKind::Thinking) => &delta.thinking,
            ("input_json_delta", BlockKind::ToolUse | BlockKind::Other) => &delta.partial_json,
            ("signature_delta", BlockKind::Thinking) => {
                self.builder.sign(*index, &delta.signature)?;
                let signature = Value::from(&*delta.signature);
                self.open_block(*index)?
                    .value
                    .insert("signature".to_owned(), signature);
                return Ok(true);
            }
            ("text_delta" | "thinking_delta" | "input_json_delta" | "signature_delta", _) => {
                return Err(Misuse(format!(
                    "content block {index} got a {}",
                    &*delta.kind
                )));
            }
            _ => return Ok(false),
        };
        self.builder.delta(*index, text, out)?;
        Ok(true)
    }

    /// A delta that the fast path does not know, or that is malformed.
    fn other_delta(&mut self, event: Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let index = index(&event)?;
        let block = self.open_block(index)?;
        match event["delta"]["type"].as_str() {
            Some("input_json_delta") if event["delta"]["partial_json"].is_object() => {
                let input = arguments_text(&event["delta"]["partial_json"]);
                return self.builder.delta(index, &input, out);
            }
            Some("citations_delta") => {
                let citations = block.value.entry("citations").or_insert(Value::Null);
                if !citations.is_array() {
                    *citations = Value::Array(Vec::new());
                }
                if let Some(citations) = citations.as_array_mut() {
                    citations.push(event["delta"]["citation"].clone());
                }
            }
            Some("text_delta" | "thinking_delta" | "input_json_delta" | "signature_delta")
            | None => {
                return Err(Misuse(format!(
                    "the delta of content block {index} is malformed"
                )));
            }
            Some(_) => {}
        }
        self.builder.provider_event(event, out);
        Ok(())
    }

    fn block_stop(&mut self, index: u32, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let collected = self.builder.collected(index).to_owned();
        let block = self.open_block(index)?;
        block.open = false;
        match block.kind {
            BlockKind::Text => {
                block
                    .value
                    .insert("text".to_owned(), Value::from(collected));
            }
            BlockKind::Thinking => {
                block
                    .value
                    .insert("thinking".to_owned(), Value::from(collected));
            }
            BlockKind::Redacted => {}
            BlockKind::ToolUse => self.call_stop(index, collected)?,
            BlockKind::Other => {
                if !collected.is_empty() {
                    let input = serde_json::from_str(&collected).map_err(|_| {
                        Misuse(format!("the input of content block {index} is not JSON"))
                    })?;
                    block.value.insert("input".to_owned(), input);
                }
                let kind = block
                    .value
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let part = ContentPart::Other {
                    kind: kind.to_owned(),
                    value: Value::Object(block.value.clone()),
                };
                self.builder.replace(index, part)?;
            }
        }
        self.builder.end(index, out)
    }

    fn call_stop(&mut self, index: u32, collected: String) -> Result<(), Misuse> {
        let block = self.open_input(index)?;
        // Some servers send the whole input at the start and no deltas.
        let given = match block.get("input") {
            Some(Value::Object(input)) if input.is_empty() => None,
            Some(input) if collected.is_empty() => Some(arguments_text(input).into_owned()),
            _ => None,
        };
        let arguments = given.clone().unwrap_or(collected);
        let input = match raw_object(&arguments) {
            Some(object) => serde_json::from_str(object).unwrap_or_else(|_| invalid_input(object)),
            None => invalid_input(&arguments),
        };
        let name = block
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        block.insert("input".to_owned(), input.clone());
        if let Some(text) = self.freeform.unwrap(&name, &input) {
            return self.builder.set_arguments(index, text);
        }
        match given {
            Some(given) => self.builder.set_arguments(index, given),
            None => Ok(()),
        }
    }

    fn message_delta(&mut self, event: &Value) {
        self.count(&event["usage"]);
        if let Some(reason) = event["delta"]["stop_reason"].as_str() {
            self.stop = Some(Stop {
                reason: reason.to_owned(),
                details: event["delta"]["stop_details"].clone(),
            });
        }
    }

    fn message_stop(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let Some(stop) = self.stop.take() else {
            return Err(Misuse("the answer ended without a reason".to_owned()));
        };
        let reason = match stop.reason.as_str() {
            "end_turn" | "stop_sequence" => FinishKind::Stop,
            "tool_use" => FinishKind::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishKind::Length,
            "refusal" => FinishKind::ContentFilter,
            _ => FinishKind::Other,
        };
        let settled = self.builder.settle(reason)?;
        if let Some(explanation) = stop.details["explanation"].as_str() {
            let category = stop.details["category"].as_str().unwrap_or("refused");
            let message = clip(&format!("{category}: {explanation}"));
            self.builder.warn(Warning::new("refusal", message));
        }
        let items: Vec<Value> = std::mem::take(&mut self.blocks)
            .into_entries()
            .filter_map(|(index, mut block)| {
                let stays = settled.keep(index, |id| {
                    block.value.insert("id".to_owned(), Value::from(id));
                });
                (stays && !block.open).then(|| Value::Object(block.value))
            })
            .collect();
        let usage = self.usage();
        // The model of the response is the one that can read its signatures.
        let replay = Replay {
            provider: NAME.to_owned(),
            model: self.builder.model().to_owned(),
            items,
        };
        self.builder
            .finish(&settled, stop.reason, usage, Some(replay), out);
        Ok(())
    }

    fn open_block(&mut self, index: u32) -> Result<&mut Block, Misuse> {
        match self.blocks.get_mut(&index) {
            Some(block) if block.open => Ok(block),
            _ => Err(Misuse(format!("content block {index} is not open"))),
        }
    }

    fn open_input(&mut self, index: u32) -> Result<&mut Map<String, Value>, Misuse> {
        match self.blocks.get_mut(&index) {
            Some(block) => Ok(&mut block.value),
            None => Err(Misuse(format!("content block {index} is not open"))),
        }
    }

    /// Later counts replace earlier ones; `null` says nothing.
    fn count(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.usage.insert(name.clone(), value.clone());
            }
        }
    }
}

fn index(event: &Value) -> Result<u32, Misuse> {
    event["index"]
        .as_u64()
        .and_then(|index| u32::try_from(index).ok())
        .ok_or_else(|| Misuse("an event has no usable index".to_owned()))
}
