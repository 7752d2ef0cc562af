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

use super::reader::Reader;
use super::{Adapter, Encoded, ProviderVariables, failure, openai_error};
use crate::llm::error::{LlmError, Names};
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;
use crate::llm::stream::StreamDecoder;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "openai";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenAi;

impl Adapter for OpenAi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn variables(&self) -> ProviderVariables {
        ProviderVariables {
            keys: &["OPENAI_API_KEY"],
            base_url: "OPENAI_BASE_URL",
            options: &[
                ("OPENAI_ORG_ID", "organization"),
                ("OPENAI_PROJECT_ID", "project"),
            ],
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
        let id = openai_error::ID_HEADER;
        failure::of_response(names, status, headers, body, id, openai_error::of_body)
    }

    fn rate_limit(&self, headers: &[(String, String)]) -> Option<RateLimit> {
        openai_error::rate_limit(headers)
    }
}
