//! Loop detection: do the last tool calls repeat a pattern (spec 2.10)?
//!
//! The spec's loop tests only pattern lengths that divide the window, so a
//! window of 10 never sees a pattern of 3. Here the longest multiple of the
//! pattern length that fits the window counts, with at least two repetitions;
//! after a warning a whole new window must repeat.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The signatures of the last tool calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repetition {
    recent: VecDeque<u64>,
}

impl Repetition {
    /// Records one call and keeps the last `window` of them.
    pub(crate) fn record(&mut self, name: &str, arguments: &str, window: usize) {
        let mut hasher = DefaultHasher::new();
        (name, arguments).hash(&mut hasher);
        self.recent.push_back(hasher.finish());
        while self.recent.len() > window {
            self.recent.pop_front();
        }
    }

    /// Length of the repeated pattern, if the last `window` calls repeat one.
    /// Forgets the calls then, so that the next warning needs a new window.
    pub(crate) fn detect(&mut self, window: usize) -> Option<u32> {
        if window < 2 || self.recent.len() < window {
            return None;
        }
        let calls = self.recent.make_contiguous();
        let pattern = (1..=3).find(|&length| {
            let span = window / length * length;
            span >= 2 * length && {
                let tail = &calls[calls.len() - span..];
                tail[length..] == tail[..span - length]
            }
        })?;
        self.recent.clear();
        u32::try_from(pattern).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Repetition;

    #[track_caller]
    fn check(window: usize, calls: &str, warnings: &[(usize, u32)]) {
        let mut repetition = Repetition::default();
        let mut seen = Vec::new();
        for (index, call) in calls.chars().enumerate() {
            repetition.record("tool", &call.to_string(), window);
            if let Some(length) = repetition.detect(window) {
                seen.push((index + 1, length));
            }
        }
        assert_eq!(seen, warnings, "window {window}, calls {calls}");
    }

    #[test]
    fn one_call_repeated() {
        check(10, "aaaaaaaaaa", &[(10, 1)]);
    }

    #[test]
    fn nine_are_not_ten() {
        check(10, "aaaaaaaaa", &[]);
    }

    #[test]
    fn two_calls_cycling() {
        check(10, "ababababab", &[(10, 2)]);
    }

    #[test]
    fn three_calls_cycling_in_a_window_of_ten() {
        check(10, "abcabcabca", &[(10, 3)]);
    }

    #[test]
    fn a_prefix_before_the_pattern_is_forgiven_once_the_window_is_full() {
        check(10, "xyabcabcabc", &[(11, 3)]);
    }

    #[test]
    fn four_calls_cycling_are_not_a_loop() {
        check(10, "abcdabcdabcdabcd", &[]);
    }

    #[test]
    fn the_next_warning_needs_a_new_window() {
        check(10, "aaaaaaaaaaaaaaaaaaaa", &[(10, 1), (20, 1)]);
    }

    #[test]
    fn a_window_of_three_sees_only_length_one() {
        check(3, "abab", &[]);
        check(3, "aaa", &[(3, 1)]);
    }

    #[test]
    fn arguments_count() {
        let mut repetition = Repetition::default();
        for index in 0..20 {
            repetition.record("tool", &format!("{{\"n\":{index}}}"), 10);
            assert_eq!(repetition.detect(10), None);
        }
    }
}
