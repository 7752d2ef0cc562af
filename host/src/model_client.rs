//! Models without a session: one request, one answer, over the host's transport
//! with the key filled in at the door.
//!
//! ```no_run
//! use hermitcrab::llm::Request;
//! use hermitcrab_host::ModelClient;
//! use serde_json::json;
//!
//! # async fn example(key: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let models = ModelClient::connect("anthropic", key, None)?;
//! let request = Request::prompt("claude-haiku-4-5", "Name a crab.");
//! println!("{}", models.generate(request.clone()).await?.text());
//!
//! let schema = json!({"type": "object", "required": ["name"],
//!     "properties": {"name": {"type": "string"}}});
//! let (crab, _) = models.generate_object(request, &schema).await?;
//! println!("{}", crab["name"]);
//! # Ok(())
//! # }
//! ```

use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use hermitcrab::effect::OutcomeKind;
use hermitcrab::llm::{
    Client, Endpoint, EventStream, HttpRequest, HttpResponse, LlmError, Request, Response,
    RetryDecision, RetryPolicy, Transport, TransportError, TransportErrorKind, adapter,
    retry_delay_ms,
};
use hermitcrab::object::ObjectForm;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::credential::Credentials;
use crate::error::HostError;
use crate::http::{HttpTransport, OutcomeSink};

/// Pieces of a body that wait for whoever reads it.
const WAITING_CHUNKS: usize = 16;

/// Asks the models of one provider. Its futures are not `Send`: use it within
/// one task of a tokio runtime.
#[derive(Clone, Debug)]
pub struct ModelClient {
    client: Client,
    retry: RetryPolicy,
}

impl ModelClient {
    /// A client for the provider `provider` (`anthropic`, `openai`, `gemini` or
    /// `chat`) at `base_url`, or at the provider's own. The key goes to that
    /// origin only.
    ///
    /// # Errors
    /// There is no such provider, or the key or the URL cannot be used.
    pub fn connect(provider: &str, key: &str, base_url: Option<&str>) -> Result<Self, HostError> {
        let own = adapter(provider).map_or("", |adapter| adapter.default_base_url());
        let base_url = base_url.unwrap_or(own);
        let mut credentials = Credentials::new();
        if !base_url.is_empty() {
            credentials.add(provider, key, base_url)?;
        }
        let transport = Rc::new(HttpTransport::new(credentials));
        let endpoint = Endpoint::new(base_url, provider);
        let client = Client::for_adapter(transport, provider, endpoint)
            .map_err(|error| HostError::Setup(error.to_string()))?;
        Ok(Self::over(client))
    }

    /// A client over one that you set up yourself, such as with several
    /// providers or middleware; [`HttpTransport`] is its transport.
    pub fn over(client: Client) -> Self {
        Self {
            client,
            retry: RetryPolicy::default(),
        }
    }

    /// How often and how patiently [`ModelClient::generate`] tries again.
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The answer, whole. What may succeed later is tried again.
    ///
    /// # Errors
    /// Those of the provider and of the connection.
    pub async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut attempt = 0;
        loop {
            let error = match self.client.complete(request.clone()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let decision = retry_delay_ms(&self.retry, attempt, &error, random_unit(), now_ms());
            let RetryDecision::Retry { delay_ms } = decision else {
                return Err(error);
            };
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            attempt += 1;
        }
    }

    /// The answer as it arrives; dropping the stream cancels the exchange.
    /// Nothing is tried again.
    ///
    /// # Errors
    /// What kept the answer from beginning; later failures are events.
    pub async fn stream(&self, request: Request) -> Result<EventStream, LlmError> {
        self.client.stream(request).await
    }

    /// A JSON value that follows `schema`, and the answer that it came in. The
    /// provider is asked for that form, and the value is checked here.
    ///
    /// # Errors
    /// Those of [`ModelClient::generate`] and of [`ObjectForm`]; an answer of another
    /// form is not tried again.
    pub async fn generate_object(
        &self,
        request: Request,
        schema: &Value,
    ) -> Result<(Value, Response), LlmError> {
        let form = ObjectForm::new(schema)?;
        let response = self.generate(form.asked(request)).await?;
        Ok((form.value(&response)?, response))
    }
}

fn random_unit() -> f64 {
    // Without entropy there is no jitter, which harms nobody.
    let bits = getrandom::u64().unwrap_or(1 << 63);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

#[async_trait(?Send)]
impl Transport for HttpTransport {
    /// Performs the exchange in a task, which ends when the body is
    /// dropped.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let (sender, mut outcomes) = mpsc::channel(WAITING_CHUNKS);
        let cancel = CancellationToken::new();
        let exchange = cancel.clone().drop_guard();
        let transport = self.clone();
        tokio::spawn(async move {
            let mut sink = Sink(sender);
            Self::send(&transport, request, &cancel, &mut sink).await;
        });
        let (status, headers) = match outcomes.recv().await {
            Some(OutcomeKind::HttpHead { status, headers }) => (status, headers),
            Some(OutcomeKind::HttpFailed(error)) => return Err(error),
            _ => return Err(broken()),
        };
        let body = stream::unfold(Some((outcomes, exchange)), async |open| {
            let (mut outcomes, exchange) = open?;
            match outcomes.recv().await {
                Some(OutcomeKind::HttpChunk(chunk)) => {
                    Some((Ok(chunk), Some((outcomes, exchange))))
                }
                Some(OutcomeKind::HttpEnd) => None,
                Some(OutcomeKind::HttpFailed(error)) => Some((Err(error), None)),
                _ => Some((Err(broken()), None)),
            }
        });
        Ok(HttpResponse {
            status,
            headers,
            body: body.boxed_local(),
        })
    }
}

fn broken() -> TransportError {
    TransportError {
        kind: TransportErrorKind::Broken,
        message: "the exchange ended without its end".to_owned(),
    }
}

/// Hands outcomes to whoever reads the body.
struct Sink(mpsc::Sender<OutcomeKind>);

#[async_trait]
impl OutcomeSink for Sink {
    async fn put(&mut self, outcome: OutcomeKind) {
        // Whoever dropped the body wants nothing more.
        let _ = self.0.send(outcome).await;
    }
}
