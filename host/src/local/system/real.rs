//! Where a path leads on a real file system, also when nothing is there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};

use crate::local::failure::failure;

/// Links followed before it is a loop, as on Linux.
const MAX_LINKS: u32 = 40;

/// `path`, which is absolute, with every link on it followed. What does not
/// exist stays as it is named.
pub(super) fn real_path(path: &Path, shown: &str) -> Result<String, EnvironmentError> {
    let real = follow_links(path).map_err(|error| failure("follow the links of", shown, &error))?;
    real.into_os_string().into_string().map_err(|real| {
        let real = real.to_string_lossy();
        EnvironmentError::new(
            Kind::InvalidInput,
            format!(
                "cannot follow the links of `{shown}`: it leads to `{real}`, which is not UTF-8"
            ),
        )
    })
}

/// As [`real_path`], of any name.
///
/// # Errors
/// A loop of links, or a directory that cannot be looked into.
pub(crate) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            follow(path)
        }
        result => result,
    }
}

/// Component by component, as the system does when it makes a file.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut done = PathBuf::from("/");
    let mut pending = names(path);
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            done.pop();
            continue;
        }
        done.push(&name);
        // Fails for what is no link, and for what is not there.
        let target = match fs::read_link(&done) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) => continue,
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(nix::libc::ELOOP));
        }
        done.pop();
        if target.is_absolute() {
            done = PathBuf::from("/");
        }
        pending.extend(names(&target));
    }
    Ok(done)
}

/// The names on `path`, last one first.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
}
