//! Suites: where tasks come from. A suite knows the names of its tasks and loads
//! one at a time, so that a hundred thousand of them need little memory.

mod declared;
mod files;
mod folder;
mod harbor;
mod jsonl;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hermitcrab::script::ScriptedModel;

use super::check::Verdict;
use crate::tree::{self, Node, Tree};

pub use declared::Place;

/// Tasks that are loaded when they are needed.
#[derive(Debug)]
pub struct Suite {
    /// Name of the folder or file.
    pub name: String,
    /// Where it is, absolute.
    pub path: PathBuf,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Folders(folder::Folders),
    Lines(jsonl::Lines),
}

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
    pub place: Place,
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
    archive: OnceLock<Bytes>,
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
            let (path, why) = (&error.path, super::reason(&error.why));
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
    /// What the agent is told.
    pub instruction: String,
    /// Runs when the input is done; the trial ends here if it does not pass.
    pub checker: Option<Checker>,
}

impl Input {
    /// What a verdict of its checker says against the trial.
    pub(super) fn failed(&self, verdict: &Verdict) -> Option<String> {
        match verdict {
            Verdict::Passed => None,
            Verdict::Failed(why) | Verdict::None(why) => Some(format!("step {}: {why}", self.name)),
        }
    }
}

/// Decides whether a tree is as it should be.
#[derive(Clone, Debug)]
pub enum Checker {
    /// A command and the files that it needs, by absolute path. The agent never sees
    /// them.
    Command {
        /// Command line, run in a copy of the final tree.
        command: String,
        /// Files, by path from `/`.
        files: Tree,
    },
    /// Files that must be in the final tree as they are here.
    Expected(Tree),
}

impl Checker {
    /// Whether it is a script in Python.
    pub(super) fn needs_python(&self) -> bool {
        matches!(self, Self::Command { command, .. } if command.starts_with("python3 "))
    }

    /// A script in bash, or in Python if its name ends with `.py`: the file `name` in
    /// the folder of the checker's files.
    pub fn script(name: &str, content: Bytes) -> Self {
        let entry = match name.ends_with(".py") {
            true => "check.py",
            false => "check.sh",
        };
        command(entry, Tree::new(), content)
    }
}

/// Limits of one trial; absent: none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Answers of models, those of subagents included.
    pub rounds: Option<u64>,
    /// Wall time of the agent, in ms.
    pub wall_ms: Option<u64>,
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// Price of what models answered, in US dollars.
    pub cost_usd: Option<f64>,
}

impl Limits {
    /// These, and `others` where there are none.
    pub fn or(self, others: Self) -> Self {
        Self {
            rounds: self.rounds.or(others.rounds),
            wall_ms: self.wall_ms.or(others.wall_ms),
            tokens: self.tokens.or(others.tokens),
            cost_usd: self.cost_usd.or(others.cost_usd),
        }
    }
}

/// A suite or a task that cannot be used: one sentence that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError(String);

impl SuiteError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SuiteError {}

impl Suite {
    /// Opens the suite at `path`: a folder of task folders, one task folder, or a
    /// file of JSON lines.
    ///
    /// # Errors
    /// There is none.
    pub fn open(path: &Path) -> Result<Self, SuiteError> {
        let shown = path.display();
        let absolute = std::fs::canonicalize(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => SuiteError::new(format!(
                "the suite {shown} does not exist: name a folder of tasks or a .jsonl file"
            )),
            _ => SuiteError::new(format!("cannot open {shown}: {}", super::reason(&error))),
        })?;
        let source = match absolute.is_dir() {
            true => Source::Folders(folder::Folders::open(&absolute)?),
            false => Source::Lines(jsonl::Lines::open(&absolute)?),
        };
        let name = absolute.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name.into_owned(),
            path: absolute,
            source,
        })
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Folders(folders) => folders.names().len(),
            Source::Lines(lines) => lines.len(),
        }
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of a task; empty if there is no such task.
    pub fn task_name(&self, index: usize) -> &str {
        match &self.source {
            Source::Folders(folders) => folders.names().get(index).map_or("", |name| name),
            Source::Lines(lines) => lines.name(index),
        }
    }

    /// Loads a task.
    ///
    /// # Errors
    /// It is not a task; the sentence names it.
    pub fn load(&self, index: usize, options: &LoadOptions) -> Result<Entry, SuiteError> {
        match &self.source {
            Source::Folders(folders) => folders.load(index, options),
            Source::Lines(lines) => lines.load(index, options),
        }
    }
}

/// The tree below `directory`, within the limits of a sandbox.
pub(crate) fn read_tree(directory: &Path) -> Result<Tree, SuiteError> {
    files::read_folder(directory)
}

/// The task's script as a model, and its text.
fn model(task: &str, file: &str, text: String) -> Result<(ScriptedModel, String), SuiteError> {
    let model = ScriptedModel::from_json(&text)
        .map_err(|error| SuiteError::new(format!("task {task}: {file} is no script: {error}")))?;
    Ok((model.keep_requests(0), text))
}

/// The checker that is a file of this name, and the files beside it.
fn command(entry: &str, mut files: Tree, content: Bytes) -> Checker {
    let path = format!("{TESTS}/{entry}");
    let runs = if entry.ends_with(".py") {
        "python3"
    } else {
        "bash"
    };
    files.insert(path[1..].to_owned(), Node::file(content));
    Checker::Command {
        command: format!("{runs} {path}"),
        files,
    }
}

/// Where a checker's files lie.
const TESTS: &str = "/tests";

#[cfg(test)]
mod tests;
