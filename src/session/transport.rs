//! The model client's transport, made of effects: one `http` effect per
//! exchange and one `sleep` that notices silence.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::{future::poll_fn, mem};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::select;
use futures_util::stream::{Stream, StreamExt};

use crate::effect::{EffectKind, EffectPort, OutcomeKind, Pending, Spawner};
use crate::environment::{Cancel, Scope};
use crate::llm::{HttpRequest, HttpResponse, Transport, TransportError, TransportErrorKind};

/// Exchanges of one session's input.
pub(super) struct EffectTransport {
    pub(super) port: EffectPort,
    pub(super) spawner: Spawner,
    /// Ends the exchange with the input.
    pub(super) scope: Scope,
    /// Fires when the session ends: nothing lingers after that.
    pub(super) life: Cancel,
    /// Silence after which the exchange counts as broken, in ms.
    pub(super) idle_ms: u64,
}

#[async_trait(?Send)]
impl Transport for EffectTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let mut exchange = Exchange {
            host: host_of(&request.url),
            pending: Some(self.port.request(&self.scope, EffectKind::Http(request))),
            idle: Idle::start(&self.port, &self.scope.owner, self.idle_ms),
            spawner: self.spawner.clone(),
            life: self.life.clone(),
        };
        match poll_fn(|cx| exchange.poll(cx)).await {
            Some(Ok(OutcomeKind::HttpHead { status, headers })) => Ok(HttpResponse {
                status,
                headers,
                body: Body(exchange).boxed_local(),
            }),
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Err(TransportError {
                kind: TransportErrorKind::Broken,
                message: format!("{} closed the connection without a response", exchange.host),
            }),
        }
    }
}

/// One exchange under way.
struct Exchange {
    host: String,
    /// `None` once nothing more can come.
    pending: Option<Pending>,
    idle: Idle,
    spawner: Spawner,
    life: Cancel,
}

impl Exchange {
    /// The next streamed outcome; `None` at the end of a complete body.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<OutcomeKind, TransportError>>> {
        let Some(pending) = &mut self.pending else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(outcome) = pending.poll_next(cx) {
            self.idle.touch();
            let result = match outcome {
                Some(outcome @ (OutcomeKind::HttpHead { .. } | OutcomeKind::HttpChunk(_))) => {
                    return Poll::Ready(Some(Ok(outcome)));
                }
                Some(OutcomeKind::HttpEnd) | None => None,
                Some(OutcomeKind::HttpFailed(error)) => Some(Err(error)),
                Some(_) => Some(Err(TransportError {
                    kind: TransportErrorKind::Broken,
                    message: format!("the request to {} was cancelled", self.host),
                })),
            };
            self.pending = None;
            return Poll::Ready(result);
        }
        if self.idle.poll_expired(cx) {
            // Dropping it cancels the effect.
            self.pending = None;
            return Poll::Ready(Some(Err(TransportError {
                kind: TransportErrorKind::Timeout,
                message: format!("{} sent nothing for {} ms", self.host, self.idle.limit_ms),
            })));
        }
        Poll::Pending
    }
}

/// The rest of a response.
struct Body(Exchange);

impl Stream for Body {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            return match self.0.poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Ok(OutcomeKind::HttpChunk(bytes)))) => {
                    Poll::Ready(Some(Ok(bytes)))
                }
                // A second head makes no sense; skip it.
                Poll::Ready(Some(Ok(_))) => continue,
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => Poll::Ready(None),
            };
        }
    }
}

impl Drop for Body {
    /// The decoder lets go of the body at the answer's last event, a moment
    /// before the body's own end. Cancelling then would tear down a connection
    /// that could be kept alive, so the end is awaited in the background.
    fn drop(&mut self) {
        let Some(mut pending) = self.0.pending.take() else {
            return;
        };
        let life = self.0.life.clone();
        let idle = mem::replace(&mut self.0.idle, Idle::none());
        self.0.spawner.spawn(async move {
            let mut idle = idle;
            let end = pin!(pending.finish());
            let expired = pin!(poll_fn(|cx| {
                if idle.poll_expired(cx) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }));
            // When the end is not the first, dropping `pending` cancels.
            select(end, select(expired, life.cancelled())).await;
        });
    }
}

/// Notices silence with one sleep effect at a time: when it ends, it starts
/// another for what is left since the last sign of life.
struct Idle {
    port: Option<EffectPort>,
    scope: Scope,
    limit_ms: u64,
    last_ms: u64,
    sleep: Option<Pending>,
}

impl Idle {
    fn start(port: &EffectPort, owner: &Rc<str>, limit_ms: u64) -> Self {
        let scope = Scope::new(owner.clone());
        let sleep = port.request(&scope, EffectKind::Sleep { ms: limit_ms });
        Self {
            last_ms: port.now_ms(),
            port: Some(port.clone()),
            scope,
            limit_ms,
            sleep: Some(sleep),
        }
    }

    /// Watches nothing.
    fn none() -> Self {
        Self {
            port: None,
            scope: Scope::new(""),
            limit_ms: u64::MAX,
            last_ms: 0,
            sleep: None,
        }
    }

    fn touch(&mut self) {
        if let Some(port) = &self.port {
            self.last_ms = port.now_ms();
        }
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(port) = &self.port else {
            return false;
        };
        while let Some(sleep) = &mut self.sleep {
            if sleep.poll_next(cx).is_pending() {
                return false;
            }
            let silent_ms = port.now_ms().saturating_sub(self.last_ms);
            if silent_ms >= self.limit_ms {
                self.sleep = None;
                return true;
            }
            let ms = self.limit_ms - silent_ms;
            self.sleep = Some(port.request(&self.scope, EffectKind::Sleep { ms }));
        }
        false
    }
}

/// Scheme and host of a URL, for messages: a path may hold more than people
/// want to see in a log.
fn host_of(url: &str) -> String {
    let after_scheme = url.find("://").map_or(0, |index| index + 3);
    let end = url[after_scheme..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |index| after_scheme + index);
    url[..end].to_owned()
}
