//! The file tree: persistent, ordered by name, contents shared.
//!
//! A clone costs O(1) and shares everything; a change copies only the path to
//! it. Snapshots, forks and diffs follow from that. Paths are absolute and
//! normalised (`/a/b`); operations on a path do not follow symbolic links
//! unless they say so. Why not bashkit's own tree: it scans every entry for one
//! directory listing and lists in hash order.

mod change;
mod limits;
mod node;
mod path;
mod write;

pub use change::{Change, ChangeKind};
pub(crate) use limits::TreeError;
pub use limits::TreeLimits;
pub(crate) use node::{Content, Directory, Node, NodeKind};
#[cfg(test)]
pub(crate) use node::{DIRECTORY_MODE, FILE_MODE};
pub(crate) use path::{LastLink, components, parent};

use std::borrow::Cow;
use std::sync::Arc;

/// Links followed in one lookup before it fails, as on Linux.
const MAX_LINKS: u32 = 40;

/// A whole file tree. Cloning it is a snapshot.
#[derive(Clone, Debug)]
pub struct Tree {
    root: Arc<Node>,
    limits: TreeLimits,
}

impl Tree {
    /// A tree with an empty root directory.
    pub fn new(limits: TreeLimits) -> Self {
        Self {
            root: Arc::new(Node::directory(0)),
            limits,
        }
    }

    /// The limits.
    pub fn limits(&self) -> &TreeLimits {
        &self.limits
    }

    /// Bytes of all contents together.
    pub fn total_bytes(&self) -> u64 {
        self.root.totals().bytes
    }

    /// Whether both are the same snapshot, found without looking inside.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// Number of files, directories and links, the root left out.
    pub fn total_entries(&self) -> u64 {
        self.root.totals().entries - 1
    }

    /// The node at `path`; no link is followed, not even on the way.
    pub fn get(&self, path: &str) -> Result<&Node, TreeError> {
        let mut node = self.root.as_ref();
        for name in components(path) {
            match &node.kind {
                NodeKind::Directory(directory) => {
                    node = directory.get(name).ok_or(TreeError::NotFound)?;
                }
                NodeKind::File(_) | NodeKind::Link(_) => return Err(TreeError::NotDirectory),
            }
        }
        Ok(node)
    }

    /// The node at `path`, links followed.
    pub fn get_followed(&self, path: &str) -> Result<&Node, TreeError> {
        let resolved = self.resolve(path, LastLink::Follow)?;
        self.get(&resolved)
    }

    /// `path` with the links on it followed. Components that do not exist stay
    /// as they are, so that the result may name a file to create. `..` never
    /// leads above the root.
    pub fn resolve<'a>(&self, path: &'a str, last: LastLink) -> Result<Cow<'a, str>, TreeError> {
        let mut node = self.root.as_ref();
        let mut rest = components(path).peekable();
        while let Some(name) = rest.next() {
            let NodeKind::Directory(directory) = &node.kind else {
                break;
            };
            let Some(child) = directory.get(name) else {
                break;
            };
            if matches!(child.kind, NodeKind::Link(_))
                && (rest.peek().is_some() || last == LastLink::Follow)
            {
                return self.resolve_slowly(path, last).map(Cow::Owned);
            }
            node = child;
        }
        Ok(Cow::Borrowed(path))
    }

    fn resolve_slowly(&self, path: &str, last: LastLink) -> Result<String, TreeError> {
        let mut pending: Vec<String> = components(path).map(str::to_owned).collect();
        pending.reverse();
        let mut done = String::new();
        let mut links = 0;
        while let Some(name) = pending.pop() {
            match name.as_str() {
                "." => continue,
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let parent = done.len();
            done.push('/');
            done.push_str(&name);
            if pending.is_empty() && last == LastLink::Keep {
                break;
            }
            let Ok(node) = self.get(&done) else { continue };
            if let NodeKind::Link(target) = &node.kind {
                links += 1;
                if links > MAX_LINKS {
                    return Err(TreeError::LinkLoop);
                }
                done.truncate(if target.starts_with('/') { 0 } else { parent });
                pending.extend(components(target).rev().map(str::to_owned));
            }
        }
        if done.is_empty() {
            done.push('/');
        }
        Ok(done)
    }

    /// Content of the file at `path`.
    pub fn read(&self, path: &str) -> Result<&Content, TreeError> {
        match &self.get(path)?.kind {
            NodeKind::File(content) => Ok(content),
            NodeKind::Directory(_) => Err(TreeError::IsDirectory),
            NodeKind::Link(_) => Err(TreeError::NotFound),
        }
    }

    /// Entries of the directory at `path`.
    pub fn list(&self, path: &str) -> Result<&Directory, TreeError> {
        match &self.get(path)?.kind {
            NodeKind::Directory(directory) => Ok(directory),
            NodeKind::File(_) | NodeKind::Link(_) => Err(TreeError::NotDirectory),
        }
    }

    /// Every node below `path` down to `depth` levels, in path order, the
    /// names relative to `path`. `visit` returns whether to go on.
    pub fn walk<'a>(
        &'a self,
        path: &str,
        depth: u32,
        visit: &mut dyn FnMut(&str, &'a Node) -> bool,
    ) -> Result<(), TreeError> {
        fn descend<'a>(
            directory: &'a Directory,
            prefix: &mut String,
            depth: u32,
            visit: &mut dyn FnMut(&str, &'a Node) -> bool,
        ) -> bool {
            let length = prefix.len();
            for (name, node) in directory.iter() {
                prefix.push_str(name);
                if !visit(prefix, node) {
                    return false;
                }
                if let NodeKind::Directory(inner) = &node.kind
                    && depth > 1
                {
                    prefix.push('/');
                    if !descend(inner, prefix, depth - 1, visit) {
                        return false;
                    }
                }
                prefix.truncate(length);
            }
            true
        }
        let directory = self.list(path)?;
        if depth > 0 {
            descend(directory, &mut String::new(), depth, visit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
