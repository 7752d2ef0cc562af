//! Evaluation: suites of tasks, trials of agents on them, checkers, and what comes
//! of a run as files. Each trial has separate instances; nothing that an agent does
//! reaches another trial or its checker.
//!
//! [`Eval::run`] runs a suite, [`regrade`](regrade()) its checkers alone; [`merge`](merge()) and
//! [`compare`](compare()) work on the directories of runs. docs/eval.md describes the formats.
//! [`Branches`] runs forks of one log side by side, with the same checkers.

pub mod suite;

mod budget;
mod check;
mod lock;
mod programs;
mod scripted;
mod throttle;
mod verdict;
mod write_tree;

mod artifacts;
mod atif;
mod follow;
mod trial;

mod results;
mod settings;
mod statistics;
mod timeline;

mod branch;
mod branches;
mod compare;
mod merge;
mod queue;
mod regrade;
mod report;
mod run;

pub use branch::{Branch, BranchOutcome, Changes};
pub use branches::{BranchError, Branches};
pub use budget::RunLimits;
pub use compare::{Comparison, Moved, compare};
pub use lock::Parts;
pub use merge::{Merged, merge};
pub use programs::Programs;
pub use regrade::{Regraded, regrade};
pub use results::{Outcome, Row, Tokens};
pub use run::{Eval, EvalError, EvalOptions, News, Watch};
pub use scripted::ScriptedTransport;
pub use statistics::{Estimate, Summary};

use crate::reason;

/// A text of at most `characters`, with what is left out in the middle counted.
fn cut(text: &str, characters: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= characters {
        return text.into();
    }
    let count = text.chars().count();
    if count <= characters {
        return text.into();
    }
    let half = characters / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        count - 2 * half
    )
    .into()
}
