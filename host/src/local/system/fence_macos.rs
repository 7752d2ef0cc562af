//! The fence of macOS: commands run under `sandbox-exec` with a profile of ours.
//! Written after its manual page and untested.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::local::Sandbox;
use crate::local::sandbox::Bounds;

const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The bounds of an environment's commands.
#[derive(Debug)]
pub(super) struct Fence {
    before_shell: Vec<CString>,
}

impl Fence {
    /// The fence for `bounds` around `directory`; none where it is off.
    ///
    /// # Errors
    /// One sentence: the system lacks what it needs.
    pub(super) fn new(bounds: &Bounds, directory: &Path) -> Result<Option<Self>, String> {
        let mut writable = Vec::new();
        match bounds.sandbox {
            Sandbox::Off => return Ok(None),
            Sandbox::ReadOnly => {}
            Sandbox::WorkspaceWrite => {
                writable.push(directory.to_owned());
                writable.extend(bounds.writable.iter().cloned());
                writable.extend(match &bounds.temporary {
                    Some(directories) => directories.clone(),
                    None => vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()],
                });
            }
        }
        if !Path::new(PROGRAM).exists() {
            return Err(format!("there is no {PROGRAM}"));
        }
        let profile = profile(&writable, bounds.network);
        let text = |text: Vec<u8>| CString::new(text).map_err(|error| error.to_string());
        let before_shell = vec![text(PROGRAM.into())?, text(b"-p".to_vec())?, text(profile)?];
        Ok(Some(Self { before_shell }))
    }

    /// What stands before the shell of a command.
    pub(super) fn before_shell(&self) -> &[CString] {
        &self.before_shell
    }

    /// Nothing of it is missing.
    pub(super) fn lacks(&self) -> Option<String> {
        None
    }

    /// Whether file tools can be bounded, too: a profile bounds a whole process.
    pub(super) fn bounds_threads(&self) -> bool {
        false
    }

    /// Nothing: the program before the shell bounds it.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything is allowed but changes outside of `writable`, and the network.
fn profile(writable: &[PathBuf], network: bool) -> Vec<u8> {
    let mut profile = b"(version 1)\n(allow default)\n(deny file-write*)\n\
        (allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))\n"
        .to_vec();
    for path in writable {
        // The system compares paths without links, such as /private/tmp.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        profile.extend_from_slice(b"(allow file-write* (subpath \"");
        for byte in path.as_os_str().as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                profile.push(b'\\');
            }
            profile.push(*byte);
        }
        profile.extend_from_slice(b"\"))\n");
    }
    if !network {
        profile.extend_from_slice(b"(deny network*)\n");
    }
    profile
}
