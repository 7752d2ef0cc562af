//! The adapter: facts of the API, and which of the files beside it does what.

use super::NAME;
use super::decode::Events;
use super::encode::head;
use crate::llm::adapter::encode::encode;
use crate::llm::adapter::{Adapter, Encoded, failure, openai_error, reader};
use crate::llm::endpoint::{Endpoint, ProviderVariables};
use crate::llm::error::LlmError;
use crate::llm::names::Names;
use crate::llm::request::Request;
use crate::llm::response::RateLimit;
use crate::llm::stream::StreamDecoder;

/// Ollama on this machine.
const BASE_URL: &str = "http://localhost:11434/v1";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(in crate::llm::adapter) struct Chat;

impl Adapter for Chat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_base_url(&self) -> &'static str {
        BASE_URL
    }

    fn variables(&self) -> ProviderVariables {
        ProviderVariables {
            keys: &["CHAT_API_KEY"],
            base_url: "CHAT_BASE_URL",
            options: &[],
            key_optional: true,
        }
    }

    fn encode(&self, request: &Request, target: &Endpoint) -> Result<Encoded, LlmError> {
        encode(NAME, request, target, |request| {
            head(request, target, BASE_URL)
        })
    }

    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder> {
        let names = Names::of(NAME, request, target);
        reader::decoder(request, Events::new(request, names))
    }

    fn error(
        &self,
        names: &Names,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
    ) -> LlmError {
        failure::of_response(
            names,
            status,
            headers,
            body,
            openai_error::ID_HEADER,
            openai_error::of_body,
        )
    }

    fn rate_limit(&self, headers: &[(String, String)]) -> Option<RateLimit> {
        openai_error::rate_limit(headers)
    }
}
