//! The file calls on a real file system. Synchronous; the caller decides on
//! which thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentError, EnvironmentErrorKind as Kind, Metadata,
};
use nix::libc;

use super::Stop;
use crate::local::failure::failure;

/// Reserved before reading, bytes, whatever a (sparse) file says its length is.
const MAX_RESERVED: u64 = 64 * 1024 * 1024;
/// More entries than this are cut off a listing.
const MAX_ENTRIES: usize = 100_000;

/// Opens a regular file; anything else is an error and never a hang.
pub(super) fn open_regular(path: &Path, shown: &str) -> Result<(File, u64), EnvironmentError> {
    let fail = |error: io::Error| failure("read", shown, &error);
    // Looked at first: opening some devices has effects.
    refuse_special("read", shown, &fs::metadata(path).map_err(fail)?)?;
    open_found(path, shown)
}

/// Opens what was a regular file a moment ago, as [`open_regular`] does.
pub(super) fn open_found(path: &Path, shown: &str) -> Result<(File, u64), EnvironmentError> {
    let fail = |error: io::Error| failure("read", shown, &error);
    let file = OpenOptions::new()
        .read(true)
        // Something else may have taken the name by now; a pipe would block.
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    refuse_special("read", shown, &metadata)?;
    Ok((file, metadata.len()))
}

/// Reads what [`open_regular`] opened; `length` is a hint, files in `/proc` say 0.
pub(super) fn read_all(
    file: File,
    length: u64,
    max_bytes: u64,
    shown: &str,
) -> Result<Bytes, EnvironmentError> {
    let too_large = || {
        EnvironmentError::new(
            Kind::TooLarge,
            format!("cannot read `{shown}`: it is larger than {max_bytes} bytes"),
        )
    };
    if length > max_bytes {
        return Err(too_large());
    }
    // One more, so that the end is seen without growing.
    let expected = usize::try_from(length.min(MAX_RESERVED)).unwrap_or(0) + 1;
    let mut content = Vec::with_capacity(expected);
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| failure("read", shown, &error))?;
    if content.len() as u64 > max_bytes {
        return Err(too_large());
    }
    Ok(content.into())
}

/// Reads a part of what [`open_regular`] opened.
pub(super) fn read_part(
    mut file: File,
    offset: u64,
    max_bytes: u64,
    shown: &str,
) -> Result<Bytes, EnvironmentError> {
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(offset))
        .and_then(|_| file.take(max_bytes).read_to_end(&mut content))
        .map_err(|error| failure("read", shown, &error))?;
    Ok(content.into())
}

/// Refuses what is not a regular file.
pub(super) fn refuse_special(
    verb: &str,
    shown: &str,
    metadata: &fs::Metadata,
) -> Result<(), EnvironmentError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(EnvironmentError::new(
            Kind::IsDirectory,
            format!("cannot {verb} `{shown}`: it is a directory"),
        ));
    }
    let what = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(EnvironmentError::new(
        Kind::InvalidInput,
        format!("cannot {verb} `{shown}`: it is {what}, not a regular file"),
    ))
}

/// Facts of a path, links followed.
pub(super) fn stat(path: &Path, shown: &str) -> Result<Metadata, EnvironmentError> {
    let metadata = fs::metadata(path).map_err(|error| failure("look at", shown, &error))?;
    Ok(Metadata {
        is_dir: metadata.is_dir(),
        size: if metadata.is_dir() { 0 } else { metadata.len() },
        modified_ms: modified_ms(&metadata),
    })
}

/// Last change in ms since 1970-01-01 UTC.
fn modified_ms(metadata: &fs::Metadata) -> Option<u64> {
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Entries below `root`, sorted by relative path. What cannot be read below the
/// first level is left out, as it would be by `find`.
pub(super) fn list(
    root: &Path,
    shown: &str,
    depth: u32,
    stop: &Stop,
) -> Result<Entries, EnvironmentError> {
    let top = fs::read_dir(root).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => EnvironmentError::new(
            Kind::NotDirectory,
            format!("cannot list `{shown}`: it is not a directory"),
        ),
        _ => failure("list", shown, &error),
    })?;
    let mut found = Entries::default();
    let mut waiting = vec![(top, String::new(), depth.max(1))];
    while let Some((directory, prefix, depth)) = waiting.pop() {
        for entry in directory.filter_map(Result::ok) {
            if found.entries.len() == MAX_ENTRIES || stop.reached() {
                found.truncated = true;
                waiting.clear();
                break;
            }
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let described = describe(&entry, path);
            if described.is_dir
                && depth > 1
                && let Ok(below) = fs::read_dir(entry.path())
            {
                waiting.push((below, format!("{}/", described.path), depth - 1));
            }
            found.entries.push(described);
        }
    }
    found.entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// A symbolic link counts as a file: with the size of the file it leads to, or
/// without one when it leads to a directory or nowhere.
fn describe(entry: &fs::DirEntry, path: String) -> DirEntry {
    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let metadata = match is_link {
        true => fs::metadata(entry.path()),
        false => entry.metadata(),
    }
    .ok();
    let is_file = metadata.as_ref().is_some_and(|m| !m.is_dir());
    DirEntry {
        path,
        is_dir: !is_link && metadata.as_ref().is_some_and(fs::Metadata::is_dir),
        size: metadata.as_ref().filter(|_| is_file).map(fs::Metadata::len),
        modified_ms: metadata.as_ref().and_then(modified_ms),
    }
}

/// Removes a file, a link itself, or a directory with all it holds.
pub(super) fn remove(path: &Path, shown: &str) -> Result<(), EnvironmentError> {
    fs::symlink_metadata(path)
        .and_then(|metadata| match metadata.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        })
        .map_err(|error| failure("remove", shown, &error))
}

/// Renames a file or directory, making the parents of `to`.
pub(super) fn rename(
    from: &Path,
    to: &Path,
    shown_from: &str,
    shown_to: &str,
) -> Result<(), EnvironmentError> {
    fs::symlink_metadata(from).map_err(|error| failure("rename", shown_from, &error))?;
    make_parents(to, shown_to)?;
    fs::rename(from, to)
        .map_err(|error| failure(&format!("rename `{shown_from}` to"), shown_to, &error))
}

/// Makes a directory and its parents.
pub(super) fn make_dir(path: &Path, shown: &str) -> Result<(), EnvironmentError> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => EnvironmentError::new(
            Kind::NotDirectory,
            format!("cannot make directory `{shown}`: a file has that name"),
        ),
        _ => failure("make directory", shown, &error),
    })
}

/// Makes the directories above `path`.
pub(super) fn make_parents(path: &Path, shown: &str) -> Result<(), EnvironmentError> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent)
            .map_err(|error| failure("make the directories above", shown, &error)),
        None => Ok(()),
    }
}
