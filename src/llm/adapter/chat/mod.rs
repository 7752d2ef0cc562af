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
//!
//! [`Endpoint`]: crate::llm::Endpoint

mod adapter;
mod decode;
mod encode;
mod messages;

pub(super) use adapter::Chat;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "chat";
