//! Changes of a tree. Each copies only the path to what it changes.

use std::sync::Arc;

use super::node::{Content, Directory, FILE_MODE, Node, NodeKind};
use super::path::{components, file_name, is_below, parent};
use super::{Tree, TreeError};

/// Longest name of one entry in bytes, as on Linux.
const MAX_NAME_BYTES: usize = 255;
/// How deep directories nest. Commands that walk a tree, and the end of a tree
/// itself, are calls within calls, which the stack bounds.
const MAX_DEPTH: usize = 256;
const NESTED: &str = "directories within directories";

impl Tree {
    /// Replaces or creates the file at `path`; its parent must exist. An
    /// existing file keeps its permission bits.
    pub fn write(&mut self, path: &str, content: Content, now_us: u64) -> Result<(), TreeError> {
        let old = self.writable(path)?;
        let mode = old.map_or(FILE_MODE, |node| node.mode);
        let old_size = old.map_or(0, Node::size);
        let new_entries = u64::from(old.is_none());
        self.check_growth(path, old_size, content.as_slice().len() as u64, new_entries)?;
        let node = Arc::new(Node {
            kind: NodeKind::File(content),
            mode,
            modified_us: now_us,
        });
        self.change_parent(path, now_us, |directory, name| {
            directory.insert(name, node);
        })
    }

    /// Like [`Tree::write`], making missing parents first; all or nothing.
    pub fn write_with_parents(
        &mut self,
        path: &str,
        content: Content,
        now_us: u64,
    ) -> Result<(), TreeError> {
        self.all_or_nothing(|tree| {
            tree.make_parents(path, now_us)?;
            tree.write(path, content, now_us)
        })
    }

    /// Makes a change that leaves the tree as it was where it fails.
    pub fn all_or_nothing(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let before = self.clone();
        let result = change(self);
        if result.is_err() {
            *self = before;
        }
        result
    }

    /// Makes the directories above `path`; a file in their way is not a directory.
    pub fn make_parents(&mut self, path: &str, now_us: u64) -> Result<(), TreeError> {
        match self.make_directories(parent(path), now_us) {
            Err(TreeError::Exists) => Err(TreeError::NotDirectory),
            result => result,
        }
    }

    /// [`Tree::rename`] that makes missing directories above `to`; all or nothing.
    pub fn rename_with_parents(
        &mut self,
        from: &str,
        to: &str,
        now_us: u64,
    ) -> Result<(), TreeError> {
        // A missing file is reported before directories are made for it.
        self.get(from)?;
        self.all_or_nothing(|tree| {
            tree.make_parents(to, now_us)?;
            tree.rename(from, to, now_us)
        })
    }

    /// Appends to the file at `path`, creating it if necessary.
    pub fn append(&mut self, path: &str, more: &[u8], now_us: u64) -> Result<(), TreeError> {
        let Some(old) = self.writable(path)? else {
            return self.write(path, Content::from(more), now_us);
        };
        let old_size = old.size();
        self.check_growth(path, old_size, old_size + more.len() as u64, 0)?;
        self.change(path, |node| {
            node.modified_us = now_us;
            if let NodeKind::File(content) = &mut node.kind {
                Arc::make_mut(&mut content.0).extend_from_slice(more);
            }
        })
    }

    fn writable(&self, path: &str) -> Result<Option<&Node>, TreeError> {
        match self.get(path) {
            Ok(node) => match node.kind {
                NodeKind::File(_) => Ok(Some(node)),
                NodeKind::Directory(_) => Err(TreeError::IsDirectory),
                NodeKind::Link(_) => Err(TreeError::NotFound),
            },
            Err(TreeError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn check_growth(
        &self,
        path: &str,
        old_size: u64,
        new_size: u64,
        new_entries: u64,
    ) -> Result<(), TreeError> {
        let limits = &self.limits;
        if new_size > limits.file_bytes && new_size > old_size {
            return Err(TreeError::Limit("bytes of one file", limits.file_bytes));
        }
        let total = self.total_bytes().saturating_sub(old_size) + new_size;
        if total > limits.total_bytes && new_size > old_size {
            return Err(TreeError::Limit("bytes of all files", limits.total_bytes));
        }
        if new_entries > 0 && self.total_entries() + new_entries > limits.entries {
            return Err(TreeError::Limit("number of files", limits.entries));
        }
        if path.contains('\0') {
            return Err(TreeError::Invalid("a path cannot hold a NUL character"));
        }
        if path.len() > limits.path_bytes {
            return Err(TreeError::Limit(
                "bytes of one path",
                limits.path_bytes as u64,
            ));
        }
        if components(path).count() > MAX_DEPTH {
            return Err(TreeError::Limit(NESTED, MAX_DEPTH as u64));
        }
        if file_name(path).is_some_and(|name| name.len() > MAX_NAME_BYTES) {
            return Err(TreeError::Limit(
                "bytes of one file name",
                MAX_NAME_BYTES as u64,
            ));
        }
        Ok(())
    }

    /// Makes the directory at `path`; its parent must exist.
    pub fn make_directory(&mut self, path: &str, now_us: u64) -> Result<(), TreeError> {
        match self.get(path) {
            Ok(_) => return Err(TreeError::Exists),
            Err(TreeError::NotFound) => {}
            Err(error) => return Err(error),
        }
        self.check_growth(path, 0, 0, 1)?;
        self.change_parent(path, now_us, |directory, name| {
            directory.insert(name, Arc::new(Node::directory(now_us)));
        })
    }

    /// Makes the directory at `path` and its parents; fine where they exist.
    pub fn make_directories(&mut self, path: &str, now_us: u64) -> Result<(), TreeError> {
        match self.get(path) {
            Ok(node) if node.is_directory() => return Ok(()),
            Ok(_) => return Err(TreeError::Exists),
            Err(TreeError::NotFound) => {}
            Err(error) => return Err(error),
        }
        let mut end = 0;
        for name in components(path) {
            end += 1 + name.len();
            match self.make_directory(&path[..end], now_us) {
                Ok(()) => {}
                Err(TreeError::Exists) if self.get(&path[..end])?.is_directory() => {}
                Err(TreeError::Exists) => return Err(TreeError::NotDirectory),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes a symbolic link at `path`, which must be free.
    pub fn link(&mut self, path: &str, target: &str, now_us: u64) -> Result<(), TreeError> {
        if target.is_empty() || target.contains('\0') {
            return Err(TreeError::Invalid(
                "a link leads to a path, without a NUL character",
            ));
        }
        match self.get(path) {
            Ok(_) => return Err(TreeError::Exists),
            Err(TreeError::NotFound) => {}
            Err(error) => return Err(error),
        }
        self.check_growth(path, 0, target.len() as u64, 1)?;
        let node = Arc::new(Node {
            kind: NodeKind::Link(target.into()),
            mode: 0o777,
            modified_us: now_us,
        });
        self.change_parent(path, now_us, |directory, name| directory.insert(name, node))
    }

    /// Removes a file, a link, an empty directory.
    pub fn remove(&mut self, path: &str, now_us: u64) -> Result<(), TreeError> {
        if let NodeKind::Directory(directory) = &self.get(path)?.kind
            && !directory.is_empty()
        {
            return Err(TreeError::NotEmpty);
        }
        self.remove_all(path, now_us)
    }

    /// Removes whatever is at `path`, with all it holds.
    pub fn remove_all(&mut self, path: &str, now_us: u64) -> Result<(), TreeError> {
        self.get(path)?;
        if components(path).next().is_none() {
            return Err(TreeError::Invalid("the root cannot be removed"));
        }
        self.change_parent(path, now_us, |directory, name| {
            directory.remove(name);
        })
    }

    /// Renames `from` to `to`, replacing a file or an empty directory there.
    pub fn rename(&mut self, from: &str, to: &str, now_us: u64) -> Result<(), TreeError> {
        let node = self.get(from)?;
        if from == to {
            return Ok(());
        }
        if is_below(to, from) {
            return Err(TreeError::Invalid("a directory cannot move into itself"));
        }
        match self.get(to) {
            Ok(old) => match (&old.kind, node.is_directory()) {
                (NodeKind::Directory(_), false) => return Err(TreeError::IsDirectory),
                (NodeKind::Directory(directory), true) if !directory.is_empty() => {
                    return Err(TreeError::NotEmpty);
                }
                (NodeKind::File(_) | NodeKind::Link(_), true) => {
                    return Err(TreeError::NotDirectory);
                }
                _ => {}
            },
            Err(TreeError::NotFound) => self.list(parent(to)).map(|_| ())?,
            Err(error) => return Err(error),
        }
        self.check_growth(to, 0, 0, 0)?;
        if components(to).count() + height(node) > MAX_DEPTH {
            return Err(TreeError::Limit(NESTED, MAX_DEPTH as u64));
        }
        let mut moved = None;
        self.change_parent(from, now_us, |directory, name| {
            moved = directory.remove(name);
        })?;
        let Some(node) = moved else {
            return Err(TreeError::NotFound);
        };
        self.change_parent(to, now_us, |directory, name| directory.insert(name, node))
    }

    /// Sets the permission bits of what is at `path`.
    pub fn set_mode(&mut self, path: &str, mode: u32) -> Result<(), TreeError> {
        self.get(path)?;
        self.change(path, |node| node.mode = mode & 0o7777)
    }

    /// Sets the time of the last change.
    pub fn set_modified(&mut self, path: &str, modified_us: u64) -> Result<(), TreeError> {
        self.get(path)?;
        self.change(path, |node| node.modified_us = modified_us)
    }

    /// Changes the entries of the parent of `path`, which must be a directory.
    fn change_parent(
        &mut self,
        path: &str,
        now_us: u64,
        change: impl FnOnce(&mut Directory, &str),
    ) -> Result<(), TreeError> {
        let name = file_name(path).ok_or(TreeError::IsDirectory)?;
        let parent = parent(path);
        self.list(parent)?;
        self.change(parent, |node| {
            node.modified_us = now_us;
            if let NodeKind::Directory(directory) = &mut node.kind {
                change(directory, name);
            }
        })
    }

    /// Changes the node at `path`, which must exist.
    fn change(&mut self, path: &str, change: impl FnOnce(&mut Node)) -> Result<(), TreeError> {
        fn descend(
            node: &mut Arc<Node>,
            names: &mut dyn Iterator<Item = &str>,
            change: impl FnOnce(&mut Node),
        ) -> Result<(), TreeError> {
            let node = Arc::make_mut(node);
            let Some(name) = names.next() else {
                change(node);
                return Ok(());
            };
            let NodeKind::Directory(directory) = &mut node.kind else {
                return Err(TreeError::NotDirectory);
            };
            let child = directory.entries.get_mut(name).ok_or(TreeError::NotFound)?;
            let before = child.totals();
            let result = descend(child, names, change);
            let after = child.totals();
            directory.subtract(before);
            directory.add(after);
            result
        }
        descend(&mut self.root, &mut components(path), change)
    }
}

/// How deep directories nest in `node`.
fn height(node: &Node) -> usize {
    let mut deepest = 0;
    let mut left = vec![(node, 0)];
    while let Some((node, depth)) = left.pop() {
        deepest = deepest.max(depth);
        if let NodeKind::Directory(directory) = &node.kind {
            left.extend(directory.iter().map(|(_, node)| (node, depth + 1)));
        }
    }
    deepest
}
