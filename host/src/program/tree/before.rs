//! The state of a tree when it was marked: changes are computed against it.

use super::node::{Id, Kind, Node};

/// What stood at a path when the tree was marked.
pub(super) struct Before {
    pub(super) id: Id,
    pub(super) version: u64,
    pub(super) what: What,
    pub(super) mode: Option<u32>,
    pub(super) ours: bool,
    /// Whether it still stands there, changed or not.
    pub(super) kept: bool,
}

/// What stays where it is when another of its kind takes its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Directory,
    Link,
    /// A file or a device.
    File,
}

impl What {
    pub(super) fn of(node: &Node) -> Self {
        match node.kind {
            Kind::Directory(_) => Self::Directory,
            Kind::Link(_) => Self::Link,
            Kind::File(_) | Kind::Device(_) => Self::File,
        }
    }
}
