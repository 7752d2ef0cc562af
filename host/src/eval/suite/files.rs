//! The files of a task: a folder or a tar archive as a tree, within the limits of
//! the sandbox.

use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use hermitcrab::memory::TreeLimits;

use super::error::SuiteError;
use crate::eval::reason;
use crate::tree::{Kind, Node, Tree};

/// The tree below `directory`; hidden files too. Times do not count, so that a
/// checkout of another day is the same task.
///
/// # Errors
/// A file that cannot be read, or more than a sandbox holds.
pub(super) fn read_folder(directory: &Path) -> Result<Tree, SuiteError> {
    let mut tree = Tree::new();
    let mut room = Room::new(directory);
    walk(directory, "", &mut tree, &mut room)?;
    Ok(tree)
}

/// What still fits.
struct Room<'a> {
    whole: &'a Path,
    limits: TreeLimits,
    bytes: u64,
    entries: u64,
}

impl<'a> Room<'a> {
    fn new(whole: &'a Path) -> Self {
        Self {
            whole,
            limits: TreeLimits::default(),
            bytes: 0,
            entries: 0,
        }
    }

    fn take(&mut self, path: &str, bytes: u64) -> Result<(), SuiteError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries += 1;
        let shown = self.whole.display();
        if bytes > self.limits.file_bytes {
            return Err(SuiteError::new(format!(
                "{shown}: {path} has {} MiB, and a file of a task has at most {}",
                bytes >> 20,
                self.limits.file_bytes >> 20
            )));
        }
        if self.bytes > self.limits.total_bytes {
            return Err(SuiteError::new(format!(
                "{shown} has more than {} MiB, which is what a sandbox holds",
                self.limits.total_bytes >> 20
            )));
        }
        if self.entries > self.limits.entries {
            return Err(SuiteError::new(format!(
                "{shown} has more than {} files, which is what a sandbox holds",
                self.limits.entries
            )));
        }
        Ok(())
    }
}

/// Directories within directories that are read.
const MAX_DEPTH: usize = 250;

fn walk(
    directory: &Path,
    prefix: &str,
    tree: &mut Tree,
    room: &mut Room<'_>,
) -> Result<(), SuiteError> {
    if prefix.matches('/').count() > MAX_DEPTH {
        return Err(SuiteError::new(format!(
            "{} lies more than {MAX_DEPTH} directories deep",
            directory.display()
        )));
    }
    let entries = std::fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(directory, &error))?;
        let real = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(SuiteError::new(format!(
                "the name {real:?} is not valid UTF-8; rename it"
            )));
        };
        let path = format!("{prefix}{name}");
        let metadata = entry
            .metadata()
            .map_err(|error| unreadable(&real, &error))?;
        let kind = metadata.file_type();
        let node = if kind.is_symlink() {
            let target = std::fs::read_link(&real).map_err(|error| unreadable(&real, &error))?;
            Node::link(target.to_string_lossy().into_owned())
        } else if kind.is_dir() {
            Node::directory()
        } else if kind.is_file() {
            room.take(&path, metadata.len())?;
            let content = std::fs::read(&real).map_err(|error| unreadable(&real, &error))?;
            // Of the bits only who may run it is part of a checkout.
            let kind = Kind::of_file(mode(&metadata));
            Node {
                content: Bytes::from(content),
                kind,
                mode: kind.usual_mode(),
                modified: None,
            }
        } else {
            // Sockets and pipes do not travel.
            continue;
        };
        let is_directory = node.kind == Kind::Directory;
        tree.insert(path.clone(), node);
        if is_directory {
            walk(&real, &format!("{path}/"), tree, room)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn mode(metadata: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_metadata: &std::fs::Metadata) -> Option<u32> {
    None
}

/// The tree in the tar archive at `file`.
///
/// # Errors
/// It is no archive, holds names that leave it, or more than a sandbox holds.
pub(super) fn read_archive(file: &Path) -> Result<Tree, SuiteError> {
    let shown = file.display();
    let broken = |error: io::Error| {
        SuiteError::new(format!("{shown} is no tar archive: {}", reason(&error)))
    };
    let reader = io::BufReader::new(std::fs::File::open(file).map_err(|e| unreadable(file, &e))?);
    let mut tree = Tree::new();
    let mut room = Room::new(file);
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| SuiteError::new(format!("{shown} holds a name that is not UTF-8")))?;
        let Some(path) = relative(&name) else {
            return Err(SuiteError::new(format!(
                "{shown} holds {name}, which is absolute or leads out of the archive"
            )));
        };
        if path.is_empty() {
            continue;
        }
        let kind = entry.header().entry_type();
        let node = if kind.is_dir() {
            Node::directory()
        } else if kind.is_symlink() {
            let target = entry.link_name_bytes().unwrap_or_default().into_owned();
            Node {
                content: Bytes::from(target),
                kind: Kind::Link,
                mode: Kind::Link.usual_mode(),
                modified: None,
            }
        } else if kind.is_file() {
            // Before it is read: what claims to be large may be zeros without end.
            room.take(&path, entry.size())?;
            let mode = entry.header().mode().ok();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(broken)?;
            let kind = Kind::of_file(mode);
            Node {
                content: Bytes::from(content),
                kind,
                mode: kind.usual_mode(),
                modified: None,
            }
        } else {
            return Err(SuiteError::new(format!(
                "{shown}: {name} is neither a file, a directory nor a symbolic link"
            )));
        };
        tree.insert(path, node);
    }
    Ok(tree)
}

/// A relative path without `.` and empty parts; none if it leads out.
pub(super) fn relative(name: &str) -> Option<String> {
    if name.starts_with('/') {
        return None;
    }
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    (!parts.contains(&"..")).then(|| parts.join("/"))
}

/// A file as text.
pub(super) fn read_text(file: &Path) -> Result<String, SuiteError> {
    let bytes = std::fs::read(file).map_err(|error| unreadable(file, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| SuiteError::new(format!("{} is not UTF-8 text", file.display())))
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> SuiteError {
    SuiteError::new(format!("cannot read {}: {}", path.display(), reason(error)))
}
