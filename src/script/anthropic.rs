//! Anthropic Messages, `POST /v1/messages` (LLM-client brief §9.4 and §12).

use bytes::Bytes;
use serde_json::{Value, json};

use super::format::ToolCall;
use super::wire::{Part, Piece, ResponseParts, Wire, pieces};

pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn route(&self) -> &'static str {
        "/v1/messages"
    }

    fn last_tool_result(&self, body: &Value) -> Option<String> {
        let messages = body.get("messages")?.as_array()?;
        let block = messages.iter().rev().find_map(|message| {
            let blocks = message.get("content")?.as_array()?;
            blocks
                .iter()
                .rev()
                .find(|block| block["type"] == "tool_result")
        })?;
        Some(match &block["content"] {
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
        let mut message = message(answer);
        message["content"] = json!([]);
        message["stop_reason"] = Value::Null;
        message["usage"] = usage(answer, 1);
        let start = json!({"type": "message_start", "message": message});
        events.push(Part::Start, &start);

        if let Some(thinking) = &step.thinking {
            let part = Part::Thinking;
            if !thinking.text.is_empty() || thinking.signature.is_some() {
                events.open(
                    part,
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                );
                if !thinking.text.is_empty() {
                    for text in pieces(&thinking.text, 2) {
                        events.delta(part, json!({"type": "thinking_delta", "thinking": text}));
                    }
                }
                if let Some(signature) = &thinking.signature {
                    let delta = json!({"type": "signature_delta", "signature": signature});
                    events.delta(part, delta);
                }
                events.close(part);
            }
            if let Some(data) = &thinking.redacted {
                events.open(part, json!({"type": "redacted_thinking", "data": data}));
                events.close(part);
            }
        }
        // Real streams carry pings anywhere; one here keeps clients honest.
        events.push(Part::Text, &json!({"type": "ping"}));
        if !step.deltas().is_empty() {
            events.open(Part::Text, json!({"type": "text", "text": ""}));
            for text in step.deltas() {
                events.delta(Part::Text, json!({"type": "text_delta", "text": text}));
            }
            events.close(Part::Text);
        }
        for (index, call) in step.tool_calls.iter().enumerate() {
            let part = Part::ToolCalls;
            let mut block = tool_use(answer, index, call);
            block["input"] = json!({});
            events.open(part, block);
            events.delta(
                part,
                json!({"type": "input_json_delta", "partial_json": ""}),
            );
            for text in pieces(&call.arguments_text(), 3) {
                events.delta(
                    part,
                    json!({"type": "input_json_delta", "partial_json": text}),
                );
            }
            events.close(part);
        }
        let mut counts = json!({"output_tokens": step.usage.output_tokens});
        if let Some(tokens) = step.usage.reasoning_tokens {
            counts["output_tokens_details"] = json!({"thinking_tokens": tokens});
        }
        let end = json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
            "usage": counts,
        });
        events.push(Part::End, &end);
        events.push(Part::End, &json!({"type": "message_stop"}));
        events.pieces
    }

    fn whole(&self, answer: &ResponseParts<'_>) -> Value {
        let step = answer.step;
        let mut content = Vec::new();
        if let Some(thinking) = &step.thinking {
            if !thinking.text.is_empty() || thinking.signature.is_some() {
                content.push(json!({
                    "type": "thinking",
                    "thinking": thinking.text,
                    "signature": thinking.signature.as_deref().unwrap_or_default(),
                }));
            }
            if let Some(data) = &thinking.redacted {
                content.push(json!({"type": "redacted_thinking", "data": data}));
            }
        }
        if !step.deltas().is_empty() {
            content.push(json!({"type": "text", "text": step.deltas().concat()}));
        }
        for (index, call) in step.tool_calls.iter().enumerate() {
            let mut block = tool_use(answer, index, call);
            let text = call.arguments_text();
            block["input"] = serde_json::from_str(&text).unwrap_or(Value::String(text));
            content.push(block);
        }
        let mut message = message(answer);
        message["content"] = Value::Array(content);
        message["stop_reason"] = json!(stop_reason(answer));
        message["usage"] = usage(answer, step.usage.output_tokens);
        message
    }

    fn stream_error(&self, kind: &str, message: &str) -> Bytes {
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        event(&error)
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        let kind = kind.unwrap_or(match status {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        });
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }
}

/// Stream events in order, with the index of the open content block.
#[derive(Default)]
struct Events {
    pieces: Vec<Piece>,
    index: usize,
}

impl Events {
    fn push(&mut self, part: Part, data: &Value) {
        self.pieces.push(Piece {
            part,
            is_delta: false,
            bytes: event(data),
        });
    }

    fn open(&mut self, part: Part, block: Value) {
        let index = self.index;
        let data = json!({"type": "content_block_start", "index": index, "content_block": block});
        self.push(part, &data);
    }

    fn delta(&mut self, part: Part, delta: Value) {
        let data = json!({"type": "content_block_delta", "index": self.index, "delta": delta});
        self.pieces.push(Piece {
            part,
            is_delta: true,
            bytes: event(&data),
        });
    }

    fn close(&mut self, part: Part) {
        let data = json!({"type": "content_block_stop", "index": self.index});
        self.push(part, &data);
        self.index += 1;
    }
}

fn event(data: &Value) -> Bytes {
    let kind = data["type"].as_str().unwrap_or_default();
    Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
}

fn message(answer: &ResponseParts<'_>) -> Value {
    json!({
        "id": format!("msg_{}", answer.number),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": null,
        "stop_reason": null,
        "stop_sequence": null,
        "usage": null,
    })
}

fn usage(answer: &ResponseParts<'_>, output_tokens: u64) -> Value {
    let usage = &answer.step.usage;
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens.unwrap_or(0),
        "cache_read_input_tokens": usage.cache_read_tokens.unwrap_or(0),
        "output_tokens": output_tokens,
    })
}

fn tool_use(answer: &ResponseParts<'_>, index: usize, call: &ToolCall) -> Value {
    let id = match &call.id {
        Some(id) => id.clone(),
        None => format!("toolu_{}_{}", answer.number, index + 1),
    };
    json!({"type": "tool_use", "id": id, "name": call.name, "input": null})
}

fn stop_reason<'a>(answer: &ResponseParts<'a>) -> &'a str {
    match &answer.step.stop_reason {
        Some(reason) => reason,
        None if answer.step.tool_calls.is_empty() => "end_turn",
        None => "tool_use",
    }
}
