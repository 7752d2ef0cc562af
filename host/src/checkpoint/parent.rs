//! `Parent`: the directory of a path, held so that no link leads elsewhere.

use std::ffi::OsString;
use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// The directory that a path is in.
pub(super) struct Parent {
    dir: Dir,
    name: OsString,
}

enum Dir {
    /// Open: what happens to its name does not matter any more.
    #[cfg(target_os = "linux")]
    Held(OwnedFd),
    /// By its name, which was looked at.
    Named(PathBuf),
}

impl Parent {
    /// Of `path`, which is absolute.
    ///
    /// # Errors
    /// It is not there, or a part of its name is a link: what was noted of `path` was
    /// noted of another directory.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (dir, name) = split(path)?;
        let dir = open(dir)?;
        Ok(Self { dir, name })
    }

    /// As [`Parent::of`]; what is missing of it is made.
    ///
    /// # Errors
    /// As there; or it cannot be made.
    pub(super) fn made(path: &Path) -> io::Result<Self> {
        let (dir, name) = split(path)?;
        let dir = match open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(Self::made(dir)?.path())?;
                open(dir)?
            }
            opened => opened?,
        };
        Ok(Self { dir, name })
    }

    /// A name of the path that leads through this directory.
    pub(super) fn path(&self) -> PathBuf {
        self.beside(&self.name)
    }

    /// A name of another file of this directory.
    pub(super) fn beside(&self, name: impl AsRef<Path>) -> PathBuf {
        let dir = match &self.dir {
            #[cfg(target_os = "linux")]
            Dir::Held(dir) => PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())),
            Dir::Named(dir) => dir.clone(),
        };
        dir.join(name)
    }
}

fn split(path: &Path) -> io::Result<(&Path, OsString)> {
    match (path.parent(), path.file_name()) {
        (Some(dir), Some(name)) => Ok((dir, name.to_owned())),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn moved() -> io::Error {
    io::Error::other("a directory above it is a link now")
}

#[cfg(target_os = "linux")]
fn open(dir: &Path) -> io::Result<Dir> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(AT_FDCWD, dir, how) {
        Ok(dir) => Ok(Dir::Held(dir)),
        Err(Errno::ELOOP) => Err(moved()),
        // Older than Linux 5.6, or a container's filter that does not know it.
        Err(Errno::ENOSYS | Errno::EPERM) => named(dir),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open(dir: &Path) -> io::Result<Dir> {
    named(dir)
}

fn named(dir: &Path) -> io::Result<Dir> {
    match fs::canonicalize(dir)? == dir {
        true => Ok(Dir::Named(dir.to_owned())),
        false => Err(moved()),
    }
}
