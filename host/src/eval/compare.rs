//! `eval diff A B`: two runs, trial by trial.

use std::collections::BTreeMap;
use std::path::Path;

use super::results::{self, Outcome, Row};
use super::statistics::{Estimate, Sums};

/// Two runs beside each other.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Trials that ended otherwise, by task and number.
    pub moved: Vec<Moved>,
    /// Trials that both have, and that ended the same.
    pub same: usize,
    /// Trials that only one has: of the first, of the second.
    pub alone: (usize, usize),
    /// pass@1 of the trials that both have: of the first, of the second.
    pub pass_at_1: (Option<Estimate>, Option<Estimate>),
    /// Price of those trials, where it is known.
    pub cost_usd: (Option<f64>, Option<f64>),
    /// Answers of models in those trials.
    pub rounds: (u64, u64),
    /// Wall time of those trials, in ms.
    pub wall_ms: (u64, u64),
    /// That as many trials, or more, would have gone one way by chance alone: the exact
    /// two-sided sign test over trials that passed in one run only.
    pub p_value: Option<f64>,
}

/// A trial that ended otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Task.
    pub task: String,
    /// Number of the trial.
    pub trial: u32,
    /// How it ended in the first run.
    pub from: Outcome,
    /// How it ended in the second.
    pub to: Outcome,
    /// Why, where it did not pass in the second.
    pub reason: Option<String>,
}

/// Compares the runs in two directories.
///
/// # Errors
/// One holds no results, or damaged ones.
pub fn compare(first: &Path, second: &Path) -> Result<Comparison, String> {
    let key = |row: Row| ((row.task.clone(), row.trial), row);
    let mut others: BTreeMap<(String, u32), Row> =
        results::read(second)?.into_iter().map(key).collect();
    let mut comparison = Comparison::default();
    let (mut before, mut after) = (Sums::default(), Sums::default());
    let (mut won, mut lost) = (0, 0);
    for old in results::read(first)? {
        let Some(new) = others.remove(&(old.task.clone(), old.trial)) else {
            comparison.alone.0 += 1;
            continue;
        };
        before.add(&old);
        after.add(&new);
        comparison.rounds.0 += old.rounds;
        comparison.rounds.1 += new.rounds;
        comparison.wall_ms.0 += old.wall_ms;
        comparison.wall_ms.1 += new.wall_ms;
        match (old.passed, new.passed) {
            (Some(false), Some(true)) => won += 1,
            (Some(true), Some(false)) => lost += 1,
            _ => {}
        }
        if old.outcome == new.outcome {
            comparison.same += 1;
            continue;
        }
        comparison.moved.push(Moved {
            task: old.task,
            trial: old.trial,
            from: old.outcome,
            to: new.outcome,
            reason: new.reason,
        });
    }
    comparison.alone.1 = others.len();
    let (before, after) = (before.summary(), after.summary());
    comparison.pass_at_1 = (
        before.pass_at.first().copied(),
        after.pass_at.first().copied(),
    );
    comparison.cost_usd = (before.cost_usd, after.cost_usd);
    comparison.p_value = sign_test(won, lost);
    Ok(comparison)
}

/// Twice the tail of a fair coin, at most 1; none without a throw.
fn sign_test(won: u32, lost: u32) -> Option<f64> {
    let all = won + lost;
    if all == 0 {
        return None;
    }
    // Logarithms, because half to the power of some thousand is no number.
    let mut log_choose = 0.0;
    let mut tail = 0.0;
    for k in 0..=won.min(lost) {
        if k > 0 {
            log_choose += (f64::from(all - k + 1) / f64::from(k)).ln();
        }
        tail += (log_choose - f64::from(all) * std::f64::consts::LN_2).exp();
    }
    Some((2.0 * tail).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::sign_test;

    #[test]
    fn sign_tests() {
        // Values of R's `binom.test(won, won + lost)`.
        for (won, lost, expected) in [
            (0, 0, None),
            (1, 0, Some(1.0)),
            (8, 2, Some(0.109375)),
            (0, 10, Some(0.001953125)),
        ] {
            let close = match (sign_test(won, lost), expected) {
                (Some(value), Some(expected)) => {
                    let off: f64 = value - expected;
                    off.abs() < 1e-9
                }
                (value, expected) => value == expected,
            };
            assert!(close, "{won}, {lost}");
        }
        assert!(sign_test(3_000, 2_000).is_some_and(|p| p < 1e-9));
    }
}
