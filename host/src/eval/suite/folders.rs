//! A suite that is a folder of task folders, each in this layout or in Harbor's.

use std::path::{Path, PathBuf};

use super::error::SuiteError;
use super::files::{read_text, unreadable};
use super::task::{Entry, LoadOptions};
use super::{folder, harbor};

/// Task folders, by name.
#[derive(Debug)]
pub(super) struct Folders {
    parent: PathBuf,
    names: Vec<String>,
}

impl Folders {
    /// The tasks in `folder`, or the one that it is.
    pub(super) fn open(folder: &Path) -> Result<Self, SuiteError> {
        if folder.join("task.toml").is_file() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            return Ok(Self {
                names: vec![name.into_owned()],
                parent: folder.parent().unwrap_or(folder).to_owned(),
            });
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
            let entry = entry.map_err(|error| unreadable(folder, &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && entry.path().join("task.toml").is_file() {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err(SuiteError::new(format!(
                "{} holds no task: a task is a folder with a task.toml",
                folder.display()
            )));
        }
        names.sort();
        Ok(Self {
            parent: folder.to_owned(),
            names,
        })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn load(&self, index: usize, options: &LoadOptions) -> Result<Entry, SuiteError> {
        let Some(name) = self.names.get(index) else {
            return Err(SuiteError::new(format!("there is no task {index}")));
        };
        let folder = self.parent.join(name);
        let text = read_text(&folder.join("task.toml"))?;
        match harbor::is_harbor(&folder, &text) {
            true => harbor::load(name, &folder, &text, options),
            false => folder::load(name, &folder, &text, options),
        }
    }
}
