//! What a program made of the files, put into the tree, and what is lost by it.

use std::collections::BTreeSet;

use crate::environment::{FileChange, FileNode};
use crate::memory::tree::{Content, LastLink, Node, NodeKind, Tree, TreeError};

/// `changes` at the paths to which the links lead that the program got and
/// has not replaced: what something else has made of links is not its doing.
pub(super) fn resolved(told: &Tree, mut changes: Vec<FileChange>) -> Vec<FileChange> {
    let mut replaced: BTreeSet<String> = BTreeSet::new();
    for change in &mut changes {
        let last = match change.node {
            FileNode::File(_) => LastLink::Follow,
            FileNode::Directory | FileNode::Link(_) | FileNode::Removed => LastLink::Keep,
        };
        let ends = change.path.match_indices('/').map(|(end, _)| end);
        let is_replaced = ends
            .chain([change.path.len()])
            .any(|end| replaced.contains(&change.path[..end]));
        if !is_replaced
            && is_plain(&change.path)
            && let Ok(path) = told.resolve(&change.path, last)
        {
            change.path = path.into_owned();
        }
        if last == LastLink::Keep {
            replaced.insert(change.path.clone());
        }
    }
    changes
}

/// Whether `path` is absolute and leads nowhere by `..`.
fn is_plain(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|name| name != "..")
}

/// Paths among `changes`, of a program that got `told`, at which something
/// else has made another version in `now`: the program's takes its place.
pub(super) fn overtaken<'a>(told: &Tree, now: &Tree, changes: &'a [FileChange]) -> Vec<&'a str> {
    if told.is_same(now) {
        return Vec::new();
    }
    let others = now.changes_since(told);
    let others: BTreeSet<&str> = others.iter().map(|other| other.path.as_str()).collect();
    let is_overtaken = |change: &&FileChange| {
        let path = change.path.as_str();
        let inside = format!("{path}/");
        let below = others.range(inside.as_str()..).next();
        let is_below = below.is_some_and(|other| other.starts_with(&inside));
        let is_there = now.get(path).is_ok();
        match &change.node {
            FileNode::Directory => {
                others.contains(path) && now.get(path).is_ok_and(|node| !node.is_directory())
            }
            FileNode::Removed => is_there && (is_below || others.contains(path)),
            FileNode::File(_) | FileNode::Link(_) if is_below => true,
            FileNode::Link(made) => others.contains(path) && !is_link(now, path, made),
            FileNode::File(made) => {
                let theirs = kind(now, path);
                let is_same = |theirs: &NodeKind| matches!(theirs, NodeKind::File(theirs) if theirs.as_slice() == made);
                others.contains(path) && theirs != kind(told, path) && !theirs.is_some_and(is_same)
            }
        }
    };
    let overtaken = changes.iter().filter(is_overtaken);
    overtaken.map(|change| change.path.as_str()).collect()
}

/// `changes` without what the program got of the same path, permission bits
/// and content: it has not made them, and something else may have made others in
/// `now`.
pub(super) fn without_told(
    told: &Tree,
    now: &Tree,
    mut changes: Vec<FileChange>,
) -> Vec<FileChange> {
    for change in &mut changes {
        let path = &change.path;
        let is_told = |node: &Node| Some(node.mode) == change.mode;
        if told.get(path).is_ok_and(is_told) {
            change.mode = None;
        }
        if told.is_same(now) {
            continue;
        }
        if let FileNode::File(made) = &mut change.node
            && let (Some(told), Some(theirs)) = (content(told, path), content(now, path))
            && told.as_slice() == made
        {
            *made = theirs.to_bytes();
        }
    }
    changes
}

/// What is at `path`, if anything.
fn kind<'a>(tree: &'a Tree, path: &str) -> Option<&'a NodeKind> {
    tree.get(path).ok().map(|node| &node.kind)
}

/// Whether `path` is a link to `target`.
fn is_link(tree: &Tree, path: &str, target: &str) -> bool {
    matches!(kind(tree, path), Some(NodeKind::Link(there)) if **there == *target)
}

/// Content of the file at `path`, if there is one.
fn content<'a>(tree: &'a Tree, path: &str) -> Option<&'a Content> {
    tree.read(path).ok()
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

/// Applies what a program changed, as [`resolved`] says it; one sentence for each
/// change that failed.
pub(super) fn apply(tree: &mut Tree, changes: Vec<FileChange>, now_us: u64) -> Vec<String> {
    let mut failures = Vec::new();
    for change in changes {
        let path = change.path;
        if !is_plain(&path) {
            failures.push(format!("{path}: not an absolute path without .."));
            continue;
        }
        let has_mode = matches!(change.node, FileNode::File(_) | FileNode::Directory);
        let applied =
            apply_one(tree, &path, change.node, now_us).and_then(|()| match change.mode {
                Some(mode) if has_mode => set_mode(tree, &path, mode),
                _ => Ok(()),
            });
        if let Err(error) = applied {
            failures.push(format!("{path}: {error}"));
        }
    }
    failures
}

/// Sets permission bits, where there are others.
fn set_mode(tree: &mut Tree, path: &str, mode: u32) -> Result<(), TreeError> {
    match tree.get(path)?.mode == mode {
        true => Ok(()),
        false => tree.set_mode(path, mode),
    }
}

fn apply_one(tree: &mut Tree, path: &str, node: FileNode, now_us: u64) -> Result<(), TreeError> {
    match node {
        FileNode::Removed => match tree.remove_all(path, now_us) {
            Err(TreeError::NotFound | TreeError::NotDirectory) => Ok(()),
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
        FileNode::Link(target) => {
            if is_link(tree, path, &target) {
                return Ok(());
            }
            tree.all_or_nothing(|tree| {
                if tree.get(path).is_ok() {
                    tree.remove_all(path, now_us)?;
                }
                tree.make_parents(path, now_us)?;
                tree.link(path, &target, now_us)
            })
        }
        FileNode::File(content) => {
            if !matches!(kind(tree, path), None | Some(NodeKind::File(_))) {
                tree.remove_all(path, now_us)?;
            }
            tree.write_with_parents(path, Content::from(content), now_us)
        }
    }
}
