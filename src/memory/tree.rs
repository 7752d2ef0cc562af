//! The file tree: persistent, ordered by name, contents shared.
//!
//! A clone costs O(1) and shares everything; a change copies only the path to
//! it. Snapshots, forks and diffs follow from that. Paths are absolute and
//! normalised (`/a/b`); operations on a path do not follow symbolic links
//! unless they say so. Why not bashkit's own tree: it scans every entry for one
//! directory listing and lists in hash order (DESIGN §5).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

/// Permission bits of a new file.
pub const FILE_MODE: u32 = 0o644;
/// Permission bits of a new directory.
pub const DIRECTORY_MODE: u32 = 0o755;
/// Links followed in one lookup before it fails, as on Linux.
const MAX_LINKS: u32 = 40;
/// Longest name of one entry in bytes, as on Linux.
const MAX_NAME_BYTES: usize = 255;

/// Limits of a [`Tree`]; every one is finite so that a runaway script fails
/// with a sentence instead of exhausting the memory of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Bytes of all file contents together.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files, directories and links together.
    pub entries: u64,
    /// Bytes of one path.
    pub path_bytes: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            total_bytes: 1 << 30,
            file_bytes: 256 << 20,
            entries: 1_000_000,
            path_bytes: 4096,
        }
    }
}

/// Why the tree could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// Nothing is at the path.
    NotFound,
    /// A component of the path is not a directory.
    NotDirectory,
    /// The path is a directory where a file was expected.
    IsDirectory,
    /// Something is at the path already.
    Exists,
    /// The directory holds entries.
    NotEmpty,
    /// Too many symbolic links on the way.
    LinkLoop,
    /// The operation makes no sense for the path.
    Invalid(&'static str),
    /// A limit was reached: its name and value.
    Limit(&'static str, u64),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file or directory"),
            Self::NotDirectory => f.write_str("not a directory"),
            Self::IsDirectory => f.write_str("is a directory"),
            Self::Exists => f.write_str("file exists"),
            Self::NotEmpty => f.write_str("directory not empty"),
            Self::LinkLoop => f.write_str("too many levels of symbolic links"),
            Self::Invalid(reason) => f.write_str(reason),
            Self::Limit(what, value) => write!(f, "the sandbox limit on {what} is {value}"),
        }
    }
}

/// Content of one file: shared between snapshots, grown in place while unshared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content(Arc<Vec<u8>>);

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
    fn directory(modified_us: u64) -> Self {
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

    fn totals(&self) -> Totals {
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
struct Totals {
    bytes: u64,
    entries: u64,
}

/// The entries of a directory, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    entries: OrdMap<Arc<str>, Arc<Node>>,
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

    fn insert(&mut self, name: &str, node: Arc<Node>) {
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

    fn remove(&mut self, name: &str) -> Option<Arc<Node>> {
        let node = self.entries.remove(name)?;
        self.subtract(node.totals());
        Some(node)
    }

    fn add(&mut self, totals: Totals) {
        self.totals.bytes += totals.bytes;
        self.totals.entries += totals.entries;
    }

    fn subtract(&mut self, totals: Totals) {
        self.totals.bytes = self.totals.bytes.saturating_sub(totals.bytes);
        self.totals.entries = self.totals.entries.saturating_sub(totals.entries);
    }
}

/// How a path differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Absolute path.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// Kinds of [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content, target, permission bits or kind changed.
    Changed,
    /// It is gone.
    Removed,
}

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
        let before = self.clone();
        let result = self
            .make_parents(path, now_us)
            .and_then(|()| self.write(path, content, now_us));
        if result.is_err() {
            *self = before;
        }
        result
    }

    /// Makes the directories above `path`; a file in their way is not a directory.
    fn make_parents(&mut self, path: &str, now_us: u64) -> Result<(), TreeError> {
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
        // What is not there is told before directories are made for it.
        self.get(from)?;
        let before = self.clone();
        let result = self
            .make_parents(to, now_us)
            .and_then(|()| self.rename(from, to, now_us));
        if result.is_err() {
            *self = before;
        }
        result
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
        if path.len() > limits.path_bytes {
            return Err(TreeError::Limit(
                "bytes of one path",
                limits.path_bytes as u64,
            ));
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

    /// What differs from `old`, sorted by path. Times do not count. Parts that
    /// both trees share are skipped without looking inside.
    pub fn changes_since(&self, old: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        compare(&old.root, &self.root, &mut String::new(), &mut changes);
        changes.sort_by(|a, b| a.path.cmp(&b.path).then(a.kind.cmp(&b.kind)));
        changes
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

/// Whether a lookup follows a link in the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    /// Follow it, as `open` and `stat` do.
    Follow,
    /// Keep it, as `lstat`, `unlink` and `rename` do.
    Keep,
}

/// The names on a path, empty ones and `.` left out.
pub fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

/// The path of the directory that holds `path`.
pub fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}

/// The last name of `path`; none for the root.
pub fn file_name(path: &str) -> Option<&str> {
    components(path).next_back()
}

/// Whether `path` lies below `directory` (and is not `directory` itself).
pub fn is_below(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

fn compare(old: &Arc<Node>, new: &Arc<Node>, path: &mut String, changes: &mut Vec<Change>) {
    if Arc::ptr_eq(old, new) {
        return;
    }
    let (NodeKind::Directory(before), NodeKind::Directory(after)) = (&old.kind, &new.kind) else {
        match (old.is_directory(), new.is_directory()) {
            (true, false) | (false, true) => {
                report(old, path, ChangeKind::Removed, changes);
                report(new, path, ChangeKind::Added, changes);
            }
            _ if old.kind != new.kind || old.mode != new.mode => {
                report(new, path, ChangeKind::Changed, changes);
            }
            _ => {}
        }
        return;
    };
    if old.mode != new.mode {
        changes.push(Change {
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path.clone()
            },
            kind: ChangeKind::Changed,
        });
    }
    if before.entries.ptr_eq(&after.entries) {
        return;
    }
    let mut left = before.entries.iter().peekable();
    let mut right = after.entries.iter().peekable();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let length = path.len();
        path.push('/');
        match order {
            Ordering::Less => {
                if let Some((name, node)) = left.next() {
                    path.push_str(name);
                    report(node, path, ChangeKind::Removed, changes);
                }
            }
            Ordering::Greater => {
                if let Some((name, node)) = right.next() {
                    path.push_str(name);
                    report(node, path, ChangeKind::Added, changes);
                }
            }
            Ordering::Equal => {
                if let (Some((name, a)), Some((_, b))) = (left.next(), right.next()) {
                    path.push_str(name);
                    compare(a, b, path, changes);
                }
            }
        }
        path.truncate(length);
    }
}

/// Reports `node` and everything below it.
fn report(node: &Arc<Node>, path: &mut String, kind: ChangeKind, changes: &mut Vec<Change>) {
    changes.push(Change {
        path: path.clone(),
        kind,
    });
    if let NodeKind::Directory(directory) = &node.kind {
        for (name, child) in &directory.entries {
            let length = path.len();
            path.push('/');
            path.push_str(name);
            report(child, path, kind, changes);
            path.truncate(length);
        }
    }
}

#[cfg(test)]
mod tests;
