//! What a program made of the files, put into the tree, and what is lost by it.

use std::collections::BTreeSet;

use crate::environment::{FileChange, FileNode};
use crate::memory::tree::{Content, LastLink, NodeKind, Tree, TreeError};

/// Paths among `changes`, of a program that was told `told`, at which something
/// else has made another version in `now`: the program's takes its place.
pub(super) fn overtaken<'a>(told: &Tree, now: &Tree, changes: &'a [FileChange]) -> Vec<&'a str> {
    if told.is_same(now) {
        return Vec::new();
    }
    let others = now.changes_since(told);
    let others: BTreeSet<&str> = others.iter().map(|other| other.path.as_str()).collect();
    let content = |tree: &Tree, path: &str| match &tree.get(path).ok()?.kind {
        NodeKind::File(content) => Some(content.clone()),
        NodeKind::Directory(_) | NodeKind::Link(_) => None,
    };
    let is_overtaken = |change: &&FileChange| {
        // Files are written through links, what else there is takes their place.
        let last = match change.node {
            FileNode::File(_) => LastLink::Follow,
            FileNode::Directory | FileNode::Removed => LastLink::Keep,
        };
        let Ok(path) = now.resolve(&change.path, last) else {
            return false;
        };
        let inside = format!("{path}/");
        let below = others.range(inside.as_str()..).next();
        let is_below = below.is_some_and(|other| other.starts_with(&inside));
        let is_there = now.get(&path).is_ok();
        match &change.node {
            FileNode::Directory => {
                others.contains(&*path) && now.get(&path).is_ok_and(|node| !node.is_directory())
            }
            FileNode::Removed => is_there && (is_below || others.contains(&*path)),
            FileNode::File(_) if is_below => true,
            FileNode::File(made) => {
                let theirs = content(now, &path);
                others.contains(&*path)
                    && theirs != content(told, &path)
                    && theirs.is_none_or(|theirs| theirs.as_slice() != made)
            }
        }
    };
    let overtaken = changes.iter().filter(is_overtaken);
    overtaken.map(|change| change.path.as_str()).collect()
}

/// `changes` without the permission bits that the program was told of the same
/// path: it has not set them, and the shell may have, meanwhile.
pub(super) fn without_told_modes(told: &Tree, mut changes: Vec<FileChange>) -> Vec<FileChange> {
    for change in &mut changes {
        let told = told.get_followed(&change.path).ok();
        if told.is_some_and(|node| Some(node.mode) == change.mode) {
            change.mode = None;
        }
    }
    changes
}

/// Paths that a sentence about them names.
const NAMED: usize = 3;

/// Says which versions are lost to those of `program`.
pub(super) fn overtaking(program: &str, paths: &[&str]) -> Option<String> {
    let more = paths.len().saturating_sub(NAMED);
    let mut named = paths[..paths.len() - more].join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    (!paths.is_empty()).then(|| {
        format!(
            "{program}: something else changed {named} while it ran; what {program} made of it has taken the place of that\n"
        )
    })
}

/// Applies what a program changed; one sentence for each change that failed.
pub(super) fn apply(tree: &mut Tree, changes: Vec<FileChange>, now_us: u64) -> Vec<String> {
    let mut failures = Vec::new();
    for change in changes {
        let path = change.path;
        if !path.starts_with('/') || path.split('/').any(|name| name == "..") {
            failures.push(format!("{path}: not an absolute path without .."));
            continue;
        }
        let applied =
            apply_one(tree, &path, change.node, now_us).and_then(|()| match change.mode {
                Some(mode) => set_mode(tree, &path, mode),
                None => Ok(()),
            });
        if let Err(error) = applied {
            failures.push(format!("{path}: {error}"));
        }
    }
    failures
}

/// Sets the permission bits of a file that has others.
fn set_mode(tree: &mut Tree, path: &str, mode: u32) -> Result<(), TreeError> {
    let path = tree.resolve(path, LastLink::Follow)?.into_owned();
    let node = tree.get(&path)?;
    if !matches!(node.kind, NodeKind::File(_)) || node.mode == mode {
        return Ok(());
    }
    tree.set_mode(&path, mode)
}

fn apply_one(tree: &mut Tree, path: &str, node: FileNode, now_us: u64) -> Result<(), TreeError> {
    match node {
        FileNode::Removed => match tree.remove_all(path, now_us) {
            Err(TreeError::NotFound) => Ok(()),
            other => other,
        },
        FileNode::Directory => match tree.get(path) {
            Ok(node) if node.is_directory() => Ok(()),
            Ok(_) => {
                tree.remove(path, now_us)?;
                tree.make_directories(path, now_us)
            }
            Err(_) => tree.make_directories(path, now_us),
        },
        FileNode::File(content) => {
            let target = tree.resolve(path, LastLink::Follow)?.into_owned();
            if tree.get(&target).is_ok_and(|node| node.is_directory()) {
                tree.remove_all(&target, now_us)?;
            }
            tree.write_with_parents(&target, Content::from(content), now_us)
        }
    }
}
