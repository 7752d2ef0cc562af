//! The adapter: facts of the API, and which of the files beside it does what.

use serde_json::Value;

use super::decode::Events;
use super::encode::head;
use super::{NAME, error, thinking};
use crate::llm::adapter::encode::encode;
use crate::llm::adapter::{Adapter, Encoded, failure, reader};
use crate::llm::endpoint::{Endpoint, ProviderVariables};
use crate::llm::error::LlmError;
use crate::llm::message::Replay;
use crate::llm::names::Names;
use crate::llm::request::Request;
use crate::llm::response::RateLimit;
use crate::llm::stream::StreamDecoder;

/// The provider itself.
const BASE_URL: &str = "https://api.anthropic.com";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(in crate::llm::adapter) struct Anthropic;

impl Adapter for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_base_url(&self) -> &'static str {
        BASE_URL
    }

    fn variables(&self) -> ProviderVariables {
        ProviderVariables {
            keys: &["ANTHROPIC_API_KEY"],
            base_url: "ANTHROPIC_BASE_URL",
            options: &[],
            key_optional: false,
        }
    }

    fn unbind(&self, replay: &mut Replay) {
        if thinking::is_bound(&replay.model) {
            let is_thinking = |item: &Value| {
                let kind = item["type"].as_str();
                matches!(kind, Some("thinking" | "redacted_thinking"))
            };
            replay.items.retain(|item| !is_thinking(item));
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
        failure::of_response(names, status, headers, body, "request-id", error::of_body)
    }

    fn rate_limit(&self, headers: &[(String, String)]) -> Option<RateLimit> {
        error::rate_limit(headers)
    }
}
