//! What the adapters of this crate have in common: each is a set of facts and
//! three translations, and becomes an [`Adapter`] in one place.

use serde_json::Value;

use super::reader::{Answer, Reader};
use super::{Adapter, Encoded, ProviderVariables, failure, sampled};
use crate::llm::error::{LlmError, LlmErrorKind, Names};
use crate::llm::head::{Head, KeptHead};
use crate::llm::http::HttpRequest;
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::{RateLimit, Sampled};
use crate::llm::stream::StreamDecoder;

/// One provider's wire format.
pub(super) trait Provider: Sync {
    /// Name of the adapter, of its options and of its replays.
    const NAME: &'static str;

    /// Base URL of the provider itself.
    const BASE_URL: &'static str;

    /// The environment variables that set it up.
    const VARIABLES: ProviderVariables;

    /// Header of a response with the provider's id of the request.
    const ID_HEADER: &'static str;

    /// What reads the events of an answer.
    type Answer: Answer + 'static;

    /// Everything of `request` but its history, which is not there: only the
    /// leading system messages are. `base_url` is for a target that has none.
    ///
    /// # Errors
    ///
    /// When the request cannot be expressed.
    fn head(request: &Request, target: &Endpoint, base_url: &str) -> Result<Head, LlmError>;

    /// The answer to `request`, before its first event.
    fn answer(request: &Request, names: Names) -> Self::Answer;

    /// The error in the JSON body of a response.
    fn error_of_body(names: &Names, status: Option<u16>, body: Value) -> LlmError;

    /// As [`Adapter::rate_limit`].
    fn rate_limit(headers: &[(String, String)]) -> Option<RateLimit> {
        let _ = headers;
        None
    }
}

impl<P: Provider> Adapter for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn default_base_url(&self) -> &'static str {
        P::BASE_URL
    }

    fn variables(&self) -> ProviderVariables {
        P::VARIABLES
    }

    fn encode(&self, request: &Request, target: &Endpoint) -> Result<Encoded, LlmError> {
        let kept = KeptHead::of(P::NAME, request, target, |request| {
            P::head(request, target, P::BASE_URL)
        })?;
        let head = &kept.head;
        let mut warnings = head.warnings.clone();
        let wire = request.conversation.encode(&*head.format, &mut warnings)?;
        let body = head.body(&wire).ok_or_else(|| {
            let name = P::NAME;
            let message =
                format!("the conversation has no message for {name}; add a user message with text");
            LlmError::new(LlmErrorKind::InvalidRequest, name, message)
        })?;
        let http = HttpRequest {
            body,
            ..head.http.clone()
        };
        Ok(Encoded { http, warnings })
    }

    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder> {
        let names = Names::of(P::NAME, request, target);
        let sampled = sampled::are_asked_for(request).then(Sampled::default);
        Box::new(Reader::new(P::answer(request, names), sampled))
    }

    fn error(
        &self,
        names: &Names,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
    ) -> LlmError {
        failure::of_response(names, status, headers, body, P::ID_HEADER, P::error_of_body)
    }

    fn rate_limit(&self, headers: &[(String, String)]) -> Option<RateLimit> {
        P::rate_limit(headers)
    }
}
