//! The scripted model over loopback HTTP, in the provider's real wire format:
//! what `hermitcrab serve-model` runs, and tests and the demo start in process.
//!
//! Beside the provider's paths it serves, for any page or program (CORS is
//! open; no key is ever kept):
//!
//! | request | answer |
//! |---|---|
//! | `GET /_script/requests` | the requests so far, a JSON array of `{number, step, path, headers, body, received_us, answered_us}`; times in µs since the start, `answered_us` absent while the answer runs |
//! | `GET /_script/holds` | names that some answer waits for at the moment, a JSON array |
//! | `POST /_script/release/NAME` | releases a hold, now and for later answers |
//! | `POST /_script/reset` | back to the first step; requests and releases forgotten |

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::script::{
    Chunk, Ending, ModelRequest, RecordedRequest, ScriptedModel, ScriptedResponse,
};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::sync::Notify;

/// A scripted model that listens on `127.0.0.1`, on a separate thread.
/// Dropping it stops it and breaks its connections.
#[derive(Debug)]
pub struct ServeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ServeModel {
    /// Starts to serve `model`; port 0 takes a free one.
    ///
    /// # Errors
    /// The port is taken, or the thread cannot start.
    pub fn start(model: ScriptedModel, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                model,
                times: BTreeMap::new(),
                released: BTreeSet::new(),
                held: BTreeMap::new(),
            }),
            changed: Notify::new(),
            stop: Notify::new(),
            start: Instant::now(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let thread = std::thread::Builder::new()
            .name("serve-model".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || runtime.block_on(serve(listener, shared))
            })?;
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// `http://127.0.0.1:PORT`, to be given as a base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock().model.requests().cloned().collect()
    }

    /// When each kept request came and was answered, oldest first.
    pub fn times(&self) -> Vec<RequestTimes> {
        self.shared.lock().times.values().copied().collect()
    }

    /// Whether every step of the script has been played.
    pub fn finished(&self) -> bool {
        self.shared.lock().model.finished()
    }

    /// Releases a hold, now and for later answers.
    pub fn release(&self, name: &str) {
        self.shared.release(name);
    }

    /// Waits until some answer stands at the hold `name`.
    pub async fn held(&self, name: &str) {
        self.shared
            .until(|state| state.held.contains_key(name))
            .await;
    }

    /// Goes back to the first step and forgets requests and releases.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic there has already been reported on stderr.
            let _ = thread.join();
        }
    }
}

impl Drop for ServeModel {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// When a request came and was answered, in µs since the server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RequestTimes {
    /// Its body was complete.
    pub received_us: u64,
    /// The answer's last byte was handed to the connection; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_us: Option<u64>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something in `released` or `held` changed.
    changed: Notify,
    stop: Notify,
    start: Instant,
}

#[derive(Debug)]
struct State {
    model: ScriptedModel,
    /// By request number, for the requests that the model keeps.
    times: BTreeMap<u64, RequestTimes>,
    released: BTreeSet<String>,
    /// How many answers stand at a name.
    held: BTreeMap<String, usize>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn release(&self, name: &str) {
        self.lock().released.insert(name.to_owned());
        self.changed.notify_waiters();
    }

    fn reset(&self) {
        let mut state = self.lock();
        state.model.reset();
        state.times.clear();
        state.released.clear();
    }

    async fn until(&self, condition: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the look, so that no change is missed.
            changed.as_mut().enable();
            if condition(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Answers a model request; the number is that of the kept record.
    fn respond(&self, request: &ModelRequest) -> (ScriptedResponse, Option<u64>) {
        let received_us = self.now_us();
        let mut state = self.lock();
        let before = state.model.requests().last().map(|record| record.number);
        let response = state.model.respond(request);
        let number = state.model.requests().last().map(|record| record.number);
        if number == before {
            return (response, None);
        }
        let oldest = state.model.requests().next().map(|record| record.number);
        while let Some(entry) = state.times.first_entry()
            && oldest.is_some_and(|oldest| *entry.key() < oldest)
        {
            entry.remove();
        }
        if let Some(number) = number {
            let times = RequestTimes {
                received_us,
                answered_us: None,
            };
            state.times.insert(number, times);
        }
        (response, number)
    }

    fn page(&self, path: &str) -> Option<ScriptedResponse> {
        self.lock().model.page(path)
    }

    fn answered(&self, number: u64) {
        let now_us = self.now_us();
        if let Some(times) = self.lock().times.get_mut(&number) {
            times.answered_us = Some(now_us);
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let stop = shared.stop.notified();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, for one: the next connection may do better.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Small deltas must leave at once; where this fails they are only late.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { handle(&shared, request).await }
            });
            // An error is a client that went away or a scripted disconnect.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// No client sends more in one request.
const MAX_REQUEST_BYTES: usize = 1 << 30;

async fn handle(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Disconnected> {
    let mut response = answer(shared, request).await?;
    let headers = response.headers_mut();
    headers.insert("access-control-allow-origin", STAR);
    headers.insert(
        "access-control-expose-headers",
        HeaderValue::from_static("retry-after, retry-after-ms, request-id, *"),
    );
    Ok(response)
}

const STAR: HeaderValue = HeaderValue::from_static("*");

async fn answer(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Disconnected> {
    let (parts, body) = request.into_parts();
    let path = parts
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    if parts.method == Method::OPTIONS {
        return Ok(preflight(&parts.headers));
    }
    let Ok(body) = Limited::new(body, MAX_REQUEST_BYTES).collect().await else {
        return Err(Disconnected);
    };
    let body = body.to_bytes();
    if let Some(command) = path.strip_prefix("/_script/") {
        return Ok(control(shared, &parts.method, command));
    }
    if parts.method == Method::GET
        && let Some(page) = shared.page(&path)
    {
        return play(shared, page, None).await;
    }
    if parts.method != Method::POST {
        return Ok(not_posted(&parts.method, &path));
    }
    let headers = parts.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let request = ModelRequest {
        path,
        headers: headers.collect(),
        body,
    };
    let (scripted, number) = shared.respond(&request);
    play(shared, scripted, number).await
}

/// Models are posted to; elsewhere there is nothing.
fn not_posted(method: &Method, path: &str) -> Response<ResponseBody> {
    let there = format!(
        "post to a path that ends in {}, or get /_script/requests",
        ScriptedModel::routes()
    );
    let message = format!("{method} {path} is not served; {there}");
    let status = match ScriptedModel::serves(path) {
        true => StatusCode::METHOD_NOT_ALLOWED,
        false => StatusCode::NOT_FOUND,
    };
    let mut response = json(status, &error_body(&message));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("POST, OPTIONS");
        response.headers_mut().insert("allow", allowed);
    }
    response
}

fn preflight(asked: &HeaderMap) -> Response<ResponseBody> {
    let allowed = asked.get("access-control-request-headers").cloned();
    let mut response = Response::new(ResponseBody::whole(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert("access-control-allow-headers", allowed.unwrap_or(STAR));
    headers.insert(
        "access-control-allow-methods",
        HeaderValue::from_static("GET, POST, OPTIONS"),
    );
    headers.insert("access-control-max-age", HeaderValue::from_static("600"));
    // On a connection that it has used before, a browser asks once more by
    // itself when that breaks; a scripted break would go unseen.
    headers.insert("connection", HeaderValue::from_static("close"));
    headers.insert(
        "access-control-allow-private-network",
        HeaderValue::from_static("true"),
    );
    response
}

/// `/_script/...`
fn control(shared: &Shared, method: &Method, command: &str) -> Response<ResponseBody> {
    let name = command.strip_prefix("release/");
    match (method.as_str(), command, name) {
        ("GET", "requests", _) => {
            let state = shared.lock();
            let requests = state.model.requests().map(|request| TimedRequest {
                request,
                times: state.times.get(&request.number).copied(),
            });
            json(StatusCode::OK, &requests.collect::<Vec<_>>())
        }
        ("GET", "holds", _) => {
            let state = shared.lock();
            json(StatusCode::OK, &state.held.keys().collect::<Vec<_>>())
        }
        ("POST", "reset", _) => {
            shared.reset();
            json(StatusCode::OK, &serde_json::json!({}))
        }
        ("POST", _, Some(name)) => {
            shared.release(name);
            json(StatusCode::OK, &serde_json::json!({}))
        }
        _ => {
            let message = format!(
                "{method} /_script/{command} is not served; get requests or holds, post release/NAME or reset"
            );
            json(StatusCode::NOT_FOUND, &error_body(&message))
        }
    }
}

/// A record with its times.
#[derive(Serialize)]
struct TimedRequest<'a> {
    #[serde(flatten)]
    request: &'a RecordedRequest,
    #[serde(flatten)]
    times: Option<RequestTimes>,
}

fn error_body(message: &str) -> serde_json::Value {
    serde_json::json!({"type": "error", "error": {"type": "not_found_error", "message": message}})
}

fn json(status: StatusCode, value: &impl Serialize) -> Response<ResponseBody> {
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(ResponseBody::whole(Bytes::from(body)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

/// Waits for what the first chunk waits for, then answers.
async fn play(
    shared: &Arc<Shared>,
    scripted: ScriptedResponse,
    number: Option<u64>,
) -> Result<Response<ResponseBody>, Disconnected> {
    let mut chunks = scripted.chunks;
    if let Some(first) = chunks.first_mut() {
        let hold = first.hold.take();
        wait(shared, std::mem::take(&mut first.delay_ms), hold).await;
    }
    let disconnects = scripted.ending == Ending::Disconnect;
    if disconnects && chunks.iter().all(|chunk| chunk.bytes.is_empty()) {
        return Err(Disconnected);
    }
    let streams = scripted
        .headers
        .iter()
        .any(|(name, value)| name == "content-type" && value == "text/event-stream");
    let length: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    let mut response = Response::new(ResponseBody {
        shared: Some(Arc::clone(shared)),
        number,
        chunks: chunks.into_iter(),
        waiting: None,
        length: (!streams && !disconnects).then_some(length as u64),
        disconnects,
        flushed: false,
    });
    *response.status_mut() = StatusCode::from_u16(scripted.status).unwrap_or(StatusCode::OK);
    for (name, value) in &scripted.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

async fn wait(shared: &Arc<Shared>, delay_ms: u64, hold: Option<String>) {
    if delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    }
    if let Some(name) = hold {
        let standing = Standing::at(shared, name);
        shared
            .until(|state| state.released.contains(&standing.name))
            .await;
    }
}

/// An answer that stands at a hold, also counted down when its client leaves.
struct Standing {
    shared: Arc<Shared>,
    name: String,
}

impl Standing {
    fn at(shared: &Arc<Shared>, name: String) -> Self {
        *shared.lock().held.entry(name.clone()).or_default() += 1;
        shared.changed.notify_waiters();
        Self {
            shared: Arc::clone(shared),
            name,
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(count) = state.held.get_mut(&self.name) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                state.held.remove(&self.name);
            }
        }
    }
}

/// A response body that plays chunks.
struct ResponseBody {
    /// None for answers that are not the model's.
    shared: Option<Arc<Shared>>,
    number: Option<u64>,
    chunks: std::vec::IntoIter<Chunk>,
    waiting: Option<Waiting>,
    /// Known where the body is not a stream.
    length: Option<u64>,
    disconnects: bool,
    flushed: bool,
}

type Waiting = Pin<Box<dyn Future<Output = Bytes> + Send>>;

impl ResponseBody {
    fn whole(bytes: Bytes) -> Self {
        let length = Some(bytes.len() as u64);
        let chunk = (!bytes.is_empty()).then(|| Chunk {
            bytes,
            ..Chunk::default()
        });
        Self {
            shared: None,
            number: None,
            chunks: Vec::from_iter(chunk).into_iter(),
            waiting: None,
            length,
            disconnects: false,
            flushed: false,
        }
    }

    fn send(&mut self, bytes: Bytes) -> Frame<Bytes> {
        if self.chunks.as_slice().is_empty()
            && let (Some(shared), Some(number)) = (&self.shared, self.number)
        {
            shared.answered(number);
        }
        Frame::data(bytes)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Disconnected;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        let this = self.get_mut();
        if let Some(waiting) = &mut this.waiting {
            let Poll::Ready(bytes) = waiting.as_mut().poll(context) else {
                return Poll::Pending;
            };
            this.waiting = None;
            return Poll::Ready(Some(Ok(this.send(bytes))));
        }
        match (this.chunks.next(), &this.shared) {
            (Some(chunk), Some(shared)) if chunk.delay_ms > 0 || chunk.hold.is_some() => {
                let shared = Arc::clone(shared);
                this.waiting = Some(Box::pin(async move {
                    wait(&shared, chunk.delay_ms, chunk.hold).await;
                    chunk.bytes
                }));
                Pin::new(this).poll_frame(context)
            }
            (Some(chunk), _) => Poll::Ready(Some(Ok(this.send(chunk.bytes)))),
            // hyper drops what it has buffered when a body fails, but flushes
            // when a body is not ready: be not ready once.
            (None, _) if this.disconnects && !this.flushed => {
                this.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            (None, _) if this.disconnects => Poll::Ready(Some(Err(Disconnected))),
            (None, _) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.as_slice().is_empty() && self.waiting.is_none() && !self.disconnects
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The script wants the connection to break here.
#[derive(Debug)]
struct Disconnected;

impl std::fmt::Display for Disconnected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the script breaks the connection")
    }
}

impl std::error::Error for Disconnected {}

#[cfg(test)]
mod tests;
