//! The client over a scripted transport (checklist 23, 26, 29, 46, 48–50).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use futures_util::{FutureExt, Stream};
use hermitcrab::llm::{
    Client, ContentPart, Endpoint, EventStream, HttpRequest, HttpResponse, LlmError, LlmErrorKind,
    Message, Middleware, Next, RateLimit, Request, Role, StreamAccumulator, StreamEvent,
    ToolResult, Transport, TransportError, TransportErrorKind, adapter,
};
use serde_json::Value;

use crate::support::{ADAPTERS, endpoint, parse};

/// Plays what it is given and remembers what it is asked.
#[derive(Default)]
struct Scripted {
    answers: RefCell<VecDeque<Answer>>,
    requests: RefCell<Vec<HttpRequest>>,
    open: Rc<Cell<usize>>,
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Result<Bytes, TransportError>>,
    /// Whether nothing comes after the chunks, not even the end.
    hangs: bool,
}

struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[async_trait(?Send)]
impl Transport for Scripted {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        self.requests.borrow_mut().push(request);
        let Some(answer) = self.answers.borrow_mut().pop_front() else {
            return Err(TransportError {
                kind: TransportErrorKind::Connect,
                message: "api.anthropic.com refused the connection".to_owned(),
            });
        };
        self.open.set(self.open.get() + 1);
        let counted = Counted(self.open.clone());
        let end: Box<dyn Stream<Item = Result<Bytes, TransportError>> + Unpin> = if answer.hangs {
            Box::new(stream::pending())
        } else {
            Box::new(stream::empty())
        };
        let chunks = stream::iter(answer.chunks).chain(end).map(move |chunk| {
            let _ = &counted;
            chunk
        });
        Ok(HttpResponse {
            status: answer.status,
            headers: answer.headers,
            body: chunks.boxed_local(),
        })
    }
}

fn body(name: &str) -> Vec<u8> {
    let fixture: Value = parse(&format!("streams/anthropic/{name}.json"));
    let events = fixture["data"].as_array().expect("data");
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect::<String>()
        .into_bytes()
}

fn answer(name: &str) -> Answer {
    let chunks = body(name)
        .chunks(100)
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    let headers = vec![(
        "anthropic-ratelimit-requests-remaining".to_owned(),
        "41".to_owned(),
    )];
    Answer {
        status: 200,
        headers,
        chunks,
        hangs: false,
    }
}

fn client(answers: Vec<Answer>) -> (Client, Rc<Scripted>) {
    let transport = Rc::new(Scripted {
        answers: RefCell::new(answers.into()),
        ..Scripted::default()
    });
    let client = Client::for_adapter(transport.clone(), "anthropic", endpoint("anthropic"))
        .expect("a client");
    (client, transport)
}

fn request() -> Request {
    Request::new(
        "claude-test",
        [Message::text(Role::User, "Go")].into_iter().collect(),
    )
}

/// The scripted transport is always ready, so nothing ever has to wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a future that is ready")
}

#[test]
fn complete_equals_the_folded_stream() {
    let (client, _) = client(vec![
        answer("thinking_text_and_two_calls"),
        answer("thinking_text_and_two_calls"),
    ]);
    let response = now(client.complete(request())).expect("a response");
    let events: Vec<StreamEvent> = now(async {
        client
            .stream(request())
            .await
            .expect("a stream")
            .collect()
            .await
    });
    match events.last() {
        Some(StreamEvent::Finish { response: last }) => assert_eq!(**last, response),
        other => panic!("{other:?}"),
    }
    assert_eq!(response.tool_calls().count(), 2);
    assert_eq!(
        response
            .rate_limit
            .and_then(|limit| limit.requests_remaining),
        Some(41)
    );
    let expected: Value = parse("streams/anthropic/thinking_text_and_two_calls.json");
    let replay = response.message.replay.expect("a replay");
    assert_eq!(
        Value::from(replay.items),
        expected["expect"]
            .as_array()
            .and_then(|events| events.last())
            .expect("events")["response"]["message"]["replay"]["items"]
    );
}

#[test]
fn warnings_of_the_request_are_in_the_response() {
    let (client, _) = client(vec![answer("text")]);
    let request = Request {
        temperature: Some(0.5),
        ..request()
    };
    let response = now(client.complete(request)).expect("a response");
    assert_eq!(response.warnings.len(), 1);
    assert_eq!(response.warnings[0].code, "sampling_dropped");
}

#[test]
fn an_error_status_is_an_error_and_is_not_retried() {
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let (head, tail) = body.split_at(20);
    let overloaded = Answer {
        status: 529,
        headers: vec![("retry-after".to_owned(), "3".to_owned())],
        chunks: vec![Ok(Bytes::from_static(head)), Ok(Bytes::from_static(tail))],
        hangs: false,
    };
    let (client, transport) = client(vec![overloaded, answer("text")]);
    let error = now(client.complete(request())).expect_err("an error");
    assert_eq!(
        (error.kind, error.status, error.retry_after_ms),
        (LlmErrorKind::Server, Some(529), Some(3_000))
    );
    assert_eq!(transport.requests.borrow().len(), 1);
    assert_eq!(transport.open.get(), 0);
}

#[test]
fn no_connection_is_a_network_error() {
    let (client, transport) = client(vec![]);
    let error = now(client.complete(request())).expect_err("an error");
    assert_eq!((error.kind, error.retryable), (LlmErrorKind::Network, true));
    assert_eq!(transport.requests.borrow().len(), 1);
}

#[test]
fn a_broken_body_is_a_stream_error_with_what_had_arrived() {
    let mut broken = answer("text");
    let body = body("text");
    let cut = body.windows(4).position(|bytes| bytes == "👋".as_bytes());
    broken.chunks = vec![Ok(Bytes::copy_from_slice(&body[..cut.expect("a wave")]))];
    broken.chunks.push(Err(TransportError {
        kind: TransportErrorKind::Broken,
        message: "the connection to api.anthropic.com broke".to_owned(),
    }));
    let (client, _) = client(vec![broken]);
    let events: Vec<StreamEvent> = now(async {
        client
            .stream(request())
            .await
            .expect("a stream")
            .collect()
            .await
    });
    match events.last() {
        Some(StreamEvent::Error { error, partial }) => {
            assert_eq!((error.kind, error.retryable), (LlmErrorKind::Stream, true));
            assert_eq!(partial.text(), "Grüße ");
            assert_eq!(partial.message.replay, None);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn dropping_the_stream_closes_the_exchange() {
    let mut hanging = answer("text");
    hanging.chunks.truncate(6);
    hanging.hangs = true;
    let (client, transport) = client(vec![hanging]);
    let mut events = now(client.stream(request())).expect("a stream");
    assert!(matches!(
        now(events.next()),
        Some(StreamEvent::Start { .. })
    ));
    while events.next().now_or_never().is_some() {}
    assert_eq!(events.received_bytes(), 600);
    assert_eq!(transport.open.get(), 1);
    drop(events);
    assert_eq!(transport.open.get(), 0);
}

#[test]
fn the_exchange_closes_at_the_terminal_event() {
    let mut hanging = answer("text");
    hanging.hangs = true;
    let (client, transport) = client(vec![hanging]);
    let mut events = now(client.stream(request())).expect("a stream");
    let last = now(async {
        loop {
            match events.next().await {
                Some(event) if event.is_terminal() => break event,
                Some(_) => {}
                None => panic!("no terminal event"),
            }
        }
    });
    assert!(matches!(last, StreamEvent::Finish { .. }));
    assert_eq!(transport.open.get(), 0);
    assert!(now(events.next()).is_none());
}

#[test]
fn requests_go_where_they_are_routed() {
    let (client, transport) = client(vec![answer("text"), answer("text")]);
    let other = Endpoint::new("http://127.0.0.1:9", "other");
    let client = client.with_provider("other", adapter("anthropic").expect("the adapter"), other);
    now(client.complete(request())).expect("the default");
    let request = Request {
        provider: Some("other".to_owned()),
        ..request()
    };
    let response = now(client.complete(request)).expect("the other");
    assert_eq!(response.provider, "other");
    let urls: Vec<String> = transport
        .requests
        .borrow()
        .iter()
        .map(|request| request.url.clone())
        .collect();
    assert_eq!(
        urls,
        [
            "https://api.anthropic.com/v1/messages",
            "http://127.0.0.1:9/v1/messages"
        ]
    );
}

#[test]
fn unknown_providers_are_configuration_errors() {
    let (client, transport) = client(vec![]);
    let unknown = Request {
        provider: Some("nobody".to_owned()),
        ..request()
    };
    let error = now(client.complete(unknown)).expect_err("an error");
    assert_eq!(error.kind, LlmErrorKind::Configuration);
    assert_eq!(
        error.message,
        "the provider `nobody` is not set up; use one of anthropic"
    );
    let empty = Client::new(transport.clone());
    let error = now(empty.complete(request())).expect_err("an error");
    assert_eq!(error.kind, LlmErrorKind::Configuration);
    let error = Client::for_adapter(transport.clone(), "nobody", endpoint("anthropic"))
        .expect_err("an error");
    assert_eq!(
        error.message,
        "there is no provider `nobody`; use one of openai, anthropic, gemini, chat"
    );
    assert!(transport.requests.borrow().is_empty());
}

#[test]
fn a_request_names_its_model() {
    let (client, transport) = client(vec![]);
    let nameless = Request {
        model: " ".to_owned(),
        ..request()
    };
    let error = now(client.complete(nameless)).expect_err("an error");
    assert_eq!(error.kind, LlmErrorKind::Configuration);
    assert_eq!(error.message, "the request names no model; set `model`");
    assert!(transport.requests.borrow().is_empty());
}

/// Notes when it is passed, in both directions.
struct Noting(&'static str, Rc<RefCell<Vec<String>>>);

#[async_trait(?Send)]
impl Middleware for Noting {
    async fn call(&self, mut request: Request, next: Next<'_>) -> Result<EventStream, LlmError> {
        let (name, notes) = (self.0, self.1.clone());
        notes.borrow_mut().push(format!("{name} request"));
        request.system.push(name.to_owned());
        let events = next.run(request).await?;
        Ok(events.map_events(move |event| {
            if let StreamEvent::TextDelta { segment, text } = event {
                notes.borrow_mut().push(format!("{name} sees {text}"));
                return StreamEvent::TextDelta {
                    segment,
                    text: format!("{text}{name}"),
                };
            }
            event
        }))
    }
}

#[test]
fn middleware_is_an_onion() {
    let notes = Rc::new(RefCell::new(Vec::new()));
    let (client, transport) = client(vec![answer("stop_sequence"), answer("stop_sequence")]);
    let client = client
        .with_middleware(Rc::new(Noting("1", notes.clone())))
        .with_middleware(Rc::new(Noting("2", notes.clone())));
    let expected = ["1 request", "2 request", "2 sees a", "1 sees a2"];
    let events: Vec<StreamEvent> = now(async {
        client
            .stream(request())
            .await
            .expect("a stream")
            .collect()
            .await
    });
    assert!(events.contains(&StreamEvent::TextDelta {
        segment: 0,
        text: "a21".to_owned()
    }));
    assert_eq!(notes.take(), expected);
    now(client.complete(request())).expect("a response");
    assert_eq!(notes.take(), expected);
    let body = String::from_utf8(transport.requests.borrow()[0].body.to_vec()).expect("text");
    assert!(body.find("\"text\":\"1\"") < body.find("\"text\":\"2\""));
}

/// A push during an answer must not copy the history.
#[test]
fn the_conversation_is_let_go_when_the_answer_begins() {
    let (client, _) = client(vec![answer("text")]);
    let mut request = request();
    request.tools = Rc::new([]);
    let tools = Rc::downgrade(&request.tools);
    let events = now(client.stream(request)).expect("a stream");
    assert!(tools.upgrade().is_none());
    drop(events);
}

/// The name of a long stream of the adapter, with reasoning, text and calls.
fn long_stream(adapter: &str) -> &'static str {
    match adapter {
        "anthropic" => "thinking_text_and_two_calls",
        "gemini" => "thought_text_and_two_calls",
        _ => "reasoning_and_two_calls",
    }
}

/// A client of one adapter that plays `answers`.
fn client_of(adapter: &str, answers: Vec<Answer>) -> (Client, Rc<Scripted>) {
    let transport = Rc::new(Scripted {
        answers: RefCell::new(answers.into()),
        ..Scripted::default()
    });
    let client =
        Client::for_adapter(transport.clone(), adapter, endpoint(adapter)).expect("a client");
    (client, transport)
}

/// The long stream of the adapter in chunks of `size` bytes.
fn long_answer(adapter: &str, size: usize) -> Answer {
    let fixture: Value = parse(&format!("streams/{adapter}/{}.json", long_stream(adapter)));
    let events = fixture["data"].as_array().expect("data");
    let frame = |event: &Value| match event {
        Value::String(text) => format!("data: {text}\n\n"),
        event => format!("data: {event}\n\n"),
    };
    let body: String = events.iter().map(frame).collect();
    let chunks = body.as_bytes().chunks(size);
    Answer {
        status: 200,
        headers: Vec::new(),
        chunks: chunks
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect(),
        hangs: false,
    }
}

fn request_to(adapter: &str) -> Request {
    Request {
        model: crate::support::test_model(adapter).to_owned(),
        ..request()
    }
}

/// Checklist 23, for every adapter: one call, one stream, the same response.
#[test]
fn every_adapter_completes_as_it_streams() {
    for adapter in ADAPTERS {
        let answers = vec![long_answer(adapter, 7), long_answer(adapter, 1_000)];
        let (client, transport) = client_of(adapter, answers);
        let response = now(client.complete(request_to(adapter))).expect("a response");
        let events = now(client.stream(request_to(adapter))).expect("a stream");
        let mut folded = StreamAccumulator::new(adapter);
        for event in now(events.collect::<Vec<_>>()) {
            folded.push(&event);
        }
        assert_eq!(folded.into_result().as_ref(), Ok(&response), "{adapter}");
        assert_eq!(response.tool_calls().count(), 2, "{adapter}");
        let replay = response.message.replay.as_ref().expect("a replay");
        assert_eq!(replay.provider, adapter);
        assert_eq!(transport.open.get(), 0);

        // The answer goes back as it came.
        let mut next = request_to(adapter);
        next.conversation.push(response.message.clone());
        for call in response.tool_calls() {
            let result = ToolResult {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: "ok".to_owned(),
                media: Vec::new(),
                is_error: false,
            };
            next.conversation.push(Message {
                role: Role::Tool,
                content: vec![ContentPart::ToolResult(result)],
                replay: None,
            });
        }
        now(client.stream(next)).expect_err("no third answer");
        let requests = transport.requests.borrow();
        let body = String::from_utf8(requests[2].body.to_vec()).expect("text");
        for item in &replay.items {
            assert!(
                body.contains(&item.to_string()),
                "{adapter}: {item} in {body}"
            );
        }
    }
}

/// Checklist 46: one exchange, whatever comes back.
#[test]
fn no_adapter_retries() {
    for adapter in ADAPTERS {
        let busy = || Answer {
            status: 503,
            headers: vec![("retry-after".to_owned(), "1".to_owned())],
            chunks: Vec::new(),
            hangs: false,
        };
        let (client, transport) = client_of(adapter, vec![busy(), busy(), busy()]);
        let error = now(client.complete(request_to(adapter))).expect_err("an error");
        assert_eq!(
            (error.kind, error.retry_after_ms),
            (LlmErrorKind::Server, Some(1_000))
        );
        now(client.stream(request_to(adapter))).expect_err("an error");
        assert_eq!(transport.requests.borrow().len(), 2, "{adapter}");
    }
}

/// Checklist 29: giving up closes the exchange and is an error of its own.
#[test]
fn giving_up_is_an_abort() {
    for adapter in ADAPTERS {
        let mut hanging = long_answer(adapter, 50);
        hanging.chunks.truncate(hanging.chunks.len() - 3);
        hanging.hangs = true;
        let (client, transport) = client_of(adapter, vec![hanging]);
        let given_up = Rc::new(Cell::new(false));
        let flag = given_up.clone();
        let abort = std::future::poll_fn(move |_| match flag.get() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        let mut events = now(client.stream(request_to(adapter)))
            .expect("a stream")
            .until(abort);
        let mut seen = Vec::new();
        while let Some(event) = events.next().now_or_never() {
            seen.push(event.expect("no end yet"));
        }
        assert!(seen.len() > 2);
        assert_eq!(transport.open.get(), 1);
        given_up.set(true);
        match now(events.next()) {
            Some(StreamEvent::Error { error, partial }) => {
                assert_eq!((error.kind, error.retryable), (LlmErrorKind::Abort, false));
                let mut folded = StreamAccumulator::new("");
                seen.iter().for_each(|event| folded.push(event));
                assert_eq!(*partial, folded.response());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(transport.open.get(), 0, "{adapter}");
        assert_eq!(now(events.next()), None);
    }
}

/// An abort that never comes changes nothing.
#[test]
fn an_abort_that_never_comes_changes_nothing() {
    let (client, _) = client_of(
        "openai",
        vec![long_answer("openai", 9), long_answer("openai", 9)],
    );
    let plain = now(client.stream(request_to("openai"))).expect("a stream");
    let until = now(client.stream(request_to("openai"))).expect("a stream");
    let until = until.until(std::future::pending());
    assert_eq!(
        now(until.collect::<Vec<_>>()),
        now(plain.collect::<Vec<_>>())
    );
}

/// Checklist 26: what is no event still counts as a sign of life.
#[test]
fn pings_are_signs_of_life() {
    for adapter in ADAPTERS {
        let mut hanging = long_answer(adapter, 1 << 20);
        hanging.chunks.clear();
        for _ in 0..3 {
            hanging.chunks.push(Ok(Bytes::from_static(b": ping\n\n")));
        }
        hanging.hangs = true;
        let (client, _) = client_of(adapter, vec![hanging]);
        let mut events = now(client.stream(request_to(adapter))).expect("a stream");
        assert_eq!(events.received_bytes(), 0);
        assert!(events.next().now_or_never().is_none());
        assert_eq!(events.received_bytes(), 24, "{adapter}");
    }
}

#[test]
fn rate_limits_are_in_the_response() {
    let headers = |names: &[(&str, &str)]| -> Vec<(String, String)> {
        names
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let openai = headers(&[
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "499"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "29000"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ]);
    let anthropic = headers(&[
        ("anthropic-ratelimit-requests-limit", "500"),
        ("anthropic-ratelimit-requests-remaining", "499"),
        ("anthropic-ratelimit-input-tokens-limit", "30000"),
        ("anthropic-ratelimit-input-tokens-remaining", "29000"),
        ("anthropic-ratelimit-input-tokens-reset", "6m0s"),
    ]);
    let expected = RateLimit {
        requests_limit: Some(500),
        requests_remaining: Some(499),
        tokens_limit: Some(30_000),
        tokens_remaining: Some(29_000),
        reset_at: Some("6m0s".to_owned()),
    };
    let cases = [
        ("openai", openai.clone(), Some(expected.clone())),
        ("chat", openai, Some(expected.clone())),
        ("anthropic", anthropic, Some(expected)),
        (
            "gemini",
            headers(&[("x-ratelimit-limit-requests", "1")]),
            None,
        ),
        (
            "openai",
            headers(&[("x-ratelimit-limit-requests", "many")]),
            None,
        ),
    ];
    for (adapter, headers, expected) in cases {
        let answer = Answer {
            headers,
            ..long_answer(adapter, 100)
        };
        let (client, _) = client_of(adapter, vec![answer]);
        let response = now(client.complete(request_to(adapter))).expect("a response");
        assert_eq!(response.rate_limit, expected, "{adapter}");
    }
}

/// Checklist 50: a client from environment variables.
fn from_environment(variables: &[(&str, &str)]) -> (Client, Rc<Scripted>) {
    let transport = Rc::new(Scripted::default());
    let client = Client::from_environment(transport.clone(), |wanted| {
        let found = variables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| (*value).to_owned())
    });
    (client, transport)
}

fn sent_by(client: &Client, transport: &Scripted, provider: Option<&str>) -> Option<HttpRequest> {
    let request = Request {
        provider: provider.map(str::to_owned),
        ..request()
    };
    now(client.stream(request)).expect_err("no answer");
    transport.requests.borrow_mut().pop()
}

#[test]
fn the_environment_sets_providers_up() {
    let (client, transport) = from_environment(&[
        ("GEMINI_API_KEY", " "),
        ("GOOGLE_API_KEY", "secret-g"),
        ("ANTHROPIC_API_KEY", "secret-a"),
        ("ANTHROPIC_BASE_URL", "https://proxy.example.com"),
        ("CHAT_BASE_URL", "http://127.0.0.1:1234/v1"),
    ]);
    let default = sent_by(&client, &transport, None).expect("a request");
    assert_eq!(default.url, "https://proxy.example.com/v1/messages");
    let gemini = sent_by(&client, &transport, Some("gemini")).expect("a request");
    let auth = gemini.auth.as_ref().expect("a credential");
    assert_eq!(
        (
            auth.credential.as_str(),
            auth.header.as_str(),
            auth.prefix.as_str()
        ),
        ("gemini", "x-goog-api-key", "")
    );
    let chat = sent_by(&client, &transport, Some("chat")).expect("a request");
    assert_eq!(chat.url, "http://127.0.0.1:1234/v1/chat/completions");
    assert_eq!(chat.auth, None);
    assert!(sent_by(&client, &transport, Some("openai")).is_none());
    for request in [default, gemini, chat] {
        let shown = format!("{request:?}{}", String::from_utf8_lossy(&request.body));
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn the_first_provider_of_the_environment_is_the_default() {
    let (client, transport) = from_environment(&[
        ("ANTHROPIC_API_KEY", "secret"),
        ("OPENAI_API_KEY", "secret"),
        ("OPENAI_ORG_ID", "org-1"),
        ("OPENAI_PROJECT_ID", "proj-2"),
    ]);
    let request = sent_by(&client, &transport, None).expect("a request");
    assert_eq!(request.url, "https://api.openai.com/v1/responses");
    for (name, value) in [
        ("openai-organization", "org-1"),
        ("openai-project", "proj-2"),
    ] {
        let header = (name.to_owned(), value.to_owned());
        assert!(request.headers.contains(&header), "{:?}", request.headers);
    }
    let (empty, transport) = from_environment(&[]);
    assert!(sent_by(&empty, &transport, None).is_none());
}

/// Checklist 49, for every adapter and both modes.
#[test]
fn middleware_wraps_every_adapter() {
    for adapter in ADAPTERS {
        let notes = Rc::new(RefCell::new(Vec::new()));
        let (client, transport) = client_of(
            adapter,
            vec![long_answer(adapter, 99), long_answer(adapter, 99)],
        );
        let client = client
            .with_middleware(Rc::new(Noting("1", notes.clone())))
            .with_middleware(Rc::new(Noting("2", notes.clone())));
        now(client.complete(request_to(adapter))).expect("a response");
        let complete = notes.take();
        let events = now(client.stream(request_to(adapter))).expect("a stream");
        now(events.collect::<Vec<_>>());
        assert_eq!(notes.take(), complete);
        assert_eq!(complete[..2], ["1 request", "2 request"]);
        let inner = complete.iter().filter(|note| note.starts_with("2 sees"));
        let outer = complete.iter().filter(|note| note.starts_with("1 sees"));
        for (inner, outer) in inner.zip(outer) {
            assert_eq!(format!("{}2", &inner[1..]), outer[1..]);
        }
        assert_eq!(transport.requests.borrow().len(), 2);
    }
}
