//! What the trials of a run say together: pass@k, pass^k and their intervals.
//!
//! Of a task with n graded trials of which c passed, the unbiased estimates are
//! pass@k = 1 − C(n−c, k)/C(n, k), that at least one of k trials passes (Chen et al.
//! 2021, arXiv 2107.03374), and pass^k = C(c, k)/C(n, k), that all of k pass (Yao et
//! al. 2024, arXiv 2406.12045). Over tasks they are averaged. Tasks are what is
//! sampled, so the 95 % interval is Wilson's for as many observations as there are
//! tasks: a task's estimate lies within 0 and 1, so its variance is at most p(1−p),
//! and the interval is not too narrow however many trials a task has.

use std::collections::BTreeMap;

use super::results::{Outcome, Row, Tokens};

/// A share with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Of how many trials.
    pub k: u32,
    /// The estimate.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Tasks that have enough trials.
    pub tasks: usize,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Tasks with a trial.
    pub tasks: usize,
    /// Trials.
    pub trials: usize,
    /// Trials by outcome.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// That at least one of k trials passes.
    pub pass_at: Vec<Estimate>,
    /// That all of k trials pass.
    pub pass_hat: Vec<Estimate>,
    /// Price of all trials whose price is known; none if no price is.
    pub cost_usd: Option<f64>,
    /// Tokens of all trials.
    pub tokens: Tokens,
}

/// Adds trials up, a row at a time.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// Graded and passed trials by task.
    tasks: BTreeMap<String, (u32, u32)>,
    summary: Summary,
}

impl Sums {
    pub(super) fn add(&mut self, row: &Row) {
        if !self.tasks.contains_key(&row.task) {
            self.tasks.insert(row.task.clone(), (0, 0));
        }
        if let (Some(task), Some(passed)) = (self.tasks.get_mut(&row.task), row.outcome.passed()) {
            task.0 += 1;
            task.1 += u32::from(passed);
        }
        let summary = &mut self.summary;
        summary.trials += 1;
        *summary.outcomes.entry(row.outcome).or_default() += 1;
        if let Some(cost) = row.cost_usd {
            *summary.cost_usd.get_or_insert(0.0) += cost;
        }
        summary.tokens.input += row.tokens.input;
        summary.tokens.output += row.tokens.output;
        summary.tokens.cached += row.tokens.cached;
        summary.tokens.reasoning += row.tokens.reasoning;
    }

    pub(super) fn summary(&self) -> Summary {
        let most = self.tasks.values().map(|(graded, _)| *graded).max();
        let (mut pass_at, mut pass_hat) = (Vec::new(), Vec::new());
        for k in ks(most.unwrap_or(0)) {
            let enough = || self.tasks.values().filter(move |(graded, _)| *graded >= k);
            let count = enough().count();
            let estimate = |of: fn(u32, u32, u32) -> f64| {
                let sum: f64 = enough()
                    .map(|(graded, passed)| of(*graded, *passed, k))
                    .sum();
                let share = sum / count as f64;
                let (low, high) = wilson(share, count);
                Estimate {
                    k,
                    share,
                    low,
                    high,
                    tasks: count,
                }
            };
            pass_at.push(estimate(at_least_one));
            pass_hat.push(estimate(all));
        }
        Summary {
            tasks: self.tasks.len(),
            pass_at,
            pass_hat,
            ..self.summary.clone()
        }
    }
}

/// The k that are shown: up to five all, then powers of two and the last.
fn ks(most: u32) -> Vec<u32> {
    let mut ks: Vec<u32> = match most {
        0 => Vec::new(),
        1..=5 => (1..=most).collect(),
        _ => std::iter::successors(Some(1_u32), |k| k.checked_mul(2))
            .take_while(|k| *k <= most)
            .collect(),
    };
    if ks.last().is_some_and(|last| *last < most) {
        ks.push(most);
    }
    ks
}

/// C(some, k) / C(all, k), as a product that stays small.
fn ratio(some: u32, all: u32, k: u32) -> f64 {
    if some < k {
        return 0.0;
    }
    (0..k)
        .map(|i| f64::from(some - i) / f64::from(all - i))
        .product()
}

fn at_least_one(graded: u32, passed: u32, k: u32) -> f64 {
    1.0 - ratio(graded - passed, graded, k)
}

fn all(graded: u32, passed: u32, k: u32) -> f64 {
    ratio(passed, graded, k)
}

/// Wilson's score interval at 95 %.
fn wilson(share: f64, count: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if count == 0 {
        return (0.0, 1.0);
    }
    let n = count as f64;
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * n);
    let width = Z
        * (share * (1.0 - share) / n + z2 / (4.0 * n * n))
            .max(0.0)
            .sqrt();
    let scale = 1.0 + z2 / n;
    (
        ((middle - width) / scale).max(0.0),
        ((middle + width) / scale).min(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-4, "{value} is not {expected}");
    }

    #[test]
    fn estimates_of_one_task() {
        // Of 5 trials 2 passed: 1 - C(3,k)/C(5,k), C(2,k)/C(5,k).
        for (k, at, hat) in [(1, 0.4, 0.4), (2, 0.7, 0.1), (3, 0.9, 0.0), (4, 1.0, 0.0)] {
            close(at_least_one(5, 2, k), at);
            close(all(5, 2, k), hat);
        }
        close(at_least_one(3, 0, 3), 0.0);
        close(all(3, 3, 3), 1.0);
    }

    #[test]
    fn intervals() {
        // Values of R's `binom::binom.wilson(8, 10)` and `(0, 10)`.
        let (low, high) = wilson(0.8, 10);
        close(low, 0.4901);
        close(high, 0.9433);
        let (low, high) = wilson(0.0, 10);
        close(low, 0.0);
        close(high, 0.2775);
    }

    #[test]
    fn which_k() {
        assert!(ks(0).is_empty());
        assert_eq!(ks(3), [1, 2, 3]);
        assert_eq!(ks(10), [1, 2, 4, 8, 10]);
    }
}
