//! A result file that is there completely or not at all. What is no file, such
//! as a pipe or a device, is written to and stays what it is.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, reason};

/// Refuses options that name one file twice: the second to be written would be all
/// that is left.
///
/// # Errors
/// Two of them are the same file.
pub(crate) fn distinct(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let named = files
        .iter()
        .filter_map(|(name, path)| Some((*name, (*path)?)));
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for (name, path) in named {
        let place = place(path);
        if let Some((other, _)) = seen.iter().find(|(_, seen)| *seen == place) {
            return Err(Failure::usage(format!(
                "{other} and {name} are the same file, {}: name another one",
                path.display()
            )));
        }
        // A pipe or a device takes what comes.
        if fs::metadata(path).map_or(true, |found| found.is_file()) {
            seen.push((name, place));
        }
    }
    Ok(())
}

/// Where a file is, or will be.
fn place(path: &Path) -> PathBuf {
    let parent = || match path.parent() {
        Some(parent) if parent != Path::new("") => fs::canonicalize(parent),
        _ => fs::canonicalize("."),
    };
    fs::canonicalize(path)
        .or_else(|_| parent().map(|parent| parent.join(path.file_name().unwrap_or_default())))
        .unwrap_or_else(|_| path.to_owned())
}

/// A file that will be written when the run is over. It is opened before the
/// run, so that a path that cannot be written costs no run, and takes its name
/// only when complete, so that an older file survives a failed run.
#[derive(Debug)]
pub(crate) struct Output {
    option: &'static str,
    path: PathBuf,
    /// Its name until it is complete; none for what is written in place.
    partial: Option<PathBuf>,
    file: File,
}

/// The option for the model's last answer.
pub(crate) const LAST_MESSAGE: &str = "--output-last-message";

/// Prepares to write the file that `option` names, if it does.
///
/// # Errors
/// It cannot be written.
pub(crate) fn file(option: &'static str, path: Option<&Path>) -> Result<Option<Output>, Failure> {
    path.map(|path| Output::create(option, path)).transpose()
}

impl Output {
    /// Prepares to write `path`, which `option` names.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let unwritable = |why: &str| {
            Failure::usage(format!(
                "cannot write {option} {}: {why}; choose a file in a directory that you may write to",
                path.display()
            ))
        };
        let Some(name) = path.file_name() else {
            return Err(unwritable("it does not name a file"));
        };
        if path.is_dir() {
            return Err(unwritable("it is a directory"));
        }
        let old = fs::metadata(path).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            let file = OpenOptions::new().write(true).open(path);
            return Ok(Self {
                option,
                path: path.to_owned(),
                partial: None,
                file: file.map_err(|error| unwritable(&reason(&error)))?,
            });
        }
        // A link stays a link: the file that it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or(name).to_owned();
        remove_stale(&path, &name);
        let mut partial_name = name;
        partial_name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(partial_name);
        let file = create_locked(&partial).map_err(|error| unwritable(&reason(&error)))?;
        if let Some(old) = old {
            // Where this fails the file has the permissions of a new one.
            let _ = file.set_permissions(old.permissions());
        }
        Ok(Self {
            option,
            path,
            partial: Some(partial),
            file,
        })
    }

    /// The file and what it is called until it is complete, absolute: neither
    /// belongs to the task.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let partial = self.partial.as_ref();
        let Some(partial) = partial.and_then(|partial| fs::canonicalize(partial).ok()) else {
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
        let written = self.file.write_all(bytes);
        written
            .and_then(|()| match &self.partial {
                Some(partial) => fs::rename(partial, &self.path),
                None => Ok(()),
            })
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot write {} {}: {}",
                    self.option,
                    self.path.display(),
                    reason(&error)
                ))
            })
    }
}

/// Creates a file and holds its lock as long as this process lives: by that
/// others know a file that is being written from one whose writer was killed.
fn create_locked(path: &Path) -> std::io::Result<File> {
    loop {
        let file = File::create(path)?;
        // Where there are no locks, nothing is taken for stale either.
        let _ = file.try_lock();
        // One that cleans up may have come in between.
        if path.exists() {
            return Ok(file);
        }
    }
}

/// Removes what killed writers of `path` have left beside it.
fn remove_stale(path: &Path, name: &OsStr) {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else {
        return;
    };
    for entry in entries.flatten() {
        if is_partial(&entry.file_name(), name)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether `found` is `NAME.PID.partial`.
fn is_partial(found: &OsStr, name: &OsStr) -> bool {
    let rest = found
        .as_encoded_bytes()
        .strip_prefix(name.as_encoded_bytes());
    let pid = rest
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(b".partial"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

impl Drop for Output {
    fn drop(&mut self) {
        // After `finish` it has another name, and there is nothing to remove.
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
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
        let output = Output::create("--out", &path).expect("an output");
        let there = fs::read_dir(directory.path()).expect("the directory");
        let mut there: Vec<PathBuf> = there.map(|entry| entry.expect("an entry").path()).collect();
        there.sort();
        assert_eq!(output.paths(), there);
        drop(output);
        assert_eq!(fs::read(&path).expect("the file"), b"old");
        Output::create("--out", &path)
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
    fn what_killed_writers_left_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in [
            "out.tar.1.partial",
            "out.tar.x.partial",
            "other.tar.1.partial",
        ] {
            fs::write(path(name), "half").expect("a file");
        }
        let other = create_locked(&path("out.tar.2.partial")).expect("a file");
        let output = Output::create("--out", &path("out.tar")).expect("an output");
        drop(output);
        let there = fs::read_dir(directory.path()).expect("the directory");
        let mut there: Vec<_> = there
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        there.sort();
        assert_eq!(
            there,
            [
                "other.tar.1.partial",
                "out.tar.2.partial",
                "out.tar.x.partial"
            ]
        );
        drop(other);
    }

    #[cfg(unix)]
    #[test]
    fn what_stands_there_stays_what_it_is() {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

        let directory = tempfile::tempdir().expect("a directory");
        let (real, link) = (
            directory.path().join("real.tar"),
            directory.path().join("link.tar"),
        );
        fs::write(&real, "old").expect("a file");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).expect("a mode");
        symlink("real.tar", &link).expect("a link");
        let write = |path: &Path| {
            let output = Output::create("--out", path).expect("an output");
            output.finish(b"new").expect("written");
        };
        write(&link);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read(&real).expect("the file"), b"new");
        let mode = fs::metadata(&real).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        write(Path::new("/dev/null"));
        let null = fs::metadata("/dev/null").expect("a device");
        assert!(null.file_type().is_char_device());
    }

    #[test]
    fn unwritable_before_the_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("missing").join("out.tar");
        let error = Output::create("--out", &path).expect_err("unwritable");
        assert_eq!(
            error,
            Failure::usage(format!(
                "cannot write --out {}: no such file or directory; choose a file in a directory that you may write to",
                path.display()
            ))
        );
        let error = Output::create("--out", directory.path()).expect_err("a directory");
        assert!(error.message.contains(": it is a directory;"), "{error}");
    }
}
