//! Lent programs: commands of the in-memory shell that the host runs.
//!
//! A call hands over arguments, environment, working directory, standard input
//! and every file changed since that program's last call here; what the program
//! changed comes back and is applied in order, the last writer winning; what
//! something else made of the same path meanwhile is lost, and the command says
//! so. While it runs, real time counts.
//!
//! A program may keep the files between calls. Each state that it gets has a
//! number, and a call says which number its changes lead from; a program that
//! does not have that state any more asks for all files.

mod answer;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod builtin;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::tree::{ChangeKind, Content, Node, NodeKind, Tree, TreeLimits};
use crate::environment::{FileChange, FileNode};
use answer::apply;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(crate) use builtin::{Lender, LentProgram};

/// What each lent program knows of the tree, by its name.
#[derive(Default)]
pub(crate) struct Seen {
    known: RefCell<BTreeMap<String, Known>>,
    last_state: Cell<u64>,
}

struct Known {
    state: u64,
    tree: Tree,
}

/// What a call tells a program of the files; see [`crate::environment::ProgramRequest`].
pub(crate) struct Told {
    pub(crate) since: Option<u64>,
    pub(crate) state: u64,
    pub(crate) changes: Vec<FileChange>,
    /// The files that it then knows.
    pub(crate) tree: Tree,
}

impl Seen {
    /// What `program` must get to know `tree`; it is taken to know it then.
    pub(crate) fn tell(&self, program: &str, tree: &Tree) -> Told {
        let state = self.last_state.get() + 1;
        self.last_state.set(state);
        let tree = tree.clone();
        let known = Known {
            state,
            tree: tree.clone(),
        };
        let before = self
            .known
            .borrow_mut()
            .insert(program.to_owned(), known)
            .map(|before| (before.state, before.tree));
        let since = before.as_ref().map(|(state, _)| *state);
        let before = before.map_or_else(|| Tree::new(TreeLimits::default()), |(_, tree)| tree);
        Told {
            since,
            state,
            changes: file_changes(&before, &tree),
            tree,
        }
    }

    /// `program` has made `changes` to the files that it got as `state`.
    /// Where calls overlapped, nobody can say what it knows.
    pub(crate) fn changed(&self, program: &str, state: u64, changes: Vec<FileChange>, now_us: u64) {
        let mut known = self.known.borrow_mut();
        let knows = known.get_mut(program).is_some_and(|known| {
            known.state == state && apply(&mut known.tree, changes, now_us).is_empty()
        });
        if !knows {
            known.remove(program);
        }
    }

    /// `program` must get everything again.
    pub(crate) fn forget(&self, program: &str) {
        self.known.borrow_mut().remove(program);
    }
}

/// The difference as a program sees it.
fn file_changes(before: &Tree, now: &Tree) -> Vec<FileChange> {
    let mut changes: Vec<FileChange> = Vec::new();
    for change in now.changes_since(before) {
        if change.path == "/" {
            continue;
        }
        let (node, mode) = match change.kind {
            ChangeKind::Removed => (FileNode::Removed, None),
            ChangeKind::Added | ChangeKind::Changed => match visible(now, &change.path) {
                Some(visible) => visible,
                None => continue,
            },
        };
        match changes.last_mut() {
            // A path that changed its kind is sent once, with its new kind.
            Some(last) if last.path == change.path => {
                if node != FileNode::Removed {
                    (last.node, last.mode) = (node, mode);
                }
            }
            _ => changes.push(FileChange {
                path: change.path,
                node,
                mode,
            }),
        }
    }
    changes
}

/// Where a lent program is a file, so that `which`, `type` and whoever calls it by
/// its path find it. It is no news for programs.
const PATH: &str = "/usr/local/bin/";

/// Makes the lent program `name` a file on the `PATH`.
pub(crate) fn put_on_path(tree: &mut Tree, name: &str, now_us: u64) {
    let path = format!("{PATH}{name}");
    if name.contains('/') || tree.get(&path).is_ok() {
        return;
    }
    // A tree too small for it has no room for anything; the name still works.
    let _ = tree
        .write_with_parents(&path, Content::from(script(name).as_bytes()), now_us)
        .and_then(|()| tree.set_mode(&path, 0o755));
}

/// Removes the files of lent programs that are not among `names`.
pub(crate) fn take_off_path(tree: &mut Tree, names: &[String], now_us: u64) {
    let Ok(entries) = tree.list(PATH.trim_end_matches('/')) else {
        return;
    };
    let is_stub = |name: &str, node: &Node| match &node.kind {
        NodeKind::File(content) => content.as_slice() == script(name).as_bytes(),
        _ => false,
    };
    let gone: Vec<String> = entries
        .iter()
        .filter(|(name, node)| is_stub(name, node) && !names.iter().any(|kept| kept == name))
        .map(|(name, _)| format!("{PATH}{name}"))
        .collect();
    for path in gone {
        // It has just been found there.
        let _ = tree.remove(&path, now_us);
    }
}

fn script(name: &str) -> String {
    format!("#!/bin/sh\nexec {name} \"$@\"\n")
}

fn is_on_path(path: &str, content: &Content) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|name| content.as_slice() == script(name).as_bytes())
}

/// What a program sees at `path`, and its permission bits, which no link has.
fn visible(tree: &Tree, path: &str) -> Option<(FileNode, Option<u32>)> {
    let node = tree.get(path).ok()?;
    match &node.kind {
        NodeKind::File(content) if is_on_path(path, content) => None,
        NodeKind::File(content) => Some((FileNode::File(content.to_bytes()), Some(node.mode))),
        NodeKind::Directory(_) => Some((FileNode::Directory, Some(node.mode))),
        NodeKind::Link(target) => Some((FileNode::Link(target.to_string()), None)),
    }
}
