//! The HTTP transport against loopback servers that speak raw HTTP/1.1.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::effect::OutcomeKind;
use hermitcrab::llm::{Auth, HttpRequest, TransportError, TransportErrorKind as Kind};
use hermitcrab_host::{CancellationToken, Credentials, HttpTransport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A hang guard, far above what any test takes.
const GUARD: Duration = Duration::from_secs(60);
const KEY: &str = "canary-key-1234567890";

/// A server that answers the n-th request of each connection with `answer`.
struct Server {
    base: String,
    connections: Arc<AtomicUsize>,
    requests: mpsc::UnboundedReceiver<String>,
    /// One message per connection that the client has closed.
    closed: mpsc::UnboundedReceiver<()>,
}

async fn serve(answer: &'static str) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::<AtomicUsize>::default();
    let (request_sender, requests) = mpsc::unbounded_channel();
    let (closed_sender, closed) = mpsc::unbounded_channel();
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(talk(
                stream,
                answer,
                request_sender.clone(),
                closed_sender.clone(),
            ));
        }
    });
    Server {
        base,
        connections,
        requests,
        closed,
    }
}

/// `answer` may hold `%` for a pause that lasts until the client hangs up, and
/// `!` for closing the connection.
async fn talk(
    mut stream: TcpStream,
    answer: &'static str,
    requests: mpsc::UnboundedSender<String>,
    closed: mpsc::UnboundedSender<()>,
) {
    while let Some(request) = read_request(&mut stream).await {
        let _ = requests.send(request);
        let text = answer.trim_end_matches(['%', '!']);
        if stream.write_all(text.as_bytes()).await.is_err() || answer.ends_with('!') {
            return;
        }
    }
    let _ = closed.send(());
}

/// Head and body of one request; none when the client has hung up.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length:")?
                        .trim()
                        .parse()
                        .ok()
                })
                .unwrap_or(0usize);
            if body.len() >= length {
                return Some(text);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => text.push_str(&String::from_utf8_lossy(&buffer[..n])),
        }
    }
}

fn get(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        method: "GET".to_owned(),
        url: url.into(),
        headers: Vec::new(),
        body: Bytes::new(),
        auth: None,
        connect_timeout_ms: 10_000,
    }
}

fn authenticated(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        auth: Some(Auth {
            credential: "anthropic".to_owned(),
            header: "x-api-key".to_owned(),
            prefix: String::new(),
        }),
        ..get(url)
    }
}

fn plain() -> HttpTransport {
    HttpTransport::new(Credentials::new())
}

fn holding(base: &str) -> HttpTransport {
    HttpTransport::new(Credentials::new().with("anthropic", KEY, base).unwrap())
}

async fn send(transport: &HttpTransport, request: HttpRequest) -> Vec<OutcomeKind> {
    let mut outcomes = Vec::new();
    let mut sink = |outcome| outcomes.push(outcome);
    let cancel = CancellationToken::new();
    tokio::time::timeout(GUARD, transport.send(request, &cancel, &mut sink))
        .await
        .expect("the exchange hangs");
    let finals = outcomes.iter().filter(|o| o.is_final()).count();
    assert_eq!(finals, 1, "{outcomes:?}");
    assert!(outcomes.last().unwrap().is_final());
    assert!(!format!("{outcomes:?}").contains(KEY), "{outcomes:?}");
    outcomes
}

fn head(status: u16, headers: &[(&str, &str)]) -> OutcomeKind {
    OutcomeKind::HttpHead {
        status,
        headers: headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect(),
    }
}

fn body(outcomes: &[OutcomeKind]) -> Vec<u8> {
    outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            OutcomeKind::HttpChunk(bytes) => Some(bytes.to_vec()),
            _ => None,
        })
        .flatten()
        .collect()
}

fn failed(kind: Kind, message: impl Into<String>) -> OutcomeKind {
    OutcomeKind::HttpFailed(TransportError {
        kind,
        message: message.into(),
    })
}

const HI: &str = "HTTP/1.1 200 OK\r\nX-Mixed-Case: Yes\r\nContent-Length: 2\r\n\r\nhi";

#[tokio::test]
async fn an_exchange_is_head_chunks_end() {
    let server = serve(HI).await;
    let outcomes = send(&plain(), get(&server.base)).await;
    let expected = [
        head(200, &[("x-mixed-case", "Yes"), ("content-length", "2")]),
        OutcomeKind::HttpChunk(Bytes::from_static(b"hi")),
        OutcomeKind::HttpEnd,
    ];
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn the_request_arrives_as_given() {
    let mut server = serve(HI).await;
    let request = HttpRequest {
        method: "POST".to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Bytes::from_static(b"{\"a\":1}"),
        ..get(format!("{}/v1/messages?x=1", server.base))
    };
    send(&plain(), request).await;
    let request = server.requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /v1/messages?x=1 HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(!head.to_lowercase().contains("accept-encoding"), "{head}");
    assert_eq!(body, "{\"a\":1}");
}

#[tokio::test]
async fn an_error_status_is_a_response() {
    let server =
        serve("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n")
            .await;
    let outcomes = send(&plain(), get(&server.base)).await;
    let expected = [
        head(429, &[("retry-after", "3"), ("content-length", "0")]),
        OutcomeKind::HttpEnd,
    ];
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn a_key_that_comes_back_is_replaced() {
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\nX-Echo: {KEY}!\r\nTransfer-Encoding: chunked\r\n\r\n\
         7\r\nno {}\r\n{:x}\r\n{} is known\r\n0\r\n\r\n",
        &KEY[..4],
        KEY.len() - 4 + 9,
        &KEY[4..],
    );
    let server = serve(Box::leak(answer.into_boxed_str())).await;
    let outcomes = send(&holding(&server.base), authenticated(&server.base)).await;
    let expected = head(
        401,
        &[("x-echo", "[redacted]!"), ("transfer-encoding", "chunked")],
    );
    assert_eq!(outcomes[0], expected);
    assert_eq!(body(&outcomes), b"no [redacted] is known");
}

#[tokio::test]
async fn connections_are_kept_alive() {
    let server = serve(HI).await;
    let transport = plain();
    for _ in 0..20 {
        assert_eq!(body(&send(&transport, get(&server.base)).await), b"hi");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn chunks_arrive_while_the_stream_is_open() {
    let server = serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n%").await;
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    let mut sink = move |outcome| sender.send(outcome).unwrap();
    let cancel = CancellationToken::new();
    let transport = plain();
    let exchange = transport.send(get(&server.base), &cancel, &mut sink);
    let watch = async {
        assert!(matches!(
            outcomes.recv().await,
            Some(OutcomeKind::HttpHead { .. })
        ));
        let chunk = OutcomeKind::HttpChunk(Bytes::from_static(b"one"));
        assert_eq!(outcomes.recv().await, Some(chunk));
        cancel.cancel();
        assert_eq!(outcomes.recv().await, Some(OutcomeKind::Cancelled));
    };
    tokio::time::timeout(GUARD, async { tokio::join!(exchange, watch) })
        .await
        .expect("the exchange hangs");
}

#[tokio::test]
async fn cancel_closes_the_connection() {
    let mut server =
        serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n%").await;
    let cancel = CancellationToken::new();
    let mut outcomes = Vec::new();
    let mut sink = |outcome| {
        if matches!(outcome, OutcomeKind::HttpChunk(_)) {
            cancel.cancel();
        }
        outcomes.push(outcome);
    };
    tokio::time::timeout(GUARD, async {
        plain().send(get(&server.base), &cancel, &mut sink).await;
        server.closed.recv().await.unwrap();
    })
    .await
    .expect("the connection stays open");
    assert_eq!(outcomes.last(), Some(&OutcomeKind::Cancelled));
}

#[tokio::test]
async fn cancel_before_the_response_is_cancelled() {
    let mut server = serve("%").await;
    let cancel = CancellationToken::new();
    let mut outcomes = Vec::new();
    let mut sink = |outcome| outcomes.push(outcome);
    let transport = plain();
    let exchange = transport.send(get(&server.base), &cancel, &mut sink);
    let arrived = async {
        server.requests.recv().await.unwrap();
        cancel.cancel();
    };
    tokio::time::timeout(GUARD, async { tokio::join!(exchange, arrived) })
        .await
        .expect("the exchange hangs");
    assert_eq!(outcomes, [OutcomeKind::Cancelled]);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_broken() {
    let server = serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n!").await;
    let outcomes = send(&plain(), get(&server.base)).await;
    assert_eq!(body(&outcomes), b"one");
    let Some(OutcomeKind::HttpFailed(error)) = outcomes.last() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.kind, Kind::Broken);
    let start = format!(
        "the connection to {} broke before the response was complete: ",
        server.base
    );
    assert!(error.message.starts_with(&start), "{error}");
}

#[tokio::test]
async fn a_connection_without_an_answer_is_broken() {
    let server = serve("!").await;
    let outcomes = send(&plain(), get(&server.base)).await;
    let [OutcomeKind::HttpFailed(error)] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.kind, Kind::Broken);
    let start = format!(
        "the connection to {} broke before a response arrived: ",
        server.base
    );
    assert!(error.message.starts_with(&start), "{error}");
}

#[tokio::test]
async fn garbage_is_broken() {
    let server = serve("no such protocol\r\n\r\n").await;
    let outcomes = send(&plain(), get(&server.base)).await;
    let [OutcomeKind::HttpFailed(error)] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.kind, Kind::Broken, "{error}");
}

/// Asserts the one sentence that a request fails with.
async fn check_failure(transport: &HttpTransport, request: HttpRequest, kind: Kind, message: &str) {
    assert_eq!(send(transport, request).await, [failed(kind, message)]);
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let message = format!("cannot connect to {base}: connection refused");
    check_failure(
        &plain(),
        get(format!("{base}/v1?key={KEY}")),
        Kind::Connect,
        &message,
    )
    .await;
}

#[tokio::test]
async fn not_a_url() {
    let message = "the request URL is not an absolute http or https URL";
    for url in [
        "",
        "/v1/messages",
        "ftp://host/x",
        "http://",
        "localhost:80",
    ] {
        check_failure(&plain(), get(url), Kind::Invalid, message).await;
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_sent() {
    let request = HttpRequest {
        headers: vec![("x-a".to_owned(), "one\r\nx-b: two".to_owned())],
        ..get("http://127.0.0.1:9")
    };
    let message = "the value of header `x-a` holds a character that it cannot carry";
    check_failure(&plain(), request, Kind::Invalid, message).await;
}

#[tokio::test]
async fn the_key_is_filled_in_at_the_door() {
    let mut server = serve(HI).await;
    let transport = holding(&format!("{}/some/path", server.base));
    let mut request = authenticated(&server.base);
    request.auth = request.auth.map(|auth| Auth {
        header: "authorization".to_owned(),
        prefix: "Bearer ".to_owned(),
        ..auth
    });
    send(&transport, request).await;
    let request = server.requests.recv().await.unwrap();
    assert!(
        request.contains(&format!("authorization: Bearer {KEY}\r\n")),
        "{request}"
    );
    assert!(!format!("{transport:?}").contains(KEY));
}

#[tokio::test]
async fn an_unknown_credential() {
    let message = "the host holds no credential `anthropic`; set its key and start again";
    let request = authenticated("http://127.0.0.1:9");
    check_failure(&plain(), request, Kind::Credential, message).await;
}

/// The key belongs to `https://api.example.com`; nothing may reach the server.
async fn check_origin(url: &str, shown: &str) {
    let transport = holding("https://api.example.com/v1");
    let message = format!(
        "credential `anthropic` belongs to https://api.example.com and is not sent to {shown}"
    );
    check_failure(&transport, authenticated(url), Kind::Credential, &message).await;
    assert!(!transport.tls_roots_loaded());
}

#[tokio::test]
async fn another_host_does_not_get_the_key() {
    check_origin(
        "https://api.example.com.evil.test/",
        "https://api.example.com.evil.test",
    )
    .await;
}

#[tokio::test]
async fn another_port_does_not_get_the_key() {
    check_origin(
        "https://api.example.com:8443/v1",
        "https://api.example.com:8443",
    )
    .await;
}

#[tokio::test]
async fn another_scheme_does_not_get_the_key() {
    check_origin("http://api.example.com/v1", "http://api.example.com").await;
}

#[tokio::test]
async fn a_user_name_that_looks_like_the_host_does_not_help() {
    check_origin(
        "https://api.example.com@127.0.0.1:9/",
        "https://127.0.0.1:9",
    )
    .await;
}

const REDIRECT: &str = "HTTP/1.1 307 Temporary Redirect\r\n\
    Location: http://elsewhere.test/x?secret=1\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn an_authenticated_redirect_is_refused() {
    let server = serve(REDIRECT).await;
    let message = format!(
        "{} answered 307 with a redirect to http://elsewhere.test, which a request with a key \
         does not follow; set --base-url to the final address",
        server.base
    );
    let transport = holding(&server.base);
    check_failure(
        &transport,
        authenticated(&server.base),
        Kind::Invalid,
        &message,
    )
    .await;
}

#[tokio::test]
async fn another_redirect_is_a_response() {
    let server = serve(REDIRECT).await;
    let outcomes = send(&plain(), get(&server.base)).await;
    let location = ("location", "http://elsewhere.test/x?secret=1");
    let expected = [
        head(307, &[location, ("content-length", "0")]),
        OutcomeKind::HttpEnd,
    ];
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn not_modified_is_no_redirect() {
    let server = serve("HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n").await;
    let transport = holding(&server.base);
    let outcomes = send(&transport, authenticated(&server.base)).await;
    let expected = [head(304, &[("content-length", "0")]), OutcomeKind::HttpEnd];
    assert_eq!(outcomes, expected);
}

#[tokio::test]
async fn tls_roots_are_loaded_for_https_only() {
    let server = serve(HI).await;
    let transport = plain();
    send(&transport, get(&server.base)).await;
    assert!(!transport.tls_roots_loaded());
    // A server that does not speak TLS is enough to see the client try.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let https = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(HI.as_bytes()).await;
        let _ = stream.read(&mut [0; 4096]).await;
    });
    let outcomes = send(&transport, get(&https)).await;
    let [OutcomeKind::HttpFailed(error)] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    let message = format!(
        "cannot connect to {https}: received corrupt message of type InvalidContentType; this \
         server does not speak TLS: use http:// in the base URL"
    );
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::Connect, message.as_str())
    );
    let loaded = async {
        while !transport.tls_roots_loaded() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(GUARD, loaded)
        .await
        .expect("the roots are not loaded");
}

#[tokio::test]
async fn a_large_body_is_streamed_in_pieces() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    const LENGTH: usize = 32 << 20;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..LENGTH >> 16 {
            stream.write_all(&[7; 1 << 16]).await.unwrap();
        }
    });
    let (mut total, mut largest) = (0, 0);
    let mut sink = |outcome| {
        if let OutcomeKind::HttpChunk(bytes) = outcome {
            total += bytes.len();
            largest = largest.max(bytes.len());
        }
    };
    let cancel = CancellationToken::new();
    tokio::time::timeout(GUARD, plain().send(get(base), &cancel, &mut sink))
        .await
        .expect("the exchange hangs");
    assert_eq!(total, LENGTH);
    assert!(largest <= 1 << 20, "{largest}");
}

/// The proxy is a variable of the whole process, so that the requests are made
/// in a child: this test binary again.
#[tokio::test]
async fn a_proxy_is_used_but_not_for_loopback() {
    const CHILD: &str = "HERMITCRAB_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let far = send(&plain(), get("http://far.test/x")).await;
        assert_eq!(body(&far), b"hi");
        let server = serve("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ndirect").await;
        assert_eq!(body(&send(&plain(), get(&server.base)).await), b"direct");
        return;
    }
    let mut proxy = serve(HI).await;
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "a_proxy_is_used_but_not_for_loopback"])
        .env(CHILD, "1")
        .env("HTTP_PROXY", &proxy.base)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy");
    let output = child.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let request = proxy.requests.recv().await.unwrap();
    assert!(
        request.starts_with("GET http://far.test/x HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(proxy.requests.try_recv().is_err());
}

/// Asserts what adding a credential fails with.
#[track_caller]
fn check_credential(key: &str, base: &str, message: &str) {
    let error = Credentials::new().with("anthropic", key, base).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn an_empty_key() {
    check_credential(" \n", "https://a.test", "the key of `anthropic` is empty");
}

#[test]
fn a_key_with_a_line_break() {
    let message = "the key of `anthropic` holds a character that an HTTP header cannot carry; \
                   check it for line breaks";
    check_credential("one\ntwo", "https://a.test", message);
}

#[test]
fn a_base_url_without_a_host() {
    let message = "the base URL of `anthropic` is not an absolute http or https URL";
    check_credential(KEY, "api.example.com", message);
}

#[test]
fn a_base_url_with_a_query() {
    let message = "the base URL of `anthropic` holds a query or a fragment, \
                   behind which no path can stand; leave it out";
    check_credential(KEY, "https://a.test/v1?k=secret", message);
    check_credential(KEY, "https://a.test/v1#secret", message);
}

#[test]
fn a_debug_print_shows_no_key() {
    let credentials = Credentials::new()
        .with("anthropic", KEY, "https://a.test:8443/v1")
        .unwrap();
    assert_eq!(
        format!("{credentials:?}"),
        r#"{"anthropic": "https://a.test:8443"}"#
    );
}
