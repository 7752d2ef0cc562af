//! Settings of compaction.

use serde::{Deserialize, Serialize};

/// When a conversation is compacted, and what stays of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Compaction {
    /// Part of the context window at which the conversation is compacted, above 0;
    /// 1: only when the host calls, or the provider finds a request too long.
    pub threshold: f64,
    /// Part of the context window that is kept free for the summary; together with
    /// `threshold` at most 1, unless that is 1.
    pub reserve: f64,
    /// Rounds at the end that stay as they are. Fewer stay where they would take more
    /// than half of what the threshold leaves.
    pub keep_rounds: u32,
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            threshold: 0.8,
            reserve: 0.1,
            keep_rounds: 3,
        }
    }
}

impl Compaction {
    /// What makes no sense, if something does.
    pub(in crate::session) fn problem(&self) -> Option<String> {
        let Self {
            threshold, reserve, ..
        } = self;
        if !(*threshold > 0.0 && *threshold <= 1.0) {
            return Some(format!(
                "`threshold` is {threshold}; give a part of the context window above 0 and up to 1"
            ));
        }
        if !(*reserve > 0.0 && *reserve < 1.0) {
            return Some(format!(
                "`reserve` is {reserve}; give a part of the context window between 0 and 1"
            ));
        }
        // Decimal fractions are not exact: 0.9 and 0.1 are 1.
        let fits = threshold + reserve <= 1.0 + 1e-9;
        (!fits && *threshold < 1.0).then(|| {
            format!(
                "`threshold` {threshold} and `reserve` {reserve} are more than the context \
                 window; together they may be 1"
            )
        })
    }

    /// Tokens at which a window of `window` tokens is full enough; none: never.
    pub(in crate::session) fn limit(&self, window: u64) -> Option<u64> {
        (window > 0 && self.threshold < 1.0).then(|| part(window, self.threshold))
    }

    /// Tokens that the rounds that stay may take.
    pub(in crate::session) fn room(&self, window: u64) -> u64 {
        match window {
            0 => u64::MAX,
            window => part(window, self.threshold) / 2,
        }
    }

    /// Tokens that the summary may take; none: nothing is known of the window.
    pub(in crate::session) fn summary_tokens(&self, window: u64) -> Option<u64> {
        (window > 0).then(|| part(window, self.reserve).max(1))
    }
}

/// `fraction` of `tokens`, rounded down. Windows are far below 2^53.
fn part(tokens: u64, fraction: f64) -> u64 {
    (tokens as f64 * fraction) as u64
}

#[cfg(test)]
mod tests {
    use super::Compaction;

    fn check(threshold: f64, reserve: f64, expected: Option<&str>) {
        let settings = Compaction {
            threshold,
            reserve,
            ..Compaction::default()
        };
        let problem = settings.problem();
        match expected {
            None => assert_eq!(problem, None),
            Some(start) => assert!(problem.as_deref().is_some_and(|p| p.starts_with(start))),
        }
    }

    #[test]
    fn fractions_that_make_no_sense() {
        check(0.8, 0.1, None);
        check(0.9, 0.1, None);
        check(1.0, 0.1, None);
        check(0.0, 0.1, Some("`threshold` is 0"));
        check(1.5, 0.1, Some("`threshold` is 1.5"));
        check(f64::NAN, 0.1, Some("`threshold` is NaN"));
        check(0.8, 0.0, Some("`reserve` is 0"));
        check(0.8, 1.0, Some("`reserve` is 1"));
        check(0.8, 0.3, Some("`threshold` 0.8 and `reserve` 0.3 are more"));
    }

    #[test]
    fn tokens_of_a_window() {
        let settings = Compaction::default();
        assert_eq!(settings.limit(1_000), Some(800));
        assert_eq!(settings.room(1_000), 400);
        assert_eq!(settings.summary_tokens(1_000), Some(100));
        assert_eq!(settings.limit(0), None);
        assert_eq!(settings.summary_tokens(0), None);
        let by_call = Compaction {
            threshold: 1.0,
            ..settings
        };
        assert_eq!(by_call.limit(1_000), None);
    }
}
