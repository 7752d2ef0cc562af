//! The table of wire formats.

use super::anthropic::Anthropic;
use super::chat::Chat;
use super::gemini::Gemini;
use super::openai::OpenAi;
use super::wire::Wire;

/// The formats, in the order in which their paths are tried.
static WIRES: [&dyn Wire; 4] = [&Anthropic, &OpenAi, &Gemini, &Chat];

/// The format for a path, query included.
pub(super) fn for_path(path: &str) -> Option<&'static dyn Wire> {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    WIRES.into_iter().find(|wire| wire.serves(path))
}

/// The ends of all served paths, for people.
pub(super) fn routes() -> String {
    WIRES.map(|wire| wire.route()).join(", ")
}
