//! Which tool calls of a session run, read off its events: when its core dies,
//! its users want to know what it was doing.

use bytes::Bytes;
use serde::Deserialize;

const START: &[u8] = br#"{"kind":"TOOL_CALL_START","data":{"#;
const END: &[u8] = br#"{"kind":"TOOL_CALL_END","data":{"#;

/// Characters of a command that are shown.
const SHOWN: usize = 200;

/// Brings `running`, the `TOOL_CALL_START`s without an end, up to date.
pub(super) fn follow(running: &mut Vec<Bytes>, events: &[Bytes]) {
    for event in events {
        if event.starts_with(START) {
            running.push(event.clone());
        } else if let Some(ended) = event.strip_prefix(END) {
            running.retain(|start| !ended.starts_with(identity(start)));
        }
    }
}

/// What start and end of a call have in common: tool and id. Its arguments,
/// which can be long, are not looked at.
fn identity(start: &[u8]) -> &[u8] {
    let data = &start[START.len()..];
    let arguments = br#","arguments":"#;
    let end = data.windows(arguments.len()).position(|w| w == arguments);
    &data[..end.map_or(data.len(), |end| end + 1)]
}

#[derive(Deserialize)]
struct Started {
    data: Call,
}

#[derive(Deserialize)]
struct Call {
    tool_name: String,
    arguments: serde_json::Value,
}

/// The end of a sentence that says what ran: ` while … ran`, or nothing.
pub(super) fn described(running: &[Bytes]) -> String {
    let calls = running
        .iter()
        .filter_map(|start| serde_json::from_slice::<Started>(start).ok());
    let calls: Vec<String> = calls
        .map(
            |Started { data }| match data.arguments["command"].as_str() {
                Some(command) => {
                    let mut shown: String = command.chars().take(SHOWN).collect();
                    if shown.len() < command.len() {
                        shown.push('…');
                    }
                    format!("`{shown}`")
                }
                None => data.tool_name,
            },
        )
        .collect();
    match calls.is_empty() {
        true => String::new(),
        false => format!(" while {} ran", calls.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab::event::{Event, EventKind};
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: EventKind) -> Bytes {
        let event = Event {
            kind,
            seq: 1,
            timestamp: String::new(),
            session_id: "s".into(),
            agent_id: None,
            parent_id: None,
        };
        event.to_json()
    }

    fn start(tool: &str, id: &str, arguments: Value) -> Bytes {
        event(EventKind::ToolCallStart {
            tool_name: tool.to_owned(),
            call_id: id.to_owned(),
            arguments,
        })
    }

    fn end(tool: &str, id: &str) -> Bytes {
        let json = json!({"kind": "TOOL_CALL_END", "data": {"tool_name": tool, "call_id": id,
            "is_error": false, "output_bytes": 0, "output_complete": true, "duration_ms": 0}});
        let kind: EventKind = serde_json::from_value(json).expect("an event");
        event(kind)
    }

    #[track_caller]
    fn check(events: &[Bytes], expected: &str) {
        let mut running = Vec::new();
        follow(&mut running, events);
        assert_eq!(described(&running), expected);
    }

    #[test]
    fn calls_without_an_end_run() {
        let long = "x".repeat(300);
        let starts = [
            start("shell", "c1", json!({"command": "yes | sort"})),
            start("write_file", "c2", json!({"path": ",\"arguments\":"})),
            start("shell", "c11", json!({"command": long})),
        ];
        check(&[], "");
        check(&starts[..2], " while `yes | sort`, write_file ran");
        let ended = [&starts[..], &[end("shell", "c1"), end("write_file", "c2")]].concat();
        check(&ended, &format!(" while `{}…` ran", "x".repeat(200)));
        let all = [&ended[..], &[end("shell", "c11")]].concat();
        check(&all, "");
    }
}
