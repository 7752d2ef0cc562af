//! The OpenAI Responses API (LLM-client brief §8), without state at the
//! provider: `store` is off and reasoning travels encrypted in the history.
//!
//! Options of an [`Endpoint`]: `organization` and `project` (headers of that
//! name), `reasoning_summary` (`auto`, `concise` or `detailed`; left out by
//! default, because unverified organizations are refused it). What
//! `provider_options.openai` holds is merged into the body last; `input`,
//! `stream` and `previous_response_id` belong to the adapter.
//!
//! [`Endpoint`]: crate::llm::Endpoint

mod adapter;
mod decode;
mod encode;
mod input;

pub(super) use adapter::OpenAi;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "openai";
