//! What the adapters of this crate have in common: each is a set of facts and
//! three translations, and becomes an [`Adapter`] in one place.

use serde_json::Value;

use super::reader::{Answer, Reader};
use super::{Adapter, Encoded, ProviderVariables, failure};
use crate::llm::error::{LlmError, Names};
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;
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

    /// As [`Adapter::encode`]; `base_url` is for a target that has none.
    fn encode(request: &Request, target: &Endpoint, base_url: &str) -> Result<Encoded, LlmError>;

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
        P::encode(request, target, P::BASE_URL)
    }

    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder> {
        let names = Names::of(P::NAME, request, target);
        Box::new(Reader::new(P::answer(request, names)))
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
