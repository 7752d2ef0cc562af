//! The timeline of a trial, made from its trajectory: what the report shows when a
//! trial is opened. docs/eval.md lists its fields.

use std::path::Path;

use serde_json::{Value, json};

use super::artifacts::{CHECK, DIFF, TRAJECTORY};
use super::cut;

/// Characters of one text.
const TEXT: usize = 20_000;

/// The timeline of the trial in `directory`; what is missing there is left out.
pub(super) fn of(directory: &Path) -> Value {
    let read = |name: &str| std::fs::read(directory.join(name)).ok();
    let json = |name: &str| -> Value {
        read(name)
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    };
    let trajectory = json(TRAJECTORY);
    let check = json(CHECK);
    let diff = read(DIFF).unwrap_or_default();
    let diff = String::from_utf8_lossy(&diff).into_owned();
    json!({
        "rounds": rounds(&trajectory),
        "diff": cut(&diff, TEXT),
        "check": match check {
            Value::Null => Value::Null,
            check => json!({
                "exit_code": check["exit_code"],
                "output": text(&check["output"]),
                "ms": check["ms"],
            }),
        },
        "end": trajectory["extra"]["end"],
    })
}

fn rounds(trajectory: &Value) -> Vec<Value> {
    let steps = trajectory["steps"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let agents = steps.iter().filter(|step| step["source"] == "agent");
    let mut rounds = Vec::new();
    for step in agents {
        let metrics = &step["metrics"];
        let results = step["observation"]["results"].as_array();
        let calls = step["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| {
                let id = &call["tool_call_id"];
                let mut results = results.into_iter().flatten();
                let result = results.find(|result| result["source_call_id"] == *id);
                let result = result.unwrap_or(&Value::Null);
                json!({
                    "name": call["function_name"],
                    "arguments": shortened(&call["arguments"]),
                    "start_ms": call["extra"]["start_ms"],
                    "ms": call["extra"]["ms"],
                    "output": text(&result["content"]),
                    "is_error": result["extra"]["is_error"].as_bool().unwrap_or(false),
                    "diff": Value::Null,
                })
            })
            .collect();
        rounds.push(json!({
            "round": rounds.len() + 1,
            "start_ms": step["extra"]["start_ms"],
            "model_ms": step["extra"]["model_ms"].as_u64().unwrap_or(0),
            "tokens": {
                "input": metrics["prompt_tokens"].as_u64().unwrap_or(0),
                "output": metrics["completion_tokens"].as_u64().unwrap_or(0),
                "cached": metrics["cached_tokens"].as_u64().unwrap_or(0),
            },
            "cost_usd": metrics["cost_usd"],
            "thinking": text(&step["reasoning_content"]),
            "text": text(&step["message"]),
            "calls": calls,
        }));
    }
    rounds
}

fn text(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => cut(text, TEXT).into(),
        None => Value::Null,
    }
}

/// Arguments with long texts cut.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => cut(text, TEXT).into(),
        Value::Array(all) => all.iter().map(shortened).collect(),
        Value::Object(all) => all
            .iter()
            .map(|(name, value)| (name.clone(), shortened(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
