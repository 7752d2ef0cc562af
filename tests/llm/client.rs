//! The client over a scripted transport (checklist 23, 29, 46, 48, 49).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use futures_util::{FutureExt, Stream};
use hermitcrab::llm::{
    Client, Endpoint, EventStream, HttpRequest, HttpResponse, LlmError, LlmErrorKind, Message,
    Middleware, Next, Request, Role, StreamEvent, Transport, TransportError, TransportErrorKind,
    adapter,
};
use serde_json::Value;

use crate::support::{endpoint, parse};

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
