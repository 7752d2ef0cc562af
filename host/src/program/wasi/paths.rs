//! Paths: opening, making, moving and removing what they lead to. A path starts
//! at an open directory and never leaves the tree: above the root is the root.

use super::files::APPEND;
use super::guest::{Answer, Errno, Guest};
use super::{Entry, OPEN_FILES, OpenNode, System, now_ns};
use crate::program::tree::{Content, Directory, Id, Kind, Node};

/// How to open (witx `oflags`).
const CREATE: u32 = 1;
const WANT_DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;
/// The right to write (witx `rights`).
const WRITE: u64 = 1 << 6;

/// Where a path leads.
struct Found {
    directory: Id,
    /// Empty where it does not end in a name: `.`, `..`.
    name: String,
    node: Option<Id>,
}

impl System {
    fn find(&mut self, guest: &Guest, fd: u32, path: u32, length: u32) -> Result<Found, Errno> {
        let start = self.node(fd)?.ok_or(Errno::BadF)?.id;
        let parent = self.tree.directory(start).ok_or(Errno::NotDir)?.parent;
        let path = guest.text(path, length)?;
        if path.is_empty() {
            return Err(Errno::NoEnt);
        }
        if path.starts_with('/') {
            return Err(Errno::Perm);
        }
        let mut found = Found {
            directory: parent,
            name: String::new(),
            node: Some(start),
        };
        for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
            let at = found.node.ok_or(Errno::NoEnt)?;
            let directory = self.tree.directory(at).ok_or(Errno::NotDir)?;
            found = match part {
                ".." => Found {
                    directory: self
                        .tree
                        .directory(directory.parent)
                        .map_or(at, |up| up.parent),
                    name: String::new(),
                    node: Some(directory.parent),
                },
                name => Found {
                    directory: at,
                    name: name.to_owned(),
                    node: directory.entries.get(name).copied(),
                },
            };
        }
        match found.node {
            Some(id) if path.ends_with('/') && self.tree.directory(id).is_none() => {
                Err(Errno::NotDir)
            }
            _ => Ok(found),
        }
    }

    /// The node that a path leads to.
    pub(super) fn there(
        &mut self,
        guest: &Guest,
        fd: u32,
        path: u32,
        length: u32,
    ) -> Result<Id, Errno> {
        let found = self.find(guest, fd, path, length)?;
        found.node.ok_or(Errno::NoEnt)
    }

    #[expect(clippy::too_many_arguments, reason = "the witx file has it so")]
    pub(super) fn path_open(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        _follow: u32,
        path: u32,
        length: u32,
        how: u32,
        rights: u64,
        _inherited: u64,
        flags: u32,
        result: u32,
    ) -> Answer {
        if self.open.len() >= OPEN_FILES {
            return Err(Errno::MFile.into());
        }
        // So that nothing has happened if there is no place for the answer.
        guest.put_u32(result, 0)?;
        let found = self.find(guest, fd, path, length)?;
        let id = match found.node {
            None => {
                if how & CREATE == 0 {
                    return Err(Errno::NoEnt.into());
                }
                if how & WANT_DIRECTORY != 0 {
                    return Err(Errno::Inval.into());
                }
                let kind = Kind::File(Content::default());
                self.tree
                    .create(found.directory, &found.name, kind, now_ns())?
            }
            Some(id) => {
                if how & CREATE != 0 && how & EXCLUSIVE != 0 {
                    return Err(Errno::Exist.into());
                }
                let is_directory = self.tree.directory(id).is_some();
                if how & WANT_DIRECTORY != 0 && !is_directory {
                    return Err(Errno::NotDir.into());
                }
                if is_directory && rights & WRITE != 0 && how & WANT_DIRECTORY == 0 {
                    return Err(Errno::IsDir.into());
                }
                let is_file = |node: &Node| matches!(node.kind, Kind::File(_));
                if how & TRUNCATE != 0 && self.tree.get(id).is_some_and(is_file) {
                    self.writable(id)?;
                    self.tree.resize(id, 0, now_ns())?;
                }
                id
            }
        };
        let opened = (0..).find(|fd| !self.open.contains_key(fd));
        let opened = opened.ok_or(Errno::MFile)?;
        self.tree.open(id);
        let node = OpenNode {
            id,
            offset: 0,
            append: flags & APPEND != 0,
            names: None,
        };
        self.open.insert(opened, Entry::Node(node));
        Ok(guest.put_u32(result, opened)?)
    }

    pub(super) fn path_create_directory(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        path: u32,
        length: u32,
    ) -> Answer {
        let found = self.find(guest, fd, path, length)?;
        if found.node.is_some() {
            return Err(Errno::Exist.into());
        }
        let kind = Kind::Directory(Directory::default());
        self.tree
            .create(found.directory, &found.name, kind, now_ns())?;
        Ok(())
    }

    pub(super) fn path_remove_directory(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        path: u32,
        length: u32,
    ) -> Answer {
        let found = self.find(guest, fd, path, length)?;
        let id = found.node.ok_or(Errno::NoEnt)?;
        let directory = self.tree.directory(id).ok_or(Errno::NotDir)?;
        if !directory.entries.is_empty() {
            return Err(Errno::NotEmpty.into());
        }
        if found.name.is_empty() {
            return Err(Errno::Inval.into());
        }
        self.tree.unlink(found.directory, &found.name, now_ns());
        Ok(())
    }

    pub(super) fn path_unlink_file(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        path: u32,
        length: u32,
    ) -> Answer {
        let found = self.find(guest, fd, path, length)?;
        let id = found.node.ok_or(Errno::NoEnt)?;
        match self.tree.get(id) {
            Some(node) if node.is_directory() => return Err(Errno::IsDir.into()),
            Some(node) if node.ours => return Err(Errno::RoFs.into()),
            _ => {}
        }
        self.tree.unlink(found.directory, &found.name, now_ns());
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the witx file has it so")]
    pub(super) fn path_rename(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        path: u32,
        length: u32,
        to_fd: u32,
        to_path: u32,
        to_length: u32,
    ) -> Answer {
        let from = self.find(guest, fd, path, length)?;
        let to = self.find(guest, to_fd, to_path, to_length)?;
        let id = from.node.ok_or(Errno::NoEnt)?;
        if from.name.is_empty() || to.name.is_empty() {
            return Err(Errno::Inval.into());
        }
        if to.node == Some(id) {
            return Ok(());
        }
        let is_ours = |id: Id| self.tree.get(id).is_some_and(|node| node.ours);
        if is_ours(id) || to.node.is_some_and(is_ours) {
            return Err(Errno::RoFs.into());
        }
        let over = to.node.map(|id| self.tree.directory(id));
        match (self.tree.directory(id), over) {
            (Some(_), Some(None)) => return Err(Errno::NotDir.into()),
            (Some(_), Some(Some(over))) if !over.entries.is_empty() => {
                return Err(Errno::NotEmpty.into());
            }
            (Some(_), _) if self.tree.holds(id, to.directory) => return Err(Errno::Inval.into()),
            (None, Some(Some(_))) => return Err(Errno::IsDir.into()),
            _ => {}
        }
        let (from, to) = ((from.directory, &*from.name), (to.directory, &*to.name));
        Ok(self.tree.rename(from, to, now_ns())?)
    }

    /// Links reach a program as what they lead to, and it cannot make any.
    #[expect(clippy::too_many_arguments, reason = "the witx file has it so")]
    pub(super) fn path_readlink(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        path: u32,
        length: u32,
        _buffer: u32,
        _room: u32,
        _result: u32,
    ) -> Answer {
        self.there(guest, fd, path, length)?;
        Err(Errno::Inval.into())
    }
}
