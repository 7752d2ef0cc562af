//! Cases over real sockets, read byte by byte: what a client sees of each
//! ending, hold and control request.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

fn serve(script: &str) -> ServeModel {
    ServeModel::start(ScriptedModel::from_json(script).expect("a script"), 0).expect("a server")
}

fn connect(model: &ServeModel) -> TcpStream {
    let stream = TcpStream::connect(model.address).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a socket");
    stream
}

fn send(stream: &mut TcpStream, method: &str, path: &str, body: &str) {
    send_with(stream, method, path, "x-api-key: s3cret", body);
}

fn send_with(stream: &mut TcpStream, method: &str, path: &str, header: &str, body: &str) {
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("a request");
}

/// Sends one request, asks to close after it, and reads to the end.
fn exchange(model: &ServeModel, method: &str, path: &str, body: &str) -> String {
    let mut stream = connect(model);
    let header = "x-api-key: s3cret\r\nconnection: close";
    send_with(&mut stream, method, path, header, body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8(answer).expect("UTF-8")
}

fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        let mut byte = [0];
        if stream.read(&mut byte).expect("an answer") == 0 {
            break;
        }
        answer.push(byte[0]);
    }
    String::from_utf8(answer).expect("UTF-8")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

const STREAM: &str = r#"{"model":"m","stream":true}"#;
const TWO: &str = r#"{"steps":[{"text":"one"},{"text":"two"}]}"#;

#[test]
fn streams_chunked_on_one_connection() {
    let model = serve(TWO);
    let mut stream = connect(&model);
    for text in ["one", "two"] {
        send(&mut stream, "POST", "/v1/messages", STREAM);
        let answer = read_until(&mut stream, "\r\n0\r\n\r\n");
        let head = answer.split("\r\n\r\n").next().unwrap_or_default();
        let (status, headers) = head.split_once("\r\n").unwrap_or_default();
        assert_eq!(status, "HTTP/1.1 200 OK");
        for header in [
            "content-type: text/event-stream",
            "transfer-encoding: chunked",
            "access-control-allow-origin: *",
        ] {
            assert!(headers.lines().any(|line| line == header), "{headers}");
        }
        assert!(answer.contains(&format!(r#""text":"{text}""#)), "{answer}");
    }
    assert!(model.finished());
    let times = model.times();
    assert_eq!(times.len(), 2);
    assert!(times[0].answered_us <= Some(times[1].received_us));
}

/// The body after which the connection breaks; the end of chunked coding must
/// not be there.
fn check_break(disconnect: &str, expected_end: &str) {
    let model = serve(&format!(
        r#"{{"steps":[{{"text":"one","delta_delay_ms":1,"disconnect":"{disconnect}"}}]}}"#
    ));
    let answer = exchange(&model, "POST", "/v1/messages", STREAM);
    assert!(answer.trim_end().ends_with(expected_end), "{answer:?}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer:?}");
}

#[test]
fn breaks_after_text() {
    check_break("after_text", r#"{"type":"content_block_stop","index":0}"#);
}

#[test]
fn breaks_mid_event() {
    check_break("mid_event", r#""delta":{"stop_rea"#);
}

#[test]
fn breaks_before_any_byte() {
    let model = serve(r#"{"steps":[{"disconnect":"before"},{"text":"one"}]}"#);
    assert_eq!(exchange(&model, "POST", "/v1/messages", STREAM), "");
    assert!(exchange(&model, "POST", "/v1/messages", STREAM).contains("one"));
}

#[test]
fn error_answers_have_a_length_and_headers() {
    let model = serve(r#"{"steps":[{"error":{"status":529,"headers":{"Retry-After":2}}}]}"#);
    let answer = exchange(&model, "POST", "/v1/messages", STREAM);
    assert!(answer.starts_with("HTTP/1.1 529 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 2\r\n"), "{answer}");
    assert!(
        answer.contains("\r\naccess-control-expose-headers: retry-after, "),
        "{answer}"
    );
    let body = body(&answer);
    assert!(
        answer.contains(&format!("\r\ncontent-length: {}\r\n", body.len())),
        "{answer}"
    );
    let error =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"scripted error"}}"#;
    assert_eq!(body, error);
}

#[tokio::test]
async fn holds_until_released_over_http() {
    let model = serve(
        r#"{"steps":[{"text":"one","hold":"go","hold_before":"end"},{"text":"two","hold":"go"}]}"#,
    );
    let mut stream = connect(&model);
    send(&mut stream, "POST", "/v1/messages", STREAM);
    model.held("go").await;
    let start = read_until(&mut stream, r#""content_block_stop","index":0}"#);
    assert!(start.contains("one"));
    assert_eq!(
        body(&exchange(&model, "GET", "/_script/holds", "")),
        r#"["go"]"#
    );
    assert_eq!(model.times()[0].answered_us, None);
    assert_eq!(
        body(&exchange(&model, "POST", "/_script/release/go", "")),
        "{}"
    );
    assert!(read_until(&mut stream, "\r\n0\r\n\r\n").contains("message_stop"));
    assert_eq!(body(&exchange(&model, "GET", "/_script/holds", "")), "[]");
    // A released name stays open.
    send(&mut stream, "POST", "/v1/messages", STREAM);
    assert!(read_until(&mut stream, "\r\n0\r\n\r\n").contains("two"));
}

#[tokio::test]
async fn a_client_that_leaves_no_longer_stands_at_the_hold() {
    let model = serve(r#"{"steps":[{"text":"one","hold":"go","hold_before":"end"}]}"#);
    let mut stream = connect(&model);
    send(&mut stream, "POST", "/v1/messages", STREAM);
    model.held("go").await;
    drop(stream);
    for _ in 0..2000 {
        if model.shared.lock().held.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the hold still counts a client that left");
}

#[test]
fn requests_are_served_without_keys() {
    let model = serve(TWO);
    exchange(&model, "POST", "/v1/messages", r#"{"n": 1.0}"#);
    let answer = exchange(&model, "GET", "/_script/requests", "");
    let (start, rest) = body(&answer)
        .split_once(r#","received_us":"#)
        .expect("times");
    assert_eq!(
        start,
        r#"[{"number":1,"step":1,"path":"/v1/messages","headers":{"host":"x","x-api-key":"(present)","connection":"close","content-length":"10"},"body":{"n": 1.0}"#
    );
    assert!(
        rest.contains(r#","answered_us":"#) && rest.ends_with("}]"),
        "{rest}"
    );
    assert_eq!(body(&exchange(&model, "POST", "/_script/reset", "")), "{}");
    assert_eq!(
        body(&exchange(&model, "GET", "/_script/requests", "")),
        "[]"
    );
    assert!(exchange(&model, "POST", "/v1/messages", STREAM).contains("one"));
}

/// Compares status line and error message.
fn check_refused(method: &str, path: &str, status: &str, message: &str) {
    let answer = exchange(&serve(TWO), method, path, "");
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
        "{answer}"
    );
    assert_eq!(body(&answer), error_body(message).to_string());
}

#[test]
fn refuses_other_methods_and_paths() {
    check_refused(
        "GET",
        "/v1/messages",
        "405 Method Not Allowed",
        "GET /v1/messages is not served; post to a path that ends in /v1/messages, /responses, /models/MODEL:streamGenerateContent, /chat/completions, or get /_script/requests",
    );
    check_refused(
        "GET",
        "/v1/models?limit=1",
        "404 Not Found",
        "GET /v1/models?limit=1 is not served; post to a path that ends in /v1/messages, /responses, /models/MODEL:streamGenerateContent, /chat/completions, or get /_script/requests",
    );
    check_refused(
        "GET",
        "/_script/reset",
        "404 Not Found",
        "GET /_script/reset is not served; get requests or holds, post release/NAME or reset",
    );
    check_refused(
        "POST",
        "/v1/models",
        "404 Not Found",
        "no model is served at /v1/models; the scripted model serves /v1/messages, /responses, /models/MODEL:streamGenerateContent, /chat/completions",
    );
}

#[test]
fn refuses_bodies_that_no_provider_takes() {
    let model = serve(TWO);
    for garbage in ["", "garbage", "[]", r#"{"stream":true"#] {
        let answer = exchange(&model, "POST", "/v1/messages", garbage);
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{answer}"
        );
        let expected = serde_json::json!({
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "the request's body is not a JSON object"},
            "request_id": null,
        });
        let mut answered: serde_json::Value = serde_json::from_str(body(&answer)).expect("JSON");
        answered["request_id"].take();
        assert_eq!(answered, expected, "{garbage}");
    }
    assert_eq!(model.requests(), []);
    assert!(exchange(&model, "POST", "/v1/messages", STREAM).contains("one"));
}

#[test]
fn preflight_allows_what_is_asked() {
    let model = serve(TWO);
    let mut stream = connect(&model);
    let asked = "x-api-key, anthropic-version";
    write!(
        stream,
        "OPTIONS /v1/messages HTTP/1.1\r\nhost: x\r\norigin: http://a\r\naccess-control-request-headers: {asked}\r\n\r\n"
    )
    .expect("a request");
    let answer = read_until(&mut stream, "\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    assert!(
        answer.contains(&format!("access-control-allow-headers: {asked}\r\n")),
        "{answer}"
    );
    assert!(
        answer.contains("access-control-allow-origin: *\r\n"),
        "{answer}"
    );
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[test]
fn a_taken_port_is_an_error() {
    let model = serve(TWO);
    let again = ScriptedModel::from_json(TWO).expect("a script");
    let error = ServeModel::start(again, model.address.port()).expect_err("taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}
