//! The OpenAI Responses API (LLM-client brief §8), without state at the
//! provider: `store` is off and reasoning travels encrypted in the history.
//!
//! Options of an [`Endpoint`]: `organization` and `project` (headers of that
//! name), `reasoning_summary` (`auto`, `concise` or `detailed`; left out by
//! default, because unverified organizations are refused it). What
//! `provider_options.openai` holds is merged into the body last; `input`,
//! `stream` and `previous_response_id` belong to the adapter.

mod decode;
mod encode;
mod input;

use serde_json::Value;

use super::provider::Provider;
use super::{ProviderVariables, openai_error};
use crate::llm::error::{LlmError, Names};
use crate::llm::head::Head;
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "openai";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenAi;

impl Provider for OpenAi {
    const NAME: &'static str = NAME;
    const BASE_URL: &'static str = "https://api.openai.com/v1";
    const VARIABLES: ProviderVariables = ProviderVariables {
        keys: &["OPENAI_API_KEY"],
        base_url: "OPENAI_BASE_URL",
        options: &[
            ("OPENAI_ORG_ID", "organization"),
            ("OPENAI_PROJECT_ID", "project"),
        ],
        key_optional: false,
    };
    const ID_HEADER: &'static str = openai_error::ID_HEADER;

    type Answer = decode::Events;

    fn head(request: &Request, target: &Endpoint, base_url: &str) -> Result<Head, LlmError> {
        encode::head(request, target, base_url)
    }

    fn answer(request: &Request, names: Names) -> Self::Answer {
        decode::Events::new(request, names)
    }

    fn error_of_body(names: &Names, status: Option<u16>, body: Value) -> LlmError {
        openai_error::of_body(names, status, body)
    }

    fn rate_limit(headers: &[(String, String)]) -> Option<RateLimit> {
        openai_error::rate_limit(headers)
    }
}
