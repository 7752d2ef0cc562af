//! Undoing: paths get back what was there, if nobody else has changed them since.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, symlink,
};
use std::path::{Path, PathBuf};

use nix::libc;

use super::parent::Parent;
use super::state::{State, own};
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
    /// Where files are that were taken away or replaced, by their paths.
    pub kept: Option<PathBuf>,
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

/// What paths were before and after the rounds that are undone.
type Spans = BTreeMap<String, (State, State)>;

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
        let mut paths = Spans::new();
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
            match self.problem(&path, &before, &after, &paths) {
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
        let kept = self.place_for_undone();
        let mut directories = Vec::new();
        for wanted in gone.into_iter().chain(back) {
            match self.restore(&wanted, &kept) {
                Ok(()) => {
                    if let State::Dir { mode, .. } = wanted.before {
                        directories.push((wanted.path, mode));
                    }
                    done.push(wanted.shown);
                }
                Err(error) => not.push(NotRestored {
                    path: wanted.shown,
                    why: error.to_string(),
                }),
            }
        }
        // What is in them is back: now they may become read-only.
        for (path, mode) in directories.into_iter().rev() {
            let set = Parent::of(&path).and_then(|parent| {
                fs::set_permissions(parent.path(), Permissions::from_mode(mode))
            });
            if let Err(error) = set {
                let shown = path.display().to_string();
                done.retain(|path| *path != shown);
                not.push(NotRestored {
                    path: shown,
                    why: error.to_string(),
                });
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
            kept: kept.exists().then_some(kept),
        })
    }

    /// Why `path`, which was to become `before` again from `after`, has to stay.
    fn problem(&self, path: &Path, before: &State, after: &State, paths: &Spans) -> Option<String> {
        let now = match Parent::of(path) {
            Ok(parent) => State::of(&parent.path(), self.limits.file_bytes).0,
            // Not there, or behind a link that will be a directory again.
            Err(error) if is_absent(&error) || becomes_dir_again(path, paths) => State::Absent,
            Err(error) => return Some(error.to_string()),
        };
        if now != *after && now != *before {
            return Some(match (&now, after) {
                (State::Absent, _) => "it was removed since".to_owned(),
                (now, State::Absent) => format!("there is {} again", now.name()),
                _ => "it was changed since".to_owned(),
            });
        }
        match before {
            State::File { hash, .. } if now != *before && self.content(hash).is_none() => {
                Some("its content was not kept, or is damaged".to_owned())
            }
            State::Large { .. } if now != *before => {
                let mib = self.limits.file_bytes >> 20;
                Some(format!(
                    "it was a file of more than {mib} MiB, which are not kept"
                ))
            }
            State::Other | State::Unseen if now != *before => {
                Some(format!("it was {}", before.name()))
            }
            _ => None,
        }
    }

    /// Does it. A file that goes is put into `kept` first.
    fn restore(&self, wanted: &Wanted, kept: &Path) -> io::Result<()> {
        let parent = match &wanted.before {
            State::Absent => match Parent::of(&wanted.path) {
                Err(error) if is_absent(&error) => return Ok(()),
                parent => parent?,
            },
            _ => Parent::made(&wanted.path)?,
        };
        let path = parent.path();
        let now = State::of(&path, self.limits.file_bytes).0;
        if now == wanted.before {
            return Ok(());
        }
        let is_file = matches!(now, State::File { .. } | State::Large { .. });
        let stays = is_file
            && matches!(wanted.before, State::File { .. })
            && crate::local::stays_in_place(&path, &fs::symlink_metadata(&path)?);
        if is_file {
            keep(
                &path,
                &kept.join(wanted.path.strip_prefix("/").unwrap_or(&wanted.path)),
                stays,
            )?;
        }
        match &wanted.before {
            State::Absent => remove(&path, &now),
            State::Dir { mode, owner } => {
                if !matches!(now, State::Dir { .. }) {
                    remove(&path, &now)?;
                    fs::create_dir(&path)?;
                }
                give(&path, *owner)?;
                // Open for what has to come back into it.
                fs::set_permissions(&path, Permissions::from_mode(mode | 0o700))
            }
            State::Link { target } => {
                remove(&path, &now)?;
                symlink(target, &path)
            }
            State::File {
                mode, hash, owner, ..
            } => {
                let content = self
                    .content(hash)
                    .ok_or_else(|| io::Error::other("its content was not kept whole"))?;
                if stays {
                    return overwrite(&path, &content, *mode, *owner);
                }
                if !is_file {
                    remove(&path, &now)?;
                }
                write(&parent, &content, *mode, *owner)
            }
            State::Large { .. } | State::Other | State::Unseen => Ok(()),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Whether a directory above `path` is a link now that undoing makes a directory again.
fn becomes_dir_again(path: &Path, paths: &Spans) -> bool {
    path.ancestors().skip(1).any(|dir| {
        let span = dir.to_str().and_then(|dir| paths.get(dir));
        span.is_some_and(|(before, _)| matches!(before, State::Dir { .. })) && dir.is_symlink()
    })
}

/// Removes what is at `path`; a directory only if it is empty.
fn remove(path: &Path, now: &State) -> io::Result<()> {
    match now {
        State::Absent => Ok(()),
        State::Dir { .. } => fs::remove_dir(path),
        _ => fs::remove_file(path),
    }
}

/// Keeps the file at `path`, which goes, as `kept`; a copy if it stays and only its content
/// goes.
fn keep(path: &Path, kept: &Path, stays: bool) -> io::Result<()> {
    crate::store::lock::private_dir(kept.parent().unwrap_or(kept))?;
    // As another name it costs nothing; on another file system there is none.
    if !stays && fs::hard_link(path, kept).is_ok() {
        return Ok(());
    }
    fs::copy(path, kept).map(|_| ()).map_err(|error| {
        let kept = kept.display();
        io::Error::new(
            error.kind(),
            format!("it cannot be kept as {kept}: {error}"),
        )
    })
}

/// Gives `path` to its owner of before; without one it belongs to who runs this.
fn give(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let (user, group) = owner.unwrap_or_else(own);
    match (metadata.uid(), metadata.gid()) == (user, group) {
        true => Ok(()),
        false => chown(path, Some(user), Some(group)),
    }
}

/// Gives a file its content back where it is.
fn overwrite(path: &Path, content: &[u8], mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    file.write_all(content)?;
    give(path, owner)?;
    file.set_permissions(Permissions::from_mode(mode))
}

/// Puts a file in its place, at once.
fn write(parent: &Parent, content: &[u8], mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let aside = parent.beside(format!(".hermitcrab-undo-{}.tmp", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| {
            file.write_all(content)?;
            give(&aside, owner)?;
            file.set_permissions(Permissions::from_mode(mode))
        })
        .and_then(|()| fs::rename(&aside, parent.path()));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}
