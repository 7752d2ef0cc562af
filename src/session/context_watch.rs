//! The warning when a history passes 80 % of the context window (spec 5.5). It is
//! informational.

/// Notices each crossing of the threshold once; the spec would warn in every round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContextWatch {
    above: bool,
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
