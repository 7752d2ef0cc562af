//! The chunks of an answer (LLM-client brief §10). The stream has no last
//! event: it is complete when it ends after a finish reason.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::of_body;
use super::{NAME, OWN_ID};
use crate::llm::adapter::call::raw_object;
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::reader::Answer;
use crate::llm::builder::{Misuse, ResponseBuilder};
use crate::llm::error::{Names, clip};
use crate::llm::message::{ContentPart, Replay};
use crate::llm::request::{Request, Warning};
use crate::llm::response::{FinishKind, FinishReason, Usage};
use crate::llm::stream::StreamEvent;

/// The answer so far.
pub(super) struct Events {
    names: Names,
    freeform: Freeform,
    builder: ResponseBuilder,
    /// Makes ids of calls unique in the conversation.
    seed: String,
    /// Number of the next segment.
    next: u32,
    /// The segment that text goes to, and whether it is reasoning.
    open: Option<(u32, bool)>,
    /// Parts in the shape in which they go back.
    parts: Vec<Map<String, Value>>,
    continuation: Option<Value>,
    calls: usize,
    finish: Option<Finish>,
    usage: Value,
}

struct Finish {
    reason: String,
    message: Option<String>,
    /// The prompt was refused: there is no answer at all.
    blocked: bool,
}

/// What of a chunk holds text of calls: their numbers must not change.
#[derive(Deserialize)]
struct RawChunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<RawCandidate<'a>>,
}

#[derive(Deserialize)]
struct RawCandidate<'a> {
    #[serde(borrow)]
    content: Option<RawContent<'a>>,
}

#[derive(Deserialize)]
struct RawContent<'a> {
    #[serde(borrow, default)]
    parts: Vec<RawPart<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPart<'a> {
    #[serde(borrow)]
    function_call: Option<RawCall<'a>>,
}

#[derive(Deserialize)]
struct RawCall<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl Events {
    pub(super) fn new(request: &Request, names: Names) -> Self {
        Self {
            freeform: Freeform::of(&request.tools),
            builder: ResponseBuilder::new(&names.provider, &request.model),
            names,
            seed: request.conversation.len().to_string(),
            next: 0,
            open: None,
            parts: Vec::new(),
            continuation: None,
            calls: 0,
            finish: None,
            usage: Value::Null,
        }
    }
}

impl Answer for Events {
    fn data(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let mut chunk: Value = serde_json::from_str(data)
            .map_err(|_| Misuse(format!("an event is not JSON: `{}`", clip(data))))?;
        let failed = |chunk: &Value| chunk.get("error").is_some_and(|error| !error.is_null());
        if failed(&chunk) || chunk.get(0).is_some_and(failed) {
            self.fail(of_body(&self.names, None, chunk), out);
            return Ok(());
        }
        if !chunk.is_object() {
            return Err(Misuse(format!(
                "an event is not an object: `{}`",
                clip(data)
            )));
        }
        let text = |name: &str| chunk[name].as_str().unwrap_or_default();
        let (id, model) = (
            text("responseId").to_owned(),
            text("modelVersion").to_owned(),
        );
        if !id.is_empty() {
            self.seed = id.clone();
        }
        // Every chunk names the answer; the first one counts.
        let _ = self.builder.start(&id, &model, out);
        let known = ["candidates", "usageMetadata", "promptFeedback"];
        if !known.iter().any(|field| chunk.get(field).is_some()) {
            self.builder.provider_event(chunk, out);
            return Ok(());
        }
        if chunk["usageMetadata"].is_object() {
            self.usage = chunk["usageMetadata"].take();
        }
        if let Some(reason) = chunk["promptFeedback"]["blockReason"].as_str() {
            self.finish = Some(Finish {
                reason: reason.to_owned(),
                message: chunk["promptFeedback"]["blockReasonMessage"]
                    .as_str()
                    .map(str::to_owned),
                blocked: true,
            });
        }
        let first = chunk.pointer_mut("/candidates/0");
        let candidate = first.map_or(Value::Null, Value::take);
        let raw = arguments(data, &candidate);
        self.candidate(candidate, &raw, out)
    }

    /// There is no last event: the answer is complete once a finish reason came.
    fn end_of_body(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let missing = || Misuse("it ended without a finish reason".to_owned());
        let finish = self.finish.take().ok_or_else(missing)?;
        self.end(finish, out);
        Ok(())
    }

    fn builder(&mut self) -> &mut ResponseBuilder {
        &mut self.builder
    }

    fn names(&self) -> &Names {
        &self.names
    }

    /// Output includes the reasoning, as with the other providers; the API
    /// counts it apart.
    fn usage(&self) -> Usage {
        let count = |name: &str| self.usage[name].as_u64();
        let input = count("promptTokenCount").unwrap_or(0);
        let thoughts = count("thoughtsTokenCount");
        let output = count("candidatesTokenCount")
            .unwrap_or(0)
            .saturating_add(thoughts.unwrap_or(0));
        Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: count("totalTokenCount").unwrap_or(input.saturating_add(output)),
            reasoning_tokens: thoughts,
            cache_read_tokens: count("cachedContentTokenCount"),
            cache_write_tokens: None,
            uncounted_input_tokens: 0,
            raw: self.usage.is_object().then(|| self.usage.clone()),
        }
    }
}

impl Events {
    fn candidate(
        &mut self,
        mut candidate: Value,
        raw: &BTreeMap<usize, String>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        if candidate.is_null() {
            return Ok(());
        }
        if let Some(Value::Array(parts)) = candidate.pointer_mut("/content/parts").map(Value::take)
        {
            for (index, part) in parts.into_iter().enumerate() {
                let Value::Object(part) = part else {
                    return Err(Misuse(format!("part {index} of an event is not an object")));
                };
                self.part(part, raw.get(&index), out)?;
            }
        }
        if let Some(token) = candidate
            .get("continuationToken")
            .filter(|token| !token.is_null())
        {
            self.continuation = Some(token.clone());
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.finish = Some(Finish {
                reason: reason.to_owned(),
                message: candidate["finishMessage"].as_str().map(str::to_owned),
                blocked: false,
            });
        }
        for extra in [
            "groundingMetadata",
            "citationMetadata",
            "urlContextMetadata",
        ] {
            if let Some(value) = candidate.get(extra).filter(|value| !value.is_null()) {
                let event = serde_json::json!({extra: value});
                self.builder.provider_event(event, out);
            }
        }
        Ok(())
    }

    fn part(
        &mut self,
        part: Map<String, Value>,
        arguments: Option<&String>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        if let Some(call) = part.get("functionCall") {
            self.close(out)?;
            self.call(call, arguments, out)?;
            self.parts.push(part);
            return Ok(());
        }
        let Some(Value::String(text)) = part.get("text") else {
            if part.contains_key("text") {
                return Err(Misuse("the text of a part is not a string".to_owned()));
            }
            self.close(out)?;
            let segment = self.number();
            let kind = part.keys().find(|name| !name.starts_with("thought"));
            let content = ContentPart::Other {
                kind: kind.cloned().unwrap_or_default(),
                value: Value::Object(part.clone()),
            };
            self.builder.whole(segment, content)?;
            self.builder.end(segment, out)?;
            self.builder
                .provider_event(Value::Object(part.clone()), out);
            self.parts.push(part);
            return Ok(());
        };
        let thought = part.get("thought") == Some(&Value::Bool(true));
        if !text.is_empty() {
            let segment = self.segment(thought, out)?;
            self.builder.delta(segment, text, out)?;
        }
        self.keep_text(part, thought);
        Ok(())
    }

    /// Keeps a text for the replay. A signature stays on the very part that
    /// carried it; plain neighbours become one.
    fn keep_text(&mut self, part: Map<String, Value>, thought: bool) {
        let is_plain =
            |part: &Map<String, Value>| part.keys().all(|name| name == "text" || name == "thought");
        let same = |last: &Map<String, Value>| {
            is_plain(last)
                && last.contains_key("text")
                && (last.get("thought") == Some(&Value::Bool(true))) == thought
        };
        if is_plain(&part) {
            let more = part.get("text").and_then(Value::as_str).unwrap_or_default();
            if more.is_empty() {
                return;
            }
            if let Some(last) = self.parts.last_mut().filter(|last| same(last))
                && let Some(Value::String(text)) = last.get_mut("text")
            {
                text.push_str(more);
                return;
            }
        }
        self.parts.push(part);
    }

    fn call(
        &mut self,
        call: &Value,
        arguments: Option<&String>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        let name = match call["name"].as_str() {
            Some(name) if !name.is_empty() => name,
            _ => return Err(Misuse("a function call has no name".to_owned())),
        };
        let id = match call["id"].as_str() {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => format!("{OWN_ID}{}_{}", self.seed, self.calls),
        };
        self.calls += 1;
        let text = match (&call["args"], arguments) {
            (Value::Null, _) => "{}".to_owned(),
            (_, Some(arguments)) => arguments.clone(),
            (args, None) => args.to_string(),
        };
        let segment = self.number();
        let custom = self.freeform.contains(name);
        self.builder.call_start(segment, &id, name, custom, out)?;
        self.builder.delta(segment, &text, out)?;
        if let Some(text) = self.freeform.unwrap(name, &call["args"]) {
            self.builder.set_arguments(segment, text)?;
        }
        self.builder.end(segment, out)
    }

    /// The open segment for text; switching between text and reasoning closes
    /// the other.
    fn segment(&mut self, thought: bool, out: &mut Vec<StreamEvent>) -> Result<u32, Misuse> {
        if let Some((segment, is_thought)) = self.open
            && is_thought == thought
        {
            return Ok(segment);
        }
        self.close(out)?;
        let segment = self.number();
        if thought {
            self.builder.reasoning_start(segment, out)?;
        } else {
            self.builder.text_start(segment, out)?;
        }
        self.open = Some((segment, thought));
        Ok(segment)
    }

    fn close(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        match self.open.take() {
            Some((segment, _)) => self.builder.end(segment, out),
            None => Ok(()),
        }
    }

    fn end(&mut self, finish: Finish, out: &mut Vec<StreamEvent>) {
        let mut reason = match finish.reason.as_str() {
            "STOP" => FinishKind::Stop,
            "MAX_TOKENS" => FinishKind::Length,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "MODEL_ARMOR" => FinishKind::ContentFilter,
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
            | "MALFORMED_RESPONSE" => FinishKind::Error,
            _ => FinishKind::Other,
        };
        if finish.blocked {
            reason = FinishKind::ContentFilter;
        }
        if reason == FinishKind::Stop && self.builder.has_calls() {
            reason = FinishKind::ToolCalls;
        }
        if let Some(message) = finish.message {
            let message = clip(&format!("{}: {message}", finish.reason));
            self.builder.warn(Warning::new("finish_message", message));
        }
        let mut items: Vec<Value> = std::mem::take(&mut self.parts)
            .into_iter()
            .map(Value::Object)
            .collect();
        if finish.reason == "CONTINUATION"
            && let Some(token) = self.continuation.take()
        {
            items.push(serde_json::json!({"continuationToken": token}));
        }
        let replay = Replay {
            provider: NAME.to_owned(),
            model: self.builder.model().to_owned(),
            items,
        };
        let reason = FinishReason {
            reason,
            raw: finish.reason,
        };
        let usage = self.usage();
        self.builder.finish(reason, usage, Some(replay), out);
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// The arguments of calls by part, as they stand in the chunk; read a second
/// time only when there is a call.
fn arguments(data: &str, candidate: &Value) -> BTreeMap<usize, String> {
    let parts = candidate["content"]["parts"].as_array();
    let has_call = parts
        .into_iter()
        .flatten()
        .any(|part| part.get("functionCall").is_some());
    if !has_call {
        return BTreeMap::new();
    }
    let Ok(mut chunk) = serde_json::from_str::<RawChunk<'_>>(data) else {
        return BTreeMap::new();
    };
    let content = match chunk.candidates.is_empty() {
        true => None,
        false => chunk.candidates.swap_remove(0).content,
    };
    let parts = content.into_iter().flat_map(|content| content.parts);
    parts
        .enumerate()
        .filter_map(|(index, part)| {
            let arguments = part.function_call?.args?.get();
            Some((index, raw_object(arguments)?.to_owned()))
        })
        .collect()
}
