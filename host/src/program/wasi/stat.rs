//! What is known of an open file or a path: type, size, times, flags.

use super::guest::{CallResult, Errno, Guest};
use super::witx::{APPEND, PIPE, last, type_of};
use super::{System, now_ns};
use crate::program::tree::{Id, Kind, Node};

/// Every right there is (witx `rights`).
const ALL_RIGHTS: u64 = 0x1fff_ffff;

impl System {
    pub(super) fn fd_fdstat_get(&mut self, guest: &mut Guest, fd: u32, result: u32) -> CallResult {
        let (id, append) = match self.node(fd)? {
            Some(node) => (Some(node.id), node.append),
            None => (None, false),
        };
        let mut stat = [0; 24];
        stat[0] = id.and_then(|id| self.tree.get(id)).map_or(PIPE, type_of);
        stat[2] = if append { APPEND as u8 } else { 0 };
        stat[8..16].copy_from_slice(&ALL_RIGHTS.to_le_bytes());
        stat[16..].copy_from_slice(&ALL_RIGHTS.to_le_bytes());
        Ok(guest.put(result, &stat)?)
    }

    pub(super) fn fd_fdstat_set_flags(&mut self, _: &mut Guest, fd: u32, flags: u32) -> CallResult {
        if let Some(node) = self.node(fd)? {
            node.append = flags & APPEND != 0;
        }
        Ok(())
    }

    pub(super) fn fd_filestat_get(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        result: u32,
    ) -> CallResult {
        let id = self.node(fd)?.map(|node| node.id);
        self.put_stat(guest, id, result)
    }

    /// Writes what `filestat` says about a node, or about a stream.
    pub(super) fn put_stat(&self, guest: &mut Guest, id: Option<Id>, result: u32) -> CallResult {
        let node = id.and_then(|id| self.tree.get(id));
        let modified = node.map_or(0, |node| node.modified_ns);
        let fields = [
            1,
            id.unwrap_or_default(),
            u64::from(node.map_or(PIPE, type_of)),
            1,
            node.map_or(0, Node::size),
            modified,
            modified,
            modified,
        ];
        for (at, field) in (result..).step_by(8).zip(fields) {
            guest.put_u64(at, field)?;
        }
        Ok(())
    }

    pub(super) fn fd_filestat_set_size(&mut self, _: &mut Guest, fd: u32, size: u64) -> CallResult {
        let id = self.node(fd)?.map(|node| node.id).ok_or(Errno::Inval)?;
        self.writable(id)?;
        Ok(self.tree.resize(id, size, now_ns())?)
    }

    /// Fails unless `id` is a file of the sandbox.
    pub(super) fn writable(&self, id: Id) -> Result<(), Errno> {
        match self.tree.get(id) {
            Some(node) if !matches!(node.kind, Kind::File(_)) => Err(Errno::Inval),
            Some(node) if node.ours => Err(Errno::RoFs),
            Some(_) => Ok(()),
            None => Err(Errno::BadF),
        }
    }

    pub(super) fn fd_filestat_set_times(
        &mut self,
        _: &mut Guest,
        fd: u32,
        _accessed: u64,
        modified: u64,
        flags: u32,
    ) -> CallResult {
        if let Some(id) = self.node(fd)?.map(|node| node.id) {
            self.set_times(id, modified, flags);
        }
        Ok(())
    }

    pub(super) fn set_times(&mut self, id: Id, modified: u64, flags: u32) {
        // Bit 2 sets the given time of modification, bit 3 the present one.
        if flags & 4 != 0 {
            self.tree.set_modified(id, modified);
        }
        if flags & 8 != 0 {
            self.tree.set_modified(id, now_ns());
        }
    }

    pub(super) fn path_filestat_get(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        follow: u32,
        path: u32,
        length: u32,
        result: u32,
    ) -> CallResult {
        let found = self.find(guest, fd, path, length, last(follow))?;
        let id = found.node.ok_or(Errno::NoEnt)?;
        self.put_stat(guest, Some(id), result)
    }

    #[expect(clippy::too_many_arguments, reason = "the witx file has it so")]
    pub(super) fn path_filestat_set_times(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        follow: u32,
        path: u32,
        length: u32,
        _accessed: u64,
        modified: u64,
        flags: u32,
    ) -> CallResult {
        let found = self.find(guest, fd, path, length, last(follow))?;
        let id = found.node.ok_or(Errno::NoEnt)?;
        self.set_times(id, modified, flags);
        Ok(())
    }
}
