//! File trees as values: what goes into a sandbox and comes out of it, as tar
//! bytes and as maps, and the difference of two as a patch.

mod diff;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;

pub use diff::{Diff, diff};

/// A file or directory of a tree. Times alone are no difference.
#[derive(Clone, Debug)]
pub struct Node {
    /// Content; of a link, its target; of a directory, nothing.
    pub content: Bytes,
    /// What it is.
    pub kind: Kind,
    /// Permission bits of a file.
    pub mode: u32,
    /// Last change, since 1970, if known.
    pub modified: Option<Duration>,
}

impl Node {
    /// A file with this content.
    pub fn file(content: impl Into<Bytes>) -> Self {
        Self {
            content: content.into(),
            kind: Kind::Plain,
            mode: Kind::Plain.usual_mode(),
            modified: None,
        }
    }
}

impl Node {
    /// A directory.
    pub(crate) fn directory() -> Self {
        Self {
            content: Bytes::new(),
            kind: Kind::Directory,
            mode: Kind::Directory.usual_mode(),
            modified: None,
        }
    }

    /// A link to `target`.
    pub(crate) fn link(target: impl Into<Bytes>) -> Self {
        Self {
            content: target.into(),
            kind: Kind::Link,
            mode: Kind::Link.usual_mode(),
            modified: None,
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        (&self.content, self.kind, self.mode) == (&other.content, other.kind, other.mode)
    }
}

impl Eq for Node {}

/// Kinds of [`Node`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Plain,
    /// A file that its owner may run.
    Executable,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
}

impl Kind {
    /// The kind of a file with these permission bits.
    pub fn of_file(mode: Option<u32>) -> Self {
        match mode {
            Some(mode) if mode & 0o100 != 0 => Self::Executable,
            _ => Self::Plain,
        }
    }

    /// Permission bits where nothing says others.
    pub fn usual_mode(self) -> u32 {
        match self {
            Self::Executable | Self::Directory => 0o755,
            Self::Plain | Self::Link => 0o644,
        }
    }
}

/// Files and directories by path with `/`, relative to the tree's root.
pub type Tree = BTreeMap<String, Node>;

/// A file whose name does not fit the tar format.
#[derive(Debug)]
pub struct Unpackable {
    /// Its path.
    pub path: String,
    /// What is wrong with it.
    pub why: io::Error,
}

/// The tree as tar bytes, to be imported.
///
/// # Errors
/// A name does not fit the format.
pub fn to_tar(tree: &Tree) -> Result<Vec<u8>, Unpackable> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, node) in tree {
        append(&mut builder, path, node).map_err(|why| Unpackable {
            path: path.clone(),
            why,
        })?;
    }
    builder.into_inner().map_err(|why| Unpackable {
        path: String::new(),
        why,
    })
}

/// Adds one file, link or directory to an archive.
///
/// # Errors
/// Its name does not fit the format, or the archive cannot be written.
pub(crate) fn append<W: io::Write>(
    builder: &mut tar::Builder<W>,
    path: &str,
    node: &Node,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(node.mode);
    // The core takes no time at all for the time of the import.
    let modified = node.modified.unwrap_or_default();
    header.set_mtime(modified.as_secs());
    precise_time(builder, modified)?;
    if node.kind == Kind::Directory {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        builder.append_data(&mut header, format!("{path}/"), io::empty())
    } else if node.kind == Kind::Link {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        let target = String::from_utf8_lossy(&node.content).into_owned();
        builder.append_link(&mut header, path, target)
    } else {
        header.set_size(node.content.len() as u64);
        builder.append_data(&mut header, path, node.content.as_ref())
    }
}

/// What a header has no room for: which of two files of one second is newer.
fn precise_time<W: io::Write>(builder: &mut tar::Builder<W>, modified: Duration) -> io::Result<()> {
    match modified.subsec_micros() {
        0 => Ok(()),
        micros => {
            let time = format!("{}.{micros:06}", modified.as_secs());
            builder.append_pax_extensions([("mtime", time.as_bytes())])
        }
    }
}

/// The files and directories of a tar that was exported; they share its bytes.
///
/// # Errors
/// The bytes are not a tar.
pub fn from_tar(bytes: &Bytes) -> io::Result<Tree> {
    let mut tree = Tree::new();
    for entry in tar::Archive::new(&**bytes).entries()? {
        let entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let path = path.trim_start_matches("./").trim_matches('/').to_owned();
        if path.is_empty() || path == "." {
            continue;
        }
        let kind = entry.header().entry_type();
        let file = if kind.is_file() {
            let mode = entry.header().mode()? & 0o777;
            let start = usize::try_from(entry.raw_file_position()).unwrap_or(usize::MAX);
            let length = usize::try_from(entry.size()).unwrap_or(usize::MAX);
            let end = start.saturating_add(length);
            if end > bytes.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Node {
                content: bytes.slice(start..end),
                kind: Kind::of_file(Some(mode)),
                mode,
                modified: None,
            }
        } else if kind.is_symlink() {
            Node::link(entry.link_name_bytes().unwrap_or_default().into_owned())
        } else if kind.is_dir() {
            Node::directory()
        } else {
            continue;
        };
        tree.insert(path, file);
    }
    Ok(tree)
}
