//! The chunks of an answer: `{id, model, choices: [{delta, finish_reason}],
//! usage}`, then `[DONE]`. Servers differ in details, so this reads
//! generously: reasoning under three names, calls without index or id, an end
//! without `[DONE]`, a whole answer from those that do not stream.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::NAME;
use super::messages::content;
use crate::llm::adapter::call::{arguments_text, object};
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::openai_error::of_body;
use crate::llm::adapter::reader::ResponseDecoder;
use crate::llm::adapter::segments::Segments;
use crate::llm::adapter::text::Text;
use crate::llm::builder::ResponseBuilder;
use crate::llm::calls::raw_object;
use crate::llm::error::clip;
use crate::llm::message::Replay;
use crate::llm::names::Names;
use crate::llm::request::Request;
use crate::llm::response::{FinishKind, Usage};
use crate::llm::stream::{Misuse, StreamEvent};

/// Fields under which servers send reasoning text.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The answer so far.
pub(in crate::llm::adapter) struct Events {
    names: Names,
    freeform: Freeform,
    segments: Segments,
    text: String,
    /// Reasoning text, with the name of its field.
    reasoning: Option<(&'static str, String)>,
    /// OpenRouter's signed reasoning.
    details: Vec<Value>,
    calls: Vec<Call>,
    finish: Option<String>,
    refused: bool,
    usage: Value,
}

/// The chunk that comes thousands of times, read without building a tree: a
/// piece of text or reasoning and nothing else. A `()` is a field that must be
/// absent or null for that.
#[derive(Deserialize)]
struct TextChunk<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    object: Text<'a>,
    #[serde(rename = "type", default)]
    _kind: (),
    #[serde(rename = "error", default)]
    _error: (),
    #[serde(rename = "usage", default)]
    _usage: (),
    #[serde(borrow)]
    choices: [TextChoice<'a>; 1],
}

#[derive(Deserialize)]
struct TextChoice<'a> {
    #[serde(borrow)]
    delta: TextDelta<'a>,
    #[serde(rename = "finish_reason", default)]
    _finish_reason: (),
}

#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(rename = "reasoning_details", default)]
    _reasoning_details: (),
    #[serde(rename = "refusal", default)]
    _refusal: (),
    #[serde(rename = "tool_calls", default)]
    _tool_calls: (),
}

/// A call as it grows.
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    /// Arguments that came before the name.
    waiting: String,
    /// Set once the name is known.
    segment: Option<u32>,
    /// Fields of the call that this client does not model, such as signatures.
    extra: Map<String, Value>,
}

impl Events {
    pub(super) fn new(request: &Request, names: Names) -> Self {
        Self {
            freeform: Freeform::of(&request.tools),
            segments: Segments::new(&names.provider, request),
            names,
            text: String::new(),
            reasoning: None,
            details: Vec::new(),
            calls: Vec::new(),
            finish: None,
            refused: false,
            usage: Value::Null,
        }
    }
}

impl ResponseDecoder for Events {
    fn data(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if let Ok(chunk) = serde_json::from_str::<TextChunk<'_>>(data)
            && *chunk.object != *"error"
        {
            return self.text_chunk(&chunk, out);
        }
        let mut chunk: Value = serde_json::from_str(data)
            .map_err(|_| Misuse(format!("an event is not JSON: `{}`", clip(data))))?;
        if !chunk.is_object() {
            return Err(Misuse(format!(
                "an event is not an object: `{}`",
                clip(data)
            )));
        }
        let failed = chunk.get("error").is_some_and(|error| !error.is_null());
        if failed || chunk["object"] == "error" || chunk["type"] == "error" {
            self.fail(of_body(&self.names, None, chunk), out);
            return Ok(());
        }
        let text = |name: &str| chunk[name].as_str().unwrap_or_default();
        self.segments.start(text("id"), text("model"), out)?;
        if chunk["usage"].is_object() {
            self.usage = chunk["usage"].take();
        }
        let Some(mut choice) = chunk.pointer_mut("/choices/0").map(Value::take) else {
            if chunk.get("choices").is_none() {
                self.segments.builder.provider_event(chunk, out);
            }
            return Ok(());
        };
        let part = |choice: &mut Value, name| choice.get_mut(name).map_or(Value::Null, Value::take);
        let delta = part(&mut choice, "delta");
        let message = part(&mut choice, "message");
        // Servers that ignore `stream` give the answer as one message. Others
        // repeat it as one after its pieces.
        let is_whole = delta.is_null() && message.is_object() && self.is_empty();
        self.delta(if is_whole { &message } else { &delta }, out)?;
        if is_whole {
            self.finish = Some(String::new());
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    fn done(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        self.end(out)
    }

    /// Not every server says `[DONE]`; a finish reason is as good.
    fn end_of_body(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if self.finish.is_none() {
            return Err(Misuse("it ended without a finish reason".to_owned()));
        }
        self.end(out)
    }

    fn builder(&mut self) -> &mut ResponseBuilder {
        &mut self.segments.builder
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn usage(&self) -> Usage {
        let usage = &self.usage;
        let count = |name: &str| usage[name].as_u64();
        let prompt = &usage["prompt_tokens_details"];
        let input = count("prompt_tokens").unwrap_or(0);
        let output = count("completion_tokens").unwrap_or(0);
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: count("total_tokens").unwrap_or(input.saturating_add(output)),
            reasoning_tokens: usage["completion_tokens_details"]["reasoning_tokens"].as_u64(),
            cache_read_tokens: prompt["cached_tokens"]
                .as_u64()
                .or_else(|| count("prompt_cache_hit_tokens")),
            cache_write_tokens: prompt["cache_write_tokens"].as_u64(),
            uncounted_input_tokens: 0,
            raw: usage.is_object().then(|| usage.clone()),
        }
    }
}

impl Events {
    fn text_chunk(
        &mut self,
        chunk: &TextChunk<'_>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        self.segments.start(&chunk.id, &chunk.model, out)?;
        let [choice] = &chunk.choices;
        let delta = &choice.delta;
        let reasoning = [&*delta.reasoning_content, &*delta.reasoning];
        self.reason(reasoning, out)?;
        self.say(&delta.content, out)
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if !delta.is_object() && !delta.is_null() {
            return Err(Misuse("the delta of an event is not an object".to_owned()));
        }
        if let Some(details) = delta["reasoning_details"].as_array() {
            details.iter().for_each(|detail| self.detail(detail));
        }
        let reasoning = REASONING.map(|field| delta[field].as_str().unwrap_or_default());
        self.reason(reasoning, out)?;
        for field in ["content", "refusal"] {
            let text = match &delta[field] {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                // Mistral's form: a list of parts.
                Value::Array(parts) => parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect(),
                _ => return Err(Misuse(format!("the {field} of a delta is not a text"))),
            };
            self.refused |= field == "refusal" && !text.is_empty();
            self.say(&text, out)?;
        }
        match &delta["tool_calls"] {
            Value::Null => Ok(()),
            Value::Array(calls) => calls.iter().try_for_each(|call| self.call(call, out)),
            _ => Err(Misuse(
                "the tool calls of a delta are not a list".to_owned(),
            )),
        }
    }

    /// Takes reasoning text, given under each of [`REASONING`]: some servers
    /// send the same one under both names.
    fn reason(&mut self, texts: [&str; 2], out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let named = REASONING.into_iter().zip(texts);
        let Some((field, text)) = named.into_iter().find(|(_, text)| !text.is_empty()) else {
            return Ok(());
        };
        self.segments.text(text, true, out)?;
        let (_, kept) = self.reasoning.get_or_insert((field, String::new()));
        kept.push_str(text);
        Ok(())
    }

    fn say(&mut self, text: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        self.segments.text(text, false, out)?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds a piece of signed reasoning: text goes to the piece before it with
    /// the same index and type.
    fn detail(&mut self, detail: &Value) {
        let Some(new) = detail.as_object() else {
            return;
        };
        let same =
            |last: &Value| last["index"] == detail["index"] && last["type"] == detail["type"];
        let Some(Value::Object(last)) = self.details.last_mut().filter(|last| same(last)) else {
            self.details.push(detail.clone());
            return;
        };
        for (name, value) in new {
            match (last.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    text.push_str(more);
                }
                (_, Value::Null) => {}
                (_, value) => {
                    last.insert(name.clone(), value.clone());
                }
            }
        }
    }

    fn call(&mut self, call: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let Some(fields) = call.as_object() else {
            return Err(Misuse("a tool call is not an object".to_owned()));
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, name) = (text(&call["id"]), text(&call["function"]["name"]));
        let index = call["index"].as_u64();
        let arguments = arguments_text(&call["function"]["arguments"]);
        let position = match self.find(index, &id, &name) {
            Some(position) => position,
            None => {
                self.calls.push(Call {
                    index,
                    id: String::new(),
                    name: String::new(),
                    waiting: String::new(),
                    segment: None,
                    extra: Map::new(),
                });
                self.calls.len() - 1
            }
        };
        let default_id = format!("call_{}_{position}", self.segments.seed);
        let known = &mut self.calls[position];
        if known.id.is_empty() {
            known.id = id;
        }
        if known.name.is_empty() {
            known.name = name;
        }
        for (field, value) in fields {
            if !matches!(field.as_str(), "index" | "id" | "type" | "function") && !value.is_null() {
                known.extra.insert(field.clone(), value.clone());
            }
        }
        if let Some(segment) = known.segment {
            return self.segments.builder.delta(segment, &arguments, out);
        }
        known.waiting.push_str(&arguments);
        if known.name.is_empty() {
            return Ok(());
        }
        if known.id.is_empty() {
            known.id = default_id;
        }
        let (id, name) = (known.id.clone(), known.name.clone());
        let waiting = std::mem::take(&mut known.waiting);
        self.segments.close(out)?;
        let segment = self.segments.number();
        self.calls[position].segment = Some(segment);
        let custom = self.freeform.contains(&name);
        self.segments
            .builder
            .call_start(segment, &id, &name, custom, out)?;
        self.segments.builder.delta(segment, &waiting, out)
    }

    /// The call that a piece belongs to. An index may be missing, or the same
    /// for all; then another id, or a name, begins another call.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let position = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None if !id.is_empty() => self
                .calls
                .iter()
                .rposition(|call| call.id == id)
                .or_else(|| self.calls.len().checked_sub(1))?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[position];
        let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        // A name after arguments that are whole begins another call, too.
        let is_whole = || {
            let segment = call.segment.unwrap_or(u32::MAX);
            raw_object(self.segments.builder.collected(segment)).is_some()
        };
        let other_name = index.is_none()
            && !name.is_empty()
            && !call.name.is_empty()
            && (id.is_empty() || is_whole());
        (!other_id && !other_name).then_some(position)
    }

    /// Whether nothing has been said.
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.reasoning.is_none()
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if self.is_empty() && self.finish.is_none() {
            return Err(Misuse("it ended before it said anything".to_owned()));
        }
        let raw = self.finish.take().unwrap_or_default();
        let reason = match raw.as_str() {
            "stop" | "eos" | "" => FinishKind::Stop,
            "tool_calls" | "function_call" => FinishKind::ToolCalls,
            "length" | "model_length" => FinishKind::Length,
            "content_filter" => FinishKind::ContentFilter,
            "error" => FinishKind::Error,
            _ => FinishKind::Other,
        };
        self.segments.close(out)?;
        let calls = self.end_calls(reason, out)?;
        let mut settled = self.segments.builder.settle(reason)?;
        if settled.reason == FinishKind::Stop && self.refused {
            settled.reason = FinishKind::ContentFilter;
        }
        let calls = calls.into_iter().filter_map(|(segment, mut call)| {
            let stays = settled.keep(segment, |id| call["id"] = Value::from(id));
            stays.then_some(call)
        });
        let replay = self.replay(calls.collect());
        let usage = self.usage();
        self.segments
            .builder
            .finish(&settled, raw, usage, replay, out);
        Ok(())
    }

    /// Ends the calls, which nothing else does here, and returns them by
    /// segment in the shape in which they go back. Where a limit ended the
    /// answer, a last call that is not whole has no end.
    fn end_calls(
        &mut self,
        reason: FinishKind,
        out: &mut Vec<StreamEvent>,
    ) -> Result<Vec<(u32, Value)>, Misuse> {
        let is_limit = matches!(reason, FinishKind::Length | FinishKind::ContentFilter);
        let mut ended = Vec::new();
        let mut calls = std::mem::take(&mut self.calls).into_iter().peekable();
        while let Some(call) = calls.next() {
            let is_last = calls.peek().is_none();
            let Some(segment) = call.segment else {
                if is_limit && is_last {
                    self.segments.builder.cut_off();
                    break;
                }
                return Err(Misuse("a tool call has no name".to_owned()));
            };
            let collected = self.segments.builder.collected(segment);
            if is_limit && is_last && raw_object(collected).is_none() {
                break;
            }
            let arguments = object(collected);
            if self.freeform.contains(&call.name) {
                let input = serde_json::from_str(&arguments).unwrap_or_default();
                if let Some(text) = self.freeform.unwrap(&call.name, &input) {
                    self.segments.builder.set_arguments(segment, text)?;
                }
            }
            self.segments.builder.end(segment, out)?;
            let mut value = json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments},
            });
            for (field, extra) in call.extra {
                value[field] = extra;
            }
            ended.push((segment, value));
        }
        Ok(ended)
    }

    /// The message as it goes back. Reasoning goes along only beside calls:
    /// there some servers want it, elsewhere some refuse it.
    fn replay(&mut self, calls: Vec<Value>) -> Option<Replay> {
        if self.text.is_empty() && calls.is_empty() {
            return None;
        }
        let mut message = json!({"role": "assistant", "content": content(&self.text)});
        if !self.details.is_empty() {
            message["reasoning_details"] = Value::from(std::mem::take(&mut self.details));
        } else if let Some((field, text)) = self.reasoning.take().filter(|_| !calls.is_empty()) {
            message[field] = Value::from(text);
        }
        if !calls.is_empty() {
            message["tool_calls"] = Value::from(calls);
        }
        Some(Replay {
            provider: NAME.to_owned(),
            model: self.segments.builder.model().to_owned(),
            items: vec![message],
        })
    }
}
