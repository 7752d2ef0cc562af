//! The file tree that a lent program works on: told by the sandbox as changes,
//! asked afterwards what the program changed. It knows no path but its own and
//! bounds what a program may make of it.

mod before;
mod changes;
mod lookup;
mod node;

use std::collections::HashMap;

use before::Before;
pub(super) use lookup::{Found, Last, Lost};
pub(super) use node::{Content, Device, Directory, Id, Kind, Node};

/// Bytes and entries that one call may add.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) bytes: u64,
    pub(super) entries: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: 512 << 20,
            entries: 200_000,
        }
    }
}

/// Directories within each other, as in the sandbox.
const DEPTH: usize = 256;
/// Bytes of one name.
const NAME_BYTES: usize = 255;

/// Why the tree does not do what a program asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeError {
    /// What a call may add is used up.
    NoRoom,
    /// A name that is too long, or directories too deep within each other.
    TooLong,
    /// The directory was removed, or is none.
    Gone,
}

/// Files and directories below a root.
pub(super) struct Tree {
    /// Looked up only: their order is nobody's.
    nodes: HashMap<Id, Node>,
    next: Id,
    /// Bytes of all contents, also of what is only open any more.
    bytes: u64,
    most: Room,
    room: Room,
    before: std::collections::BTreeMap<String, Before>,
}

/// The root's; the first that is given out.
pub(super) const ROOT: Id = 1;

impl Tree {
    /// An empty one.
    pub(super) fn new(room: Room) -> Self {
        let root = Node {
            linked: true,
            ..Node::new(
                Kind::Directory(Directory {
                    parent: ROOT,
                    ..Directory::default()
                }),
                0,
            )
        };
        Self {
            nodes: HashMap::from([(ROOT, root)]),
            next: ROOT + 1,
            bytes: 0,
            most: room,
            room,
            before: Default::default(),
        }
    }

    pub(super) fn get(&self, id: Id) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub(super) fn directory(&self, id: Id) -> Option<&Directory> {
        match &self.nodes.get(&id)?.kind {
            Kind::Directory(directory) => Some(directory),
            Kind::File(_) | Kind::Link(_) | Kind::Device(_) => None,
        }
    }

    /// Makes an empty file, a directory or a link in `parent`, where nothing has
    /// that name.
    pub(super) fn create(
        &mut self,
        parent: Id,
        name: &str,
        kind: Kind,
        now_ns: u64,
    ) -> Result<Id, TreeError> {
        if name.len() > NAME_BYTES {
            return Err(TreeError::TooLong);
        }
        let within = usize::from(matches!(kind, Kind::Directory(_)));
        if self.depth(parent) + within > DEPTH {
            return Err(TreeError::TooLong);
        }
        if self.nodes.len() >= self.room.entries {
            return Err(TreeError::NoRoom);
        }
        if !self.get(parent).is_some_and(|node| node.linked) {
            return Err(TreeError::Gone);
        }
        let id = self.add(Node::new(kind, now_ns));
        self.link(parent, name, id, now_ns);
        Ok(id)
    }

    /// Takes an entry out of its directory; it stays as long as it is open.
    pub(super) fn unlink(&mut self, parent: Id, name: &str, now_ns: u64) {
        let Some(node) = self.nodes.get_mut(&parent) else {
            return;
        };
        let Kind::Directory(directory) = &mut node.kind else {
            return;
        };
        node.modified_ns = now_ns;
        if let Some(id) = directory.entries.remove(name) {
            self.let_go(id);
        }
    }

    /// Moves an entry to another place, over what is there.
    pub(super) fn rename(
        &mut self,
        from: (Id, &str),
        to: (Id, &str),
        now_ns: u64,
    ) -> Result<(), TreeError> {
        let id = self
            .directory(from.0)
            .and_then(|directory| directory.entries.get(from.1).copied())
            .ok_or(TreeError::Gone)?;
        if !self.get(to.0).is_some_and(|node| node.linked) {
            return Err(TreeError::Gone);
        }
        if to.1.len() > NAME_BYTES || self.depth(to.0) + self.height(id) > DEPTH {
            return Err(TreeError::TooLong);
        }
        self.unlink(to.0, to.1, now_ns);
        if let Some(node) = self.nodes.get_mut(&from.0)
            && let Kind::Directory(directory) = &mut node.kind
        {
            node.modified_ns = now_ns;
            directory.entries.remove(from.1);
        }
        self.link(to.0, to.1, id, now_ns);
        Ok(())
    }

    /// Counts an opening.
    pub(super) fn open(&mut self, id: Id) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.opens += 1;
        }
    }

    /// Takes an opening back; what no directory holds is gone with its last one.
    pub(super) fn close(&mut self, id: Id) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.opens = node.opens.saturating_sub(1);
            if node.opens == 0 && !node.linked {
                self.forget(id);
            }
        }
    }

    /// Writes into a file; what lies between its end and `offset` becomes zeros,
    /// unless there is nothing to write.
    pub(super) fn write(
        &mut self,
        id: Id,
        offset: u64,
        data: &[u8],
        now_ns: u64,
    ) -> Result<(), TreeError> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.saturating_add(data.len() as u64);
        let size = self.get(id).map_or(0, Node::size);
        self.reserve(size, end.max(size))?;
        self.change(id, now_ns, |content| {
            // Both fit: there is room for `end` bytes.
            let (start, end) = (offset as usize, end as usize);
            if content.len() < start {
                content.resize(start, 0);
            }
            let over = (content.len() - start).min(data.len());
            content[start..start + over].copy_from_slice(&data[..over]);
            content.extend_from_slice(&data[over..]);
            debug_assert!(content.len() >= end);
        });
        Ok(())
    }

    /// Cuts a file off or fills it up with zeros.
    pub(super) fn resize(&mut self, id: Id, size: u64, now_ns: u64) -> Result<(), TreeError> {
        let old = self.get(id).map_or(0, Node::size);
        self.reserve(old, size)?;
        self.change(id, now_ns, |content| content.resize(size as usize, 0));
        Ok(())
    }

    pub(super) fn set_modified(&mut self, id: Id, modified_ns: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.modified_ns = modified_ns;
        }
    }

    /// Whether `id` is `below` or holds it somewhere.
    pub(super) fn holds(&self, id: Id, below: Id) -> bool {
        let mut at = below;
        while at != id {
            match self.directory(at) {
                Some(directory) if directory.parent != at => at = directory.parent,
                _ => return false,
            }
        }
        true
    }

    fn add(&mut self, node: Node) -> Id {
        let id = self.next;
        self.next += 1;
        self.bytes += node.size();
        self.nodes.insert(id, node);
        id
    }

    fn link(&mut self, parent: Id, name: &str, id: Id, now_ns: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.linked = true;
            if let Kind::Directory(directory) = &mut node.kind {
                directory.parent = parent;
            }
        }
        if let Some(node) = self.nodes.get_mut(&parent)
            && let Kind::Directory(directory) = &mut node.kind
        {
            node.modified_ns = now_ns;
            directory.entries.insert(name.to_owned(), id);
        }
    }

    /// `id` is in no directory any more, and what it holds neither.
    fn let_go(&mut self, id: Id) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            node.linked = false;
            let is_open = node.opens > 0;
            if let Kind::Directory(directory) = &mut node.kind {
                left.extend(std::mem::take(&mut directory.entries).into_values());
            }
            if !is_open {
                self.forget(id);
            }
        }
    }

    fn forget(&mut self, id: Id) {
        if let Some(node) = self.nodes.remove(&id) {
            self.bytes -= node.size();
        }
    }

    fn reserve(&self, old: u64, new: u64) -> Result<(), TreeError> {
        match self.bytes.saturating_add(new.saturating_sub(old)) > self.room.bytes {
            true if new > old => Err(TreeError::NoRoom),
            _ => Ok(()),
        }
    }

    /// Changes the content of a file.
    fn change(&mut self, id: Id, now_ns: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        let old = node.size();
        let Kind::File(content) = &mut node.kind else {
            return;
        };
        change(content.own());
        node.version += 1;
        node.modified_ns = now_ns;
        self.bytes = self.bytes - old + node.size();
    }

    /// Directories from the root to `id`, without the root.
    fn depth(&self, id: Id) -> usize {
        let (mut at, mut depth) = (id, 0);
        while let Some(directory) = self.directory(at)
            && directory.parent != at
        {
            at = directory.parent;
            depth += 1;
        }
        depth
    }

    /// Directories within each other from `id` down, with it.
    fn height(&self, id: Id) -> usize {
        let mut highest = 0;
        let mut left = vec![(id, 1)];
        while let Some((id, height)) = left.pop() {
            if let Some(directory) = self.directory(id) {
                highest = highest.max(height);
                left.extend(directory.entries.values().map(|below| (*below, height + 1)));
            }
        }
        highest
    }
}

#[cfg(test)]
mod tests;
