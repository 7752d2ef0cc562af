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

use serde_json::Value;

use super::provider::Provider;
use super::{ProviderVariables, openai_error};
use crate::llm::error::{LlmError, Names};
use crate::llm::head::Head;
use crate::llm::request::{Endpoint, Request};
use crate::llm::response::RateLimit;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "chat";

/// The adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chat;

impl Provider for Chat {
    const NAME: &'static str = NAME;
    /// Ollama on this machine.
    const BASE_URL: &'static str = "http://localhost:11434/v1";
    const VARIABLES: ProviderVariables = ProviderVariables {
        keys: &["CHAT_API_KEY"],
        base_url: "CHAT_BASE_URL",
        options: &[],
        key_optional: true,
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
