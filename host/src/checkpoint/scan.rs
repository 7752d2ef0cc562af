//! What commands change: the working directory, looked through before and after.
//!
//! Files are compared by size, inode, mode and times, as git does; what is the same in all
//! of them is not read. Files that git would ignore are left out, and so is `.git`.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

use nix::libc;

use super::state::changed_ns;
use super::store::Limits;

/// Directories nested deeper than this are left out.
const MAX_DEPTH: usize = 256;
/// How long before a look a file must have changed last to be known by its times, in ns:
/// clocks of file systems tick in steps of some ms.
const SETTLED_NS: i128 = 50_000_000;

/// What tells whether a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    length: u64,
    pub(super) inode: u64,
    mode: u32,
    modified_ns: i128,
    pub(super) changed_ns: i128,
    /// It changed so shortly before that it may change again without a trace.
    pub(super) unsettled: bool,
}

impl Mark {
    pub(super) fn of(metadata: &Metadata, now_ns: i128) -> Self {
        let changed_ns = changed_ns(metadata);
        Self {
            length: metadata.len(),
            inode: metadata.ino(),
            mode: metadata.mode(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
            changed_ns,
            unsettled: changed_ns + SETTLED_NS > now_ns,
        }
    }

    /// Whether nothing has happened between the two that its times tell. What a directory
    /// holds is no part of it.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let both = |it: &Self| (it.length, it.inode, it.modified_ns, it.changed_ns);
        let is_dir = self.mode & libc::S_IFMT == libc::S_IFDIR;
        self.mode == other.mode && (is_dir || both(self) == both(other))
    }

    /// Whether this may be what was at another path as `other`.
    pub(super) fn is_renamed_from(&self, other: &Self) -> bool {
        let kind = |it: &Self| it.mode & libc::S_IFMT;
        let is_dir = kind(self) == libc::S_IFDIR;
        (self.inode, kind(self)) == (other.inode, kind(other))
            && (is_dir || (self.length, self.modified_ns) == (other.length, other.modified_ns))
    }

    /// Whether nothing has happened between the two.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        !self.unsettled
            && !other.unsettled
            && (self.length, self.inode, self.mode) == (other.length, other.inode, other.mode)
            && (self.modified_ns, self.changed_ns) == (other.modified_ns, other.changed_ns)
    }
}

pub(super) fn now_ns() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i128::try_from(since.unwrap_or_default().as_nanos()).unwrap_or_default()
}

/// Files, links and directories of a tree.
pub(crate) type Marks = BTreeMap<PathBuf, Mark>;

/// Looks through `root`. An error says why it was left.
pub(crate) fn scan(root: &Path, limits: &Limits, until: Instant) -> Result<Marks, String> {
    let mut marks = Marks::new();
    let now = now_ns();
    // Of a repository only its own rules count, not those of directories above it.
    let in_repository = root.ancestors().any(|dir| dir.join(".git").exists());
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .parents(true)
        .ignore(false)
        .require_git(in_repository)
        .git_global(false)
        .max_depth(Some(MAX_DEPTH))
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk {
        let Ok(entry) = entry else { continue };
        if entry.depth() == 0 {
            continue;
        }
        let Ok(metadata) = std::fs::symlink_metadata(entry.path()) else {
            continue;
        };
        marks.insert(entry.into_path(), Mark::of(&metadata, now));
        if marks.len() > limits.files {
            return Err(format!("it holds more than {} files", limits.files));
        }
        if Instant::now() > until {
            let ms = limits.scan.as_millis();
            return Err(format!("looking through it takes more than {ms} ms"));
        }
    }
    Ok(marks)
}
