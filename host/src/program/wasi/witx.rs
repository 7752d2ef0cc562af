//! Numbers of the witx files that more than one call reads or writes.

use crate::program::tree::{Kind, Last, Node};

/// Flag of an open file (witx `fdflags`).
pub(super) const APPEND: u32 = 1;

/// Types of files (witx `filetype`).
const CHARACTER: u8 = 2;
const DIRECTORY: u8 = 3;
pub(super) const FILE: u8 = 4;
const LINK: u8 = 7;
/// Streams are pipes, which WASI has no type for; a character device would be
/// a terminal.
pub(super) const PIPE: u8 = 0;

/// Type of what a node is.
pub(super) fn type_of(node: &Node) -> u8 {
    match node.kind {
        Kind::File(_) => FILE,
        Kind::Directory(_) => DIRECTORY,
        Kind::Device(_) => CHARACTER,
        Kind::Link(_) => LINK,
    }
}

/// The last link of a path is followed (witx `lookupflags`).
const FOLLOW: u32 = 1;

/// What becomes of the last link of a path under these flags.
pub(super) fn last(flags: u32) -> Last {
    match flags & FOLLOW {
        0 => Last::Keep,
        _ => Last::Follow,
    }
}
