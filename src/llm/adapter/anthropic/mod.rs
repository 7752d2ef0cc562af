//! The Anthropic Messages API (LLM-client brief §9).
//!
//! Options of an [`Endpoint`]: `version` (default `2026-10-21`; from that date
//! on sampling parameters do not exist), `auth: "bearer"` for proxies that want
//! `Authorization`, `prompt_caching_beta: false`, `omit_tools_on_none: true`.
//! Keys of `provider_options.anthropic` that are not part of the body:
//! `beta_headers` (list or comma-separated text; a session adds its own to those
//! of the profile), `auto_cache`, `cache_ttl`
//! (`5m` or `1h`). Everything else is merged into the body last.
//!
//! [`Endpoint`]: crate::llm::Endpoint

mod adapter;
mod decode;
mod encode;
mod error;
mod messages;
mod thinking;

pub(super) use adapter::Anthropic;

/// Name of the adapter, of its options and of its replays.
pub(super) const NAME: &str = "anthropic";
