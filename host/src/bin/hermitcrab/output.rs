//! A result file that is there completely or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, reason};

/// A file that will be written when the run is over. It is opened before the
/// run, so that a path that cannot be written costs no run, and takes its name
/// only when complete, so that an older file survives a failed run.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    partial: PathBuf,
    file: File,
}

impl Output {
    /// Prepares to write `path`.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let unwritable = |why: &str| {
            Failure::usage(format!(
                "cannot write --out {}: {why}; choose a file in a directory that you may write to",
                path.display()
            ))
        };
        let Some(name) = path.file_name() else {
            return Err(unwritable("it does not name a file"));
        };
        if path.is_dir() {
            return Err(unwritable("it is a directory"));
        }
        let mut partial_name = name.to_owned();
        partial_name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(partial_name);
        let file = File::create(&partial).map_err(|error| unwritable(&reason(&error)))?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            file,
        })
    }

    /// The file and what it is called until it is complete, absolute: neither
    /// belongs to the task.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let Some(partial) = fs::canonicalize(&self.partial).ok() else {
            return Vec::new();
        };
        let name = self.path.file_name().unwrap_or_default();
        vec![partial.with_file_name(name), partial]
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The disk is full, or the directory has changed.
    pub(crate) fn finish(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file
            .write_all(bytes)
            .and_then(|()| fs::rename(&self.partial, &self.path))
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot write --out {}: {}",
                    self.path.display(),
                    reason(&error)
                ))
            })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After `finish` it has another name, and there is nothing to remove.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_or_not_at_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory
            .path()
            .canonicalize()
            .expect("a path")
            .join("out.tar");
        fs::write(&path, "old").expect("a file");
        let output = Output::create(&path).expect("an output");
        let there = fs::read_dir(directory.path()).expect("the directory");
        let mut there: Vec<PathBuf> = there.map(|entry| entry.expect("an entry").path()).collect();
        there.sort();
        assert_eq!(output.paths(), there);
        drop(output);
        assert_eq!(fs::read(&path).expect("the file"), b"old");
        Output::create(&path)
            .expect("an output")
            .finish(b"new")
            .expect("written");
        assert_eq!(fs::read(&path).expect("the file"), b"new");
        assert_eq!(
            fs::read_dir(directory.path())
                .expect("the directory")
                .count(),
            1
        );
    }

    #[test]
    fn unwritable_before_the_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("missing").join("out.tar");
        let error = Output::create(&path).expect_err("unwritable");
        assert_eq!(
            error,
            Failure::usage(format!(
                "cannot write --out {}: no such file or directory; choose a file in a directory that you may write to",
                path.display()
            ))
        );
        let error = Output::create(directory.path()).expect_err("a directory");
        assert!(error.message.contains(": it is a directory;"), "{error}");
    }
}
