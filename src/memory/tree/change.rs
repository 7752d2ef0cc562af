//! How two trees differ, found without looking into what they share.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Tree;
use super::node::{Node, NodeKind};

/// How a path differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Absolute path.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// Kinds of [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content, target, permission bits or kind changed.
    Changed,
    /// It is gone.
    Removed,
}

impl Tree {
    /// What differs from `old`, sorted by path. Times do not count. Parts that
    /// both trees share are skipped without looking inside.
    pub fn changes_since(&self, old: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        compare(&old.root, &self.root, &mut String::new(), &mut changes);
        changes.sort_by(|a, b| a.path.cmp(&b.path).then(a.kind.cmp(&b.kind)));
        changes
    }
}

fn compare(old: &Arc<Node>, new: &Arc<Node>, path: &mut String, changes: &mut Vec<Change>) {
    if Arc::ptr_eq(old, new) {
        return;
    }
    let (NodeKind::Directory(before), NodeKind::Directory(after)) = (&old.kind, &new.kind) else {
        match (old.is_directory(), new.is_directory()) {
            (true, false) | (false, true) => {
                report(old, path, ChangeKind::Removed, changes);
                report(new, path, ChangeKind::Added, changes);
            }
            _ if old.kind != new.kind || old.mode != new.mode => {
                report(new, path, ChangeKind::Changed, changes);
            }
            _ => {}
        }
        return;
    };
    if old.mode != new.mode {
        changes.push(Change {
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path.clone()
            },
            kind: ChangeKind::Changed,
        });
    }
    if before.entries.ptr_eq(&after.entries) {
        return;
    }
    let mut left = before.entries.iter().peekable();
    let mut right = after.entries.iter().peekable();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let length = path.len();
        path.push('/');
        match order {
            Ordering::Less => {
                if let Some((name, node)) = left.next() {
                    path.push_str(name);
                    report(node, path, ChangeKind::Removed, changes);
                }
            }
            Ordering::Greater => {
                if let Some((name, node)) = right.next() {
                    path.push_str(name);
                    report(node, path, ChangeKind::Added, changes);
                }
            }
            Ordering::Equal => {
                if let (Some((name, a)), Some((_, b))) = (left.next(), right.next()) {
                    path.push_str(name);
                    compare(a, b, path, changes);
                }
            }
        }
        path.truncate(length);
    }
}

/// Reports `node` and everything below it.
fn report(node: &Arc<Node>, path: &mut String, kind: ChangeKind, changes: &mut Vec<Change>) {
    changes.push(Change {
        path: path.clone(),
        kind,
    });
    if let NodeKind::Directory(directory) = &node.kind {
        for (name, child) in &directory.entries {
            let length = path.len();
            path.push('/');
            path.push_str(name);
            report(child, path, kind, changes);
            path.truncate(length);
        }
    }
}
