//! The Anthropic Messages API (LLM-client brief §9).
//!
//! Options of an [`Endpoint`]: `version` (default `2026-10-21`; from that date
//! on sampling parameters do not exist), `auth: "bearer"` for proxies that want
//! `Authorization`, `prompt_caching_beta: false`, `omit_tools_on_none: true`.
//! Keys of `provider_options.anthropic` that are not part of the body:
//! `beta_headers` (list or comma-separated text; a session adds its own to those
//! of the profile), `auto_cache`, `cache_ttl`
//! (`5m` or `1h`). Everything else is merged into the body last.

mod decode;
mod encode;
mod error;
mod messages;
mod thinking;

use serde_json::Value;

use super::ProviderVariables;
use super::provider::Provider;
use crate::llm::error::{LlmError, Names};
use crate::llm::head::Head;
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "anthropic";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anthropic;

impl Provider for Anthropic {
    const NAME: &'static str = NAME;
    const BASE_URL: &'static str = "https://api.anthropic.com";
    const VARIABLES: ProviderVariables = ProviderVariables {
        keys: &["ANTHROPIC_API_KEY"],
        base_url: "ANTHROPIC_BASE_URL",
        options: &[],
        key_optional: false,
    };
    const ID_HEADER: &'static str = "request-id";

    type Answer = decode::Events;

    fn head(request: &Request, target: &Endpoint, base_url: &str) -> Result<Head, LlmError> {
        encode::head(request, target, base_url)
    }

    fn answer(request: &Request, names: Names) -> Self::Answer {
        decode::Events::new(request, names)
    }

    fn error_of_body(names: &Names, status: Option<u16>, body: Value) -> LlmError {
        error::of_body(names, status, body)
    }

    fn rate_limit(headers: &[(String, String)]) -> Option<RateLimit> {
        error::rate_limit(headers)
    }
}
