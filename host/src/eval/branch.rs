//! What came of a branch, and the files that say so.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use hermitcrab::session::SessionConfig;
use serde::Serialize;
use serde_json::json;

use super::artifacts;
use super::atif::Trajectory;
use super::check::Checked;
use super::results::Tokens;

/// How a branch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchOutcome {
    /// It came to its natural end; there is no checker.
    Ended,
    /// The checker passed.
    Passed,
    /// It did not.
    Failed,
    /// A limit ended the agent.
    Limit,
    /// The agent failed, or its model refused.
    AgentError,
    /// Provider or machine failed: it says nothing about the agent.
    InfraError,
}

impl BranchOutcome {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::AgentError => "agent_error",
            Self::InfraError => "infra_error",
        }
    }
}

/// What came of a branch. Everything is counted from the fork on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Branch {
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Number among the branches of the model, from 1.
    pub trial: u32,
    /// How it ended.
    pub outcome: BranchOutcome,
    /// Whether it passed; null without a checker, and for `infra_error`.
    pub passed: Option<bool>,
    /// Numbers that the checker wrote.
    pub rewards: Option<BTreeMap<String, f64>>,
    /// One sentence where it has neither ended naturally nor passed.
    pub reason: Option<String>,
    /// Answers of models, those of subagents included.
    pub rounds: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// Price in US dollars; null where it is not known.
    pub cost_usd: Option<f64>,
    /// Wall time of the agent, in ms.
    pub wall_ms: u64,
    /// Part of it that models took.
    pub model_ms: u64,
    /// Part of it that tools took.
    pub tool_ms: u64,
    /// Time of the checker, in ms.
    pub check_ms: u64,
    /// Its tree against that of the run at the round; null where its tree is lost.
    pub diff: Option<Changes>,
    /// Its directory, from [`Branches::out`](super::Branches::out).
    pub dir: Option<String>,
}

/// How much of a tree has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Files.
    pub files: usize,
    /// Lines of texts that were added.
    pub added: usize,
    /// Lines of texts that were removed.
    pub removed: usize,
}

/// Name of the directory of a branch.
pub(super) fn directory_of(config: &SessionConfig, trial: u32) -> String {
    let name = format!("{}-{}", config.provider, config.model);
    format!("{}.{trial}", super::run::file_name(&name))
}

/// Writes what a branch left.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(
    dir: &Path,
    branch: &Branch,
    patch: Option<String>,
    checked: Option<&Checked>,
    trajectory: &Trajectory,
) -> io::Result<()> {
    if let Some(patch) = patch {
        fs::write(dir.join(artifacts::DIFF), patch)?;
    }
    if let Some(checked) = checked {
        artifacts::write_check(dir, checked)?;
    }
    let extra = json!({"trial": branch.trial, "outcome": branch.outcome, "reason": branch.reason});
    let trajectory = serde_json::to_vec(&trajectory.to_json(extra))?;
    fs::write(dir.join(artifacts::TRAJECTORY), trajectory)?;
    fs::write(dir.join("branch.json"), serde_json::to_vec_pretty(branch)?)
}
