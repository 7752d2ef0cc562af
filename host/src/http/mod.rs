//! The HTTP transport: performs one [`HttpRequest`] and streams what comes back.
//!
//! It keeps connections alive, never buffers a body, never follows a redirect
//! and has no total time limit: the core's stream-idle timeout ends a silent
//! stream. It knows no provider and no format. A key that a server sends back is
//! replaced (`redact.rs`).
//!
//! Decisions. No automatic decompression: an event stream must arrive event by
//! event, and no `Accept-Encoding` is sent. HTTP/1.1 only: one stream per
//! connection is what an agent uses. `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`
//! and `NO_PROXY` are honoured (reading them costs microseconds), except for
//! loopback addresses, which no proxy can reach.

mod failure;
mod redact;
mod sink;
mod tls;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hermitcrab::effect::OutcomeKind;
use hermitcrab::llm::{HttpRequest, TransportError, TransportErrorKind};
use reqwest::header::{CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Request, Response, StatusCode, Url};
use tokio_util::sync::CancellationToken;

use crate::credential::{Credentials, origin_text};
use crate::keys::Keys;
use failure::{broken, connect_failure, invalid};
use redact::Redacting;
pub use sink::OutcomeSink;
use tls::LazyRoots;

/// Clients kept, each with its pool; one per connect timeout in use.
const MAX_CLIENTS: usize = 8;

/// Who performs the HTTP exchanges of an instance: [`HttpTransport`], or what
/// stands in its place or around it ([`InstanceOptions::http`](crate::InstanceOptions)).
#[async_trait]
pub trait HttpPerformer: Send + Sync {
    /// Performs one exchange. Puts `HttpHead` and `HttpChunk`s as they arrive,
    /// then exactly one of `HttpEnd`, `HttpFailed` and `Cancelled`, this soon
    /// after `cancel` has fired.
    async fn perform(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        sink: &mut dyn OutcomeSink,
    );
}

#[async_trait]
impl HttpPerformer for HttpTransport {
    async fn perform(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        sink: &mut dyn OutcomeSink,
    ) {
        self.send(request, cancel, sink).await;
    }
}

/// Performs HTTP exchanges over kept-alive connections. Clones share the
/// connections. Making one costs microseconds: connections, clients and TLS
/// roots come with the first request that needs them.
#[derive(Clone, Debug)]
pub struct HttpTransport(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// What no response may carry further.
    keys: Keys,
    credentials: Credentials,
    roots: Arc<LazyRoots>,
    clients: Mutex<Vec<(ClientKey, Client)>>,
}

/// What a `reqwest::Client` fixes and a request may vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClientKey {
    connect_timeout_ms: u64,
    loopback: bool,
}

impl HttpTransport {
    /// A transport that fills in `credentials` at the door.
    pub fn new(credentials: Credentials) -> Self {
        Self(Arc::new(Inner {
            keys: Keys::new(credentials.secrets()),
            credentials,
            roots: Arc::new(LazyRoots::new()),
            clients: Mutex::default(),
        }))
    }

    /// The keys of its credentials, for whoever must find them in something.
    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The credentials that it fills in.
    pub fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    /// Whether the system's TLS roots have been loaded, which the first https
    /// request causes.
    pub fn tls_roots_loaded(&self) -> bool {
        self.0.roots.loaded()
    }

    /// Performs one exchange. Puts `HttpHead` and `HttpChunk`s as they arrive,
    /// then exactly one of `HttpEnd`, `HttpFailed` and `Cancelled`. Cancelling
    /// closes the connection.
    pub async fn send(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        sink: &mut dyn OutcomeSink,
    ) {
        let mut sink = Redacting::new(sink, self.0.keys.clone());
        let exchange = self.exchange(request, &mut sink);
        let last = tokio::select! {
            biased;
            () = cancel.cancelled() => OutcomeKind::Cancelled,
            result = exchange => match result {
                Ok(()) => OutcomeKind::HttpEnd,
                Err(error) => OutcomeKind::HttpFailed(error),
            },
        };
        sink.put(last).await;
    }

    async fn exchange(
        &self,
        request: HttpRequest,
        sink: &mut dyn OutcomeSink,
    ) -> Result<(), TransportError> {
        let connect_timeout_ms = request.connect_timeout_ms;
        let authenticated = request.auth.is_some();
        let request = self.prepare(request)?;
        let url = request.url().clone();
        if url.scheme() == "https" {
            self.0.roots.load_in_background();
        }
        let client = self.client(ClientKey {
            connect_timeout_ms,
            loopback: is_loopback(&url),
        })?;
        let mut response = client
            .execute(request)
            .await
            .map_err(|error| connect_failure(&url, connect_timeout_ms, &error))?;
        // 304 says that there is nothing new, not that it is elsewhere.
        let status = response.status();
        if authenticated && status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return Err(redirected(&url, &response));
        }
        let encoding = encoding(&response);
        if let Some(encoding) = &encoding
            && status.is_success()
        {
            return Err(encoded(&url, encoding));
        }
        let head = OutcomeKind::HttpHead {
            status: response.status().as_u16(),
            headers: header_pairs(response.headers()),
        };
        sink.put(head).await;
        // The status says enough of a body that cannot be read.
        if encoding.is_some() {
            return Ok(());
        }
        while let Some(chunk) = response.chunk().await.map_err(|e| broken(&url, &e))? {
            if !chunk.is_empty() {
                sink.put(OutcomeKind::HttpChunk(chunk)).await;
            }
        }
        Ok(())
    }

    /// Checks the request and fills the key in.
    fn prepare(&self, request: HttpRequest) -> Result<Request, TransportError> {
        let url = Url::parse(&request.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| invalid("the request URL is not an absolute http or https URL"))?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| invalid(format!("`{}` is not an HTTP method", request.method)))?;
        let mut headers = HeaderMap::with_capacity(request.headers.len() + 1);
        for (name, value) in &request.headers {
            headers.append(header_name(name)?, header_value(name, value)?);
        }
        if let Some(auth) = &request.auth {
            let value = self.0.credentials.header(auth, &url)?;
            headers.insert(header_name(&auth.header)?, value);
        }
        let mut prepared = Request::new(method, url);
        *prepared.headers_mut() = headers;
        if !request.body.is_empty() {
            *prepared.body_mut() = Some(request.body.into());
        }
        Ok(prepared)
    }

    /// The client for `key`. A connect timeout belongs to a client in reqwest,
    /// so that each one in use has its own; in practice there is one.
    fn client(&self, key: ClientKey) -> Result<Client, TransportError> {
        let mut clients = self
            .0
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(k, _)| *k == key) {
            return Ok(client.clone());
        }
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.0.roots.client_config()?)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .http1_only();
        if key.connect_timeout_ms > 0 {
            builder = builder.connect_timeout(Duration::from_millis(key.connect_timeout_ms));
        }
        if key.loopback {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| invalid(format!("cannot set up HTTP: {error}")))?;
        if clients.len() == MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((key, client.clone()));
        Ok(client)
    }
}

fn redirected(url: &Url, response: &Response) -> TransportError {
    let target = response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .and_then(|location| url.join(location).ok())
        .map_or_else(|| "nowhere".to_owned(), |target| origin_text(&target));
    TransportError {
        kind: TransportErrorKind::Invalid,
        message: format!(
            "{} answered {} with a redirect to {target}, which a request with a key does not \
             follow; set --base-url to the final address",
            origin_text(url),
            response.status().as_u16(),
        ),
    }
}

/// How the body is compressed, though no request asks for that.
fn encoding(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_ENCODING)?;
    let name = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    (!name.is_empty() && !name.eq_ignore_ascii_case("identity")).then_some(name)
}

fn encoded(url: &Url, encoding: &str) -> TransportError {
    invalid(format!(
        "{} answered with a body in the encoding {encoding}, which no request asks for; turn \
         compression off in the server or the proxy before it",
        origin_text(url)
    ))
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn header_name(name: &str) -> Result<HeaderName, TransportError> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| invalid(format!("`{name}` is not an HTTP header name")))
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, TransportError> {
    HeaderValue::from_str(value).map_err(|_| {
        invalid(format!(
            "the value of header `{name}` holds a character that it cannot carry"
        ))
    })
}

/// Names are lower case already; bytes that are not UTF-8 become U+FFFD.
fn header_pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect()
}
