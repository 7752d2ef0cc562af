//! Streams as exact event lists (checklist 21, 23–27, 30, 31, 33, 34). A
//! fixture holds `data`, the events' JSON in order (or `body`, the whole text),
//! perhaps `tools`, and the events that are expected. Every stream is played
//! whole, cut in two at every byte, and byte by byte.

use hermitcrab::llm::{StreamAccumulator, StreamDecoder, StreamEvent, adapter};
use serde_json::{Value, json};

use crate::support::{cases, endpoint, parse, request, updating, write};

const DIRECTORY: &str = "streams";

fn check(name: &str) {
    let file = format!("{DIRECTORY}/{name}.json");
    let mut fixture: Value = parse(&file);
    let body = body(&fixture);
    let whole = play(&fixture, &[&body]);
    assert_in_order(&whole, name);
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(play(&fixture, &[head, tail]), whole, "{name} cut at {cut}");
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(play(&fixture, &bytes), whole, "{name} byte by byte");
    assert_folds(&whole);

    let found = serde_json::to_value(&whole).expect("events");
    if updating() {
        fixture["expect"] = found;
        write(&file, &fixture);
    } else {
        assert_eq!(found, fixture["expect"], "{name}");
    }
}

fn body(fixture: &Value) -> Vec<u8> {
    if let Some(body) = fixture["body"].as_str() {
        return body.as_bytes().to_vec();
    }
    let events = fixture["data"].as_array().expect("data");
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or("message");
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect::<String>().into_bytes()
}

fn decoder(fixture: &Value) -> Box<dyn StreamDecoder> {
    let request = request(json!({"tools": fixture.get("tools").unwrap_or(&json!([]))}));
    adapter("anthropic")
        .expect("the adapter")
        .decoder(&request, &endpoint())
}

fn play(fixture: &Value, pieces: &[&[u8]]) -> Vec<StreamEvent> {
    let mut decoder = decoder(fixture);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut events);
    }
    decoder.finish(&mut events);
    events
}

/// The order that `StreamEvent` promises.
fn assert_in_order(events: &[StreamEvent], name: &str) {
    let starts = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::Start { .. }));
    assert_eq!(starts.count(), 1, "{name}: {events:?}");
    assert!(
        matches!(events[0], StreamEvent::Start { .. }),
        "{name}: {events:?}"
    );
    let terminal = events.iter().position(StreamEvent::is_terminal);
    assert_eq!(terminal, Some(events.len() - 1), "{name}: {events:?}");
    let failed = matches!(events.last(), Some(StreamEvent::Error { .. }));
    let mut open: Vec<(u32, String, bool)> = Vec::new();
    for event in events {
        match event {
            StreamEvent::TextStart { segment } | StreamEvent::ReasoningStart { segment } => {
                assert!(
                    open.iter().all(|(number, ..)| number != segment),
                    "{name}: {events:?}"
                );
                open.push((*segment, String::new(), false));
            }
            StreamEvent::ToolCallStart { segment, .. } => {
                open.push((*segment, String::new(), true));
            }
            StreamEvent::TextDelta { segment, text }
            | StreamEvent::ReasoningDelta { segment, text }
            | StreamEvent::ToolCallDelta {
                segment,
                arguments: text,
            } => {
                let slot = open.iter_mut().find(|(number, ..)| number == segment);
                slot.unwrap_or_else(|| panic!("{name}: {events:?}"))
                    .1
                    .push_str(text);
            }
            StreamEvent::TextEnd { segment, text }
            | StreamEvent::ReasoningEnd { segment, text } => {
                let slot = open.iter().position(|(number, ..)| number == segment);
                let (_, collected, _) =
                    open.remove(slot.unwrap_or_else(|| panic!("{name}: {events:?}")));
                assert_eq!(*text, collected, "{name}");
            }
            StreamEvent::ToolCallEnd { segment, .. } => {
                let slot = open.iter().position(|(number, ..)| number == segment);
                open.remove(slot.unwrap_or_else(|| panic!("{name}: {events:?}")));
            }
            _ => {}
        }
    }
    // Only a call that broke off has no end.
    assert!(open.iter().all(|(.., call)| *call), "{name}: {events:?}");
    assert!(
        open.is_empty()
            || failed
            || name == "length_with_an_open_call"
            || name.starts_with("mutated")
    );
}

/// The accumulator agrees with the terminal event (checklist 23).
fn assert_folds(events: &[StreamEvent]) {
    let mut accumulator = StreamAccumulator::new("anthropic");
    let (last, before) = events.split_last().expect("events");
    for event in before {
        accumulator.push(event);
    }
    let so_far = accumulator.response();
    accumulator.push(last);
    let result = accumulator.clone().into_result();
    match last {
        StreamEvent::Finish { response } => {
            assert_eq!(result.as_ref(), Ok(&**response));
            assert_eq!(so_far.text(), response.text());
            assert_eq!(
                so_far.reasoning().unwrap_or_default(),
                response.reasoning().unwrap_or_default()
            );
        }
        StreamEvent::Error { error, partial } => {
            assert_eq!(result.as_ref(), Err(error));
            assert_eq!(accumulator.response(), **partial);
        }
        other => panic!("{other:?} is not terminal"),
    }
}

cases! {
    check:
    text,
    thinking_text_and_two_calls,
    redacted_and_silent_thinking,
    thinking_without_a_count,
    call_without_arguments,
    call_with_input_at_the_start,
    call_with_bad_json,
    call_with_an_array,
    custom_call,
    server_tool_and_citations,
    unknown_event_and_block,
    interleaved_blocks,
    end_turn_with_calls,
    length,
    length_cuts_a_call,
    length_cuts_a_call_before_its_input,
    length_with_an_open_call,
    context_window_exceeded,
    refusal,
    pause_turn,
    stop_sequence,
    usage_overwritten,
    overloaded_mid_stream,
    error_first,
    error_as_bare_json,
    prompt_too_long_mid_stream,
    end_without_a_last_event,
    end_in_a_call,
    empty_body,
    html,
    json_without_type,
    not_json,
    wrong_types,
    two_starts,
    block_before_start,
    block_twice,
    delta_without_block,
    delta_after_stop,
    delta_of_another_kind,
    stop_without_reason,
    huge_index,
    after_the_end,
    crlf,
}

/// Checklist 27: the text of the stream may be framed in many ways.
#[test]
fn framing_does_not_matter() {
    let fixture: Value = parse(&format!("{DIRECTORY}/thinking_text_and_two_calls.json"));
    let body = String::from_utf8(body(&fixture)).expect("text");
    let expected = play(&fixture, &[body.as_bytes()]);
    let frames = [
        body.replace('\n', "\r\n"),
        body.replace('\n', "\r"),
        format!("\u{feff}{body}"),
        format!(
            ": hello\n\n{}",
            body.replace("\n\n", "\nid: 7\nretry: 10\n: alive\n\n\n")
        ),
        body.replace("event: ", "event:").replace("data: ", "data:"),
        body.lines()
            .filter(|line| !line.starts_with("event:"))
            .map(|line| format!("{line}\n"))
            .collect(),
        body.replace(",\"index\"", ",\ndata: \"index\""),
        body.trim_end().to_owned(),
        format!("{body}data: [DONE]\n\n"),
    ];
    for frame in frames {
        assert_eq!(play(&fixture, &[frame.as_bytes()]), expected, "{frame}");
        let bytes: Vec<&[u8]> = frame.as_bytes().chunks(1).collect();
        assert_eq!(play(&fixture, &bytes), expected, "{frame}");
    }
}

/// Whatever arrives, the events stay in order and nothing panics.
#[test]
fn mutated_streams_keep_the_order() {
    let fixture: Value = parse(&format!("{DIRECTORY}/thinking_text_and_two_calls.json"));
    let body = body(&fixture);
    let data = fixture["data"].as_array().expect("data").clone();
    let mut streams: Vec<Vec<u8>> = Vec::new();
    for cut in (0..body.len()).step_by(3) {
        streams.push(body[..cut].to_vec());
        for byte in *b"\"}:9\xff\n" {
            let mut changed = body.clone();
            changed[cut] = byte;
            streams.push(changed);
        }
    }
    for first in 0..data.len() {
        for second in 0..data.len() {
            let mut swapped = data.clone();
            swapped.swap(first, second);
            streams.push(self::body(&json!({"data": swapped})));
            let mut doubled = data.clone();
            doubled.insert(second, data[first].clone());
            streams.push(self::body(&json!({"data": doubled})));
        }
        let mut shorter = data.clone();
        shorter.remove(first);
        streams.push(self::body(&json!({"data": shorter})));
        for path in [
            "/type",
            "/index",
            "/delta",
            "/delta/type",
            "/content_block",
            "/content_block/type",
            "/content_block/id",
            "/message",
            "/usage",
            "/delta/text",
            "/delta/partial_json",
            "/delta/stop_reason",
        ] {
            for value in [
                json!(null),
                json!(-1),
                json!([]),
                json!({"a": 1}),
                json!("x"),
                json!(1e300),
            ] {
                let mut changed = data.clone();
                if let Some(slot) = changed[first].pointer_mut(path) {
                    *slot = value;
                    streams.push(self::body(&json!({"data": changed})));
                }
            }
        }
    }
    assert!(streams.len() > 5_000);
    for stream in streams {
        let events = play(&fixture, &[&stream]);
        assert_in_order(&events, "mutated");
        assert_folds_quietly(&events);
    }
}

fn assert_folds_quietly(events: &[StreamEvent]) {
    let mut accumulator = StreamAccumulator::new("anthropic");
    for event in events {
        accumulator.push(event);
    }
    let failed = matches!(events.last(), Some(StreamEvent::Error { .. }));
    assert_eq!(accumulator.into_result().is_err(), failed);
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("data: {}\n\n", "[".repeat(100_000));
    let events = play(&json!({}), &[deep.as_bytes()]);
    assert!(matches!(events.last(), Some(StreamEvent::Error { .. })));
}

#[test]
fn a_long_answer_is_no_error() {
    let text = "x".repeat(4 << 20);
    let fixture = json!({"data": [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]});
    let body = body(&fixture);
    let chunks: Vec<&[u8]> = body.chunks(1_000).collect();
    match play(&fixture, &chunks).last() {
        Some(StreamEvent::Finish { response }) => assert_eq!(response.text(), text),
        other => panic!("{other:?}"),
    }
}
