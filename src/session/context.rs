//! Context-window awareness (spec 5.5): what fits the model, and how much of it is used.

use super::prompt;
use super::state::Shared;

/// What fits a session's model.
pub(super) struct Window {
    /// Tokens; 0: not known.
    pub(super) tokens: u64,
    /// Whether it is only what models of the provider usually have.
    pub(super) is_guess: bool,
}

/// What fits the model in use.
pub(super) fn window(session: &Shared) -> Window {
    let usual = session.profile.capabilities(&session.model_name());
    let configured = session.config.borrow().context_window;
    Window {
        tokens: configured.unwrap_or(usual.context_window),
        is_guess: configured.is_none() && !usual.context_window_known,
    }
}

/// Tokens of the next request: the estimate of spec 5.5, or what the provider counted
/// for the last one and what came since, whichever is more.
pub(super) fn tokens(session: &Shared) -> u64 {
    let prompt = prompt::current(session).len() as u64;
    session.transcript.history.borrow().tokens(prompt)
}
