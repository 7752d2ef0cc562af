//! Streams as exact event lists (checklist 21–25, 27, 28, 30–34, 37). A
//! fixture holds `data`, the events' JSON in order (or `body`, the whole text),
//! perhaps the request's `tools` and `messages`, and the events that are expected. Every stream is played
//! whole, cut in two at every byte, and byte by byte.

use hermitcrab::llm::{
    LlmErrorKind, StreamAccumulator, StreamDecoder, StreamEvent, Warning, adapter,
};
use serde_json::{Value, json};

use crate::support::{ADAPTERS, cases, endpoint, parse, request, updating, write};

const DIRECTORY: &str = "streams";

fn check(adapter: &str, name: &str) {
    let file = format!("{DIRECTORY}/{adapter}/{name}.json");
    let mut fixture: Value = parse(&file);
    let body = body(&fixture);
    let whole = play(adapter, &fixture, &[&body]);
    assert_in_order(&whole, name);
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(
            play(adapter, &fixture, &[head, tail]),
            whole,
            "{name} cut at {cut}"
        );
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(
        play(adapter, &fixture, &bytes),
        whole,
        "{name} byte by byte"
    );
    assert_folds(adapter, &whole);

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
    let event = |event: &Value| match (event, event["type"].as_str()) {
        (Value::String(text), _) => format!("data: {text}\n\n"),
        (_, Some(kind)) => format!("event: {kind}\ndata: {event}\n\n"),
        _ => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect::<String>().into_bytes()
}

fn decoder(name: &str, fixture: &Value) -> Box<dyn StreamDecoder> {
    let tools = fixture.get("tools").cloned().unwrap_or(json!([]));
    let messages = fixture.get("messages").cloned().unwrap_or(json!([]));
    let request = request(name, json!({"tools": tools, "messages": messages}));
    let adapter = adapter(name).expect("the adapter");
    adapter.decoder(&request, &endpoint(name))
}

fn play(adapter: &str, fixture: &Value, pieces: &[&[u8]]) -> Vec<StreamEvent> {
    let mut decoder = decoder(adapter, fixture);
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
    let cut_off = match events.last() {
        Some(StreamEvent::Finish { response }) => {
            let dropped = |warning: &Warning| warning.code == "call_truncated";
            response.warnings.iter().any(dropped)
        }
        _ => true,
    };
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
    let known = name == "length_with_an_open_call" || name == "mutated";
    assert!(open.is_empty() || cut_off || known, "{name}: {events:?}");
}

/// The accumulator agrees with the terminal event (checklist 23).
fn assert_folds(adapter: &str, events: &[StreamEvent]) {
    let mut accumulator = StreamAccumulator::new(adapter);
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
    super::check, super::DIRECTORY;
    anthropic: [
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
        call_never_ends,
        tool_use_without_calls,
        call_repeated,
        calls_with_one_id,
        id_of_an_earlier_call,
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
        input_of_another_type,
        end_in_an_empty_event,
    ]
    openai: [
        text,
        reasoning_and_two_calls,
        without_created,
        interleaved_items,
        known_by_item_id,
        item_id_of_no_item,
        delta_without_index_and_id,
        whole_items_without_ids,
        summary_in_two_parts,
        open_reasoning_text,
        silent_reasoning,
        call_without_arguments,
        call_with_bad_json,
        items_without_deltas,
        only_the_last_event_tells,
        item_that_never_ends,
        call_never_ends,
        call_left_incomplete,
        call_repeated,
        calls_with_one_id,
        id_of_an_earlier_call,
        length,
        length_cuts_a_call,
        length_cuts_a_call_of_unknown_status,
        length_with_an_open_call,
        content_filter,
        refusal,
        other_incomplete_reasons,
        cancelled,
        unknown_items_and_events,
        input_transformations,
        error_flat,
        error_nested,
        error_with_retry_after,
        failed,
        failed_for_policy,
        error_as_bare_json,
        end_without_a_last_event,
        end_in_a_call,
        empty_body,
        html,
        not_json,
        json_without_type,
        two_created,
        item_twice,
        done_twice,
        delta_without_item,
        delta_after_done,
        delta_of_another_kind,
        malformed_delta,
        call_without_id,
        huge_index,
        last_event_without_response,
        after_the_end,
        wrong_types,
        arguments_as_an_object,
    ]
    gemini: [
        thought_text_and_two_calls,
        text,
        error_chunk,
        error_as_bare_json,
        error_with_retry_delay,
        prompt_too_long_mid_stream,
        blocked_prompt,
        blocked_prompt_for_other_reasons,
        safety,
        image_refused,
        length,
        malformed_function_call,
        other_finish_reasons,
        continuation,
        call_without_id,
        call_with_big_numbers,
        call_repeated,
        calls_with_one_id,
        id_of_an_earlier_call,
        custom_call,
        signatures_in_texts,
        text_reasoning_text,
        unknown_parts_and_chunks,
        grounding,
        finish_before_the_last_part,
        usage_is_the_last_one,
        end_without_a_finish_reason,
        empty_body,
        html,
        not_json,
        not_an_object,
        wrong_types,
        part_that_is_no_object,
        call_without_name,
        crlf,
        arguments_of_another_type,
    ]
    chat: [
        text,
        reasoning_and_two_calls,
        reasoning_details,
        text_reasoning_text,
        call_without_arguments,
        call_with_bad_json,
        calls_with_the_same_index,
        calls_without_index_and_id,
        call_whose_name_comes_late,
        call_with_arguments_as_a_value,
        call_with_extra_fields,
        custom_call,
        content_in_parts,
        stop_with_calls,
        tool_calls_without_calls,
        call_repeated,
        calls_with_one_id,
        calls_with_one_id_and_no_index,
        id_of_an_earlier_call,
        length,
        length_cuts_a_call,
        length_keeps_whole_calls,
        content_filter,
        refusal,
        other_finish_reasons,
        end_without_done,
        done_without_a_finish_reason,
        done_without_anything,
        end_without_a_finish_reason,
        error_mid_stream,
        error_of_vllm,
        error_of_ollama,
        prompt_too_long_mid_stream,
        unknown_chunks,
        comments_while_waiting,
        empty_body,
        html,
        not_json,
        wrong_types,
        call_that_is_no_object,
        call_without_name,
        whole_answer,
        whole_answer_on_many_lines,
        whole_answer_without_call_ids,
        whole_answer_without_a_finish_reason,
        whole_answer_cut_by_length,
        whole_answer_in_an_event,
        whole_answer_that_breaks_off,
        whole_message_after_its_pieces,
        after_the_end,
    ]
}

/// A long stream of the adapter, with reasoning, text and calls.
fn long_fixture(adapter: &str) -> Value {
    let name = match adapter {
        "anthropic" => "thinking_text_and_two_calls",
        "gemini" => "thought_text_and_two_calls",
        _ => "reasoning_and_two_calls",
    };
    parse(&format!("{DIRECTORY}/{adapter}/{name}.json"))
}

/// Checklist 27: the text of the stream may be framed in many ways.
fn check_framing(adapter: &str) {
    let fixture = long_fixture(adapter);
    let body = String::from_utf8(body(&fixture)).expect("text");
    let expected = play(adapter, &fixture, &[body.as_bytes()]);
    let without_names: String = body
        .lines()
        .filter(|line| !line.starts_with("event:"))
        .map(|line| format!("{line}\n"))
        .collect();
    let frames = [
        body.replace('\n', "\r\n"),
        body.replace('\n', "\r"),
        format!("\u{feff}{body}"),
        format!(
            ": hello\n\n{}",
            body.replace("\n\n", "\nid: 7\nretry: 10\n: alive\n\n\n")
        ),
        body.replace("event: ", "event:").replace("data: ", "data:"),
        without_names,
        body.replace(",\"", ",\ndata: \""),
        body.trim_end().to_owned(),
        format!("{body}data: [DONE]\n\n"),
    ];
    for frame in frames {
        assert_eq!(
            play(adapter, &fixture, &[frame.as_bytes()]),
            expected,
            "{frame}"
        );
        let bytes: Vec<&[u8]> = frame.as_bytes().chunks(1).collect();
        assert_eq!(play(adapter, &fixture, &bytes), expected, "{frame}");
    }
}

/// Values put in the place of every field of every event.
fn wrong_values() -> [Value; 7] {
    [
        json!(null),
        json!(-1),
        json!([]),
        json!({"a": 1}),
        json!("x"),
        json!(1e300),
        json!(true),
    ]
}

/// The places of all values inside `value`.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| places(value, &format!("{at}/{name}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| places(value, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

/// Whatever arrives, the events stay in order and nothing panics.
fn check_mutated(adapter: &str) {
    let fixture = long_fixture(adapter);
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
        let mut paths = Vec::new();
        places(&data[first], "", &mut paths);
        for path in paths {
            for value in wrong_values() {
                let mut changed = data.clone();
                if let Some(slot) = changed[first].pointer_mut(&path) {
                    *slot = value;
                    streams.push(self::body(&json!({"data": changed})));
                }
            }
        }
    }
    assert!(streams.len() > 1_000);
    for stream in streams {
        let events = play(adapter, &fixture, &[&stream]);
        assert_in_order(&events, "mutated");
        assert_folds_quietly(adapter, &events);
    }
}

fn assert_folds_quietly(adapter: &str, events: &[StreamEvent]) {
    let mut accumulator = StreamAccumulator::new(adapter);
    for event in events {
        accumulator.push(event);
    }
    let failed = matches!(events.last(), Some(StreamEvent::Error { .. }));
    assert_eq!(accumulator.into_result().is_err(), failed);
}

/// Text that is no JSON, in the place of data: what a proxy says when the
/// server behind it fails, a line cut short, a page.
const NOT_JSON: [&str; 6] = [
    "upstream connect error",
    "{\"type\":\"content_block_delta\",\"index\":0,\"del",
    "{\"choices\":[{\"delta\":{\"content\":\"x\"}}]} {}",
    "<html><body>502 Bad Gateway</body></html>",
    "\u{fffd}\u{0}",
    "[DONE",
];

/// Wherever it stands, data that is not JSON breaks the stream: what it
/// replaced is lost, so the answer is no answer.
fn check_not_json(adapter: &str) {
    let fixture = long_fixture(adapter);
    let data = fixture["data"].as_array().expect("data");
    for place in 0..data.len() {
        for text in NOT_JSON {
            let mut stream = data.clone();
            stream.insert(place, Value::from(text));
            let events = play(adapter, &fixture, &[&body(&json!({"data": stream}))]);
            let Some(StreamEvent::Error { error, .. }) = events.last() else {
                panic!("{adapter}: {text:?} before event {place} is passed over: {events:?}");
            };
            assert_eq!(error.kind, LlmErrorKind::Stream, "{text:?}: {error}");
            assert!(
                error.retryable && error.message.contains("is not JSON"),
                "{error}"
            );
        }
    }
}

macro_rules! per_adapter {
    ($check:ident: $($name:ident $adapter:literal),*) => {
        $(#[test] fn $name() { $check($adapter); })*
    };
}

per_adapter! {
    check_framing:
    framing_does_not_matter_openai "openai",
    framing_does_not_matter_anthropic "anthropic",
    framing_does_not_matter_gemini "gemini",
    framing_does_not_matter_chat "chat"
}

per_adapter! {
    check_mutated:
    mutated_streams_keep_the_order_openai "openai",
    mutated_streams_keep_the_order_anthropic "anthropic",
    mutated_streams_keep_the_order_gemini "gemini",
    mutated_streams_keep_the_order_chat "chat"
}

per_adapter! {
    check_not_json:
    data_that_is_not_json_openai "openai",
    data_that_is_not_json_anthropic "anthropic",
    data_that_is_not_json_gemini "gemini",
    data_that_is_not_json_chat "chat"
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("data: {}\n\n", "[".repeat(100_000));
    for adapter in ADAPTERS {
        let events = play(adapter, &json!({}), &[deep.as_bytes()]);
        assert!(matches!(events.last(), Some(StreamEvent::Error { .. })));
    }
}

/// The events of an answer that is one text.
fn one_text(adapter: &str, text: &str) -> Value {
    match adapter {
        "openai" => json!([
            {"type": "response.created", "response": {"id": "r", "model": "m"}},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text},
            {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}},
            {"type": "response.completed", "response": {"status": "completed"}},
        ]),
        "anthropic" => json!([
            {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ]),
        "gemini" => json!([
            {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]},
        ]),
        _ => json!([
            {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]},
            "[DONE]",
        ]),
    }
}

#[test]
fn a_long_answer_is_no_error() {
    let text = "x".repeat(4 << 20);
    for adapter in ADAPTERS {
        let fixture = json!({"data": one_text(adapter, &text)});
        let body = body(&fixture);
        let chunks: Vec<&[u8]> = body.chunks(1_000).collect();
        match play(adapter, &fixture, &chunks).last() {
            Some(StreamEvent::Finish { response }) => assert_eq!(response.text(), text),
            other => panic!("{adapter}: {other:?}"),
        }
    }
}
