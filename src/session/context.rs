//! Context-window awareness (spec 5.5): what fits the model, how much of it is used,
//! and a warning when the history passes 80 %. The warning is informational.

use super::prompt;
use super::state::Shared;

/// Notices each crossing of the threshold once (DESIGN §6).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContextWatch {
    above: bool,
}

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

impl ContextWatch {
    /// The warning's text if `approx_chars` has just crossed 80 % of
    /// `window_tokens`; a token counts as four characters.
    pub(crate) fn check(&mut self, approx_chars: u64, window_tokens: u64) -> Option<String> {
        let tokens = approx_chars / 4;
        let above =
            window_tokens > 0 && tokens.saturating_mul(10) > window_tokens.saturating_mul(8);
        let crossed = above && !self.above;
        self.above = above;
        crossed.then(|| {
            let percent = (tokens * 100 + window_tokens / 2) / window_tokens;
            format!("Context usage at ~{percent}% of context window")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ContextWatch;

    #[test]
    fn warns_once_per_crossing() {
        let mut watch = ContextWatch::default();
        let warnings: Vec<_> = [100, 3_200, 3_204, 3_600, 3_000, 3_400]
            .into_iter()
            .map(|chars| watch.check(chars, 1_000))
            .collect();
        let text = |percent| Some(format!("Context usage at ~{percent}% of context window"));
        assert_eq!(warnings, [None, None, text(80), None, None, text(85)]);
    }

    #[test]
    fn an_unknown_window_never_warns() {
        assert_eq!(ContextWatch::default().check(u64::MAX, 0), None);
    }
}
