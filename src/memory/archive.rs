//! Tar bytes and lists of files, in and out of a tree.
//!
//! An import is all or nothing: it works on a clone and replaces the tree only
//! when every entry went in. Entry names are relative; absolute names and `..`
//! are refused by name. Output is sorted and free of owners, so that equal
//! trees give equal bytes.

use std::io::Read;

use bytes::Bytes;

use super::tree::{self, Change, ChangeKind, Content, Node, NodeKind, Tree, TreeError, TreeLimits};
use crate::environment::{EnvironmentError, EnvironmentErrorKind};

/// Last second of the year 9999: later times are damage.
const MAX_SECONDS: u64 = 253_402_300_799;

/// Length of the two name fields of a tar header.
const NAME_FIELD_BYTES: usize = 100;

/// Adds the files of `archive` (tar bytes, not compressed) below `directory`.
pub fn import_tar(
    tree: &mut Tree,
    directory: &str,
    archive: &[u8],
    now_us: u64,
) -> Result<(), EnvironmentError> {
    let mut copy = tree.clone();
    let mut reader = tar::Archive::new(archive);
    let entries = reader.entries().map_err(|error| malformed(&error))?;
    // What comes into a directory changes it: its own time is put back last.
    let mut directories = Vec::new();
    for entry in entries {
        let mut entry = entry.map_err(|error| malformed(&error))?;
        directories.extend(import_entry(&mut copy, directory, &mut entry, now_us)?);
    }
    set_times(&mut copy, directories);
    *tree = copy;
    Ok(())
}

/// Gives directories their times; one that has become a link or a file since
/// keeps what it has.
pub(super) fn set_times(tree: &mut Tree, directories: Vec<(String, u64)>) {
    for (path, modified_us) in directories {
        if tree.get(&path).is_ok_and(Node::is_directory) {
            let _ = tree.set_modified(&path, modified_us);
        }
    }
}

/// Adds `files` (relative path, content) below `directory`.
pub(super) fn import_files(
    tree: &mut Tree,
    directory: &str,
    files: Vec<(String, Bytes)>,
    now_us: u64,
) -> Result<(), EnvironmentError> {
    let mut copy = tree.clone();
    for (name, content) in files {
        let path = entry_path(directory, &name)?;
        copy.write_with_parents(&path, Content::from(content), now_us)
            .map_err(|error| refused(&name, &error))?;
    }
    *tree = copy;
    Ok(())
}

/// A tree with the files of `archive`, names relative to its root, and nothing
/// else.
pub(super) fn tree_from_tar(
    limits: TreeLimits,
    archive: &[u8],
    now_us: u64,
) -> Result<Tree, EnvironmentError> {
    let mut tree = Tree::new(limits);
    import_tar(&mut tree, "/", archive, now_us)?;
    Ok(tree)
}

/// The files below `directory` as tar bytes, names relative to it.
pub fn export_tar(tree: &Tree, directory: &str) -> Result<Vec<u8>, EnvironmentError> {
    let mut bytes = 0_usize;
    tree.walk(directory, u32::MAX, &mut |path, node| {
        bytes = bytes.saturating_add(room_for(path, node));
        true
    })
    .map_err(|error| refused(directory, &error))?;
    let mut builder = builder_of(bytes)?;
    let mut result = Ok(());
    tree.walk(directory, u32::MAX, &mut |path, node| {
        result = pack(&mut builder, path, node);
        result.is_ok()
    })
    .map_err(|error| refused(directory, &error))?;
    result
        .and_then(|()| builder.into_inner())
        .map_err(|error| unwritable(&error))
}

/// Adds `node` under `name`, with its precise time.
pub(super) fn pack(
    builder: &mut tar::Builder<Vec<u8>>,
    name: &str,
    node: &Node,
) -> std::io::Result<()> {
    precise_time(builder, node)?;
    append(builder, name, node)
}

/// Bytes that an entry takes at most, with its precise time.
fn room_for(path: &str, node: &Node) -> usize {
    let content = usize::try_from(node.size()).unwrap_or(usize::MAX);
    [content, path.len()]
        .map(|bytes| bytes.next_multiple_of(BLOCK))
        .into_iter()
        .fold(4 * BLOCK, usize::saturating_add)
}

/// What a header has no room for: which of two files of one second is newer.
fn precise_time(builder: &mut tar::Builder<Vec<u8>>, node: &Node) -> std::io::Result<()> {
    let (seconds, micros) = (node.modified_us / 1_000_000, node.modified_us % 1_000_000);
    if micros == 0 {
        return Ok(());
    }
    let time = format!("{seconds}.{micros:06}");
    builder.append_pax_extensions([("mtime", time.as_bytes())])
}

/// An archive with room for entries of so many bytes, all of it at once: growing
/// a list that large takes it three times.
fn builder_of(bytes: usize) -> Result<tar::Builder<Vec<u8>>, EnvironmentError> {
    let bytes = bytes.saturating_add(2 * BLOCK);
    let mut archive = Vec::new();
    archive
        .try_reserve_exact(bytes)
        .map_err(|_| too_large(bytes))?;
    Ok(tar::Builder::new(archive))
}

fn too_large(bytes: usize) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::Io,
        format!(
            "an archive of {} MiB does not fit the memory; export parts of the tree",
            bytes >> 20
        ),
    )
}

/// Bytes of a block: what a tar consists of.
const BLOCK: usize = 512;

/// What one tree has that another has not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// New and changed files, directories and links as tar bytes, names from the root.
    pub archive: Vec<u8>,
    /// Absolute paths to remove before the archive is unpacked.
    pub removed: Vec<String>,
}

/// What leads from `old` to `tree`. Times alone are no difference.
pub(super) fn delta(tree: &Tree, old: &Tree) -> Result<Delta, EnvironmentError> {
    let changes = tree.changes_since(old);
    let mut written = Vec::new();
    let mut removed = Vec::new();
    for Change { path, kind } in &changes {
        let node = tree.get(path).ok();
        let is_directory = node.is_some_and(Node::is_directory);
        // A file may have become a link, which is not written over.
        if *kind == ChangeKind::Removed || (*kind == ChangeKind::Changed && !is_directory) {
            removed.push(path.clone());
        }
        let name = path.trim_start_matches('/');
        if let Some(node) = node.filter(|_| *kind != ChangeKind::Removed && !name.is_empty()) {
            written.push((name, node));
        }
    }
    let rooms = written.iter().map(|(name, node)| room_for(name, node));
    let mut builder = builder_of(rooms.fold(0, usize::saturating_add))?;
    for (name, node) in written {
        append(&mut builder, name, node).map_err(|error| unwritable(&error))?;
    }
    let archive = builder.into_inner().map_err(|error| unwritable(&error))?;
    Ok(Delta { archive, removed })
}

/// Applies `delta` to the tree that it starts from; all or nothing.
pub(super) fn apply(tree: &mut Tree, delta: &Delta, now_us: u64) -> Result<(), EnvironmentError> {
    let mut copy = tree.clone();
    for path in &delta.removed {
        match copy.remove_all(path, now_us) {
            // What was below a removed directory went with it.
            Ok(()) | Err(TreeError::NotFound) => {}
            Err(error) => return Err(refused(path, &error)),
        }
    }
    import_tar(&mut copy, "/", &delta.archive, now_us)?;
    *tree = copy;
    Ok(())
}

fn import_entry(
    tree: &mut Tree,
    directory: &str,
    entry: &mut tar::Entry<'_, &[u8]>,
    now_us: u64,
) -> Result<Option<(String, u64)>, EnvironmentError> {
    let kind = entry.header().entry_type();
    if matches!(
        kind,
        tar::EntryType::XGlobalHeader | tar::EntryType::XHeader
    ) {
        return Ok(None);
    }
    let name = String::from_utf8(entry.path_bytes().into_owned()).map_err(|error| {
        let name = String::from_utf8_lossy(error.as_bytes());
        invalid(&name, "its name is not UTF-8")
    })?;
    if tree::components(&name).next().is_none() {
        return Ok(None);
    }
    unpack(tree, directory, &name, entry, now_us)
}

/// Puts `entry` at `name` below `directory`; for a directory, its path and the time that
/// it gets last.
pub(super) fn unpack(
    tree: &mut Tree,
    directory: &str,
    name: &str,
    entry: &mut tar::Entry<'_, &[u8]>,
    now_us: u64,
) -> Result<Option<(String, u64)>, EnvironmentError> {
    let kind = entry.header().entry_type();
    refuse_pax_sparse(entry, name)?;
    let path = entry_path(directory, name)?;
    let mode = entry.header().mode().ok();
    let modified_us = match (precise_mtime(entry), entry.header().mtime()) {
        (Some(precise), _) => precise,
        // A time before 1970 reads as one far beyond.
        (None, Ok(seconds @ 1..=MAX_SECONDS)) => seconds * 1_000_000,
        _ => now_us,
    };
    let kind = match kind {
        // How archives from before ustar mark a directory.
        tar::EntryType::Regular if name.ends_with('/') => tar::EntryType::Directory,
        kind => kind,
    };
    let refuse = |error: TreeError| refused(name, &error);
    match kind {
        tar::EntryType::Directory => tree.make_directories(&path, modified_us).map_err(refuse)?,
        tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
            let declared = entry.size();
            if declared > tree.limits().file_bytes {
                return Err(refuse(TreeError::Limit(
                    "bytes of one file",
                    tree.limits().file_bytes,
                )));
            }
            let mut content = Vec::new();
            entry
                .read_to_end(&mut content)
                .map_err(|error| malformed(&error))?;
            remove_link(tree, &path, modified_us).map_err(refuse)?;
            tree.write_with_parents(&path, Content::from(content), modified_us)
                .map_err(refuse)?;
        }
        tar::EntryType::Symlink | tar::EntryType::Link => {
            let target = entry
                .link_name_bytes()
                .and_then(|bytes| String::from_utf8(bytes.into_owned()).ok())
                .ok_or_else(|| invalid(name, "its link target is missing or not UTF-8"))?;
            tree.make_directories(tree::parent(&path), modified_us)
                .map_err(refuse)?;
            if kind == tar::EntryType::Symlink {
                link(tree, &path, &target, modified_us).map_err(refuse)?;
                return Ok(None);
            }
            // The tree has no hard links: the entry becomes a copy.
            let source = entry_path(directory, &target)?;
            let found = tree.get(&source).map(|node| node.kind.clone());
            match found {
                Ok(NodeKind::File(content)) => {
                    remove_link(tree, &path, modified_us).map_err(refuse)?;
                    tree.write(&path, content, modified_us).map_err(refuse)?;
                }
                Ok(NodeKind::Link(target)) => {
                    link(tree, &path, &target, modified_us).map_err(refuse)?;
                    return Ok(None);
                }
                Ok(NodeKind::Directory(_)) | Err(_) => {
                    let reason =
                        format!("it is a hard link to {target}, which is no file before it");
                    return Err(invalid(name, &reason));
                }
            }
        }
        other => return Err(invalid(name, &unsupported(other))),
    }
    if let Some(mode) = mode {
        tree.set_mode(&path, mode).map_err(refuse)?;
    }
    Ok((kind == tar::EntryType::Directory).then_some((path, modified_us)))
}

/// The time of an entry with its fraction, which pax writers add: `123.45`.
fn precise_mtime(entry: &mut tar::Entry<'_, &[u8]>) -> Option<u64> {
    let extensions = entry.pax_extensions().ok()??;
    let record = extensions
        .flatten()
        .filter(|extension| extension.key_bytes() == b"mtime")
        .last()?;
    let (seconds, fraction) = match record.value().ok()?.split_once('.') {
        Some((seconds, fraction)) => (seconds, fraction),
        None => (record.value().ok()?, ""),
    };
    let seconds: u64 = seconds.parse().ok()?;
    let mut digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
    let micros = digits.try_fold(0_u64, |sum, digit| {
        Some(sum * 10 + u64::from(digit.is_ascii_digit().then(|| digit - b'0')?))
    })?;
    (1..=MAX_SECONDS)
        .contains(&seconds)
        .then(|| seconds * 1_000_000 + micros)
}

/// Makes a symbolic link in the place of what is there.
fn link(tree: &mut Tree, path: &str, target: &str, now_us: u64) -> Result<(), TreeError> {
    if tree.get(path).is_ok() {
        tree.remove(path, now_us)?;
    }
    tree.link(path, target, now_us)
}

/// Makes room for a file, which replaces a link and does not follow it.
fn remove_link(tree: &mut Tree, path: &str, now_us: u64) -> Result<(), TreeError> {
    match tree.get(path).map(|node| &node.kind) {
        Ok(NodeKind::Link(_)) => tree.remove(path, now_us),
        _ => Ok(()),
    }
}

/// Refuses a sparse file in the form that only GNU tar reads: to anyone else it
/// is a file of another name with other contents.
fn refuse_pax_sparse(
    entry: &mut tar::Entry<'_, &[u8]>,
    name: &str,
) -> Result<(), EnvironmentError> {
    let extensions = entry.pax_extensions().map_err(|error| malformed(&error))?;
    let mut keys = extensions.into_iter().flatten().flatten();
    match keys.any(|extension| extension.key_bytes().starts_with(b"GNU.sparse.")) {
        true => Err(invalid(
            name,
            "it is a sparse file in pax format; pack it without --sparse or with --format=gnu",
        )),
        false => Ok(()),
    }
}

fn unsupported(kind: tar::EntryType) -> String {
    let what = match kind {
        tar::EntryType::Char | tar::EntryType::Block => "a device".to_owned(),
        tar::EntryType::Fifo => "a named pipe".to_owned(),
        other => format!("of the type {:?}", char::from(other.as_byte())),
    };
    format!("it is {what}, which a sandbox cannot hold")
}

/// `name` below `directory`, or why not.
pub(super) fn entry_path(directory: &str, name: &str) -> Result<String, EnvironmentError> {
    if name.starts_with('/') {
        return Err(invalid(name, "its path is absolute"));
    }
    if name.contains('\0') {
        return Err(invalid(name, "its path holds a zero byte"));
    }
    let mut path = directory.trim_end_matches('/').to_owned();
    for component in tree::components(name) {
        if component == ".." {
            return Err(invalid(name, "its path holds .."));
        }
        path.push('/');
        path.push_str(component);
    }
    if path.len() == directory.trim_end_matches('/').len() {
        return Err(invalid(name, "its path is empty"));
    }
    Ok(path)
}

fn append(builder: &mut tar::Builder<Vec<u8>>, path: &str, node: &Node) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(node.mode);
    header.set_mtime(node.modified_us / 1_000_000);
    match &node.kind {
        NodeKind::File(content) => {
            let content = content.as_slice();
            header.set_entry_type(tar::EntryType::Regular);
            write_entry(builder, header, path, "", content)
        }
        NodeKind::Directory(_) => {
            header.set_entry_type(tar::EntryType::Directory);
            write_entry(builder, header, &format!("{path}/"), "", &[])
        }
        NodeKind::Link(target) => {
            header.set_entry_type(tar::EntryType::Symlink);
            write_entry(builder, header, path, target, &[])
        }
    }
}

/// Writes an entry with its names byte for byte: those of a sandbox are Unix
/// names, even if the core's platform takes `\` for a separator. Long
/// ones stand in separate entries before it, as GNU tar writes them.
fn write_entry(
    builder: &mut tar::Builder<Vec<u8>>,
    mut header: tar::Header,
    name: &str,
    target: &str,
    content: &[u8],
) -> std::io::Result<()> {
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(content.len() as u64);
    let long = [
        (name, tar::EntryType::GNULongName),
        (target, tar::EntryType::GNULongLink),
    ];
    for (text, kind) in long {
        if text.len() <= NAME_FIELD_BYTES {
            continue;
        }
        let mut long = tar::Header::new_gnu();
        long.set_mode(0o644);
        long.set_uid(0);
        long.set_gid(0);
        long.set_mtime(0);
        long.set_entry_type(kind);
        put(&mut long.as_old_mut().name, "././@LongLink");
        long.set_size(text.len() as u64 + 1);
        long.set_cksum();
        builder.append(&long, text.as_bytes().chain(&b"\0"[..]))?;
    }
    let fields = header.as_old_mut();
    put(&mut fields.name, name);
    put(&mut fields.linkname, target);
    header.set_cksum();
    builder.append(&header, content)
}

/// Fills a field of a header with as much of `text` as it holds.
fn put(field: &mut [u8; NAME_FIELD_BYTES], text: &str) {
    for (byte, of_text) in field.iter_mut().zip(text.as_bytes()) {
        *byte = *of_text;
    }
}

pub(super) fn refused(name: &str, error: &TreeError) -> EnvironmentError {
    let kind = match error {
        TreeError::Limit(..) => EnvironmentErrorKind::TooLarge,
        _ => EnvironmentErrorKind::InvalidInput,
    };
    EnvironmentError::new(kind, format!("cannot take {name}: {error}"))
}

fn invalid(name: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::InvalidInput,
        format!("cannot take {name}: {reason}"),
    )
}

fn unwritable(error: &std::io::Error) -> EnvironmentError {
    io(&format!("cannot write the archive: {error}"))
}

fn malformed(error: &std::io::Error) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::InvalidInput,
        format!("the archive is not a tar file or is damaged: {error}"),
    )
}

fn io(message: &str) -> EnvironmentError {
    EnvironmentError::new(EnvironmentErrorKind::Io, message)
}

#[cfg(test)]
mod tests;
