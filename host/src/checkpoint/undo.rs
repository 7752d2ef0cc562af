//! Undoing: paths get back what was there, if nobody else has changed them since.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::state::State;
use super::store::{Change, Checkpoints, Line};

/// What was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Paths that are as they were.
    pub paths: Vec<String>,
    /// Those that are not.
    pub not: Vec<NotRestored>,
    /// What else may have changed meanwhile without being noted.
    pub uncovered: Vec<String>,
}

/// A path that was left as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRestored {
    /// The path.
    pub path: String,
    /// Why, in a clause.
    pub why: String,
}

/// Why nothing was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoError {
    /// There is nothing to undo from that round on.
    Nothing,
    /// These paths cannot be restored; no other one was.
    Refused(Vec<NotRestored>),
    /// A command of the session runs.
    Busy,
}

impl fmt::Display for UndoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is nothing to undo"),
            Self::Busy => f.write_str("a command runs: wait for its end, or end it"),
            Self::Refused(paths) => {
                write!(
                    f,
                    "nothing was undone, because of {} of its paths",
                    paths.len()
                )
            }
        }
    }
}

impl std::error::Error for UndoError {}

/// A path with what it has to become.
struct Wanted {
    path: PathBuf,
    shown: String,
    before: State,
}

impl Checkpoints {
    /// Undoes the round `from` and all after it; without one, the last that changed
    /// something. A path that somebody else has changed since, or whose content is not
    /// kept, is left; and unless `partly`, all others are, too.
    ///
    /// # Errors
    /// Nothing was undone.
    pub fn undo(&mut self, from: Option<u64>, partly: bool) -> Result<Restored, UndoError> {
        let last = self.changes.iter().map(|change| change.round).max();
        let from = from.or(last).ok_or(UndoError::Nothing)?;
        let mut paths: BTreeMap<String, (State, State)> = BTreeMap::new();
        for change in self.changes.iter().filter(|change| change.round >= from) {
            paths
                .entry(change.path.clone())
                .and_modify(|(_, after)| after.clone_from(&change.after))
                .or_insert_with(|| (change.before.clone(), change.after.clone()));
        }
        if paths.is_empty() {
            return Err(UndoError::Nothing);
        }
        let mut wanted = Vec::new();
        let mut not = Vec::new();
        for (shown, (before, after)) in paths.clone() {
            let path = PathBuf::from(&shown);
            match self.problem(&path, &before, &after) {
                Some(why) => not.push(NotRestored { path: shown, why }),
                None => wanted.push(Wanted {
                    path,
                    shown,
                    before,
                }),
            }
        }
        if !not.is_empty() && !partly {
            return Err(UndoError::Refused(not));
        }
        let mut done = Vec::new();
        // What has to go, deepest first; then what has to come, directories before what
        // is in them.
        let (mut gone, mut back): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|wanted| wanted.before == State::Absent);
        gone.sort_by(|a, b| b.path.cmp(&a.path));
        back.sort_by(|a, b| a.path.cmp(&b.path));
        for wanted in gone.into_iter().chain(back) {
            match self.restore(&wanted) {
                Ok(()) => done.push(wanted.shown),
                Err(error) => not.push(NotRestored {
                    path: wanted.shown,
                    why: error.to_string(),
                }),
            }
        }
        done.sort_unstable();
        let uncovered = self.uncovered.iter().filter(|(round, _)| *round >= from);
        let mut uncovered: Vec<String> = uncovered.map(|(_, why)| why.clone()).collect();
        uncovered.sort_unstable();
        uncovered.dedup();
        let mut lines = vec![Line::Undone { from }];
        // What was not restored can be tried again.
        for left in &not {
            if let Some((before, after)) = paths.get(&left.path) {
                lines.push(Line::Change(Change {
                    round: from,
                    path: left.path.clone(),
                    before: before.clone(),
                    after: after.clone(),
                    by: "an undo that left it".to_owned(),
                }));
            }
        }
        self.add(lines);
        Ok(Restored {
            paths: done,
            not,
            uncovered,
        })
    }

    /// Why `path`, which was to become `before` again from `after`, has to stay.
    fn problem(&self, path: &Path, before: &State, after: &State) -> Option<String> {
        let now = State::of(path, self.limits.file_bytes).0;
        if now != *after && now != *before {
            return Some(match (&now, after) {
                (State::Absent, _) => "it was removed since".to_owned(),
                (now, State::Absent) => format!("there is {} again", now.name()),
                _ => "it was changed since".to_owned(),
            });
        }
        match before {
            State::File { hash, .. } if !self.has(hash) => {
                Some("its content was not kept".to_owned())
            }
            State::Large { .. } if now != *before => {
                let mib = self.limits.file_bytes >> 20;
                Some(format!(
                    "it was a file of more than {mib} MiB, which are not kept"
                ))
            }
            State::Other if now != *before => Some(format!("it was {}", before.name())),
            _ => None,
        }
    }

    fn restore(&self, wanted: &Wanted) -> io::Result<()> {
        let path = &wanted.path;
        let now = State::of(path, self.limits.file_bytes).0;
        if now == wanted.before {
            return Ok(());
        }
        match &wanted.before {
            State::Absent => remove(path, &now),
            State::Dir { mode } => {
                if !matches!(now, State::Dir { .. }) {
                    remove(path, &now)?;
                    fs::create_dir(path)?;
                }
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
            State::Link { target } => {
                remove(path, &now)?;
                symlink(target, path)
            }
            State::File { mode, hash, .. } => {
                let content = self
                    .content(hash)
                    .ok_or_else(|| io::Error::other("its content was not kept whole"))?;
                if !matches!(now, State::File { .. } | State::Large { .. }) {
                    remove(path, &now)?;
                }
                write(path, &content, *mode)
            }
            State::Large { .. } | State::Other => Ok(()),
        }
    }
}

/// Removes what is at `path`; a directory only if it is empty.
fn remove(path: &Path, now: &State) -> io::Result<()> {
    match now {
        State::Absent => Ok(()),
        State::Dir { .. } => fs::remove_dir(path),
        _ => fs::remove_file(path),
    }
}

/// Puts a file in its place, at once; one with several names keeps them.
fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let names = fs::symlink_metadata(path).map_or(1, |metadata| metadata.nlink());
    if names > 1 {
        fs::write(path, content)?;
        return fs::set_permissions(path, Permissions::from_mode(mode));
    }
    let Some(parent) = path.parent() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(parent)?;
    let aside = parent.join(format!(".hermitcrab-undo-{}.tmp", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.set_permissions(Permissions::from_mode(mode))
        })
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}
