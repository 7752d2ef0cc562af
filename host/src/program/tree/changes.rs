//! The changes that a tree gets, and those that a program made.

use std::collections::BTreeMap;

use bytes::Bytes;
use hermitcrab::environment::{FileChange, FileNode};

use super::before::{Before, What};
use super::{Device, Directory, Id, Kind, Node, ROOT, Room, Tree};

impl Tree {
    /// Puts changes of the sandbox into the tree.
    pub(in crate::program) fn apply(&mut self, changes: Vec<FileChange>, now_ns: u64) {
        for FileChange { path, node, mode } in changes {
            let Some((parent, name)) = path.rsplit_once('/') else {
                continue;
            };
            let parent = match node {
                // Its directory may have been removed, too, or be a file now.
                FileNode::Removed => self.existing(parent),
                _ => Some(self.directories(parent, now_ns, false)),
            };
            let Some(parent) = parent else {
                continue;
            };
            match node {
                FileNode::Removed => self.unlink(parent, name, now_ns),
                FileNode::Directory => {
                    let there = self.entry(parent, name);
                    let id = match there.filter(|id| self.directory(*id).is_some()) {
                        Some(id) => id,
                        None => {
                            let kind = Kind::Directory(Directory::default());
                            self.put(parent, name, Node::new(kind, now_ns))
                        }
                    };
                    if let Some(node) = self.nodes.get_mut(&id) {
                        node.mode = mode;
                    }
                }
                FileNode::Link(target) => {
                    let kind = Kind::Link(target);
                    self.put(parent, name, Node::new(kind, now_ns));
                }
                FileNode::File(content) => {
                    let kind = Kind::File(content.into());
                    let node = Node {
                        mode,
                        ..Node::new(kind, now_ns)
                    };
                    self.put(parent, name, node);
                }
            }
        }
    }

    /// Puts a file of the program's own at `path`, unseen by the sandbox.
    pub(in crate::program) fn mount(&mut self, path: &str, content: Bytes) {
        self.mount_kind(path, Kind::File(content.into()));
    }

    /// Puts a device at `path`.
    pub(in crate::program) fn mount_device(&mut self, path: &str, device: Device) {
        self.mount_kind(path, Kind::Device(device));
    }

    fn mount_kind(&mut self, path: &str, kind: Kind) {
        if let Some((parent, name)) = path.rsplit_once('/') {
            let parent = self.directories(parent, 0, true);
            let node = Node {
                ours: true,
                ..Node::new(kind, 0)
            };
            self.put(parent, name, node);
        }
    }

    /// What is here now is what `changes` compares with, and what the room for
    /// one call is counted from.
    pub(in crate::program) fn mark(&mut self) {
        let mut before = BTreeMap::new();
        self.walk(|path, id, node| {
            let mark = Before {
                id,
                version: node.version,
                what: What::of(node),
                mode: node.mode,
                ours: node.ours,
                kept: false,
            };
            before.insert(path.to_owned(), mark);
        });
        self.before = before;
        self.room = Room {
            bytes: self.bytes.saturating_add(self.most.bytes),
            entries: self.nodes.len().saturating_add(self.most.entries),
        };
    }

    /// What changed since `mark`: what was removed first, then parents before
    /// what they hold.
    pub(in crate::program) fn changes(&mut self) -> Vec<FileChange> {
        let mut before = std::mem::take(&mut self.before);
        let mut made: Vec<(String, Id)> = Vec::new();
        self.walk(|path, id, node| {
            let what = What::of(node);
            let mut is_same = false;
            if let Some(old) = before.get_mut(path)
                && old.what == what
            {
                old.kept = true;
                is_same = match what {
                    What::Directory => node.mode.is_none() || node.mode == old.mode,
                    What::File | What::Link => old.id == id && old.version == node.version,
                };
            }
            if !is_same && !node.ours {
                made.push((path.to_owned(), id));
            }
        });
        let is_kept = |path: &str| before.get(path).is_some_and(|before| before.kept);
        let removed = before.iter().filter(|(path, before)| {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            // What lies in a removed directory goes with it.
            !before.kept && !before.ours && (parent.is_empty() || is_kept(parent))
        });
        let mut changes: Vec<FileChange> = removed
            .map(|(path, _)| FileChange::new(path, FileNode::Removed))
            .collect();
        changes.extend(made.into_iter().filter_map(|(path, id)| {
            let node = self.nodes.get_mut(&id)?;
            let mode = node.mode;
            let node = match &mut node.kind {
                Kind::File(content) => FileNode::File(content.share()),
                Kind::Directory(_) => FileNode::Directory,
                Kind::Link(target) => FileNode::Link(target.clone()),
                Kind::Device(_) => return None,
            };
            Some(FileChange { path, node, mode })
        }));
        changes
    }

    /// The directory at `path`, if there is one.
    fn existing(&self, path: &str) -> Option<Id> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(ROOT, |at, name| {
            let id = self.entry(at, name)?;
            self.directory(id).map(|_| id)
        })
    }

    /// The directory at `path`, made where it is missing or something else.
    fn directories(&mut self, path: &str, now_ns: u64, ours: bool) -> Id {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match self.entry(at, name) {
                Some(id) if self.directory(id).is_some() => id,
                _ => {
                    let kind = Kind::Directory(Directory::default());
                    let node = Node {
                        ours,
                        ..Node::new(kind, now_ns)
                    };
                    self.put(at, name, node)
                }
            };
        }
        at
    }

    fn entry(&self, parent: Id, name: &str) -> Option<Id> {
        self.directory(parent)?.entries.get(name).copied()
    }

    /// Puts a node over what is there; never refused.
    fn put(&mut self, parent: Id, name: &str, node: Node) -> Id {
        let modified_ns = node.modified_ns;
        self.unlink(parent, name, modified_ns);
        let id = self.add(node);
        self.link(parent, name, id, modified_ns);
        id
    }

    /// Everything but the root, parents before what they hold.
    fn walk(&self, mut visit: impl FnMut(&str, Id, &Node)) {
        let mut left = vec![(String::new(), ROOT)];
        while let Some((path, id)) = left.pop() {
            let Some(node) = self.get(id) else {
                continue;
            };
            if id != ROOT {
                visit(&path, id, node);
            }
            if let Some(directory) = self.directory(id) {
                let entries = directory.entries.iter().rev();
                left.extend(entries.map(|(name, below)| (format!("{path}/{name}"), *below)));
            }
        }
    }
}
