//! The client: routes a request to its provider, runs middleware around it and
//! yields stream events. It never retries; [`retry_delay_ms`] tells its caller
//! when to (LLM-client brief §1).
//!
//! [`retry_delay_ms`]: super::retry_delay_ms

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{LocalBoxStream, Stream, StreamExt};

use super::adapter::{Adapter, adapter, adapter_names};
use super::endpoint::Endpoint;
use super::error::{LlmError, LlmErrorKind};
use super::http::{HttpRequest, TransportError};
use super::names::Names;
use super::request::Request;
use super::response::{RateLimit, Response};
use super::stream::{StreamAccumulator, StreamDecoder, StreamEvent};
use super::warning::Warning;

/// Largest error body that is read, in bytes.
const MAX_ERROR_BODY: usize = 1 << 20;

/// Performs HTTP exchanges.
#[async_trait(?Send)]
pub trait Transport {
    /// Sends `request` and returns once status and headers have arrived.
    /// Dropping the future, or later the body, cancels the exchange.
    ///
    /// # Errors
    ///
    /// When there is no response.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// The beginning of a response, and the rest of it as a stream.
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Header names in lower case, with values.
    pub headers: Vec<(String, String)>,
    /// The body as it arrives; ends after its first error.
    pub body: LocalBoxStream<'static, Result<Bytes, TransportError>>,
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Code around every call: sees the request before and every event after.
/// The first one added is the outermost.
#[async_trait(?Send)]
pub trait Middleware {
    /// Handles `request`, mostly by passing it on to `next` and mapping the
    /// events of what that returns.
    ///
    /// # Errors
    ///
    /// Those of `next`, or its own.
    async fn call(&self, request: Request, next: Next<'_>) -> Result<EventStream, LlmError>;
}

/// The rest of the way of a request.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    client: &'a Client,
    depth: usize,
}

impl Next<'_> {
    /// Passes the request on.
    ///
    /// # Errors
    ///
    /// As [`Client::stream`].
    pub async fn run(self, request: Request) -> Result<EventStream, LlmError> {
        match self.client.middleware.get(self.depth) {
            Some(middleware) => {
                let next = Next {
                    depth: self.depth + 1,
                    ..self
                };
                middleware.call(request, next).await
            }
            None => self.client.send(request).await,
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("depth", &self.depth).finish()
    }
}

/// Calls models of the providers it knows. Clones share transport and
/// middleware.
#[derive(Clone)]
pub struct Client {
    transport: Rc<dyn Transport>,
    providers: Vec<(String, &'static dyn Adapter, Endpoint)>,
    default: Option<String>,
    middleware: Vec<Rc<dyn Middleware>>,
}

impl Client {
    /// A client that knows no provider yet.
    pub fn new(transport: Rc<dyn Transport>) -> Self {
        Self {
            transport,
            providers: Vec::new(),
            default: None,
            middleware: Vec::new(),
        }
    }

    /// Adds the provider `name`, which speaks through `adapter` and is at
    /// `endpoint`; one of that name is replaced. The first one is the default.
    pub fn with_provider(
        mut self,
        name: impl Into<String>,
        adapter: &'static dyn Adapter,
        endpoint: Endpoint,
    ) -> Self {
        let name = name.into();
        self.default.get_or_insert_with(|| name.clone());
        self.providers.retain(|(known, ..)| *known != name);
        self.providers.push((name, adapter, endpoint));
        self
    }

    /// Adds a middleware inside of those already there.
    pub fn with_middleware(mut self, middleware: Rc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Sends `request` and returns once the answer begins. Dropping the stream
    /// cancels the exchange.
    ///
    /// # Errors
    ///
    /// [`LlmErrorKind::Configuration`] when no provider fits or the request
    /// names no model; otherwise what
    /// kept the answer from beginning. Later failures are events.
    pub async fn stream(&self, request: Request) -> Result<EventStream, LlmError> {
        let next = Next {
            client: self,
            depth: 0,
        };
        next.run(request).await
    }

    /// Sends `request` and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// As [`Client::stream`], and those of the stream.
    pub async fn complete(&self, request: Request) -> Result<Response, LlmError> {
        let mut events = self.stream(request).await?;
        let mut accumulator = StreamAccumulator::new("");
        while let Some(event) = events.next().await {
            accumulator.push(&event);
        }
        accumulator.into_result()
    }

    async fn send(&self, mut request: Request) -> Result<EventStream, LlmError> {
        let (name, adapter, endpoint) = self.route(request.provider.as_deref())?;
        request.provider = Some(name.to_owned());
        if request.model.trim().is_empty() {
            let message = "the request names no model; set `model`";
            return Err(LlmError::new(LlmErrorKind::Configuration, name, message));
        }
        let mut names = Names::of(adapter.name(), &request, endpoint);
        if names.base_url.is_empty() {
            names.base_url = adapter.default_base_url().to_owned();
        }
        let encoded = adapter.encode(&request, endpoint)?;
        let decoder = adapter.decoder(&request, endpoint);
        // The conversation is shared with the caller: let go of it, so that a
        // push during the answer does not have to copy it.
        drop(request);
        let response = match self.transport.send(encoded.http).await {
            Ok(response) => response,
            Err(error) => return Err(names.transport(&error, false)),
        };
        if !(200..300).contains(&response.status) {
            return Err(failure(adapter, &names, response).await);
        }
        let received = Rc::new(Cell::new(0));
        let events = Decoding {
            rate_limit: adapter.rate_limit(&response.headers),
            body: Some(response.body),
            decoder,
            names,
            warnings: encoded.warnings,
            ready: VecDeque::new(),
            received: received.clone(),
        };
        Ok(EventStream {
            events: events.boxed_local(),
            received,
        })
    }

    fn route(
        &self,
        provider: Option<&str>,
    ) -> Result<(&str, &'static dyn Adapter, &Endpoint), LlmError> {
        let Some(name) = provider.or(self.default.as_deref()) else {
            let message = "no provider is set up; add one, or give a key for one";
            return Err(LlmError::new(LlmErrorKind::Configuration, "", message));
        };
        let known = self.providers.iter().find(|(known, ..)| known == name);
        known
            .map(|(name, adapter, endpoint)| (name.as_str(), *adapter, endpoint))
            .ok_or_else(|| {
                let names: Vec<&str> = self.providers.iter().map(|(name, ..)| &**name).collect();
                let message = match names.as_slice() {
                    [] => format!("the provider `{name}` is not set up, nor is any other"),
                    names => format!(
                        "the provider `{name}` is not set up; use one of {}",
                        names.join(", ")
                    ),
                };
                LlmError::new(LlmErrorKind::Configuration, name, message)
            })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers: Vec<&str> = self.providers.iter().map(|(name, ..)| &**name).collect();
        f.debug_struct("Client")
            .field("providers", &providers)
            .field("default", &self.default)
            .field("middleware", &self.middleware.len())
            .finish_non_exhaustive()
    }
}

/// Reads the body of a failed response. A body that breaks off still tells
/// more than the break.
async fn failure(adapter: &dyn Adapter, names: &Names, response: HttpResponse) -> LlmError {
    let mut body = Vec::new();
    let mut chunks = response.body;
    while let Some(Ok(chunk)) = chunks.next().await {
        let room = MAX_ERROR_BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == MAX_ERROR_BODY {
            break;
        }
    }
    adapter.error(names, response.status, &response.headers, &body)
}

/// The events of one answer, in the order that [`StreamEvent`] promises.
pub struct EventStream {
    events: LocalBoxStream<'static, StreamEvent>,
    received: Rc<Cell<u64>>,
}

impl EventStream {
    /// Bytes of the body so far. They grow with every sign of life, also with
    /// pings that are no event: an idle timeout must look here.
    pub fn received_bytes(&self) -> u64 {
        self.received.get()
    }

    /// The same stream with `map` applied to every event, for middleware.
    pub fn map_events(self, map: impl FnMut(StreamEvent) -> StreamEvent + 'static) -> Self {
        Self {
            events: self.events.map(map).boxed_local(),
            received: self.received,
        }
    }

    /// The same stream, ended by an [`LlmErrorKind::Abort`] error as soon as
    /// `abort` is ready: the exchange is closed then, and the error carries
    /// what had arrived.
    pub fn until(self, abort: impl Future<Output = ()> + 'static) -> Self {
        let events = Abortable {
            events: Some(self.events),
            abort: Box::pin(abort),
            seen: StreamAccumulator::new(""),
        };
        Self {
            events: events.boxed_local(),
            received: self.received,
        }
    }

    /// The next event; `None` after the terminal one.
    pub async fn next_event(&mut self) -> Option<StreamEvent> {
        self.events.next().await
    }
}

impl Stream for EventStream {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        self.events.poll_next_unpin(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("received", &self.received.get())
            .finish_non_exhaustive()
    }
}

/// Events until somebody gives up.
struct Abortable {
    /// `None` after the terminal event; dropping the events closes the exchange.
    events: Option<LocalBoxStream<'static, StreamEvent>>,
    abort: Pin<Box<dyn Future<Output = ()>>>,
    seen: StreamAccumulator,
}

impl Stream for Abortable {
    type Item = StreamEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let this = self.get_mut();
        let Some(events) = &mut this.events else {
            return Poll::Ready(None);
        };
        if this.abort.as_mut().poll(cx).is_ready() {
            this.events = None;
            let partial = Box::new(this.seen.response());
            let message = "the caller gave up on the answer";
            let error = LlmError::new(LlmErrorKind::Abort, &partial.provider, message);
            return Poll::Ready(Some(StreamEvent::Error { error, partial }));
        }
        let event = match events.poll_next_unpin(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(event) => event,
        };
        match &event {
            Some(event) if !event.is_terminal() => this.seen.push(event),
            _ => this.events = None,
        }
        Poll::Ready(event)
    }
}

/// Feeds a body to a decoder.
struct Decoding {
    /// `None` once the terminal event is in `ready`: dropping the body tells
    /// the transport that nothing more is wanted.
    body: Option<LocalBoxStream<'static, Result<Bytes, TransportError>>>,
    decoder: Box<dyn StreamDecoder>,
    names: Names,
    warnings: Vec<Warning>,
    rate_limit: Option<RateLimit>,
    ready: VecDeque<StreamEvent>,
    received: Rc<Cell<u64>>,
}

impl Stream for Decoding {
    type Item = StreamEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            let Some(body) = &mut this.body else {
                return Poll::Ready(None);
            };
            let chunk = match body.poll_next_unpin(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(chunk) => chunk,
            };
            let mut events = Vec::new();
            match chunk {
                Some(Ok(chunk)) => {
                    let received = this.received.get().saturating_add(chunk.len() as u64);
                    this.received.set(received);
                    this.decoder.feed(&chunk, &mut events);
                }
                Some(Err(error)) => {
                    let error = this.names.transport(&error, true);
                    this.decoder.fail(error, &mut events);
                    this.body = None;
                }
                None => {
                    this.decoder.finish(&mut events);
                    this.body = None;
                }
            }
            for mut event in events {
                let terminal = event.is_terminal();
                this.complete(&mut event);
                this.ready.push_back(event);
                if terminal {
                    this.body = None;
                    break;
                }
            }
        }
    }
}

impl Decoding {
    /// Adds to a terminal event what only the head of the exchange told.
    fn complete(&mut self, event: &mut StreamEvent) {
        let (StreamEvent::Finish { response }
        | StreamEvent::Error {
            partial: response, ..
        }) = event
        else {
            return;
        };
        let decoded = std::mem::take(&mut response.warnings);
        response.warnings = std::mem::take(&mut self.warnings);
        response.warnings.extend(decoded);
        response.rate_limit = self.rate_limit.take();
    }
}

impl Client {
    /// A client for every provider that the environment sets up, in the order
    /// of [`adapter_names`](super::adapter_names): the first one is the
    /// default. `variable` gives the value of an environment variable; the
    /// client keeps no key, the transport looks it up under the provider's name.
    pub fn from_environment(
        transport: Rc<dyn Transport>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let adapters = adapter_names().filter_map(adapter);
        adapters.fold(Self::new(transport), |client, adapter| {
            let name = adapter.name();
            match adapter.variables().endpoint(name, &variable) {
                Some(endpoint) => client.with_provider(name, adapter, endpoint),
                None => client,
            }
        })
    }

    /// A client for the one provider whose adapter is `name`.
    ///
    /// # Errors
    ///
    /// [`LlmErrorKind::Configuration`] when there is no such adapter.
    pub fn for_adapter(
        transport: Rc<dyn Transport>,
        name: &str,
        endpoint: Endpoint,
    ) -> Result<Self, LlmError> {
        let found = adapter(name).ok_or_else(|| {
            let known: Vec<&str> = adapter_names().collect();
            LlmError::new(
                LlmErrorKind::Configuration,
                name,
                format!(
                    "there is no provider `{name}`; use one of {}",
                    known.join(", ")
                ),
            )
        })?;
        Ok(Self::new(transport).with_provider(name, found, endpoint))
    }
}
