//! What a tree is made of: contents, nodes, and directories by name.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

/// Permission bits of a new file.
pub(crate) const FILE_MODE: u32 = 0o644;
/// Permission bits of a new directory.
pub(crate) const DIRECTORY_MODE: u32 = 0o755;

/// Content of one file: shared between snapshots, grown in place while unshared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content(pub(super) Arc<Vec<u8>>);

impl Content {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as a shared handle, without copying.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::from_owner(SharedContent(self.0.clone()))
    }
}

struct SharedContent(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedContent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Content {
    fn from(mut bytes: Vec<u8>) -> Self {
        if bytes.capacity() > bytes.len() + bytes.len() / 8 + 64 {
            bytes.shrink_to_fit();
        }
        Self(Arc::new(bytes))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(bytes.to_vec()))
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self(Arc::new(Vec::from(bytes)))
    }
}

/// One entry of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits.
    pub mode: u32,
    /// Last change, µs since 1970-01-01 UTC.
    pub modified_us: u64,
}

/// Kinds of [`Node`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File(Content),
    /// A directory.
    Directory(Directory),
    /// A symbolic link and its target.
    Link(Arc<str>),
}

impl Node {
    pub(super) fn directory(modified_us: u64) -> Self {
        Self {
            kind: NodeKind::Directory(Directory::default()),
            mode: DIRECTORY_MODE,
            modified_us,
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, NodeKind::Directory(_))
    }

    /// Size in bytes: of the content, or of the target of a link.
    pub fn size(&self) -> u64 {
        match &self.kind {
            NodeKind::File(content) => content.as_slice().len() as u64,
            NodeKind::Directory(_) => 0,
            NodeKind::Link(target) => target.len() as u64,
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let below = match &self.kind {
            NodeKind::Directory(directory) => directory.totals,
            NodeKind::File(_) | NodeKind::Link(_) => Totals {
                bytes: self.size(),
                entries: 0,
            },
        };
        Totals {
            bytes: below.bytes,
            entries: below.entries + 1,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

/// The entries of a directory, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    pub(super) entries: OrdMap<Arc<str>, Arc<Node>>,
    totals: Totals,
}

impl Directory {
    /// Name and node of every entry, in byte order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries
            .iter()
            .map(|(name, node)| (&**name, node.as_ref()))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry called `name`.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entries.get(name).map(AsRef::as_ref)
    }

    pub(super) fn insert(&mut self, name: &str, node: Arc<Node>) {
        let added = node.totals();
        let old = match self.entries.get_mut(name) {
            Some(slot) => Some(std::mem::replace(slot, node)),
            None => {
                self.entries.insert(name.into(), node);
                None
            }
        };
        if let Some(old) = old {
            self.subtract(old.totals());
        }
        self.add(added);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<Node>> {
        let node = self.entries.remove(name)?;
        self.subtract(node.totals());
        Some(node)
    }

    pub(super) fn add(&mut self, totals: Totals) {
        self.totals.bytes += totals.bytes;
        self.totals.entries += totals.entries;
    }

    pub(super) fn subtract(&mut self, totals: Totals) {
        self.totals.bytes = self.totals.bytes.saturating_sub(totals.bytes);
        self.totals.entries = self.totals.entries.saturating_sub(totals.entries);
    }
}
