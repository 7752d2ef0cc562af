//! Programs that the host lends to the in-memory shell.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Scope;

/// One call of a lent program: everything it may see goes in, changes come out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramRequest {
    /// Number of the environment whose files it sees.
    pub environment: u32,
    /// Name it was lent under, such as `python3`.
    pub name: String,
    /// Arguments after the name.
    pub args: Vec<String>,
    /// Exported variables.
    pub env: BTreeMap<String, String>,
    /// Absolute working directory.
    pub working_dir: String,
    /// Standard input.
    #[serde(with = "crate::text::blob")]
    pub stdin: Bytes,
    /// State of the files that `changes` lead from, as an earlier call of this
    /// program named it; `None`: from nothing, `changes` hold all files.
    pub since: Option<u64>,
    /// State of the files that `changes` lead to; a number used once in this
    /// environment.
    pub state: u64,
    /// Files changed since `since`, sorted by path.
    pub changes: Vec<FileChange>,
}

/// One changed path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Absolute path without `..`.
    pub path: String,
    /// What is there now.
    pub node: FileNode,
    /// Permission bits of a file or a directory; `None`: those of what is there,
    /// or of a new one. Told of every file and directory.
    pub mode: Option<u32>,
}

impl FileChange {
    /// `node` at `path`, with the permission bits that are there.
    pub fn new(path: impl Into<String>, node: FileNode) -> Self {
        Self {
            path: path.into(),
            node,
            mode: None,
        }
    }
}

/// What a changed path holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileNode {
    /// A file with this content.
    File(#[serde(with = "crate::text::blob")] Bytes),
    /// A directory.
    Directory,
    /// A symbolic link to this path, which starts with `/` or where the link is.
    Link(String),
    /// Nothing any more.
    Removed,
}

/// How a lent program ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Exit code; 127 when the host lends no such program.
    pub exit_code: i32,
    /// Standard output.
    #[serde(with = "crate::text::blob")]
    pub stdout: Bytes,
    /// Standard error.
    #[serde(with = "crate::text::blob")]
    pub stderr: Bytes,
    /// What it changed; applied in order, last writer wins.
    pub changes: Vec<FileChange>,
    /// What the program still knows of the files.
    pub files: ProgramFiles,
}

/// What a lent program knows of the files after a call. One that keeps nothing
/// between calls says [`Missing`](Self::Missing) to every `since`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramFiles {
    /// What it was sent, and its own changes.
    #[default]
    Kept,
    /// Nothing that can be relied on: the next call tells everything.
    Lost,
    /// It does not have the state that `since` names, and has not run: it is
    /// called again, with all files.
    Missing,
}

impl ProgramResult {
    /// A failure with a sentence on standard error, no changes, and no word on
    /// what the program knows.
    pub fn failed(exit_code: i32, stderr: impl Into<String>) -> Self {
        Self {
            exit_code,
            stderr: Bytes::from(stderr.into()),
            files: ProgramFiles::Lost,
            ..Self::default()
        }
    }
}

/// The way out for lent programs, implemented by effects.
#[async_trait(?Send)]
pub trait ProgramPort {
    /// Runs one program to its end.
    async fn run(&self, scope: &Scope, request: ProgramRequest) -> ProgramResult;

    /// Resolves after `ms` of host time, so that a time limit can end a program.
    /// The default never does: a program then ends by itself or by cancellation.
    async fn sleep(&self, scope: &Scope, ms: u64) {
        let _ = (scope, ms);
        std::future::pending::<()>().await;
    }
}
