//! Replacing a file so that the old content survives every failure.
//!
//! The usual way is a new file beside the old one that takes its name: a full
//! disk, a quota or a kill leaves the old file untouched, and no reader sees
//! half of it. That would break what belongs to the old file itself, so a file
//! with several names (hard links), of another owner, with attributes such as an access
//! control list, or in a directory where
//! we cannot make or rename files (a single file mounted into a container) is
//! written in place: the part that makes it longer first, because that is what
//! can run out of space, then the rest.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hermitcrab::environment::EnvironmentError;
use nix::libc;

use super::files::{make_parents, refuse_special};
use crate::local::failure::failure;

/// Replaces or creates the file at `path`.
pub(super) fn write(path: &Path, shown: &str, content: &[u8]) -> Result<(), EnvironmentError> {
    let fail = |error: io::Error| failure("write", shown, &error);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_parents(path, shown)?;
            return create(path, content).map_err(fail);
        }
        Err(error) => return Err(fail(error)),
    };
    refuse_special("write", shown, &metadata)?;
    // Opened to learn whether we may write, which renaming would not ask.
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(fail)?;
    let replaced = if !stays_in_place(path, &metadata) {
        let target = fs::canonicalize(path).map_err(fail)?;
        replace(&target, &metadata, content).map_err(fail)?
    } else {
        Replaced::Refused
    };
    match replaced {
        Replaced::Done => Ok(()),
        Replaced::Refused => overwrite(&file, metadata.len(), content).map_err(fail),
    }
}

/// A new file; removed again if it cannot be completed. `path` may also be a
/// symbolic link to nowhere, then its target is made.
fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(content).inspect_err(|_| {
        let _ = fs::canonicalize(path).and_then(fs::remove_file);
    })
}

/// Whether a new file with its name would lack something that belongs to the file at
/// `path` itself.
pub(crate) fn stays_in_place(path: &Path, metadata: &Metadata) -> bool {
    // SAFETY: takes and returns plain numbers.
    let is_own = metadata.uid() == unsafe { libc::geteuid() };
    !is_own || metadata.nlink() > 1 || has_attributes(path)
}

/// Whether it has extended attributes but its label of SELinux, which a new file gets, too.
#[cfg(target_os = "linux")]
fn has_attributes(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;

    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let mut names = vec![0_u8; 4096];
    // SAFETY: a C string, and a buffer of the length that is given.
    let length = unsafe { libc::listxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    match usize::try_from(length) {
        Ok(length) => names[..length.min(names.len())]
            .split(|byte| *byte == 0)
            .any(|name| !name.is_empty() && name != b"security.selinux"),
        // More names than that; other errors are of file systems without any.
        Err(_) => io::Error::last_os_error().raw_os_error() == Some(libc::ERANGE),
    }
}

/// On macOS nearly every file has some that a new file gets, too.
#[cfg(not(target_os = "linux"))]
fn has_attributes(_: &Path) -> bool {
    false
}

enum Replaced {
    Done,
    /// The directory does not allow it; nothing has changed.
    Refused,
}

fn replace(target: &Path, old: &Metadata, content: &[u8]) -> io::Result<Replaced> {
    let beside = temporary_name(target);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if refused(&error) => return Ok(Replaced::Refused),
        Err(error) => return Err(error),
    };
    let result = file
        .write_all(content)
        .and_then(|()| keep_group(&file, old.gid()))
        .and_then(|()| file.set_permissions(Permissions::from_mode(old.mode())))
        .and_then(|()| fs::rename(&beside, target));
    match result {
        Ok(()) => Ok(Replaced::Done),
        Err(error) => {
            let _ = fs::remove_file(&beside);
            match refused(&error) {
                true => Ok(Replaced::Refused),
                false => Err(error),
            }
        }
    }
}

fn keep_group(file: &File, group: u32) -> io::Result<()> {
    match file.metadata()?.gid() == group {
        true => Ok(()),
        false => fchown(file, None, Some(group)),
    }
}

fn refused(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
            | io::ErrorKind::CrossesDevices
            | io::ErrorKind::InvalidFilename
    )
}

/// A hidden name in the same directory, of no other writer.
fn temporary_name(target: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    target.with_file_name(format!(".hermitcrab-{process}-{number}.tmp"))
}

/// In place, the growth first.
fn overwrite(file: &File, old_length: u64, content: &[u8]) -> io::Result<()> {
    let split = usize::try_from(old_length)
        .unwrap_or(usize::MAX)
        .min(content.len());
    let (over, beyond) = content.split_at(split);
    if let Err(error) = file.write_all_at(beyond, old_length) {
        file.set_len(old_length)?;
        return Err(error);
    }
    file.write_all_at(over, 0)?;
    file.set_len(content.len() as u64)
}
