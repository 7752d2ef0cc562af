//! History is append-only on the wire: of a run of 30 rounds with
//! everything that a history can hold, each request begins with the bytes of the
//! one before, cache markers aside.

mod support;

use serde_json::{Value, json};
use support::case::Case;
use support::direct::Direct;
use support::play;

const ROUNDS: usize = 30;

#[tokio::test]
async fn requests_of_thirty_rounds_share_their_prefix() {
    let case: Case = serde_json::from_value(case()).expect("a case");
    let played = play::play(&case, &Direct).await.expect("the run");
    let bodies: Vec<String> = played
        .requests
        .iter()
        .map(|body| without_markers(std::str::from_utf8(body).expect("UTF-8")))
        .collect();
    assert_eq!(bodies.len(), ROUNDS + 2);
    for (index, pair) in bodies.windows(2).enumerate() {
        // The messages come last: `…"messages":[…]}`.
        let kept = pair[0].strip_suffix("]}").expect("messages come last");
        assert!(
            kept.contains("\"messages\":["),
            "request {}: {kept}",
            index + 1
        );
        let shared = kept
            .bytes()
            .zip(pair[1].bytes())
            .take_while(|(a, b)| a == b)
            .count();
        assert!(
            shared == kept.len(),
            "request {} parts from request {} at byte {shared} of {}:\n…{}\n…{}",
            index + 2,
            index + 1,
            kept.len(),
            excerpt(kept, shared),
            excerpt(&pair[1], shared),
        );
    }
    // Where there are markers, they move: else this test would strip nothing.
    let marked = played.requests.iter().filter(|body| marker_count(body) > 0);
    assert_eq!(marked.count(), ROUNDS + 2);
}

const MARKER: &str = "\"cache_control\":{\"type\":\"ephemeral\"}";

fn marker_count(body: &[u8]) -> usize {
    String::from_utf8_lossy(body).matches(MARKER).count()
}

fn without_markers(body: &str) -> String {
    body.replace(&format!(",{MARKER}"), "")
        .replace(&format!("{MARKER},"), "")
}

fn excerpt(text: &str, at: usize) -> String {
    let bytes = &text.as_bytes()[at.saturating_sub(40)..(at + 80).min(text.len())];
    String::from_utf8_lossy(bytes).into_owned()
}

fn case() -> Value {
    let mut steps: Vec<Value> = (1..=ROUNDS).map(step).collect();
    steps.push(json!({"text": "All rounds are done."}));
    steps.push(json!({"text": "And the second input."}));
    json!({
        "about": "Thirty rounds with everything that a history can hold.",
        "config": {"reasoning_effort": "high", "loop_detection_window": 3},
        "files": {"a.txt": "ü \"quoted\" \\ back\n", "dot.png": {"base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}},
        "tools": [{
            "name": "note", "description": "Takes a note.",
            "parameters": {"type": "object", "properties": {"n": {"type": "number"}}},
            "behaviour": {"do": [{"steer": "Steered \u{1f980}."}, {"system": "A system turn."}], "returns": "noted"},
        }],
        "script": {"steps": steps},
        "actions": [{"submit": "Play 30 rounds.\n\ttab \u{0} nul"}, {"submit": "Once more."}],
        "expect": {},
    })
}

fn step(round: usize) -> Value {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    match round % 6 {
        0 => {
            json!({"text": format!("Round {round}."), "tool_calls": [call("shell", json!({"command": format!("echo {round}")}))]})
        }
        1 => json!({
            "thinking": {"text": "Thinking. ü", "signature": "c2ln", "redacted": "b3BhcXVl"},
            "tool_calls": [call("read_file", json!({"file_path": "a.txt"})), call("nothing", json!({"x": 1.0}))],
        }),
        2 => {
            json!({"tool_calls": [{"name": "note", "raw_arguments": "{ \"n\" : 1e2 , \"b\":\"\\u00fc\" }"}]})
        }
        3 => json!({"tool_calls": [{"name": "shell", "raw_arguments": "{\"command\": "}]}),
        4 => json!({"tool_calls": [call("read_file", json!({"file_path": "dot.png"}))]}),
        // Equal calls: the loop's own warning enters the history too.
        _ => {
            json!({"tool_calls": [call("glob", json!({"pattern": "*"})), call("glob", json!({"pattern": "*"})), call("glob", json!({"pattern": "*"}))]})
        }
    }
}
