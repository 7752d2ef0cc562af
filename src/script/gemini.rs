//! Gemini, `POST /models/MODEL:streamGenerateContent` and `:generateContent`
//! (LLM-client brief §10 and §12).

use bytes::Bytes;
use serde_json::{Value, json};

use super::format::ToolCall;
use super::wire::{Head, Part, Piece, ResponseParts, Wire, pieces};

pub(super) struct Gemini;

impl Wire for Gemini {
    fn route(&self) -> &'static str {
        "/models/MODEL:streamGenerateContent"
    }

    fn serves(&self, path: &str) -> bool {
        path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent")
    }

    fn streams(&self, path: &str, _head: &Head) -> bool {
        path.contains(":streamGenerateContent")
    }

    fn model<'a>(&self, path: &'a str, _head: &'a Head) -> &'a str {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.split(':').next().unwrap_or_default()
    }

    fn last_tool_result(&self, body: &Value) -> Option<String> {
        let contents = body.get("contents")?.as_array()?;
        let response = contents.iter().rev().find_map(|content| {
            let parts = content.get("parts")?.as_array()?;
            parts
                .iter()
                .rev()
                .find_map(|part| part.get("functionResponse"))
        })?;
        let response = &response["response"];
        let text = response["output"].as_str().or(response["error"].as_str());
        Some(text.map_or_else(|| response.to_string(), str::to_owned))
    }

    fn stream(&self, answer: &ResponseParts<'_>) -> Vec<Piece> {
        let step = answer.step;
        let mut events = Vec::new();
        let mut push = |part, is_delta, parts: Vec<Value>| {
            events.push(Piece {
                part,
                is_delta,
                bytes: event(&chunk(answer, parts)),
            });
        };
        if let Some(thinking) = &step.thinking {
            for text in pieces(&thinking.text, 2) {
                push(
                    Part::Thinking,
                    true,
                    vec![json!({"text": text, "thought": true})],
                );
            }
        }
        for text in step.deltas() {
            push(Part::Text, true, vec![json!({"text": text})]);
        }
        let calls = calls(answer);
        if !calls.is_empty() {
            push(Part::ToolCalls, true, calls);
        }
        let mut last = chunk(answer, trailing_signature(answer));
        finish(answer, &mut last);
        events.push(Piece {
            part: Part::End,
            is_delta: false,
            bytes: event(&last),
        });
        events
    }

    fn whole(&self, answer: &ResponseParts<'_>) -> Value {
        let step = answer.step;
        let mut parts = Vec::new();
        if let Some(thinking) = step
            .thinking
            .as_ref()
            .filter(|thinking| !thinking.text.is_empty())
        {
            parts.push(json!({"text": thinking.text, "thought": true}));
        }
        if !step.deltas().is_empty() {
            parts.push(json!({"text": step.deltas().concat()}));
        }
        parts.extend(calls(answer));
        parts.extend(trailing_signature(answer));
        let mut whole = chunk(answer, parts);
        finish(answer, &mut whole);
        whole
    }

    fn stream_error(&self, kind: &str, message: &str) -> Bytes {
        let code = match kind {
            "INVALID_ARGUMENT" => 400,
            "RESOURCE_EXHAUSTED" => 429,
            "INTERNAL" => 500,
            _ => 503,
        };
        event(&json!({"error": {"code": code, "message": message, "status": kind}}))
    }

    fn error(&self, status: u16, kind: Option<&str>, message: &str) -> Value {
        let kind = kind.unwrap_or(match status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            500.. => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        });
        json!({"error": {"code": status, "message": message, "status": kind}})
    }
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

fn chunk(answer: &ResponseParts<'_>, parts: Vec<Value>) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": answer.model,
        "responseId": format!("response-{}", answer.number),
    })
}

/// Reason and token counts, in the last chunk.
fn finish(answer: &ResponseParts<'_>, chunk: &mut Value) {
    let usage = &answer.step.usage;
    let reason = answer.step.stop_reason.as_deref().unwrap_or("STOP");
    chunk["candidates"][0]["finishReason"] = json!(reason);
    let cached = usage.cache_read_tokens.unwrap_or(0);
    let prompt = usage.input_tokens + cached + usage.cache_write_tokens.unwrap_or(0);
    let thoughts = usage.reasoning_tokens.unwrap_or(0).min(usage.output_tokens);
    chunk["usageMetadata"] = json!({
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output_tokens - thoughts,
        "totalTokenCount": prompt + usage.output_tokens,
    });
    for (name, count) in [
        ("cachedContentTokenCount", cached),
        ("thoughtsTokenCount", thoughts),
    ] {
        if count > 0 {
            chunk["usageMetadata"][name] = json!(count);
        }
    }
}

/// All calls; the first bears the signature of the reasoning.
fn calls(answer: &ResponseParts<'_>) -> Vec<Value> {
    let mut parts: Vec<Value> = answer
        .step
        .tool_calls
        .iter()
        .enumerate()
        .map(|(index, call)| function_call(answer, index, call))
        .collect();
    if let (Some(first), Some(signature)) = (parts.first_mut(), signature(answer)) {
        first["thoughtSignature"] = json!(signature);
    }
    parts
}

/// Without calls the signature comes on an empty text at the end.
fn trailing_signature(answer: &ResponseParts<'_>) -> Vec<Value> {
    match signature(answer) {
        Some(signature) if answer.step.tool_calls.is_empty() => {
            vec![json!({"text": "", "thoughtSignature": signature})]
        }
        _ => Vec::new(),
    }
}

fn signature<'a>(answer: &ResponseParts<'a>) -> Option<&'a str> {
    answer.step.thinking.as_ref()?.signature.as_deref()
}

fn function_call(answer: &ResponseParts<'_>, index: usize, call: &ToolCall) -> Value {
    let id = match &call.id {
        Some(id) => id.clone(),
        None => format!("call-{}-{}", answer.number, index + 1),
    };
    let text = call.arguments_text();
    let arguments = serde_json::from_str(&text).unwrap_or(Value::String(text));
    json!({"functionCall": {"id": id, "name": call.name, "args": arguments}})
}
