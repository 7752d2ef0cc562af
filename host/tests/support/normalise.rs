//! Events made comparable: the rules of `tests/cases/README.md`, in its order.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::case::strings;

/// What differs between two plays of a case.
pub struct Circumstances<'a> {
    pub directory: &'a str,
    pub base_url: &'a str,
    pub breaks: bool,
}

/// Longest string that is shown as it is, in Unicode scalar values.
const SHOWN: usize = 2_000;
/// Scalar values of a longer string's beginning and end that are shown.
const EDGE: usize = 40;

/// Checks what every run must keep to, whatever it does.
pub fn check(events: &[Value]) -> Result<(), String> {
    let mut last_timestamp = "";
    let mut open = BTreeSet::new();
    let mut agents = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        let at = |what: &str| Err(format!("event {}: {what}: {event}", index + 1));
        if event["seq"] != json!(index + 1) {
            return at("seq does not count 1, 2, 3, …");
        }
        if event["session_id"] != events[0]["session_id"] || !event["session_id"].is_string() {
            return at("another session_id than that of the first event");
        }
        let agent = event["agent_id"].as_str();
        let parent = event["parent_id"].as_str();
        let known = |id: &str| agents.contains(id) || event["session_id"] == id;
        if agent.is_some() != parent.is_some() || !parent.is_none_or(known) {
            return at("a subagent names itself and its parent, others neither");
        }
        let timestamp = event["timestamp"].as_str().unwrap_or_default();
        if !is_rfc3339(timestamp) || timestamp < last_timestamp {
            return at("timestamp is not RFC 3339 in UTC, or goes back");
        }
        last_timestamp = timestamp;
        let kind = event["kind"].as_str().unwrap_or_default();
        let (starts, ends) = match agent {
            None => (index == 0, index + 1 == events.len()),
            Some(agent) => {
                let more = events[index + 1..].iter().any(|e| e["agent_id"] == agent);
                (agents.insert(agent), !more)
            }
        };
        if (kind == "SESSION_START") != starts || (kind == "SESSION_END") != ends {
            return at("SESSION_START must come first and SESSION_END last");
        }
        let call_id = event["data"]["call_id"].as_str().unwrap_or_default();
        let fine = match kind {
            "TOOL_CALL_START" => open.insert(call_id),
            "TOOL_CALL_OUTPUT_DELTA" | "APPROVAL_REQUESTED" => open.contains(call_id),
            "TOOL_CALL_END" => open.remove(call_id),
            "PROCESSING_END" | "SESSION_END" if agents.is_empty() => open.is_empty(),
            _ => true,
        };
        if !fine {
            return at("outside of its tool call's start and end");
        }
    }
    Ok(())
}

/// `2026-11-21T22:00:00.000Z`: as long as every other one, so that order is
/// that of the text.
fn is_rfc3339(text: &str) -> bool {
    let pattern = b"0000-00-00T00:00:00.000Z";
    text.len() == pattern.len()
        && text.bytes().zip(pattern).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == *shape,
        })
}

/// The transcript of `events`.
pub fn transcript(events: &[Value], around: &Circumstances) -> Vec<Value> {
    let kept = events
        .iter()
        .map(|event| {
            let mut kept = json!({"kind": event["kind"], "data": event["data"]});
            if let Some(agent) = event.get("agent_id") {
                kept["agent_id"] = agent.clone();
            }
            kept
        })
        .collect();
    let mut transcript = join_deltas(kept);
    let races = transcript
        .iter()
        .any(|event| event.get("agent_id").is_some());
    for event in &mut transcript {
        settle(event, around);
        if races && let Some(id) = event["data"].get_mut("response_id") {
            *id = json!("<response>");
        }
        strings(&mut event["data"], &|text| abbreviated(text));
    }
    transcript
}

fn join_deltas(events: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::with_capacity(events.len());
    let mut deltas: Vec<Value> = Vec::new();
    for event in events {
        let call_id = &event["data"]["call_id"];
        if event["kind"] == "TOOL_CALL_OUTPUT_DELTA" {
            let data = &event["data"];
            let same = deltas.iter_mut().find(|delta| {
                delta["data"]["call_id"] == *call_id
                    && delta["data"].get("stream") == data.get("stream")
            });
            match same {
                Some(delta) => {
                    let text = [&delta["data"]["text"], &data["text"]]
                        .map(|t| t.as_str().unwrap_or_default());
                    delta["data"]["text"] = text.concat().into();
                }
                None => deltas.push(event),
            }
            continue;
        }
        if event["kind"] == "TOOL_CALL_END" {
            for stream in [json!("stdout"), json!("stderr"), Value::Null] {
                let at = deltas.iter().position(|delta| {
                    delta["data"]["call_id"] == *call_id && delta["data"]["stream"] == stream
                });
                joined.extend(at.map(|at| deltas.remove(at)));
            }
        }
        joined.push(event);
    }
    joined
}

fn settle(event: &mut Value, around: &Circumstances) {
    let kind = event["kind"].clone();
    let data = &mut event["data"];
    for name in ["duration_ms", "model_ms", "after_tokens"] {
        if let Some(value) = data.get_mut(name) {
            *value = json!(0);
        }
    }
    if kind == "SESSION_START" {
        data["platform"] = json!("<platform>");
    }
    if kind == "TOOL_CALL_END"
        && let Some(output) = data["output"].as_str().or(data["error"].as_str())
        && let Some(bytes) = data["output_bytes"].as_u64()
    {
        let saved = output.matches(around.directory).count() * (around.directory.len() - 5);
        data["output_bytes"] = json!(bytes - saved as u64);
    }
    strings(data, &|text| placed(text, around));
    if around.breaks
        && (kind == "ERROR" || kind == "RETRY")
        && let Some(message) = data["message"].as_str()
    {
        let message = between(message, "broke off: ", "; try again");
        data["message"] = between(&message, "cannot be reached: ", "; check").into();
    }
}

/// Rule 5: places become placeholders, and commands take no time.
pub fn placed(text: &str, around: &Circumstances) -> String {
    let text = text
        .replace(around.directory, "<dir>")
        .replace(around.base_url, "<model>");
    let mut pieces = text.split(", duration: ");
    let mut timeless = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        timeless += ", duration: ";
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        match rest.starts_with(" s]") {
            true => timeless = timeless + "0.0" + rest,
            false => timeless += piece,
        }
    }
    timeless
}

fn between(text: &str, before: &str, after: &str) -> String {
    let start = text.find(before).map(|at| at + before.len());
    let end = start.and_then(|start| text[start..].find(after).map(|at| start + at));
    match (start, end) {
        (Some(start), Some(end)) => format!("{}<transport>{}", &text[..start], &text[end..]),
        _ => text.to_owned(),
    }
}

/// Rule 7: long strings become their length, digest and edges.
pub fn abbreviated(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN {
        return text.to_owned();
    }
    let digest = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let first: String = text.chars().take(EDGE).collect();
    let last: String = text.chars().skip(count - EDGE).collect();
    format!("<{count} characters, fnv1a {digest:08x}: {first} … {last}>")
}
