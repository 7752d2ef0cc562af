//! `Task`: what an agent is asked to do, read and checked, whatever file it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hermitcrab::script::ScriptedModel;

use super::checker::Checker;
use super::declared::EnvironmentKind;
use super::error::SuiteError;
use super::limits::Limits;
use crate::eval::reason;
use crate::eval::verdict::Verdict;
use crate::tree::{self, Tree};

/// What is read with every task of a suite.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Script that plays the model in place of the task's own: a name within the
    /// folder of each task, else a path.
    pub script: Option<String>,
    /// Whether a provider answers, whatever scripts there are.
    pub provider_answers: bool,
}

/// What a suite holds under a name.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A task that can run.
    Task(Arc<Task>),
    /// One that cannot run here, and why.
    Skipped(String),
}

/// A task, read and checked.
#[derive(Debug)]
pub struct Task {
    /// Name within the suite.
    pub name: String,
    /// Provider whose profile is used; absent: the run's.
    pub provider: Option<String>,
    /// Model; absent: the run's.
    pub model: Option<String>,
    /// Where the agent's tools act.
    pub place: EnvironmentKind,
    /// Limits of a trial.
    pub limits: Limits,
    /// Programs that the sandbox needs.
    pub programs: BTreeSet<String>,
    /// Whether every program of the run is lent, asked for or not.
    pub takes_all_programs: bool,
    /// The inputs of the agent, in order; at least one.
    pub inputs: Vec<Input>,
    /// Decides at the end.
    pub checker: Checker,
    /// Variables of the checker.
    pub check_env: BTreeMap<String, String>,
    /// How long a checker may take, in ms.
    pub check_timeout_ms: u64,
    /// Whether a checker must write a reward.
    pub needs_reward: bool,
    /// The model, if a script plays it, and the script's text.
    pub script: Option<(ScriptedModel, String)>,
    /// What the agent starts from.
    pub tree: Tree,
    pub(super) archive: OnceLock<Bytes>,
}

impl Task {
    /// The start tree as a tar archive, packed once.
    ///
    /// # Errors
    /// A name that the format cannot hold.
    pub fn archive(&self) -> Result<Bytes, SuiteError> {
        if let Some(archive) = self.archive.get() {
            return Ok(archive.clone());
        }
        let packed = tree::to_tar(&self.tree).map_err(|error| {
            let (path, why) = (&error.path, reason(&error.why));
            SuiteError::new(format!(
                "task {}: cannot pack {path}: {why}; rename it",
                self.name
            ))
        })?;
        Ok(self.archive.get_or_init(|| Bytes::from(packed)).clone())
    }
}

/// One input of the agent.
#[derive(Clone, Debug)]
pub struct Input {
    /// Name of the step; empty for the first one of a task.
    pub name: String,
    /// The instruction of the task.
    pub instruction: String,
    /// Runs when the input is done; the trial ends here if it does not pass.
    pub checker: Option<Checker>,
}

impl Input {
    /// What a verdict of its checker says against the trial.
    pub(in crate::eval) fn failed(&self, verdict: &Verdict) -> Option<String> {
        match verdict {
            Verdict::Passed => None,
            Verdict::Failed(why) | Verdict::None(why) => Some(format!("step {}: {why}", self.name)),
        }
    }
}

/// The task's script as a model, and its text.
pub(super) fn model(
    task: &str,
    file: &str,
    text: String,
) -> Result<(ScriptedModel, String), SuiteError> {
    let model = ScriptedModel::from_json(&text)
        .map_err(|error| SuiteError::new(format!("task {task}: {file} is no script: {error}")))?;
    Ok((model.keep_requests(0), text))
}
