//! The trials of a run, one after the other: which of them this shard has, which
//! are recorded already, and each task loaded once for all of its trials.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::lock::Parts;
use super::results::Row;
use super::suite::{Entry, LoadOptions, Suite, SuiteError, Task};

/// What comes next.
pub(super) enum Next {
    /// A trial to run.
    Trial(Box<Trial>),
    /// A task that cannot run here, and why.
    Skipped(String, String),
    /// A recorded trial that counts.
    Kept(Box<Row>),
    /// A recorded trial that is run again, and why.
    Again(String, u32, String),
}

/// A trial to run.
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) number: u32,
    /// A task, or why it is none.
    pub(super) task: Result<Arc<Task>, SuiteError>,
    pub(super) parts: Parts,
}

pub(super) struct Queue {
    pub(super) suite: Arc<Suite>,
    pub(super) load: LoadOptions,
    pub(super) trials: u32,
    pub(super) filter: Option<String>,
    /// Number of this shard, from 0, and of all.
    pub(super) shard: (u64, u64),
    /// Parts of a lock that are the same for all tasks, given a task's.
    pub(super) parts: Box<dyn Fn(&Task) -> Parts + Send>,
    /// Directory of the run.
    pub(super) directory: PathBuf,
    /// Trials of an earlier run.
    pub(super) recorded: HashMap<(String, u32), Row>,
    /// Next task.
    pub(super) index: usize,
    pub(super) current: Option<Current>,
    /// Trials so far, of all shards.
    pub(super) counted: u64,
    pub(super) waiting: Vec<Next>,
}

/// A task whose trials are being handed out.
pub(super) struct Current {
    name: String,
    task: Result<Arc<Task>, SuiteError>,
    parts: Parts,
    next: u32,
}

impl Queue {
    /// Trials that this shard has at most: tasks that are skipped are counted.
    pub(super) fn size(&self) -> u64 {
        let tasks = (0..self.suite.len()).filter(|index| self.wants(*index));
        let all = tasks.count() as u64 * u64::from(self.trials);
        let (shard, shards) = self.shard;
        all / shards + u64::from(all % shards > shard)
    }

    fn wants(&self, index: usize) -> bool {
        let name = self.suite.task_name(index);
        self.filter
            .as_ref()
            .is_none_or(|filter| name.contains(filter.as_str()))
    }

    fn is_mine(&self, counted: u64) -> bool {
        counted % self.shard.1 == self.shard.0
    }

    /// The next thing; none at the end. It reads the files of a task.
    pub(super) fn next(&mut self) -> Option<Next> {
        loop {
            if let Some(next) = self.waiting.pop() {
                return Some(next);
            }
            if let Some(current) = &mut self.current {
                if current.next <= self.trials {
                    let number = current.next;
                    current.next += 1;
                    let counted = self.counted;
                    self.counted += 1;
                    if counted % self.shard.1 == self.shard.0 {
                        return self.trial(number);
                    }
                    continue;
                }
                self.current = None;
            }
            if self.index >= self.suite.len() {
                return None;
            }
            let index = self.index;
            self.index += 1;
            if !self.wants(index) {
                continue;
            }
            // None of its trials may be this shard's: then it is not read.
            let trials = u64::from(self.trials);
            if !(self.counted..self.counted + trials).any(|counted| self.is_mine(counted)) {
                self.counted += trials;
                continue;
            }
            let name = self.suite.task_name(index).to_owned();
            let (task, parts) = match self.suite.load(index, &self.load) {
                Ok(Entry::Skipped(reason)) => {
                    self.counted += trials;
                    return Some(Next::Skipped(name, reason));
                }
                Ok(Entry::Task(task)) => {
                    let parts = (self.parts)(&task);
                    (Ok(task), parts)
                }
                Err(error) => (Err(error), Parts::default()),
            };
            self.current = Some(Current {
                name,
                task,
                parts,
                next: 1,
            });
        }
    }

    fn trial(&mut self, number: u32) -> Option<Next> {
        let current = self.current.as_ref()?;
        let trial = Trial {
            name: current.name.clone(),
            number,
            task: current.task.clone(),
            parts: current.parts.clone(),
        };
        let Some(row) = self.recorded.remove(&(trial.name.clone(), number)) else {
            return Some(Next::Trial(Box::new(trial)));
        };
        let why = if row.passed.is_none() {
            format!(
                "it has no verdict: {}",
                row.reason.as_deref().unwrap_or("-")
            )
        } else if row.lock != trial.parts.lock() {
            let changed = trial.parts.changed_from(&row.parts);
            format!("changed since: {}", changed.join(", "))
        } else if !self.directory.join(&row.dir).is_dir() {
            "its files are lost".to_owned()
        } else {
            return Some(Next::Kept(Box::new(row)));
        };
        let again = Next::Again(trial.name.clone(), number, why);
        self.waiting.push(Next::Trial(Box::new(trial)));
        Some(again)
    }
}
