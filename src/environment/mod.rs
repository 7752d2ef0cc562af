//! Where tools run: the execution environment that tools see, as data.
//!
//! An environment answers two kinds of request: a short [`EnvironmentCall`]
//! and a streamed command ([`ExecRequest`]). It never decides what a tool
//! does; it never talks to a model. Source: spec 4.1.

mod cancel;
mod directory;
pub(crate) mod git;
mod handle;
mod program;
mod remote;
pub(crate) mod search;
#[cfg(test)]
pub(crate) mod testing;
mod wrapper;

pub(crate) use cancel::{Cancel, CancelGuard, CancelReason};
pub(crate) use directory::DirectoryEnvironment;
pub use handle::Environment;
pub(crate) use handle::{absolute_path, is_within};
pub(crate) use program::ProgramPort;
pub use program::{FileChange, FileNode, ProgramFiles, ProgramRequest, ProgramResult};
pub use remote::{EnvironmentPort, RemoteEnvironment};
pub use search::PathGlob;
pub(crate) use search::{glob_files, grep_files};
pub(crate) use wrapper::VariablesEnvironment;
pub use wrapper::{LoggingEnvironment, ReadOnlyEnvironment};

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Where tools run. Two required answers besides the metadata, so that a
/// wrapper is two `match`es and a remote environment is a message.
///
/// Contract: paths are `/`-separated; relative paths start at the working
/// directory. An environment without symbolic links may answer `RealPath` with
/// [`EnvironmentErrorKind::Unsupported`]. Every call returns exactly once, also after `scope.cancel`
/// fires: within 2.5 s, with what had arrived.
#[async_trait(?Send)]
pub trait ExecutionEnvironment {
    /// What the environment is; fixed for its life.
    fn info(&self) -> &EnvironmentInfo;

    /// Answers one call. An environment that cannot search answers `Grep` and
    /// `Glob` with [`EnvironmentErrorKind::Unsupported`]; [`Environment`] then
    /// searches on top of `List` and `Read`.
    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError>;

    /// Runs one command from pristine shell state, like `bash -c`. Output goes
    /// to `output` as it arrives, in chunks of any size.
    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError>;
}

/// On whose behalf a call is made, and what ends it early.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Id of the session that the host opened, or of its job: who is asked on
    /// the host's side.
    pub owner: Rc<str>,
    /// The subagent of that session that makes the call, if one does.
    pub agent: Option<Rc<str>>,
    /// Ends the call early.
    pub cancel: Cancel,
    /// The call may go on when the input that began it has ended; then nobody waits for
    /// it but the end of the session.
    pub in_background: bool,
}

impl Scope {
    /// A scope for `owner` that nothing has cancelled yet.
    pub fn new(owner: impl Into<Rc<str>>) -> Self {
        Self {
            owner: owner.into(),
            agent: None,
            cancel: Cancel::new(),
            in_background: false,
        }
    }
}

/// Fixed facts of an environment (spec 4.1 "Metadata"), given at open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentInfo {
    /// Absolute path that relative paths start at.
    pub working_directory: String,
    /// `darwin`, `linux`, `windows` or `wasm`.
    pub platform: String,
    /// Version of the operating system, free text.
    #[serde(default)]
    pub os_version: String,
    /// Minutes east of UTC of the user's clock, for dates in prompts.
    #[serde(default)]
    pub utc_offset_minutes: i32,
    /// What tools may not do here, one or two sentences; the model gets them. Empty:
    /// nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bounds: String,
    /// What a person should know before tools run, such as a sandbox that is missing:
    /// a session says it as a `WARNING` with the code `environment`. Empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warning: String,
}

/// One short request to an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum EnvironmentCall {
    /// Prepare the environment; sent once before its first use by a session.
    Initialize,
    /// Release what `Initialize` took; sent once when the last session closes.
    Cleanup,
    /// Whole content of a file → [`EnvironmentReply::Bytes`].
    Read {
        /// File to read.
        path: String,
        /// More bytes than this answer [`EnvironmentErrorKind::TooLarge`].
        max_bytes: u64,
    },
    /// A part of a file → [`EnvironmentReply::Bytes`]: `max_bytes` bytes from
    /// `offset` on, fewer only at its end, none behind it. An environment may
    /// answer [`EnvironmentErrorKind::Unsupported`]; files that are too large
    /// for `Read` are then not read.
    ReadPart {
        /// File to read.
        path: String,
        /// Bytes before the part.
        offset: u64,
        /// Bytes of the part.
        max_bytes: u64,
    },
    /// Replace or create a file, with parents → [`EnvironmentReply::Done`].
    /// An existing file keeps its permission bits; a symbolic link is followed.
    Write {
        /// File to write.
        path: String,
        /// The new content.
        #[serde(with = "crate::text::blob")]
        content: Bytes,
    },
    /// Facts of one path, links followed → [`EnvironmentReply::Stat`].
    Stat {
        /// Path to look at.
        path: String,
    },
    /// Where a path leads: absolute, every symbolic link on it followed →
    /// [`EnvironmentReply::Path`]. What does not exist stays as it is named, so
    /// that it tells where a new file would come to be.
    RealPath {
        /// Path to follow.
        path: String,
    },
    /// Entries below a directory → [`EnvironmentReply::Entries`], sorted by path.
    List {
        /// Directory to list.
        path: String,
        /// 1 lists the directory itself, 2 its subdirectories too, and so on.
        depth: u32,
    },
    /// Remove a file, or a directory with all it holds → `Done`.
    Remove {
        /// Path to remove.
        path: String,
    },
    /// Rename a file or directory, replacing an existing file → `Done`.
    Rename {
        /// Existing path.
        from: String,
        /// New path.
        to: String,
    },
    /// Make a directory and its parents; fine if it exists → `Done`.
    MakeDir {
        /// Directory to make.
        path: String,
    },
    /// Search contents → [`EnvironmentReply::Matches`].
    Grep(GrepRequest),
    /// Find files by name → [`EnvironmentReply::Entries`], newest first, ties by path.
    Glob(GlobRequest),
}

impl EnvironmentCall {
    /// Whether the call changes files.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Self::Write { .. } | Self::Remove { .. } | Self::Rename { .. } | Self::MakeDir { .. }
        )
    }
}

/// What to search for (spec 3.3 `grep`). Regular expressions are those of
/// Rust's `regex` crate, as in ripgrep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GrepRequest {
    /// Regular expression, matched line by line.
    pub pattern: String,
    /// File or directory to search; empty: the working directory.
    pub path: String,
    /// Only files whose path matches this glob (`*.py`, `src/**/*.rs`).
    pub glob_filter: Option<String>,
    /// Ignore case.
    pub case_insensitive: bool,
    /// Stop after this many matching lines over all files; 0: no limit.
    pub max_results: u64,
}

/// Which files to find (spec 3.3 `glob`). Symbolic links to files are found,
/// links to directories are not descended into, as ripgrep and the reference
/// agents do: a link upwards would never end, and one out of the tree would
/// list another one. `path` itself may be a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GlobRequest {
    /// Glob with `**`; without a `/` it matches file names at any depth.
    pub pattern: String,
    /// Directory to search; empty: the working directory.
    pub path: String,
    /// Stop after this many files; 0: no limit.
    pub max_results: u64,
}

/// Answer to an [`EnvironmentCall`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "value", rename_all = "snake_case")]
pub enum EnvironmentReply {
    /// The call took effect.
    Done,
    /// Content of a file.
    Bytes(#[serde(with = "crate::text::blob")] Bytes),
    /// Facts of a path.
    Stat(Metadata),
    /// Where a path leads.
    Path(String),
    /// Directory entries or found files.
    Entries(Entries),
    /// Matching lines.
    Matches(Matches),
}

/// Facts of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Size in bytes; 0 for a directory.
    pub size: u64,
    /// Last change, ms since 1970-01-01 UTC, if known.
    pub modified_ms: Option<u64>,
}

/// One entry of a listing (spec 4.1 `DirEntry`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirEntry {
    /// For `List`: path relative to the listed directory. For `Glob`: path
    /// relative to the working directory when below it, else absolute.
    pub path: String,
    /// Whether it is a directory. A symbolic link to a directory is not
    /// descended into and counts as a file.
    pub is_dir: bool,
    /// Size in bytes, of files; of a symbolic link that of the file it leads
    /// to, and none where it leads to no file.
    pub size: Option<u64>,
    /// Last change, ms since 1970-01-01 UTC, if known.
    pub modified_ms: Option<u64>,
}

/// A listing, perhaps cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// The entries, in the order that the call promises.
    pub entries: Vec<DirEntry>,
    /// Whether a limit or a timeout left something out.
    pub truncated: bool,
}

/// One matching line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// Path relative to the working directory when below it, else absolute.
    pub path: String,
    /// 1-based line number.
    pub line: u64,
    /// The line without its line ending; invalid UTF-8 becomes U+FFFD. A line
    /// of more than 4 KiB may be cut.
    pub text: String,
}

/// Result of a search, perhaps cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matches {
    /// Matching lines, by path, then line.
    pub matches: Vec<Match>,
    /// Whether a limit or a timeout left something out.
    pub truncated: bool,
}

/// One command (spec 4.1 `exec_command`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// Command line for `bash -c`.
    pub command: String,
    /// Time limit in ms; the environment ends the command after it.
    pub timeout_ms: u64,
    /// Directory to run in; none: the environment's working directory.
    pub working_dir: Option<String>,
    /// Variables added to the command's environment.
    pub env: BTreeMap<String, String>,
}

/// Which pipe a chunk of output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes chunks of output as they arrive.
pub type OutputSink<'a> = dyn FnMut(OutputStream, &[u8]) + 'a;

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecStatus {
    /// Exit code; 128 + n for a command ended by signal n; 124 on timeout.
    pub exit_code: i32,
    /// The time limit ended it.
    pub timed_out: bool,
    /// `Scope::cancel` ended it.
    pub cancelled: bool,
    /// Time it took in ms: wall clock, or virtual time in the sandbox.
    pub duration_ms: u64,
}

/// Why an environment could not do what was asked. Models read the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentError {
    /// What kind of failure.
    pub kind: EnvironmentErrorKind,
    /// One sentence that names the path, command or pattern; lower case, no full stop.
    pub message: String,
}

/// Kinds of [`EnvironmentError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EnvironmentErrorKind {
    /// The path does not exist.
    NotFound,
    /// Not allowed by the operating system or by policy.
    PermissionDenied,
    /// A file was expected.
    IsDirectory,
    /// A directory was expected.
    NotDirectory,
    /// Writes are disabled.
    ReadOnly,
    /// A pattern, path or argument makes no sense.
    InvalidInput,
    /// A configured limit was reached.
    TooLarge,
    /// The environment cannot do this.
    Unsupported,
    /// Ended by [`Scope::cancel`].
    Cancelled,
    /// Anything else.
    Io,
}

impl EnvironmentError {
    /// An error of `kind` with its sentence.
    pub fn new(kind: EnvironmentErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EnvironmentError {}
