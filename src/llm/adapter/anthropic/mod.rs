//! The Anthropic Messages API (LLM-client brief §9).
//!
//! Options of an [`Endpoint`]: `version` (default `2026-10-21`; from that date
//! on sampling parameters do not exist), `auth: "bearer"` for proxies that want
//! `Authorization`, `prompt_caching_beta: false`, `omit_tools_on_none: true`.
//! Keys of `provider_options.anthropic` that are not part of the body:
//! `beta_headers` (list or comma-separated text), `auto_cache`, `cache_ttl`
//! (`5m` or `1h`). Everything else is merged into the body last.

mod decode;
mod encode;
mod error;
mod messages;
mod thinking;

use super::reader::Reader;
use super::{Adapter, Encoded, ProviderVariables, failure};
use crate::llm::error::{LlmError, Names};
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;
use crate::llm::stream::StreamDecoder;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "anthropic";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anthropic;

impl Adapter for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_base_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn variables(&self) -> ProviderVariables {
        ProviderVariables {
            keys: &["ANTHROPIC_API_KEY"],
            base_url: "ANTHROPIC_BASE_URL",
            options: &[],
            key_optional: false,
        }
    }

    fn encode(&self, request: &Request, target: &Endpoint) -> Result<Encoded, LlmError> {
        encode::encode(request, target, self.default_base_url())
    }

    fn decoder(&self, request: &Request, target: &Endpoint) -> Box<dyn StreamDecoder> {
        Box::new(Reader::new(decode::Events::new(
            request,
            Names::of(NAME, request, target),
        )))
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
