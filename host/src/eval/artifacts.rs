//! The files of a trial beside its record: trajectory, diff, changed files and what
//! the checker said.
//!
//! `changes.tar.gz` holds the files that the agent added or changed, and a removed
//! one as an empty file `.wh.NAME`, as layers of OCI images do: with the files of
//! the task it gives the final tree again.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;

use super::check::Checked;
use super::results::Row;
use super::suite::Task;
use super::trial::{Attempt, StepTree};
use crate::tree::{self, Kind, Node, Tree};

pub(super) const LOG: &str = "log.gz";
pub(super) const TRAJECTORY: &str = "trajectory.json";
pub(super) const DIFF: &str = "diff.patch";
pub(super) const CHECK: &str = "check.json";
const CHANGES: &str = "changes.tar.gz";
const REMOVED: &str = ".wh.";

/// Makes the directory of a trial, empty.
pub(super) fn fresh(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir_all(directory)?;
            fs::create_dir(directory)
        }
        other => other,
    }
}

/// Writes what an attempt left.
pub(super) fn write(directory: &Path, task: &Task, row: &Row, attempt: &Attempt) -> io::Result<()> {
    let after = attempt.after.as_ref().map(|after| &after.tree);
    let after = after.filter(|after| **after != task.tree);
    if let Some(after) = after {
        let diff = tree::diff(&task.tree, after);
        fs::write(directory.join(DIFF), diff.patch)?;
        write_changes(&directory.join(CHANGES), &task.tree, after)?;
    } else {
        fs::write(directory.join(DIFF), "")?;
    }
    for step in &attempt.steps {
        let file = of_step(step.step, step.is_last);
        write_changes(&directory.join(file), &task.tree, &step.tree)?;
    }
    if let Some(checked) = &attempt.checked {
        write_check(directory, checked)?;
    }
    if let Some(trajectory) = &attempt.trajectory {
        let extra = json!({
            "task": row.task,
            "trial": row.trial,
            "seed": row.seed,
            "outcome": row.outcome,
            "reason": row.reason,
            "rewards": row.rewards,
            "started_at": row.started_at,
            "wall_ms": row.wall_ms,
        });
        let json = trajectory.to_json(extra);
        fs::write(directory.join(TRAJECTORY), serde_json::to_vec(&json)?)?;
    }
    Ok(())
}

/// The changes until the checker of a step, with which the agent may have ended though
/// there were more steps.
fn of_step(step: usize, is_last: bool) -> String {
    let end = if is_last { "-end" } else { "" };
    format!("step-{}{end}.tar.gz", step + 1)
}

/// Writes what a checker found.
pub(super) fn write_check(directory: &Path, checked: &Checked) -> io::Result<()> {
    // A new file in place of the old one, which another run may have a link to.
    let (path, aside) = (directory.join(CHECK), directory.join(".check.new"));
    fs::write(&aside, serde_json::to_vec(checked)?)?;
    fs::rename(&aside, &path)
}

fn write_changes(file: &Path, before: &Tree, after: &Tree) -> io::Result<()> {
    let packed = GzEncoder::new(fs::File::create(file)?, Compression::new(1));
    let mut builder = tar::Builder::new(io::BufWriter::new(packed));
    for (path, node) in after {
        if before.get(path) != Some(node) {
            tree::append(&mut builder, path, node)?;
        }
    }
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        let (parent, name) = path.rsplit_once('/').map_or(("", path.as_str()), |it| it);
        let slash = if parent.is_empty() { "" } else { "/" };
        let mark = format!("{parent}{slash}{REMOVED}{name}");
        tree::append(&mut builder, &mark, &Node::file(Bytes::new()))?;
    }
    let buffered = builder.into_inner()?;
    let packed = buffered
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    packed.finish()?.flush()
}

/// The final tree of a recorded trial.
///
/// # Errors
/// Its files are damaged.
pub(super) fn final_tree(directory: &Path, before: &Tree) -> io::Result<Tree> {
    match changed(&directory.join(CHANGES), before) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Nothing changed, if the trial has come to its end.
            match fs::metadata(directory.join(DIFF))?.len() {
                0 => Ok(before.clone()),
                _ => Err(error),
            }
        }
        other => other,
    }
}

/// The tree that the checker of a step saw; none where the trial ended before it.
///
/// # Errors
/// Its files are damaged.
pub(super) fn step_tree(
    directory: &Path,
    step: usize,
    before: &Tree,
) -> io::Result<Option<StepTree>> {
    for is_last in [false, true] {
        match changed(&directory.join(of_step(step, is_last)), before) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => {
                return other.map(|tree| {
                    Some(StepTree {
                        step,
                        tree,
                        is_last,
                    })
                });
            }
        }
    }
    Ok(None)
}

/// `before` with the changes in `file`.
fn changed(file: &Path, before: &Tree) -> io::Result<Tree> {
    let mut after = before.clone();
    let file = fs::File::open(file)?;
    let mut bytes = Vec::new();
    GzDecoder::new(io::BufReader::new(file)).read_to_end(&mut bytes)?;
    let changes = tree::from_tar(&Bytes::from(bytes))?;
    for (path, node) in changes {
        let (parent, name) = path.rsplit_once('/').map_or(("", path.as_str()), |it| it);
        match name.strip_prefix(REMOVED) {
            Some(name) if node.kind == Kind::Plain && node.content.is_empty() => {
                let slash = if parent.is_empty() { "" } else { "/" };
                after.remove(&format!("{parent}{slash}{name}"));
            }
            _ => {
                after.insert(path, node);
            }
        }
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_give_the_final_tree_again() {
        let tree = |files: &[(&str, &str)]| -> Tree {
            let files = files.iter();
            files
                .map(|(path, text)| ((*path).to_owned(), Node::file((*text).to_owned())))
                .collect()
        };
        let before = tree(&[("a", "1"), ("b/c", "2"), ("b/d", "3"), ("e", "4")]);
        let after = tree(&[("a", "1"), ("b/c", "changed"), ("f/g/h", "new"), ("e", "4")]);
        let place = tempfile::tempdir().expect("a directory");
        write_changes(&place.path().join(CHANGES), &before, &after).expect("written");
        assert_eq!(final_tree(place.path(), &before).expect("read"), after);
    }
}
