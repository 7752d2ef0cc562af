//! The table of adapters.

use super::Adapter;
use super::anthropic::Anthropic;
use super::chat::Chat;
use super::gemini::Gemini;
use super::openai::OpenAi;
use crate::llm::message::Message;

static ADAPTERS: &[&dyn Adapter] = &[&OpenAi, &Anthropic, &Gemini, &Chat];

/// The adapter of this name: `openai`, `anthropic`, `gemini` or `chat`.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS
        .iter()
        .copied()
        .find(|adapter| adapter.name() == name)
}

/// `message` as it may stand behind other messages than it did: without reasoning that
/// its provider has bound to those.
pub(crate) fn unbound(mut message: Message) -> Message {
    if let Some(replay) = &mut message.replay
        && let Some(adapter) = adapter(&replay.provider)
    {
        adapter.unbind(replay);
    }
    message
}

/// Names of all adapters, in the order in which a default is chosen.
pub fn adapter_names() -> impl Iterator<Item = &'static str> {
    ADAPTERS.iter().map(|adapter| adapter.name())
}
