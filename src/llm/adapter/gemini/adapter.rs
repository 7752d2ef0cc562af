//! The adapter: facts of the API, and which of the files beside it does what.

use super::decode::Events;
use super::encode::head;
use super::{NAME, error};
use crate::llm::adapter::encode::encode;
use crate::llm::adapter::{Adapter, Encoded, failure, reader};
use crate::llm::endpoint::{Endpoint, ProviderVariables};
use crate::llm::error::LlmError;
use crate::llm::names::Names;
use crate::llm::request::Request;
use crate::llm::stream::StreamDecoder;

/// The provider itself.
const BASE_URL: &str = "https://generativelanguage.googleapis.com";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(in crate::llm::adapter) struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_base_url(&self) -> &'static str {
        BASE_URL
    }

    fn variables(&self) -> ProviderVariables {
        ProviderVariables {
            keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            base_url: "GEMINI_BASE_URL",
            options: &[],
            key_optional: false,
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
        failure::of_response(names, status, headers, body, "x-request-id", error::of_body)
    }
}
