//! What is open: reading, writing, listing and describing it.

use super::guest::{CallResult, Errno, Fault, Guest};
use super::witx::{FILE, type_of};
use super::{Entry, OpenNode, System, now_ns};
use crate::program::output::Full;
use crate::program::tree::{Device, Kind, Node};

/// Bytes that a device without end gives at once: a call cannot be stopped.
const DEVICE_BYTES: usize = 1 << 20;

/// Where to read or write.
#[derive(Clone, Copy)]
enum Position {
    /// Where the last one ended.
    Current,
    At(u64),
}

/// A list of buffers.
#[derive(Clone, Copy)]
struct Buffers {
    list: u32,
    count: u32,
}

impl System {
    pub(super) fn fd_prestat_get(&mut self, guest: &mut Guest, fd: u32, result: u32) -> CallResult {
        let name = self.given.get(&fd).ok_or(Errno::BadF)?;
        if !self.open.contains_key(&fd) {
            return Err(Errno::BadF.into());
        }
        // A directory, and the length of its name.
        let length = (name.len() as u32).to_le_bytes();
        Ok(guest.put(result, &[[0; 4], length].concat())?)
    }

    pub(super) fn fd_prestat_dir_name(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        buffer: u32,
        length: u32,
    ) -> CallResult {
        let name = self.given.get(&fd).ok_or(Errno::BadF)?;
        let length = (length as usize).min(name.len());
        Ok(guest.put(buffer, &name.as_bytes()[..length])?)
    }

    pub(super) fn fd_advise(
        &mut self,
        _: &mut Guest,
        fd: u32,
        _offset: u64,
        _length: u64,
        _advice: u32,
    ) -> CallResult {
        Ok(self.entry(fd).map(drop)?)
    }

    pub(super) fn fd_datasync(&mut self, _: &mut Guest, fd: u32) -> CallResult {
        Ok(self.entry(fd).map(drop)?)
    }

    pub(super) fn fd_sync(&mut self, _: &mut Guest, fd: u32) -> CallResult {
        Ok(self.entry(fd).map(drop)?)
    }

    pub(super) fn fd_close(&mut self, _: &mut Guest, fd: u32) -> CallResult {
        let entry = self.open.remove(&fd).ok_or(Errno::BadF)?;
        self.let_go(&entry);
        Ok(())
    }

    pub(super) fn fd_read(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        list: u32,
        count: u32,
        result: u32,
    ) -> CallResult {
        let length = self.read(guest, fd, Position::Current, Buffers { list, count })?;
        Ok(guest.put_u32(result, length)?)
    }

    pub(super) fn fd_pread(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        list: u32,
        count: u32,
        offset: u64,
        result: u32,
    ) -> CallResult {
        self.file(fd)?;
        let length = self.read(guest, fd, Position::At(offset), Buffers { list, count })?;
        Ok(guest.put_u32(result, length)?)
    }

    pub(super) fn fd_write(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        list: u32,
        count: u32,
        result: u32,
    ) -> CallResult {
        let length = self.write(guest, fd, Position::Current, Buffers { list, count })?;
        Ok(guest.put_u32(result, length)?)
    }

    pub(super) fn fd_pwrite(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        list: u32,
        count: u32,
        offset: u64,
        result: u32,
    ) -> CallResult {
        self.file(fd)?;
        let length = self.write(guest, fd, Position::At(offset), Buffers { list, count })?;
        Ok(guest.put_u32(result, length)?)
    }

    /// Fails unless a file is open at `fd`, which alone has positions.
    fn file(&mut self, fd: u32) -> Result<(), Errno> {
        let id = self.node(fd)?.map(|node| node.id).ok_or(Errno::SPipe)?;
        match self.tree.get(id).map(|node| &node.kind) {
            Some(Kind::File(_)) => Ok(()),
            _ => Err(Errno::SPipe),
        }
    }

    /// Fills buffers until one is not filled; the sum of bytes.
    fn read(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        position: Position,
        buffers: Buffers,
    ) -> Result<u32, Fault> {
        let mut total = 0;
        for index in 0..buffers.count {
            let (at, length) = guest.buffer(buffers.list, index)?;
            let target = guest.bytes_mut(at, length)?;
            let used = match self.open.get_mut(&fd).ok_or(Errno::BadF)? {
                Entry::Printed(_) => return Err(Errno::BadF.into()),
                Entry::Stdin { at } => {
                    let piece = &self.stdin[*at..];
                    let used = piece.len().min(target.len());
                    target[..used].copy_from_slice(&piece[..used]);
                    *at += used;
                    used
                }
                Entry::Node(open) => {
                    let offset = match position {
                        Position::Current => open.offset,
                        Position::At(offset) => offset.saturating_add(u64::from(total)),
                    };
                    let node = self.tree.get(open.id).ok_or(Errno::BadF)?;
                    let used = match &node.kind {
                        Kind::Directory(_) => return Err(Errno::IsDir.into()),
                        Kind::Link(_) => return Err(Errno::BadF.into()),
                        Kind::File(content) => content.read(offset, target),
                        Kind::Device(Device::Null) => 0,
                        Kind::Device(Device::Zero) => {
                            let used = target.len().min(DEVICE_BYTES);
                            target[..used].fill(0);
                            used
                        }
                        Kind::Device(Device::Random) => {
                            let used = target.len().min(DEVICE_BYTES);
                            getrandom::fill(&mut target[..used]).map_err(|_| Errno::Io)?;
                            used
                        }
                    };
                    if let (Position::Current, Kind::File(_)) = (position, &node.kind) {
                        open.offset += used as u64;
                    }
                    used
                }
            };
            total += used as u32;
            if used < length as usize {
                break;
            }
        }
        Ok(total)
    }

    /// Takes buffers; the sum of their bytes.
    fn write(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        position: Position,
        buffers: Buffers,
    ) -> Result<u32, Fault> {
        let mut total = 0;
        for index in 0..buffers.count {
            let (at, length) = guest.buffer(buffers.list, index)?;
            let source = guest.bytes(at, length)?;
            match self.open.get_mut(&fd).ok_or(Errno::BadF)? {
                Entry::Stdin { .. } => return Err(Errno::BadF.into()),
                Entry::Printed(stream) => {
                    let written = self.output.write(*stream, source);
                    written.map_err(|Full| Fault::Exit(1))?;
                }
                Entry::Node(open) => {
                    let node = self.tree.get(open.id).ok_or(Errno::BadF)?;
                    let offset = match position {
                        Position::Current if open.append => node.size(),
                        Position::Current => open.offset,
                        Position::At(offset) => offset.saturating_add(u64::from(total)),
                    };
                    match &node.kind {
                        Kind::Directory(_) | Kind::Link(_) => return Err(Errno::BadF.into()),
                        Kind::Device(_) => {}
                        Kind::File(_) if node.ours => return Err(Errno::RoFs.into()),
                        Kind::File(_) => {
                            let id = open.id;
                            self.tree.write(id, offset, source, now_ns())?;
                            if let Position::Current = position {
                                open.offset = offset + u64::from(length);
                            }
                        }
                    }
                }
            }
            total += length;
        }
        Ok(total)
    }

    pub(super) fn fd_seek(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        offset: i64,
        whence: u32,
        result: u32,
    ) -> CallResult {
        let id = self.node(fd)?.map(|open| open.id).ok_or(Errno::SPipe)?;
        let size = self.tree.get(id).map_or(0, Node::size);
        let open = self.node(fd)?.ok_or(Errno::SPipe)?;
        let from = match whence {
            0 => 0,
            1 => open.offset,
            2 => size,
            _ => return Err(Errno::Inval.into()),
        };
        let target = from.checked_add_signed(offset).ok_or(Errno::Inval)?;
        open.offset = target;
        Ok(guest.put_u64(result, target)?)
    }

    pub(super) fn fd_tell(&mut self, guest: &mut Guest, fd: u32, result: u32) -> CallResult {
        let offset = self.node(fd)?.map(|open| open.offset);
        Ok(guest.put_u64(result, offset.ok_or(Errno::SPipe)?)?)
    }

    pub(super) fn fd_readdir(
        &mut self,
        guest: &mut Guest,
        fd: u32,
        buffer: u32,
        length: u32,
        cookie: u64,
        result: u32,
    ) -> CallResult {
        let Some(Entry::Node(open)) = self.open.get_mut(&fd) else {
            return Err(Errno::BadF.into());
        };
        let OpenNode { id, names, .. } = open;
        let directory = self.tree.directory(*id).ok_or(Errno::NotDir)?;
        // The names of one pass stay the same, whatever happens in between.
        if cookie == 0 || names.is_none() {
            let own = [(".".to_owned(), *id), ("..".to_owned(), directory.parent)];
            let entries = directory.entries.iter();
            let entries = entries.map(|(name, id)| (name.clone(), *id));
            *names = Some(own.into_iter().chain(entries).collect());
        }
        let target = guest.bytes_mut(buffer, length)?;
        let mut used = 0;
        let skipped = usize::try_from(cookie).unwrap_or(usize::MAX);
        for (number, (name, id)) in (1_u64..).zip(names.iter().flatten()).skip(skipped) {
            let mut record = [0; 24];
            record[..8].copy_from_slice(&number.to_le_bytes());
            record[8..16].copy_from_slice(&id.to_le_bytes());
            record[16..20].copy_from_slice(&(name.len() as u32).to_le_bytes());
            record[20] = self.tree.get(*id).map_or(FILE, type_of);
            // A record that is cut tells the reader to come back for more.
            for bytes in [&record, name.as_bytes()] {
                let room = &mut target[used..];
                let taken = bytes.len().min(room.len());
                room[..taken].copy_from_slice(&bytes[..taken]);
                used += taken;
            }
            if used == target.len() {
                break;
            }
        }
        Ok(guest.put_u32(result, used as u32)?)
    }
}
