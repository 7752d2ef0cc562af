//! Limits of a tree, and why it could not do what was asked.

use std::fmt;

/// Limits of a [`Tree`]; every one is finite so that a runaway script fails
/// with a sentence instead of exhausting the memory of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Bytes of all file contents together.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files, directories and links together.
    pub entries: u64,
    /// Bytes of one path.
    pub path_bytes: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            total_bytes: 512 << 20,
            file_bytes: 256 << 20,
            entries: 1_000_000,
            path_bytes: 4096,
        }
    }
}

/// Why the tree could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// Nothing is at the path.
    NotFound,
    /// A component of the path is not a directory.
    NotDirectory,
    /// The path is a directory where a file was expected.
    IsDirectory,
    /// Something is at the path already.
    Exists,
    /// The directory holds entries.
    NotEmpty,
    /// Too many symbolic links on the way.
    LinkLoop,
    /// The operation makes no sense for the path.
    Invalid(&'static str),
    /// A limit was reached: its name and value.
    Limit(&'static str, u64),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file or directory"),
            Self::NotDirectory => f.write_str("not a directory"),
            Self::IsDirectory => f.write_str("is a directory"),
            Self::Exists => f.write_str("file exists"),
            Self::NotEmpty => f.write_str("directory not empty"),
            Self::LinkLoop => f.write_str("too many levels of symbolic links"),
            Self::Invalid(reason) => f.write_str(reason),
            Self::Limit(what, value) => write!(f, "the sandbox limit on {what} is {value}"),
        }
    }
}
