//! Suites: where tasks come from. A suite knows the names of its tasks and loads
//! one at a time, so that a hundred thousand of them need little memory.

mod error;
mod limits;

mod checker;
mod declared;
mod task;

mod files;
mod folder;
mod harbor;
mod jsonl;

mod folders;

use std::path::{Path, PathBuf};

use crate::tree::Tree;

pub use checker::Checker;
pub use declared::EnvironmentKind;
pub use error::SuiteError;
pub use limits::Limits;
pub use task::{Entry, Input, LoadOptions, Task};

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
    Folders(folders::Folders),
    Lines(jsonl::Lines),
}

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
            true => Source::Folders(folders::Folders::open(&absolute)?),
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

#[cfg(test)]
mod tests;
