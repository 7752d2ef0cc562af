//! OpenAI-compatible chat completions: Ollama, vLLM, llama.cpp, OpenRouter,
//! LM Studio and the like (LLM-client brief §1).
//!
//! Options of an [`Endpoint`], for what servers do not agree on:
//! `max_tokens_field` (default `max_tokens`), `include_usage: false` for those
//! that refuse `stream_options`, `system_in_messages: true` to send late system
//! messages as such (by default they are user text: many chat templates refuse
//! them), `reasoning_field` to send the effort under another name than
//! `reasoning_effort`. What `provider_options.chat` holds is merged into the
//! body last, then what is under the name of the provider itself; `messages`
//! and `stream` belong to the adapter.

mod decode;
mod encode;
mod messages;

use super::reader::Reader;
use super::{Adapter, Encoded, ProviderVariables, failure, openai_error};
use crate::llm::error::{LlmError, Names};
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;
use crate::llm::stream::StreamDecoder;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "chat";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chat;

impl Adapter for Chat {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Ollama on this machine.
    fn default_base_url(&self) -> &'static str {
        "http://localhost:11434/v1"
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
