//! The file calls by the standard library. Synchronous.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentError, EnvironmentErrorKind as Kind, Metadata,
};

use super::paths;
use crate::local::failure::failure;

/// More entries than this are cut off a listing.
const MAX_ENTRIES: usize = 100_000;

fn regular(path: &Path, shown: &str) -> Result<fs::File, EnvironmentError> {
    let fail = |error: io::Error| failure("read", shown, &error);
    if fs::metadata(path).map_err(fail)?.is_dir() {
        return Err(fail(io::ErrorKind::IsADirectory.into()));
    }
    fs::File::open(path).map_err(fail)
}

pub(super) fn read(path: &Path, shown: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError> {
    let mut content = Vec::new();
    regular(path, shown)?
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| failure("read", shown, &error))?;
    if content.len() as u64 > max_bytes {
        let message = format!("cannot read `{shown}`: it is larger than {max_bytes} bytes");
        return Err(EnvironmentError::new(Kind::TooLarge, message));
    }
    Ok(content.into())
}

pub(super) fn read_part(
    path: &Path,
    shown: &str,
    offset: u64,
    max_bytes: u64,
) -> Result<Bytes, EnvironmentError> {
    let mut file = regular(path, shown)?;
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(offset))
        .and_then(|_| file.take(max_bytes).read_to_end(&mut content))
        .map_err(|error| failure("read", shown, &error))?;
    Ok(content.into())
}

/// Through a file beside it, which takes its place at once; a link is followed.
pub(super) fn write(path: &Path, shown: &str, content: &[u8]) -> Result<(), EnvironmentError> {
    let fail = |error: io::Error| failure("write", shown, &error);
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.is_dir() {
        return Err(fail(io::ErrorKind::IsADirectory.into()));
    }
    let above = path.parent().unwrap_or(&path);
    fs::create_dir_all(above).map_err(fail)?;
    let mut aside = tempfile::NamedTempFile::new_in(above).map_err(fail)?;
    aside.write_all(content).map_err(fail)?;
    aside.persist(&path).map_err(|error| fail(error.error))?;
    Ok(())
}

pub(super) fn stat(path: &Path, shown: &str) -> Result<Metadata, EnvironmentError> {
    let metadata = fs::metadata(path).map_err(|error| failure("look at", shown, &error))?;
    Ok(Metadata {
        is_dir: metadata.is_dir(),
        size: if metadata.is_dir() { 0 } else { metadata.len() },
        modified_ms: modified_ms(&metadata),
    })
}

fn modified_ms(metadata: &fs::Metadata) -> Option<u64> {
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// What exists is followed; the rest of the path stays as it is named.
pub(super) fn real_path(path: &Path, shown: &str) -> Result<String, EnvironmentError> {
    let mut known = path;
    let mut rest = Vec::new();
    let real = loop {
        match fs::canonicalize(known) {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(above), Some(name)) = (known.parent(), known.file_name()) else {
                    return Err(failure("follow", shown, &error));
                };
                rest.push(name);
                known = above;
            }
            Err(error) => return Err(failure("follow", shown, &error)),
        }
    };
    let whole = rest.iter().rev().fold(real, |path, name| path.join(name));
    paths::from_windows(&whole).ok_or_else(|| {
        let message = format!("cannot follow `{shown}`: it leads to no drive");
        EnvironmentError::new(Kind::InvalidInput, message)
    })
}

pub(super) fn list(path: &Path, shown: &str, depth: u32) -> Result<Entries, EnvironmentError> {
    let top = fs::read_dir(path).map_err(|error| failure("list", shown, &error))?;
    let mut found = Entries::default();
    let mut waiting = vec![(top, String::new(), depth.max(1))];
    while let Some((directory, prefix, depth)) = waiting.pop() {
        for entry in directory.flatten() {
            if found.entries.len() == MAX_ENTRIES {
                found.truncated = true;
                waiting.clear();
                break;
            }
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let metadata = match is_link {
                true => fs::metadata(entry.path()).ok(),
                false => entry.metadata().ok(),
            };
            let is_dir = !is_link && metadata.as_ref().is_some_and(fs::Metadata::is_dir);
            let is_file = metadata.as_ref().is_some_and(fs::Metadata::is_file);
            if is_dir
                && depth > 1
                && let Ok(below) = fs::read_dir(entry.path())
            {
                waiting.push((below, format!("{path}/"), depth - 1));
            }
            found.entries.push(DirEntry {
                path,
                is_dir,
                size: metadata.as_ref().filter(|_| is_file).map(fs::Metadata::len),
                modified_ms: metadata.as_ref().and_then(modified_ms),
            });
        }
    }
    found.entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

pub(super) fn remove(path: &Path, shown: &str) -> Result<(), EnvironmentError> {
    fs::symlink_metadata(path)
        .and_then(|metadata| match metadata.is_dir() {
            true => fs::remove_dir_all(path),
            // A link to a directory is removed as one.
            false => fs::remove_file(path).or_else(|_| fs::remove_dir(path)),
        })
        .map_err(|error| failure("remove", shown, &error))
}

pub(super) fn rename(
    from: &Path,
    to: &Path,
    shown_from: &str,
    shown_to: &str,
) -> Result<(), EnvironmentError> {
    fs::symlink_metadata(from).map_err(|error| failure("rename", shown_from, &error))?;
    let renamed = match to.parent() {
        Some(above) => fs::create_dir_all(above),
        None => Ok(()),
    };
    renamed
        .and_then(|()| fs::rename(from, to))
        .map_err(|error| failure(&format!("rename `{shown_from}` to"), shown_to, &error))
}

pub(super) fn make_dir(path: &Path, shown: &str) -> Result<(), EnvironmentError> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => EnvironmentError::new(
            Kind::NotDirectory,
            format!("cannot make directory `{shown}`: a file has that name"),
        ),
        _ => failure("make directory", shown, &error),
    })
}
