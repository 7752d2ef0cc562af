//! Cases: a script and requests in, whole responses, records and errors out.

use bytes::Bytes;
use serde_json::json;

use super::*;

fn request(body: &str) -> ModelRequest {
    ModelRequest {
        path: "/v1/messages".to_owned(),
        headers: Vec::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

const STREAM: &str = r#"{"model":"m","stream":true}"#;

fn model(steps: &str) -> ScriptedModel {
    ScriptedModel::from_json(&format!(r#"{{"steps":[{steps}]}}"#)).expect("a script")
}

fn text(response: &ScriptedResponse) -> String {
    let bytes: Vec<u8> = response
        .chunks
        .iter()
        .flat_map(|chunk| chunk.bytes.to_vec())
        .collect();
    String::from_utf8(bytes).expect("UTF-8")
}

/// Plays `step` and compares its stream.
fn check_stream(step: &str, expected: &[&str]) {
    let response = model(step).respond(&request(STREAM));
    assert_eq!(response.status, 200);
    assert_eq!(text(&response), sse(expected));
}

/// Events as Anthropic sends them, from their data; the last may be cut off.
fn sse(data: &[&str]) -> String {
    data.iter()
        .map(|data| match serde_json::from_str::<Value>(data) {
            Ok(value) => format!(
                "event: {}\ndata: {data}\n\n",
                value["type"].as_str().unwrap()
            ),
            Err(_) => (*data).to_owned(),
        })
        .collect()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}"#;
const PING: &str = r#"{"type":"ping"}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const HI: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
const STOP_0: &str = r#"{"type":"content_block_stop","index":0}"#;
const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

#[test]
fn text_streams() {
    check_stream(
        r#"{"text":"Hi"}"#,
        &[START, PING, TEXT, HI, STOP_0, END, STOP],
    );
}

#[test]
fn empty_text_is_an_answer_without_content() {
    check_stream(r#"{"text":""}"#, &[START, PING, END, STOP]);
}

#[test]
fn everything_streams_in_order() {
    check_stream(
        r#"{"thinking":{"text":"Two reads.","signature":"c2ln","redacted":"ZW5j"},
            "texts":["Rea","ding ü"],
            "tool_calls":[{"name":"read_file","id":"a","arguments":{"path":"ä.rs"}},
                          {"name":"list","raw_arguments":"{\"x"},
                          {"name":"list","arguments":{}}],
            "usage":{"input_tokens":12,"output_tokens":61,"reasoning_tokens":9,"cache_read_tokens":800,"cache_write_tokens":40},
            "stop_reason":"max_tokens"}"#,
        &[
            r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":40,"cache_read_input_tokens":800,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two r"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"eads."}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            STOP_0,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZW5j"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            PING,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Rea"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"ding ü"}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"read_file","input":{}}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path"}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\":\"ä."}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"rs\"}"}}"#,
            r#"{"type":"content_block_stop","index":3}"#,
            r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1_2","name":"list","input":{}}}"#,
            r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
            r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"\""}}"#,
            r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"x"}}"#,
            r#"{"type":"content_block_stop","index":4}"#,
            r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_1_3","name":"list","input":{}}}"#,
            r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
            r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"}"}}"#,
            r#"{"type":"content_block_stop","index":5}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":61,"output_tokens_details":{"thinking_tokens":9}}}"#,
            STOP,
        ],
    );
}

#[test]
fn stream_error_replaces_the_end() {
    check_stream(
        r#"{"text":"Hi","stream_error":{"type":"overloaded_error","message":"busy"}}"#,
        &[
            START,
            PING,
            TEXT,
            HI,
            STOP_0,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ],
    );
}

#[test]
fn disconnect_after_text() {
    let step =
        r#"{"text":"Hi","tool_calls":[{"name":"t","arguments":{}}],"disconnect":"after_text"}"#;
    check_stream(step, &[START, PING, TEXT, HI, STOP_0]);
    let response = model(step).respond(&request(STREAM));
    assert_eq!(response.ending, Ending::Disconnect);
}

#[test]
fn disconnect_mid_event() {
    check_stream(
        r#"{"text":"Hi","disconnect":"mid_event"}"#,
        &[
            START,
            PING,
            TEXT,
            HI,
            STOP_0,
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_rea",
        ],
    );
}

#[test]
fn disconnect_before_end() {
    check_stream(
        r#"{"text":"Hi","disconnect":"before_end"}"#,
        &[START, PING, TEXT, HI, STOP_0],
    );
}

/// Plays `step` and compares the waits and events of its chunks.
fn check_chunks(step: &str, expected: &[(u64, Option<&str>, &[&str])]) {
    let response = model(step).respond(&request(STREAM));
    let expected: Vec<Chunk> = expected
        .iter()
        .map(|(delay_ms, hold, data)| Chunk {
            delay_ms: *delay_ms,
            hold: hold.map(str::to_owned),
            bytes: Bytes::from(sse(data)),
        })
        .collect();
    assert_eq!(response.chunks, expected);
}

#[test]
fn chunks_without_waits_leave_as_one() {
    let all: &[&str] = &[START, PING, TEXT, HI, STOP_0, END, STOP];
    check_chunks(r#"{"text":"Hi"}"#, &[(0, None, all)]);
    check_chunks(r#"{"text":"Hi","delay_ms":7}"#, &[(7, None, all)]);
}

#[test]
fn chunks_wait_for_delays() {
    check_chunks(
        r#"{"texts":["Hi","Hi"],"delay_ms":7,"delta_delay_ms":3}"#,
        &[
            (7, None, &[START, PING, TEXT]),
            (3, None, &[HI]),
            (3, None, &[HI, STOP_0, END, STOP]),
        ],
    );
}

#[test]
fn chunks_wait_for_holds() {
    check_chunks(
        r#"{"text":"Hi","hold":"go"}"#,
        &[(0, Some("go"), &[START, PING, TEXT, HI, STOP_0, END, STOP])],
    );
    for before in ["tool_calls", "end"] {
        check_chunks(
            &format!(r#"{{"text":"Hi","hold":"go","hold_before":"{before}"}}"#),
            &[
                (0, None, &[START, PING, TEXT, HI, STOP_0]),
                (0, Some("go"), &[END, STOP]),
            ],
        );
    }
    check_chunks(
        r#"{"text":"Hi","hold":"go","hold_before":"text"}"#,
        &[
            (0, None, &[START]),
            (0, Some("go"), &[PING, TEXT, HI, STOP_0, END, STOP]),
        ],
    );
}

#[test]
fn chunks_without_the_held_part_hold_the_start() {
    check_chunks(
        r#"{"disconnect":"before","hold":"go","hold_before":"end","delay_ms":2}"#,
        &[(2, Some("go"), &[])],
    );
}

#[test]
fn chunks_of_fixed_length() {
    let response = model(r#"{"text":"ü","chunk_bytes":1}"#).respond(&request(STREAM));
    assert!(response.chunks.iter().all(|chunk| chunk.bytes.len() == 1));
    let whole = model(r#"{"text":"ü"}"#).respond(&request(STREAM));
    assert_eq!(text(&response), text(&whole));
}

/// Plays `step` for a request without `stream` and compares status and body.
fn check_whole(step: &str, status: u16, body: &str) {
    let response = model(step).respond(&request(r#"{"model":"m"}"#));
    assert_eq!((response.status, text(&response).as_str()), (status, body));
    assert_eq!(
        response.headers[0],
        ("content-type".into(), "application/json".into())
    );
}

#[test]
fn whole_answer() {
    check_whole(
        r#"{"thinking":{"text":"T","signature":"s"},"texts":["a","b"],"tool_calls":[{"name":"t","arguments":{"x":1}}]}"#,
        200,
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"T","signature":"s"},{"type":"text","text":"ab"},{"type":"tool_use","id":"toolu_1_1","name":"t","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}"#,
    );
}

#[test]
fn whole_error() {
    check_whole(
        r#"{"error":{"status":429,"message":"slow","headers":{"Retry-After":1}}}"#,
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
    );
}

#[test]
fn whole_stream_error() {
    check_whole(
        r#"{"stream_error":{"type":"overloaded_error"}}"#,
        500,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"scripted error"}}"#,
    );
}

#[test]
fn error_headers_replace_the_usual_ones() {
    let step = r#"{"error":{"status":529,"headers":{"Retry-After":1,"request-id":"x"}}}"#;
    let response = model(step).respond(&request(STREAM));
    let expected = [
        ("content-type", "application/json"),
        ("cache-control", "no-cache"),
        ("retry-after", "1"),
        ("request-id", "x"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(response.headers, expected);
}

#[test]
fn garbage_goes_out_as_it_is() {
    let response = model(r#"{"garbage":"<html>\u0000"}"#).respond(&request(STREAM));
    assert_eq!(text(&response), "<html>\u{0}");
}

/// Plays the script for each body and compares the number of the step, 0 where
/// the answer is an error.
fn check_steps(mut model: ScriptedModel, bodies: &[&str], expected: &[usize]) {
    let steps: Vec<usize> = bodies
        .iter()
        .map(|body| {
            let response = model.respond(&request(body));
            let step = model.requests().last().and_then(|record| record.step);
            assert_eq!(response.status == 400, step.is_none());
            step.unwrap_or(0)
        })
        .collect();
    assert_eq!(steps, expected);
}

#[test]
fn steps_in_order_until_none_is_left() {
    let script = model(r#"{"text":"1"},{"text":"2"}"#);
    check_steps(script, &["{}", "{}", "{}"], &[1, 2, 0]);
}

#[test]
fn steps_start_over_when_looping() {
    let script = model(r#"{"text":"1"},{"text":"2"}"#).looping();
    check_steps(script, &["{}", "{}", "{}"], &[1, 2, 1]);
}

#[test]
fn steps_repeat_the_last() {
    let script = r#"{"repeat_last":true,"steps":[{"text":"1"},{"text":"2"}]}"#;
    let script = ScriptedModel::from_json(script).unwrap();
    check_steps(script, &["{}", "{}", "{}", "{}"], &[1, 2, 2, 2]);
}

#[test]
fn steps_for_requests_that_match() {
    let script = model(
        r#"{"match":{"contains":"a\"b"},"text":"1"},{"match":{"contains":["x"],"not_contains":"y"},"text":"2"}"#,
    );
    let bodies = [
        r#"{"k":["y","x"]}"#,
        r#"{"k":"x"}"#,
        r#"{"k":["a\"b"]}"#,
        r#"{"k":"x"}"#,
    ];
    check_steps(script, &bodies, &[0, 2, 1, 0]);
}

/// Plays `step` for `body` and compares the message of the error.
fn check_refusal(step: &str, body: &str, expected: &str) {
    let response = model(step).respond(&request(body));
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": expected}});
    assert_eq!((response.status, text(&response)), (400, error.to_string()));
}

#[test]
fn expect_contains() {
    check_refusal(
        r#"{"expect":{"contains":"a\nb"},"text":"x"}"#,
        r#"{"messages":[{"content":"a b"}]}"#,
        r#"the script expects something else of request 1: the request does not contain "a\nb""#,
    );
}

#[test]
fn expect_last_tool_result() {
    let step = r#"{"expect":{"last_tool_result_contains":"ok"},"text":"x"}"#;
    check_refusal(
        step,
        r#"{"messages":[{"role":"user","content":"ok"}]}"#,
        "the script expects something else of request 1: the request has no tool result",
    );
    let body = r#"{"messages":[{"content":[{"type":"tool_result","content":"ok"}]},{"content":[{"type":"tool_result","content":[{"type":"text","text":"no"}]},{"type":"text","text":"ok"}]}]}"#;
    check_refusal(
        step,
        body,
        r#"the script expects something else of request 1: the last tool result does not contain "ok", it is "no""#,
    );
    let response = model(step).respond(&request(&body.replace("\"no\"", "\"all ok\"")));
    assert_eq!(response.status, 200);
}

#[test]
fn no_step_left_names_the_request() {
    let mut script = model(r#"{"text":"1"}"#);
    script.respond(&request("{}"));
    let response = script.respond(&request("{}"));
    assert_eq!(
        text(&response),
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"the script has no step for request 2: all 1 steps are played"}}"#
    );
}

#[test]
fn unknown_path_takes_no_step() {
    let mut script = model(r#"{"text":"1"}"#);
    let response = script.respond(&ModelRequest {
        path: "/v2?key=s3cret".to_owned(),
        ..request("{}")
    });
    assert_eq!(response.status, 404);
    assert_eq!(
        text(&response),
        r#"{"type":"error","error":{"type":"not_found_error","message":"no model is served at /v2; the scripted model serves /v1/messages, /responses, /models/MODEL:streamGenerateContent, /chat/completions"}}"#
    );
    assert!(!script.finished());
    assert_eq!(script.requests().len(), 0);
}

#[test]
fn records_keep_bodies_but_no_key() {
    let mut script = model(r#"{"text":"1"}"#).looping().keep_requests(2);
    for body in ["{}", r#"{"n": 1.0}"#, r#"{"n":[2]}"#, "not JSON"] {
        script.respond(&ModelRequest {
            path: "/proxy/v1/messages?key=s3cret&b=1".to_owned(),
            headers: vec![
                ("X-Api-Key".to_owned(), "s3cret".to_owned()),
                ("anthropic-version".to_owned(), "v".to_owned()),
            ],
            body: Bytes::from(body),
        });
    }
    let records: Vec<_> = script.requests().collect();
    assert_eq!(
        serde_json::to_string(&records).unwrap(),
        concat!(
            r#"[{"number":2,"step":1,"path":"/proxy/v1/messages?key=(present)&b=1","headers":{"x-api-key":"(present)","anthropic-version":"v"},"body":{"n": 1.0}},"#,
            r#"{"number":3,"step":1,"path":"/proxy/v1/messages?key=(present)&b=1","headers":{"x-api-key":"(present)","anthropic-version":"v"},"body":{"n":[2]}}]"#
        )
    );
    script.reset();
    assert_eq!((script.requests().len(), script.finished()), (0, false));
}

fn check_error(json: &str, expected: &str) {
    let error = Script::parse(json).expect_err("not a script");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn error_not_json() {
    check_error("", "line 1, column 1: EOF while parsing a value");
    check_error("steps", "line 1, column 1: expected value");
    check_error(
        "{\"steps\":[\n{\"text\":\"[,{\"},\n {\"text\" 1}]}",
        "step 2, line 3, column 10: expected `:`",
    );
    check_error(
        "{\"steps\":[{\"text\":\"a",
        "step 1, line 1, column 20: EOF while parsing a string",
    );
}

#[test]
fn error_not_an_object() {
    let expected = r#"line 1, column 1: a script is an object such as {"steps": [{"text": "hello"}]}, not a list"#;
    check_error("[]", expected);
    check_error(r#" [[{"text":"a"}], true]"#, expected);
}

#[test]
fn error_no_steps() {
    check_error("{}", "line 1, column 2: missing field `steps`");
    check_error(
        r#"{"steps":[]}"#,
        "line 1, column 1: steps is empty, a script needs at least one",
    );
}

#[test]
fn error_unknown_field() {
    let error = Script::parse("{\"steps\":[{\"text\":\"\"},\n{\"txet\":\"a\"}]}").unwrap_err();
    assert_eq!((error.step, error.line, error.column), (Some(2), 2, 7));
    assert!(
        error
            .message
            .starts_with("unknown field `txet`, expected one of `text`")
    );
}

#[test]
fn error_wrong_type() {
    check_error(
        r#"{"steps":[{"match":{"contains":[1]}}]}"#,
        "step 1, line 1, column 33: invalid type: integer `1`, expected a string",
    );
    check_error(
        r#"{"steps":[{"tool_calls":[{"name":"t","arguments":"x"}]}]}"#,
        "step 1, line 1, column 52: invalid type: string \"x\", expected a map",
    );
}

#[test]
fn error_contradictions() {
    let check = |step: &str, expected: &str| {
        check_error(
            &format!("{{\"steps\":[{{\"text\":\"a\"}},\n {step}]}}"),
            &format!("step 2, line 2, column 2: {expected}"),
        );
    };
    check(
        "{}",
        "the step says nothing: give it text, texts, thinking, tool_calls, error, stream_error, disconnect or garbage",
    );
    check(
        r#"{"text":"a","texts":[]}"#,
        "text and texts exclude each other",
    );
    check(
        r#"{"garbage":"","error":{"status":500}}"#,
        "error and garbage exclude each other",
    );
    check(
        r#"{"garbage":"","text":""}"#,
        "garbage replaces the answer, so the step can have no content",
    );
    check(
        r#"{"text":"","stream_error":{"type":"e"},"disconnect":"mid_event"}"#,
        "disconnect and stream_error exclude each other",
    );
    check(
        r#"{"text":"","chunk_bytes":0}"#,
        "chunk_bytes is 0, it must be at least 1",
    );
    check(
        r#"{"text":"","hold":"a b"}"#,
        "hold \"a b\" is not a name of letters, digits, `_`, `-`, `.`",
    );
    check(
        r#"{"text":"","hold_before":"end"}"#,
        "hold_before needs a hold",
    );
    check(
        r#"{"error":{"status":200}}"#,
        "error status 200 is not one of 400 to 599",
    );
    check(
        r#"{"error":{"status":500,"headers":{"a b":"c"}}}"#,
        "error header \"a b\" is not a header name",
    );
    check(
        r#"{"error":{"status":500,"headers":{"a":"c\n"}}}"#,
        "error header a is \"c\\n\", it must be printable ASCII text or a number",
    );
    check(
        r#"{"tool_calls":[{"name":"t","arguments":{},"raw_arguments":""}]}"#,
        "tool_calls[0] (t): arguments and raw_arguments exclude each other",
    );
    check(
        r#"{"tool_calls":[{"name":"s","raw_arguments":""},{"name":"t"}]}"#,
        "tool_calls[1] (t): there are neither arguments nor raw_arguments; {} is for none",
    );
}

/// Everything that an answer can hold, in each of the other formats. The
/// expected bytes are files, to be read beside the provider's documentation.
fn check_wire(path: &str, stream: bool, expected: &str) {
    let script = r#"{"steps": [{
        "thinking": {"text": "Think it over", "signature": "c2ln"},
        "texts": ["Hel", "lo"],
        "tool_calls": [
            {"name": "read_file", "arguments": {"path": "a.rs", "limit": 3}},
            {"name": "patch", "id": "mine", "raw_arguments": "*** Begin", "custom": true}
        ],
        "usage": {"input_tokens": 10, "output_tokens": 9, "reasoning_tokens": 4, "cache_read_tokens": 5}
    }]}"#;
    let mut model = ScriptedModel::from_json(script).expect("a script");
    let body = format!(r#"{{"model": "m", "stream": {stream}}}"#);
    let response = model.respond(&ModelRequest {
        path: path.to_owned(),
        headers: Vec::new(),
        body: Bytes::from(body),
    });
    let bytes: Vec<u8> = response
        .chunks
        .iter()
        .flat_map(|chunk| chunk.bytes.to_vec())
        .collect();
    let actual = String::from_utf8_lossy(&bytes).replace("\n\n", "\n");
    assert_eq!(actual.trim_end(), expected.trim_end(), "{actual}");
}

#[test]
fn openai_stream() {
    check_wire("/v1/responses", true, include_str!("golden/openai.txt"));
}

#[test]
fn openai_whole() {
    check_wire(
        "/v1/responses",
        false,
        include_str!("golden/openai_whole.txt"),
    );
}

#[test]
fn gemini_stream() {
    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    check_wire(path, false, include_str!("golden/gemini.txt"));
}

#[test]
fn gemini_whole() {
    let path = "/v1beta/models/m:generateContent";
    check_wire(path, false, include_str!("golden/gemini_whole.txt"));
}

#[test]
fn chat_stream() {
    check_wire(
        "/v1/chat/completions",
        true,
        include_str!("golden/chat.txt"),
    );
}

#[test]
fn chat_whole() {
    check_wire(
        "/v1/chat/completions",
        false,
        include_str!("golden/chat_whole.txt"),
    );
}
