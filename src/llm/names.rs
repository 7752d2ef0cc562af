//! What the errors of one model call say: a sentence by kind that names the
//! provider, the model and the credential, and the way out.

use super::endpoint::Endpoint;
use super::error::{LlmError, LlmErrorKind, clip};
use super::http::{TransportError, TransportErrorKind};
use super::request::Request;

/// The names that an error message mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Provider as the client knows it.
    pub provider: String,
    /// Model asked for.
    pub model: String,
    /// Credential used.
    pub credential: String,
    /// Base URL used.
    pub base_url: String,
}

impl Names {
    /// The names of a request to `target` through the adapter `provider`.
    pub fn of(provider: &str, request: &Request, target: &Endpoint) -> Self {
        Self {
            provider: request
                .provider
                .clone()
                .unwrap_or_else(|| provider.to_owned()),
            model: request.model.clone(),
            credential: target.credential.clone(),
            base_url: target.base_url.clone(),
        }
    }

    /// An error of `kind` in which the provider said `detail`.
    pub fn error(
        &self,
        kind: LlmErrorKind,
        status: Option<u16>,
        code: Option<&str>,
        detail: &str,
    ) -> LlmError {
        let mut words = Vec::new();
        if let Some(status) = status {
            words.push(status.to_string());
        }
        if let Some(code) = code {
            words.push(code.to_owned());
        }
        let mut said = words.join(" ");
        if !detail.is_empty() {
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&clip(detail));
        }
        LlmError {
            status,
            code: code.map(Box::from),
            ..LlmError::new(kind, &self.provider, self.sentence(kind, &said))
        }
    }

    fn sentence(&self, kind: LlmErrorKind, said: &str) -> String {
        let Self {
            provider,
            model,
            credential,
            ..
        } = self;
        match kind {
            LlmErrorKind::Authentication if credential.is_empty() => {
                format!("{provider} wants a key ({said}); give the host one and name it")
            }
            LlmErrorKind::Authentication => {
                format!("{provider} refused the credential `{credential}` ({said}); check its key")
            }
            LlmErrorKind::AccessDenied => format!(
                "{provider} denies the credential `{credential}` access to the model `{model}` ({said}); \
                 use another model or credential"
            ),
            LlmErrorKind::NotFound => format!(
                "{provider} does not know the model `{model}` ({said}); choose another model or check the base URL"
            ),
            LlmErrorKind::ContextLength => format!(
                "the conversation is too long for the model `{model}` ({said}); start a new session or send less"
            ),
            LlmErrorKind::RateLimit => {
                format!("{provider} limits the rate of requests ({said}); wait and try again")
            }
            LlmErrorKind::QuotaExceeded => format!(
                "the credential `{credential}` has no quota or credit left at {provider} ({said}); \
                 raise the limit or use another credential"
            ),
            LlmErrorKind::ContentFilter => {
                format!("{provider} refused the content ({said}); change what is sent")
            }
            LlmErrorKind::Server => format!("{provider} failed ({said}); try again later"),
            LlmErrorKind::RequestTimeout => {
                format!("{provider} gave up waiting for the request ({said}); try again")
            }
            LlmErrorKind::InvalidRequest => {
                format!(
                    "{provider} rejected the request for the model `{model}` ({said}); check the \
                     model's name and the settings of the session"
                )
            }
            LlmErrorKind::Stream => {
                format!("the answer of {provider} broke off: {said}; try again")
            }
            LlmErrorKind::Network => format!("{provider} cannot be reached: {said}"),
            LlmErrorKind::Configuration => {
                format!("{provider} cannot be used as set up ({said}); check the base URL")
            }
            _ => format!("the call to {provider} failed: {said}"),
        }
    }

    /// The transport failed; `streaming` once the answer had begun.
    pub fn transport(&self, error: &TransportError, streaming: bool) -> LlmError {
        let base = match self.base_url.as_str() {
            "" => "the network connection".to_owned(),
            url => format!("the base URL {url} and the network connection"),
        };
        let (kind, message) = match error.kind {
            TransportErrorKind::Broken | TransportErrorKind::Timeout if streaming => (
                LlmErrorKind::Stream,
                format!(
                    "the answer of {} broke off: {error}; try again",
                    self.provider
                ),
            ),
            TransportErrorKind::Credential => (
                LlmErrorKind::Authentication,
                format!("{error}; give the host a key for `{}`", self.credential),
            ),
            TransportErrorKind::Invalid => (
                LlmErrorKind::Configuration,
                format!("{} cannot be called: {error}; check {base}", self.provider),
            ),
            _ => (
                LlmErrorKind::Network,
                format!("{} cannot be reached: {error}; check {base}", self.provider),
            ),
        };
        LlmError::new(kind, &self.provider, message)
    }
}

impl From<TransportError> for LlmError {
    fn from(error: TransportError) -> Self {
        Names {
            provider: "the provider".to_owned(),
            ..Names::default()
        }
        .transport(&error, false)
    }
}
