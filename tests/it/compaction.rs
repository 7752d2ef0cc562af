//! Compaction and records: a session that goes on from the record of a compacted one
//! sends the same bytes, and what went is in the history. What hosts and models see of
//! it is in `tests/cases/compaction*`.

use hermitcrab::session::SessionRecord;
use serde_json::{Value, json};

use super::bench::{Bench, tool};

fn config(provider: &str) -> Value {
    json!({"provider": provider, "model": "m", "tools": [tool("quick")], "auto_cache": false,
           "context_window": 100_000, "compaction": {"keep_rounds": 1}})
}

fn step(number: u32, input_tokens: u64) -> Value {
    json!({"thinking": {"text": "So.", "signature": "c2ln"},
           "tool_calls": [{"name": "quick", "arguments": {"n": number}}],
           "usage": {"input_tokens": input_tokens}})
}

/// Two rounds, of which the second fills the window; its summary, and answers.
fn script() -> Value {
    json!({"steps": [step(1, 100), step(2, 81_000), {"text": "The summary."},
                     {"text": "Done."}, {"text": "More."}]})
}

fn body(bench: &Bench, request: usize) -> String {
    let request = bench.model.requests().nth(request).expect("the request");
    String::from_utf8(request.body.to_vec()).expect("JSON is UTF-8")
}

/// A session that goes on from the record of `bench`, which has been JSON in between.
fn reopened(bench: &Bench, config: Value) -> Bench {
    let json = serde_json::to_string(&bench.session.record()).expect("JSON");
    let record = SessionRecord::from_json(&json).expect("a record");
    let mut later = Bench::recorded(&json!({"steps": [{"text": "More."}]}), config, record);
    later.run();
    later
}

/// The messages of a request as they were sent, without the bracket that ends them.
fn messages(body: &str) -> &str {
    let starts = ["\"messages\":[", "\"input\":[", "\"contents\":["];
    let start = starts.iter().find_map(|start| body.find(start));
    let messages = &body[start.expect("messages")..];
    let mut depth = 0_i32;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in messages.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return &messages[..at];
                }
            }
            _ => {}
        }
    }
    panic!("the messages of {body} do not end")
}

fn check_record(provider: &str) {
    let mut whole = Bench::new(&script(), config(provider));
    whole.submit("go");
    let ends = whole.data("COMPACTION_END");
    assert_eq!(ends.len(), 1, "{provider}");
    assert_eq!(
        ends[0]["before_tokens"].as_u64(),
        Some(81_022),
        "{provider}"
    );
    let after = ends[0]["after_tokens"].as_u64().expect("a number");
    assert!(after < 80_000, "{provider}: {after}");

    let mut later = reopened(&whole, config(provider));
    whole.submit("and more");
    later.submit("and more");
    let (first, next) = (body(&whole, 3), body(&whole, 4));
    assert!(first.contains("The summary."), "{provider}");
    assert!(messages(&next).starts_with(messages(&first)), "{provider}");
    assert_eq!(body(&later, 0), next, "{provider}");
}

#[test]
fn anthropic_goes_on_from_a_record() {
    check_record("anthropic");
}

#[test]
fn openai_goes_on_from_a_record() {
    check_record("openai");
}

#[test]
fn gemini_goes_on_from_a_record() {
    check_record("gemini");
}

#[test]
fn chat_goes_on_from_a_record() {
    check_record("chat");
}

#[test]
fn what_went_stays_in_the_history() {
    let mut bench = Bench::new(&script(), config("anthropic"));
    bench.submit("go");
    let turns = serde_json::to_value(bench.session.history()).expect("JSON");
    let turns = turns.as_array().expect("turns");
    let kinds: Vec<_> = turns.iter().map(|turn| turn["turn"].as_str()).collect();
    let expected = [
        "user",
        "assistant",
        "tool_results",
        "assistant",
        "tool_results",
        "compaction",
        "assistant",
    ];
    assert_eq!(kinds, expected.map(Some));
    assert_eq!(turns[5]["summary"], "The summary.");
    assert_eq!(turns[5]["kept"], 2);
}

/// Taken before any request was sent with the summary.
#[test]
fn a_record_right_after_a_compaction() {
    let script = json!({"steps": [step(1, 100), {"text": "Done."}, {"text": "One."},
                                  {"text": "Two."}, {"text": "The summary."}, {"text": "More."}]});
    let mut whole = Bench::new(&script, config("anthropic"));
    for input in ["go", "one", "two"] {
        whole.submit(input);
    }
    whole.session.compact().expect("it is open");
    whole.run();
    assert_eq!(whole.kinds().last(), Some(&"STATE_CHANGED"));
    let mut later = reopened(&whole, config("anthropic"));
    whole.submit("and more");
    later.submit("and more");
    let next = body(&whole, 5);
    assert!(next.contains("The summary."), "{next}");
    assert_eq!(body(&later, 0), next);
}

#[test]
fn nothing_is_compacted_by_default() {
    let mut config = config("anthropic");
    config["compaction"] = Value::Null;
    let mut bench = Bench::new(&script(), config);
    bench.submit("go");
    assert!(bench.data("COMPACTION_START").is_empty());
    assert_eq!(bench.model.requests().count(), 3);
}
