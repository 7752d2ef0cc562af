//! The chunks of an answer (LLM-client brief §10). The stream has no last
//! event: it is complete when it ends after a finish reason.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::of_body;
use super::{NAME, OWN_ID};
use crate::llm::adapter::call::arguments_text;
use crate::llm::adapter::freeform::Freeform;
use crate::llm::adapter::reader::ResponseDecoder;
use crate::llm::adapter::segments::Segments;
use crate::llm::adapter::text::Text;
use crate::llm::builder::ResponseBuilder;
use crate::llm::calls::Settled;
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
    segments: Segments,
    /// Parts to go back.
    parts: Vec<Kept>,
    continuation: Option<Value>,
    calls: usize,
    finish: Option<Finish>,
    /// The last count, as it came: most chunks bring a new one.
    usage: String,
}

/// A part to go back.
enum Kept {
    /// Text that carries nothing else, its neighbours included.
    Plain { text: String, thought: bool },
    /// A call, with its segment.
    Call(u32, Map<String, Value>),
    /// Anything else, as it came.
    Part(Map<String, Value>),
}

struct Finish {
    reason: String,
    message: Option<String>,
    /// The prompt was refused: there is no answer at all.
    blocked: bool,
}

/// The chunk that comes thousands of times, read without building a tree: a
/// piece of text or reasoning and nothing else. A `()` is a field that must be
/// absent or null for that.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextChunk<'a> {
    #[serde(borrow, default)]
    response_id: Text<'a>,
    #[serde(borrow, default)]
    model_version: Text<'a>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(rename = "promptFeedback", default)]
    _prompt_feedback: (),
    #[serde(rename = "error", default)]
    _error: (),
    #[serde(borrow)]
    candidates: [TextCandidate<'a>; 1],
}

#[derive(Deserialize)]
struct TextCandidate<'a> {
    #[serde(borrow)]
    content: TextContent<'a>,
    #[serde(rename = "finishReason", default)]
    _finish_reason: (),
    #[serde(rename = "continuationToken", default)]
    _continuation_token: (),
    #[serde(rename = "groundingMetadata", default)]
    _grounding: (),
    #[serde(rename = "citationMetadata", default)]
    _citations: (),
    #[serde(rename = "urlContextMetadata", default)]
    _url_context: (),
}

#[derive(Deserialize)]
struct TextContent<'a> {
    #[serde(borrow)]
    parts: Vec<TextPart<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextPart<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(default)]
    thought: bool,
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
            segments: Segments::new(&names.provider, request),
            names,
            parts: Vec::new(),
            continuation: None,
            calls: 0,
            finish: None,
            usage: String::new(),
        }
    }
}

impl ResponseDecoder for Events {
    fn data(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        if let Ok(chunk) = serde_json::from_str::<TextChunk<'_>>(data) {
            return self.text_chunk(&chunk, out);
        }
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
        self.segments
            .start(text("responseId"), text("modelVersion"), out)?;
        let known = ["candidates", "usageMetadata", "promptFeedback"];
        if !known.iter().any(|field| chunk.get(field).is_some()) {
            self.segments.builder.provider_event(chunk, out);
            return Ok(());
        }
        if chunk["usageMetadata"].is_object() {
            self.usage = chunk["usageMetadata"].to_string();
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
        self.end(finish, out)
    }

    fn builder(&mut self) -> &mut ResponseBuilder {
        &mut self.segments.builder
    }

    fn names(&self) -> &Names {
        &self.names
    }

    /// Output includes the reasoning, as with the other providers; the API
    /// counts it apart.
    fn usage(&self) -> Usage {
        let usage: Value = serde_json::from_str(&self.usage).unwrap_or_default();
        let count = |name: &str| usage[name].as_u64();
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
        self.segments
            .start(&chunk.response_id, &chunk.model_version, out)?;
        let usage = chunk.usage_metadata.map_or("", RawValue::get);
        if usage.starts_with('{') {
            usage.clone_into(&mut self.usage);
        }
        let [candidate] = &chunk.candidates;
        let mut parts = candidate.content.parts.iter();
        parts.try_for_each(|part| self.text(&part.text, part.thought, out))
    }

    fn candidate(
        &mut self,
        mut candidate: Value,
        raw: &SortedMap<usize, String>,
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
                self.segments.builder.provider_event(event, out);
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
            self.segments.close(out)?;
            let segment = self.call(call, arguments, out)?;
            self.parts.push(Kept::Call(segment, part));
            return Ok(());
        }
        let Some(Value::String(text)) = part.get("text") else {
            if part.contains_key("text") {
                return Err(Misuse("the text of a part is not a string".to_owned()));
            }
            self.segments.close(out)?;
            let segment = self.segments.number();
            let kind = part.keys().find(|name| !name.starts_with("thought"));
            let content = ContentPart::Other {
                kind: kind.cloned().unwrap_or_default(),
                value: Value::Object(part.clone()),
            };
            self.segments.builder.whole(segment, content)?;
            self.segments.builder.end(segment, out)?;
            self.segments
                .builder
                .provider_event(Value::Object(part.clone()), out);
            self.parts.push(Kept::Part(part));
            return Ok(());
        };
        let thought = part.get("thought") == Some(&Value::Bool(true));
        if part.keys().all(|name| name == "text" || name == "thought") {
            return self.text(text, thought, out);
        }
        // A signature stays on the very part that carried it.
        self.segments.text(text, thought, out)?;
        self.parts.push(Kept::Part(part));
        Ok(())
    }

    /// Takes a text that carries nothing else; neighbours become one.
    fn text(
        &mut self,
        more: &str,
        is_thought: bool,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Misuse> {
        self.segments.text(more, is_thought, out)?;
        match self.parts.last_mut() {
            _ if more.is_empty() => {}
            Some(Kept::Plain { text, thought }) if *thought == is_thought => text.push_str(more),
            _ => self.parts.push(Kept::Plain {
                text: more.to_owned(),
                thought: is_thought,
            }),
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: &Value,
        arguments: Option<&String>,
        out: &mut Vec<StreamEvent>,
    ) -> Result<u32, Misuse> {
        let name = match call["name"].as_str() {
            Some(name) if !name.is_empty() => name,
            _ => return Err(Misuse("a function call has no name".to_owned())),
        };
        let id = match call["id"].as_str() {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => format!("{OWN_ID}{}_{}", self.segments.seed, self.calls),
        };
        self.calls += 1;
        let text = match (&call["args"], arguments) {
            (Value::Null, _) => "{}".to_owned(),
            (_, Some(arguments)) => arguments.clone(),
            (args, None) => arguments_text(args).into_owned(),
        };
        let segment = self.segments.number();
        let custom = self.freeform.contains(name);
        self.segments
            .builder
            .call_start(segment, &id, name, custom, out)?;
        self.segments.builder.delta(segment, &text, out)?;
        if let Some(text) = self.freeform.unwrap(name, &call["args"]) {
            self.segments.builder.set_arguments(segment, text)?;
        }
        self.segments.builder.end(segment, out)?;
        Ok(segment)
    }

    fn end(&mut self, finish: Finish, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
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
        let settled = self.segments.builder.settle(reason)?;
        if let Some(message) = finish.message {
            let message = clip(&format!("{}: {message}", finish.reason));
            self.segments
                .builder
                .warn(Warning::new("finish_message", message));
        }
        let mut items: Vec<Value> = std::mem::take(&mut self.parts)
            .into_iter()
            .filter_map(|part| part.into_value(&settled))
            .collect();
        if finish.reason == "CONTINUATION"
            && let Some(token) = self.continuation.take()
        {
            items.push(serde_json::json!({"continuationToken": token}));
        }
        let replay = Replay {
            provider: NAME.to_owned(),
            model: self.segments.builder.model().to_owned(),
            items,
        };
        let usage = self.usage();
        self.segments
            .builder
            .finish(&settled, finish.reason, usage, Some(replay), out);
        Ok(())
    }
}

impl Kept {
    /// The part in the shape in which it goes back.
    fn into_value(self, settled: &Settled) -> Option<Value> {
        match self {
            Self::Plain { text, thought } => Some(match thought {
                true => serde_json::json!({"text": text, "thought": true}),
                false => serde_json::json!({"text": text}),
            }),
            Self::Call(segment, mut part) => {
                let stays = settled.keep(segment, |id| {
                    // Where the API gave none, none goes back.
                    if let Some(Value::String(own)) = part
                        .get_mut("functionCall")
                        .and_then(|call| call.get_mut("id"))
                        && !own.is_empty()
                    {
                        id.clone_into(own);
                    }
                });
                stays.then(|| Value::Object(part))
            }
            Self::Part(part) => Some(Value::Object(part)),
        }
    }
}

/// The arguments of calls by part, as they stand in the chunk; read a second
/// time only when there is a call.
fn arguments(data: &str, candidate: &Value) -> SortedMap<usize, String> {
    let parts = candidate["content"]["parts"].as_array();
    let has_call = parts
        .into_iter()
        .flatten()
        .any(|part| part.get("functionCall").is_some());
    if !has_call {
        return SortedMap::new();
    }
    let Ok(mut chunk) = serde_json::from_str::<RawChunk<'_>>(data) else {
        return SortedMap::new();
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
