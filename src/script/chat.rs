//! Chat Completions of OpenAI-compatible servers, `POST /chat/completions`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::format::ToolCall;
use super::wire::{Part, Piece, ResponseParts, Wire, pieces};

pub(super) struct Chat;

impl Wire for Chat {
    fn route(&self) -> &'static str {
        "/chat/completions"
    }

    fn last_tool_result(&self, body: &Value) -> Option<String> {
        let messages = body.get("messages")?.as_array()?;
        let message = messages
            .iter()
            .rev()
            .find(|message| message["role"] == "tool")?;
        Some(match &message["content"] {
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
        let mut events = Vec::new();
        let mut push = |part, is_delta, data: &Value| {
            events.push(Piece {
                part,
                is_delta,
                bytes: event(data),
            });
        };
        let start = json!({"role": "assistant", "content": ""});
        push(Part::Start, false, &chunk(answer, start, None));
        if let Some(thinking) = &step.thinking {
            for text in pieces(&thinking.text, 2) {
                let delta = json!({"reasoning_content": text});
                push(Part::Thinking, true, &chunk(answer, delta, None));
            }
        }
        for text in step.deltas() {
            let delta = json!({"content": text});
            push(Part::Text, true, &chunk(answer, delta, None));
        }
        for (index, call) in step.tool_calls.iter().enumerate() {
            let mut begun = tool_call(answer, index, call);
            begun["index"] = json!(index);
            begun["function"]["arguments"] = json!("");
            let delta = json!({"tool_calls": [begun]});
            push(Part::ToolCalls, false, &chunk(answer, delta, None));
            for text in pieces(&call.arguments_text(), 3) {
                let function = json!({"index": index, "function": {"arguments": text}});
                let delta = json!({"tool_calls": [function]});
                push(Part::ToolCalls, true, &chunk(answer, delta, None));
            }
        }
        let reason = Some(finish_reason(answer));
        push(Part::End, false, &chunk(answer, json!({}), reason));
        let mut last = chunk(answer, json!({}), None);
        last["choices"] = json!([]);
        last["usage"] = usage(answer);
        push(Part::End, false, &last);
        events.push(Piece {
            part: Part::End,
            is_delta: false,
            bytes: Bytes::from_static(b"data: [DONE]\n\n"),
        });
        events
    }

    fn whole(&self, answer: &ResponseParts<'_>) -> Value {
        let step = answer.step;
        let text = step.deltas().concat();
        let mut message = json!({
            "role": "assistant",
            "content": (!text.is_empty()).then_some(text),
        });
        if let Some(thinking) = step
            .thinking
            .as_ref()
            .filter(|thinking| !thinking.text.is_empty())
        {
            message["reasoning_content"] = json!(thinking.text);
        }
        if !step.tool_calls.is_empty() {
            let calls = step.tool_calls.iter().enumerate();
            message["tool_calls"] = calls
                .map(|(index, call)| tool_call(answer, index, call))
                .collect();
        }
        json!({
            "id": format!("chatcmpl-{}", answer.number),
            "object": "chat.completion",
            "created": 0,
            "model": answer.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": finish_reason(answer),
            }],
            "usage": usage(answer),
        })
    }

    fn stream_error(&self, kind: &str, message: &str) -> Bytes {
        event(&json!({"error": {"message": message, "type": kind, "param": null, "code": kind}}))
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        let kind = kind.unwrap_or(match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        });
        json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
    }
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

fn chunk(answer: &ResponseParts<'_>, delta: Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.number),
        "object": "chat.completion.chunk",
        "created": 0,
        "model": answer.model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    })
}

fn finish_reason<'a>(answer: &ResponseParts<'a>) -> &'a str {
    match &answer.step.stop_reason {
        Some(reason) => reason,
        None if answer.step.tool_calls.is_empty() => "stop",
        None => "tool_calls",
    }
}

fn usage(answer: &ResponseParts<'_>) -> Value {
    let usage = &answer.step.usage;
    let cached = usage.cache_read_tokens.unwrap_or(0);
    let prompt = usage.input_tokens + cached + usage.cache_write_tokens.unwrap_or(0);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens.unwrap_or(0)},
    })
}

fn tool_call(answer: &ResponseParts<'_>, index: usize, call: &ToolCall) -> Value {
    let id = match &call.id {
        Some(id) => id.clone(),
        None => format!("call_{}_{}", answer.number, index + 1),
    };
    json!({
        "id": id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_text()},
    })
}
