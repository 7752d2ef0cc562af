//! `State`: what is at a path.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use nix::libc;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What is at a path, as far as it can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Permission bits.
        mode: u32,
        /// SHA-256 of its content, hexadecimal.
        hash: String,
        /// Bytes.
        length: u64,
        /// User and group, if they are not those of this process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
    },
    /// A file that was too large to look at.
    Large {
        /// Permission bits.
        mode: u32,
        /// Bytes.
        length: u64,
        /// Change of the inode, in ns since 1970.
        changed_ns: i128,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as it says.
        target: String,
    },
    /// A directory.
    Dir {
        /// Permission bits.
        mode: u32,
        /// As of a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
    },
    /// A pipe, a device, or what cannot be read.
    Other,
    /// Something that was not looked at: a file that was ignored, or came from outside.
    Unseen,
}

impl State {
    /// What is at `path`, and its content if it is a file of at most `max_bytes`.
    pub(super) fn of(path: &Path, max_bytes: u64) -> (Self, Option<Vec<u8>>) {
        match Self::looked_at(path, max_bytes) {
            Ok(state) => state,
            Err(error) if is_absent(&error) => (Self::Absent, None),
            Err(_) => (Self::Other, None),
        }
    }

    fn looked_at(path: &Path, max_bytes: u64) -> io::Result<(Self, Option<Vec<u8>>)> {
        let metadata = fs::symlink_metadata(path)?;
        let mode = metadata.permissions().mode() & 0o7777;
        let owner = owner(&metadata);
        let kind = metadata.file_type();
        if kind.is_dir() {
            return Ok((Self::Dir { mode, owner }, None));
        }
        if kind.is_symlink() {
            let target = fs::read_link(path)?;
            let target = target.to_str().map(str::to_owned);
            return Ok(match target {
                Some(target) => (Self::Link { target }, None),
                None => (Self::Other, None),
            });
        }
        if !kind.is_file() {
            return Ok((Self::Other, None));
        }
        let large = Self::Large {
            mode,
            length: metadata.len(),
            changed_ns: changed_ns(&metadata),
        };
        if metadata.len() > max_bytes {
            return Ok((large, None));
        }
        let mut content = Vec::new();
        // It may have grown meanwhile.
        let file = fs::File::open(path)?;
        file.take(max_bytes + 1).read_to_end(&mut content)?;
        if content.len() as u64 > max_bytes {
            return Ok((large, None));
        }
        let file = Self::File {
            mode,
            hash: hash(&content),
            length: content.len() as u64,
            owner,
        };
        Ok((file, Some(content)))
    }

    /// In a word or two.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Absent => "not there",
            Self::File { .. } | Self::Large { .. } => "a file",
            Self::Link { .. } => "a link",
            Self::Dir { .. } => "a directory",
            Self::Other => "neither a file that can be read nor a link nor a directory",
            Self::Unseen => "not looked at before: it was ignored, or came from elsewhere",
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Who a file belongs to, if that is not who a new file would belong to.
fn owner(metadata: &Metadata) -> Option<(u32, u32)> {
    let owner = (metadata.uid(), metadata.gid());
    (owner != own()).then_some(owner)
}

/// The user and group of this process, which a new file belongs to.
pub(super) fn own() -> (u32, u32) {
    // SAFETY: both take nothing and return plain numbers.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

pub(super) fn changed_ns(metadata: &Metadata) -> i128 {
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

pub(super) fn hash(content: &[u8]) -> String {
    use std::fmt::Write as _;

    Sha256::digest(content)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// `path` as text, if it is UTF-8; nothing else is kept.
pub(super) fn text(path: &Path) -> Option<&str> {
    std::str::from_utf8(path.as_os_str().as_bytes()).ok()
}
