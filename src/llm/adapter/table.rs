//! The table of adapters.

use super::Adapter;
use super::anthropic::Anthropic;
use super::chat::Chat;
use super::gemini::Gemini;
use super::openai::OpenAi;

static ADAPTERS: &[&dyn Adapter] = &[&OpenAi, &Anthropic, &Gemini, &Chat];

/// The adapter of this name: `openai`, `anthropic`, `gemini` or `chat`.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS
        .iter()
        .copied()
        .find(|adapter| adapter.name() == name)
}

/// Names of all adapters, in the order in which a default is chosen.
pub fn adapter_names() -> impl Iterator<Item = &'static str> {
    ADAPTERS.iter().map(|adapter| adapter.name())
}
