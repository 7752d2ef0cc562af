//! Nodes of a file tree: files whose content is shared until it is written to,
//! directories, devices.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Names a node; never used twice in one tree.
pub(in crate::program) type Id = u64;

/// A place in a tree, or one that is only open any more.
pub(in crate::program) struct Node {
    pub(in crate::program) kind: Kind,
    /// ns since 1970-01-01 UTC.
    pub(in crate::program) modified_ns: u64,
    /// Permission bits, as the sandbox told them: they go where the node goes.
    pub(super) mode: Option<u32>,
    /// Counts writes, so that a change is found without comparing content.
    pub(in crate::program) version: u64,
    /// Whether it belongs to the program and not to the sandbox.
    pub(in crate::program) ours: bool,
    /// Whether a directory holds it.
    pub(super) linked: bool,
    /// How often it is open.
    pub(super) opens: u32,
}

/// What a node is.
pub(in crate::program) enum Kind {
    File(Content),
    Directory(Directory),
    /// A symbolic link to this path.
    Link(String),
    Device(Device),
}

/// Entries by name, and the directory above; the root's is the root.
#[derive(Default)]
pub(in crate::program) struct Directory {
    pub(in crate::program) entries: BTreeMap<String, Id>,
    pub(in crate::program) parent: Id,
}

/// A file that answers by itself; what is written to it goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) enum Device {
    /// Ends at once.
    Null,
    /// Zeros without end.
    Zero,
    /// Random bytes without end.
    Random,
}

impl Node {
    pub(super) fn new(kind: Kind, modified_ns: u64) -> Self {
        Self {
            kind,
            modified_ns,
            mode: None,
            version: 0,
            ours: false,
            linked: false,
            opens: 0,
        }
    }

    /// Bytes of content.
    pub(in crate::program) fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(content) => content.as_slice().len() as u64,
            Kind::Link(target) => target.len() as u64,
            Kind::Directory(_) | Kind::Device(_) => 0,
        }
    }

    pub(in crate::program) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }
}

/// Content of a file; copied at the first write.
#[derive(Default)]
pub(in crate::program) struct Content {
    shared: Bytes,
    /// Counts instead of `shared` where there is one.
    own: Option<Vec<u8>>,
}

impl From<Bytes> for Content {
    fn from(shared: Bytes) -> Self {
        Self { shared, own: None }
    }
}

impl Content {
    pub(in crate::program) fn as_slice(&self) -> &[u8] {
        self.own.as_deref().unwrap_or(&self.shared)
    }

    /// Fills `target` from `offset` on; says with how much.
    pub(in crate::program) fn read(&self, offset: u64, target: &mut [u8]) -> usize {
        let all = self.as_slice();
        let start = usize::try_from(offset).map_or(all.len(), |start| start.min(all.len()));
        let piece = &all[start..];
        let length = piece.len().min(target.len());
        target[..length].copy_from_slice(&piece[..length]);
        length
    }

    /// To write to.
    pub(super) fn own(&mut self) -> &mut Vec<u8> {
        let shared = std::mem::take(&mut self.shared);
        self.own.get_or_insert_with(|| shared.to_vec())
    }

    /// To give out, without a copy.
    pub(super) fn share(&mut self) -> Bytes {
        if let Some(own) = self.own.take() {
            self.shared = own.into();
        }
        self.shared.clone()
    }
}
