//! WASI preview 1 over a file tree: what a program compiled to wasm32-wasip1
//! asks of its system, answered without one. There is the tree, standard
//! streams, a clock and random bytes, and nothing else. Numbers and layouts are
//! those of the witx files of WASI snapshot_preview1.

mod files;
mod guest;
mod link;
mod paths;
mod process;
mod stat;
mod witx;

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::output::{Output, Stream};
use super::stop::Stop;
use super::tree::{Id, Last, ROOT, Tree, TreeError};
use guest::{Errno, Fault};
pub(super) use link::{Ended, Host, link};

/// The first directory that is open from the start.
const ROOT_FD: u32 = 3;
/// Files that may be open at a time.
const OPEN_FILES: usize = 1024;

/// What a program is started with.
pub(super) struct Start {
    pub(super) tree: Tree,
    /// The name of the program first.
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) stdin: Bytes,
    /// Bytes that it may print to each stream.
    pub(super) output_bytes: usize,
    pub(super) stop: Stop,
    /// Directory that relative paths start at, for programs that know none but what
    /// is open from the start.
    pub(super) here: Option<String>,
}

/// The system of one program.
pub(super) struct System {
    tree: Tree,
    args: Vec<String>,
    env: Vec<String>,
    stdin: Bytes,
    output: Output,
    stop: Stop,
    began: Instant,
    open: BTreeMap<u32, Entry>,
    /// Names of the directories that were open from the start.
    given: BTreeMap<u32, String>,
}

/// Something open.
enum Entry {
    Stdin { at: usize },
    Printed(Stream),
    Node(OpenNode),
}

/// An open place of the tree.
struct OpenNode {
    id: Id,
    offset: u64,
    append: bool,
    /// What a directory held when its listing began.
    names: Option<Vec<(String, Id)>>,
}

impl System {
    pub(super) fn new(start: Start) -> Self {
        let tree = start.tree;
        let env = start.env.iter();
        let mut system = Self {
            tree,
            args: start.args,
            env: env.map(|(name, value)| format!("{name}={value}")).collect(),
            stdin: start.stdin,
            output: Output::new(start.output_bytes),
            stop: start.stop,
            began: Instant::now(),
            open: BTreeMap::from([
                (0, Entry::Stdin { at: 0 }),
                (1, Entry::Printed(Stream::Stdout)),
                (2, Entry::Printed(Stream::Stderr)),
            ]),
            given: BTreeMap::new(),
        };
        system.give("/".to_owned(), ROOT);
        if let Some(here) = start.here {
            system.give_from(&here);
        }
        system
    }

    /// Opens the directories at the root under their names, then `here` as `.`: the C
    /// library of WASI compares a path with the names from the last one back, the
    /// longest first, and takes `/` and `.` for the same.
    fn give_from(&mut self, here: &str) {
        let at_root = self.tree.directory(ROOT).into_iter();
        let all: Vec<(String, Id)> = at_root
            .flat_map(|root| &root.entries)
            .filter(|(_, id)| self.tree.directory(**id).is_some())
            .map(|(name, id)| (format!("/{name}"), *id))
            .collect();
        for (name, id) in all {
            self.give(name, id);
        }
        let found = self.tree.find(ROOT, here, Last::Follow).ok();
        if let Some(id) = found.and_then(|found| found.node)
            && self.tree.directory(id).is_some()
        {
            self.give(".".to_owned(), id);
        }
    }

    fn give(&mut self, name: String, id: Id) {
        let fd = ROOT_FD + self.given.len() as u32;
        self.tree.open(id);
        let node = OpenNode {
            id,
            offset: 0,
            append: false,
            names: None,
        };
        self.open.insert(fd, Entry::Node(node));
        self.given.insert(fd, name);
    }

    /// The tree as the program left it, and what it printed.
    pub(super) fn end(mut self) -> (Tree, Output) {
        for entry in std::mem::take(&mut self.open).into_values() {
            self.let_go(&entry);
        }
        (self.tree, self.output)
    }

    fn let_go(&mut self, entry: &Entry) {
        if let Entry::Node(node) = entry {
            self.tree.close(node.id);
        }
    }

    fn entry(&mut self, fd: u32) -> Result<&mut Entry, Errno> {
        self.open.get_mut(&fd).ok_or(Errno::BadF)
    }

    /// What is open at `fd`, if it is a place of the tree.
    fn node(&mut self, fd: u32) -> Result<Option<&mut OpenNode>, Errno> {
        Ok(match self.entry(fd)? {
            Entry::Node(node) => Some(node),
            Entry::Stdin { .. } | Entry::Printed(_) => None,
        })
    }
}

/// ns since 1970-01-01 UTC.
pub(super) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok()
        .and_then(|now| u64::try_from(now.as_nanos()).ok())
        .unwrap_or_default()
}

impl From<TreeError> for Fault {
    fn from(error: TreeError) -> Self {
        Self::Errno(match error {
            TreeError::NoRoom => Errno::NoSpc,
            TreeError::TooLong => Errno::NameTooLong,
            TreeError::Gone => Errno::NoEnt,
        })
    }
}

#[cfg(test)]
mod tests;
