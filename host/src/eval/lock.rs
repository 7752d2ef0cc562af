//! What a trial depends on, as hashes: a recorded trial counts as long as they are
//! the same.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::suite::{Checker, Task};
use crate::cache::hex;
use crate::tree::Tree;

/// Hashes of the parts, 16 hexadecimal digits each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parts {
    /// Instruction, inputs, limits, programs and script.
    pub task: String,
    /// The files that the agent starts from.
    pub files: String,
    /// The checkers with their files.
    pub checker: String,
    /// The core.
    pub core: String,
    /// Provider, model and where it is reached.
    pub model: String,
    /// Settings of the run that change what a trial is.
    pub settings: String,
}

impl Parts {
    /// The parts together.
    pub fn lock(&self) -> String {
        let all = serde_json::to_vec(self).unwrap_or_default();
        hex(&Sha256::digest(all))
    }

    /// The names of the parts that differ.
    pub fn changed_from(&self, old: &Self) -> Vec<&'static str> {
        [
            ("task", &self.task, &old.task),
            ("files", &self.files, &old.files),
            ("checker", &self.checker, &old.checker),
            ("core", &self.core, &old.core),
            ("model", &self.model, &old.model),
            ("settings", &self.settings, &old.settings),
        ]
        .into_iter()
        .filter(|(_, new, old)| new != old)
        .map(|(name, ..)| name)
        .collect()
    }

    /// Those of the task.
    pub(super) fn of_task(task: &Task) -> Self {
        let inputs: Vec<_> = task
            .inputs
            .iter()
            .map(|input| json!([input.name, input.instruction]))
            .collect();
        let limits = &task.limits;
        let declared = json!({
            "inputs": inputs,
            "place": task.place.as_str(),
            "programs": task.programs,
            "limits": [limits.rounds, limits.wall_ms, limits.tokens, limits.cost_usd],
            "script": task.script.as_ref().map(|(_, text)| text),
        });
        let mut checkers = Hasher::default();
        for input in &task.inputs {
            if let Some(checker) = &input.checker {
                checkers.text(&input.name);
                checkers.checker(checker);
            }
        }
        checkers.checker(&task.checker);
        checkers.text(&json!([task.check_env, task.check_timeout_ms]).to_string());
        let mut files = Hasher::default();
        files.tree(&task.tree);
        Self {
            task: short(declared.to_string().as_bytes()),
            files: files.end(),
            checker: checkers.end(),
            ..Self::default()
        }
    }
}

/// A hash of which 16 digits are kept.
pub(super) fn short(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}

#[derive(Default)]
struct Hasher(Sha256);

impl Hasher {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn tree(&mut self, tree: &Tree) {
        for (path, node) in tree {
            self.text(path);
            self.0.update([node.kind as u8]);
            self.bytes(&node.content);
        }
    }

    fn checker(&mut self, checker: &Checker) {
        match checker {
            Checker::Command { command, files } => {
                self.text(command);
                self.tree(files);
            }
            Checker::Expected(tree) => self.tree(tree),
        }
    }

    fn end(self) -> String {
        hex(&self.0.finalize()[..8])
    }
}

/// The seed of a trial: every trial of a run has its own, and the same one again.
pub(super) fn seed(run: &[u8; 32], task: &str, trial: u32) -> [u8; 32] {
    let mut hasher = Hasher::default();
    hasher.bytes(run);
    hasher.text(task);
    hasher.bytes(&trial.to_le_bytes());
    hasher.0.finalize().into()
}
