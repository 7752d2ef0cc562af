//! Programs that the host lends to the in-memory shell (DESIGN §5).

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;

use super::Scope;

/// One call of a lent program: everything it may see goes in, changes come out.
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub stdin: Bytes,
    /// Files changed since this program's last call in this environment,
    /// sorted by path; all files at its first call. A `None` content is a removal.
    pub changes: Vec<FileChange>,
}

/// One changed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Absolute path without `..`.
    pub path: String,
    /// What is there now.
    pub node: FileNode,
}

/// What a changed path holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileNode {
    /// A file with this content.
    File(Bytes),
    /// A directory.
    Directory,
    /// Nothing any more.
    Removed,
}

/// How a lent program ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramResult {
    /// Exit code; 127 when the host lends no such program.
    pub exit_code: i32,
    /// Standard output.
    pub stdout: Bytes,
    /// Standard error.
    pub stderr: Bytes,
    /// What it changed; applied in order, last writer wins.
    pub changes: Vec<FileChange>,
}

impl ProgramResult {
    /// A failure with a sentence on standard error and no changes.
    pub fn failed(exit_code: i32, stderr: impl Into<String>) -> Self {
        Self {
            exit_code,
            stderr: Bytes::from(stderr.into()),
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
