//! Paths: opening, making, moving and removing what they lead to. A path starts
//! at an open directory and never leaves the tree: above the root is the root.

use super::guest::{CallResult, Errno, Guest};
use super::witx::{APPEND, last};
use super::{Entry, OPEN_FILES, OpenNode, System, now_ns};
use crate::program::tree::{Content, Directory, Found, Id, Kind, Last, Lost, Node};

/// How to open (witx `oflags`).
const CREATE: u32 = 1;
const WANT_DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;
/// The right to write (witx `rights`).
const WRITE: u64 = 1 << 6;

impl From<Lost> for Errno {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Missing => Self::NoEnt,
            Lost::NotDirectory => Self::NotDir,
            Lost::Loop => Self::Loop,
        }
    }
}

impl System {
    /// What a path leads to, or where it would be made.
    pub(super) fn find(
        &mut self,
        guest: &Guest,
        fd: u32,
        path: u32,
        length: u32,
        last: Last,
    ) -> Result<Found, Errno> {
        let start = self.node(fd)?.ok_or(Errno::BadF)?.id;
        let path = guest.text(path, length)?;
        if path.is_empty() {
            return Err(Errno::NoEnt);
        }
        if path.starts_with('/') {
            return Err(Errno::Perm);
        }
        Ok(self.tree.find(start, &path, last)?)
    }

    #[expect(clippy::too_many_arguments, reason = "the witx file has it so")]
    pub(super) fn path_open(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        follow: u32,
        path: u32,
        length: u32,
        how: u32,
        rights: u64,
        _inherited: u64,
        flags: u32,
        result: u32,
    ) -> CallResult {
        if self.open.len() >= OPEN_FILES {
            return Err(Errno::MFile.into());
        }
        // So that nothing has happened if there is no place for the answer.
        guest.put_u32(result, 0)?;
        // Who wants to make a file makes none where a link leads.
        let last = match how & CREATE != 0 && how & EXCLUSIVE != 0 {
            true => Last::Keep,
            false => last(follow),
        };
        let found = self.find(guest, fd, path, length, last)?;
        let id = match found.node {
            None => {
                if how & CREATE == 0 {
                    return Err(Errno::NoEnt.into());
                }
                if how & WANT_DIRECTORY != 0 {
                    return Err(Errno::Inval.into());
                }
                if found.slash {
                    return Err(Errno::IsDir.into());
                }
                let kind = Kind::File(Content::default());
                self.tree
                    .create(found.directory, &found.name, kind, now_ns())?
            }
            Some(id) => {
                if how & CREATE != 0 && how & EXCLUSIVE != 0 {
                    return Err(Errno::Exist.into());
                }
                let is_link = |node: &Node| matches!(node.kind, Kind::Link(_));
                if self.tree.get(id).is_some_and(is_link) {
                    return Err(Errno::Loop.into());
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
    ) -> CallResult {
        let found = self.find(guest, fd, path, length, Last::Keep)?;
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
    ) -> CallResult {
        let found = self.find(guest, fd, path, length, Last::Keep)?;
        let id = found.node.ok_or(Errno::NoEnt)?;
        let directory = self.tree.directory(id).ok_or(Errno::NotDir)?;
        if found.name.is_empty() {
            return Err(Errno::Inval.into());
        }
        if !directory.entries.is_empty() {
            return Err(Errno::NotEmpty.into());
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
    ) -> CallResult {
        let found = self.find(guest, fd, path, length, Last::Keep)?;
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
    ) -> CallResult {
        let from = self.find(guest, fd, path, length, Last::Keep)?;
        let to = self.find(guest, to_fd, to_path, to_length, Last::Keep)?;
        let id = from.node.ok_or(Errno::NoEnt)?;
        if from.name.is_empty() || to.name.is_empty() {
            return Err(Errno::Busy.into());
        }
        if to.slash && self.tree.directory(id).is_none() {
            return Err(Errno::NotDir.into());
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

    pub(super) fn path_symlink(
        &mut self,
        guest: &mut Guest,
        target: u32,
        target_length: u32,
        fd: u32,
        path: u32,
        length: u32,
    ) -> CallResult {
        let target = guest.text(target, target_length)?;
        if target.is_empty() {
            return Err(Errno::NoEnt.into());
        }
        let found = self.find(guest, fd, path, length, Last::Keep)?;
        if found.node.is_some() {
            return Err(Errno::Exist.into());
        }
        if found.slash {
            return Err(Errno::NoEnt.into());
        }
        let kind = Kind::Link(target);
        self.tree
            .create(found.directory, &found.name, kind, now_ns())?;
        Ok(())
    }

    /// Writes where a link leads, as much as there is room for.
    #[expect(clippy::too_many_arguments, reason = "the witx file has it so")]
    pub(super) fn path_readlink(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        path: u32,
        length: u32,
        buffer: u32,
        room: u32,
        result: u32,
    ) -> CallResult {
        let found = self.find(guest, fd, path, length, Last::Keep)?;
        let id = found.node.ok_or(Errno::NoEnt)?;
        let Some(Kind::Link(target)) = self.tree.get(id).map(|node| &node.kind) else {
            return Err(Errno::Inval.into());
        };
        let piece = &target.as_bytes()[..target.len().min(room as usize)];
        guest.put(buffer, piece)?;
        Ok(guest.put_u32(result, piece.len() as u32)?)
    }
}
