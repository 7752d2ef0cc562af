//! OpenAI Responses, `POST /responses` (LLM-client brief §8 and §12).

use bytes::Bytes;
use serde_json::{Value, json};

use super::format::ToolCall;
use super::wire::{Part, Piece, ResponseParts, Wire, pieces};

pub(super) struct OpenAi;

impl Wire for OpenAi {
    fn route(&self) -> &'static str {
        "/responses"
    }

    fn last_tool_result(&self, body: &Value) -> Option<String> {
        let items = body.get("input")?.as_array()?;
        let item = items.iter().rev().find(|item| {
            item["type"] == "function_call_output" || item["type"] == "custom_tool_call_output"
        })?;
        Some(match &item["output"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect(),
            _ => String::new(),
        })
    }

    fn stream(&self, answer: &ResponseParts<'_>) -> Vec<Piece> {
        let step = answer.step;
        let mut events = Events::default();
        let started = response(answer, "in_progress", Vec::new());
        events.push(
            Part::Start,
            json!({"type": "response.created", "response": started}),
        );
        let mut output = Vec::new();
        if let Some(item) = reasoning(answer) {
            let mut begun = item.clone();
            begun["summary"] = json!([]);
            let id = item["id"].clone();
            events.added(Part::Thinking, output.len(), begun);
            for (index, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
                let at =
                    json!({"item_id": id, "output_index": output.len(), "summary_index": index});
                let empty = json!({"type": "summary_text", "text": ""});
                let kind = "response.reasoning_summary_part.added";
                events.at(Part::Thinking, kind, &at, json!({"part": empty}));
                for text in pieces(part["text"].as_str().unwrap_or_default(), 2) {
                    let kind = "response.reasoning_summary_text.delta";
                    events.delta(Part::Thinking, kind, &at, json!({"delta": text}));
                }
                let kind = "response.reasoning_summary_part.done";
                events.at(Part::Thinking, kind, &at, json!({"part": part}));
            }
            events.done(Part::Thinking, output.len(), &item);
            output.push(item);
        }
        if !step.deltas().is_empty() {
            let item = text_message(answer);
            let mut begun = item.clone();
            begun["status"] = json!("in_progress");
            begun["content"] = json!([]);
            events.added(Part::Text, output.len(), begun);
            let at =
                json!({"item_id": item["id"], "output_index": output.len(), "content_index": 0});
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            let kind = "response.content_part.added";
            events.at(Part::Text, kind, &at, json!({"part": empty}));
            for text in step.deltas() {
                let delta = json!({"delta": text, "logprobs": []});
                events.delta(Part::Text, "response.output_text.delta", &at, delta);
            }
            let part = &item["content"][0];
            let whole = json!({"text": part["text"], "logprobs": []});
            events.at(Part::Text, "response.output_text.done", &at, whole);
            let kind = "response.content_part.done";
            events.at(Part::Text, kind, &at, json!({"part": part}));
            events.done(Part::Text, output.len(), &item);
            output.push(item);
        }
        for (index, call) in step.tool_calls.iter().enumerate() {
            let item = tool_call(answer, index, call);
            let (field, delta, done) = if call.custom {
                let kind = "response.custom_tool_call_input";
                ("input", format!("{kind}.delta"), format!("{kind}.done"))
            } else {
                let kind = "response.function_call_arguments";
                ("arguments", format!("{kind}.delta"), format!("{kind}.done"))
            };
            let mut begun = item.clone();
            begun[field] = json!("");
            events.added(Part::ToolCalls, output.len(), begun);
            let at = json!({"item_id": item["id"], "output_index": output.len()});
            let text = call.arguments_text();
            for text in pieces(&text, 3) {
                events.delta(Part::ToolCalls, &delta, &at, json!({"delta": text}));
            }
            events.at(Part::ToolCalls, &done, &at, json!({field: text}));
            events.done(Part::ToolCalls, output.len(), &item);
            output.push(item);
        }
        let ended = ended(answer, output);
        let status = ended["status"].as_str().unwrap_or_default();
        let kind = format!("response.{status}");
        events.push(Part::End, json!({"type": kind, "response": ended}));
        events.pieces
    }

    fn whole(&self, answer: &ResponseParts<'_>) -> Value {
        let step = answer.step;
        let mut output = Vec::new();
        output.extend(reasoning(answer));
        if !step.deltas().is_empty() {
            output.push(text_message(answer));
        }
        let calls = step.tool_calls.iter().enumerate();
        output.extend(calls.map(|(index, call)| tool_call(answer, index, call)));
        ended(answer, output)
    }

    fn stream_error(&self, kind: &str, message: &str) -> Bytes {
        let error = json!({"type": "error", "code": kind, "message": message, "param": null});
        event(&error)
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        let (usual, code) = match status {
            401 => ("invalid_request_error", Some("invalid_api_key")),
            404 => ("invalid_request_error", Some("model_not_found")),
            429 => ("tokens", Some("rate_limit_exceeded")),
            500.. => ("server_error", Some("server_error")),
            _ => ("invalid_request_error", None),
        };
        let (kind, code) = (kind.unwrap_or(usual), kind.or(code));
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    }
}

/// Stream events in order, numbered.
#[derive(Default)]
struct Events {
    pieces: Vec<Piece>,
}

impl Events {
    fn push(&mut self, part: Part, mut data: Value) {
        data["sequence_number"] = json!(self.pieces.len());
        self.pieces.push(Piece {
            part,
            is_delta: false,
            bytes: event(&data),
        });
    }

    fn added(&mut self, part: Part, index: usize, item: Value) {
        let kind = "response.output_item.added";
        self.push(
            part,
            json!({"type": kind, "output_index": index, "item": item}),
        );
    }

    fn done(&mut self, part: Part, index: usize, item: &Value) {
        let kind = "response.output_item.done";
        self.push(
            part,
            json!({"type": kind, "output_index": index, "item": item}),
        );
    }

    /// An event of the item at `at`, with the fields of `more`.
    fn at(&mut self, part: Part, kind: &str, at: &Value, more: Value) {
        let mut data = json!({"type": kind});
        for (name, value) in [at, &more]
            .into_iter()
            .filter_map(Value::as_object)
            .flatten()
        {
            data[name] = value.clone();
        }
        self.push(part, data);
    }

    fn delta(&mut self, part: Part, kind: &str, at: &Value, more: Value) {
        self.at(part, kind, at, more);
        if let Some(piece) = self.pieces.last_mut() {
            piece.is_delta = true;
        }
    }
}

fn event(data: &Value) -> Bytes {
    let kind = data["type"].as_str().unwrap_or_default();
    Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
}

fn response(answer: &ResponseParts<'_>, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{}", answer.number),
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "usage": null,
    })
}

/// The response at its end; a stop reason of the script is that of an
/// incomplete one.
fn ended(answer: &ResponseParts<'_>, output: Vec<Value>) -> Value {
    let usage = &answer.step.usage;
    let cached = usage.cache_read_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    let input = usage.input_tokens + cached + written;
    let reason = answer.step.stop_reason.as_deref();
    let status = reason.map_or("completed", |_| "incomplete");
    let mut response = response(answer, status, output);
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["usage"] = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens.unwrap_or(0)},
        "total_tokens": input + usage.output_tokens,
    });
    response
}

fn reasoning(answer: &ResponseParts<'_>) -> Option<Value> {
    let thinking = answer.step.thinking.as_ref()?;
    let summary = match thinking.text.as_str() {
        "" => json!([]),
        text => json!([{"type": "summary_text", "text": text}]),
    };
    let encrypted = thinking.signature.as_ref().or(thinking.redacted.as_ref());
    let mut item = json!({
        "id": format!("rs_{}", answer.number),
        "type": "reasoning",
        "summary": summary,
    });
    if let Some(encrypted) = encrypted {
        item["encrypted_content"] = json!(encrypted);
    }
    Some(item)
}

fn text_message(answer: &ResponseParts<'_>) -> Value {
    let text = answer.step.deltas().concat();
    let refused = answer.step.stop_reason.as_deref() == Some("refusal");
    let part = if refused {
        json!({"type": "refusal", "refusal": text})
    } else {
        json!({"type": "output_text", "text": text, "annotations": []})
    };
    json!({
        "id": format!("msg_{}", answer.number),
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    })
}

fn tool_call(answer: &ResponseParts<'_>, index: usize, call: &ToolCall) -> Value {
    let number = format!("{}_{}", answer.number, index + 1);
    let call_id = match &call.id {
        Some(id) => id.clone(),
        None => format!("call_{number}"),
    };
    let (prefix, kind, field) = if call.custom {
        ("ctc", "custom_tool_call", "input")
    } else {
        ("fc", "function_call", "arguments")
    };
    json!({
        "id": format!("{prefix}_{number}"),
        "type": kind,
        "status": "completed",
        "call_id": call_id,
        "name": call.name,
        field: call.arguments_text(),
    })
}
