//! `HostEnvironment`: an execution environment outside the sealed core.
//!
//! The core asks for files and commands as data ([`EnvironmentCall`],
//! [`ExecRequest`]); a host environment answers. [`crate::LocalEnvironment`] is
//! one; Docker, SSH or a remote machine are others that you can write.
//! Source: spec 4.1 to 4.3.

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, GlobRequest, GrepRequest, Matches, Metadata,
    OutputStream,
};
use tokio_util::sync::CancellationToken;

/// Where the tools of a session run.
///
/// Required are the facts ([`info`](Self::info)), the file calls and
/// [`exec`](Self::exec); search and life cycle have defaults.
///
/// # Contract
///
/// - **Paths** are `/`-separated. A relative path starts at
///   `info().working_directory`, an absolute one is taken as it is; `~` and
///   variables are not expanded. An empty path is the working directory where a
///   directory makes sense.
/// - **Concurrency.** Calls arrive in parallel, from several sessions. No call
///   may wait for another one to end.
/// - **Failures** that a model can react to (a missing file, a bad pattern) are
///   [`EnvironmentError`]s whose message is one sentence that names the path,
///   command or pattern, starts lower case and has no full stop at the end. A
///   command that fails is not an error but an [`ExecStatus`].
/// - **Cancelling a file or search call** is dropping its future. What it has
///   changed so far may stay, but no file may be left half written.
/// - **Cancelling a command** is firing [`ExecIo::cancel`]; see [`exec`](Self::exec).
///   Dropping the future of `exec` must end the command too.
/// - **Do not block the thread** for longer than a small file takes to read:
///   other effects of the same instance share it.
#[async_trait]
pub trait HostEnvironment: Send + Sync {
    /// What the environment is. Asked once, when it is given to an instance;
    /// fixed from then on.
    fn info(&self) -> EnvironmentInfo;

    /// The model of a session that works here has answered: the calls of its next round
    /// follow. Called by the driver before they begin; must return at once.
    fn answered(&self) {}

    /// The whole content of a regular file. More than `max_bytes` bytes is
    /// [`EnvironmentErrorKind::TooLarge`], a directory is
    /// [`EnvironmentErrorKind::IsDirectory`]; a pipe, socket or device is an
    /// error and never a hang.
    async fn read(&self, path: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError>;

    /// Replaces or creates a file and makes missing parent directories. An
    /// existing file keeps its permission bits; a symbolic link is followed. If
    /// it fails, the old content is still there.
    async fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError>;

    /// At most `max_bytes` bytes of a file from `offset` on: fewer only at its
    /// end, none behind it. The default answers
    /// [`EnvironmentErrorKind::Unsupported`]: files that are too large for
    /// [`read`](Self::read) are then not read.
    async fn read_part(
        &self,
        path: &str,
        offset: u64,
        max_bytes: u64,
    ) -> Result<Bytes, EnvironmentError> {
        let _ = (offset, max_bytes);
        Err(EnvironmentError::new(
            EnvironmentErrorKind::Unsupported,
            format!("this environment does not read files in parts (path `{path}`)"),
        ))
    }

    /// Facts of one path, symbolic links followed.
    async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError>;

    /// Where a path leads: absolute, `.` and `..` resolved, every symbolic link
    /// followed. What does not exist stays as it is named, so that it tells
    /// where a new file would come to be. The default answers
    /// [`EnvironmentErrorKind::Unsupported`], and the core takes paths as they
    /// are: implement it where there are symbolic links, or checks that a path
    /// stays within the workspace do not see them.
    async fn real_path(&self, path: &str) -> Result<String, EnvironmentError> {
        Err(EnvironmentError::new(
            EnvironmentErrorKind::Unsupported,
            format!("this environment does not follow symbolic links (path `{path}`)"),
        ))
    }

    /// Entries below a directory, `depth` levels deep (1: the directory itself;
    /// 0 is taken as 1), hidden ones included, sorted by their relative path as
    /// a string. A symbolic link to a directory is not descended into.
    async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError>;

    /// Removes a file, a symbolic link itself, or a directory with all it holds.
    async fn remove(&self, path: &str) -> Result<(), EnvironmentError>;

    /// Renames a file or directory, replacing an existing file and making
    /// missing parent directories of `to`.
    async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError>;

    /// Makes a directory and its parents; fine if it exists.
    async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError>;

    /// Searches file contents. The default answers
    /// [`EnvironmentErrorKind::Unsupported`], and the core searches on top of
    /// [`list`](Self::list) and [`read`](Self::read): implement it where a round
    /// trip per file is too slow.
    async fn grep(&self, request: GrepRequest) -> Result<Matches, EnvironmentError> {
        Err(unsupported("grep", &request.pattern))
    }

    /// Finds files by name; the default is as for [`grep`](Self::grep).
    async fn glob(&self, request: GlobRequest) -> Result<Entries, EnvironmentError> {
        Err(unsupported("glob", &request.pattern))
    }

    /// Runs before the first use by a session. Must be fine to run twice.
    async fn initialize(&self) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Runs when the last session closes. Must be fine to run twice.
    async fn cleanup(&self) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Runs one command from pristine shell state, like `bash -c`, with an empty
    /// standard input.
    ///
    /// Output goes to [`ExecIo::output`] as it arrives, in chunks of any size;
    /// awaiting the writer is the back-pressure, so memory stays bounded however
    /// much a command prints. All output has been handed over when `exec`
    /// returns.
    ///
    /// After `request.timeout_ms` (0: no limit), or when [`ExecIo::cancel`]
    /// fires, the command gets 2 s to end after a polite signal, is then killed
    /// with everything it started, and `exec` returns within 2.5 s with what had
    /// arrived: `timed_out` and exit code 124, or `cancelled`. It never waits for
    /// the end of a pipe that somebody else holds open.
    ///
    /// An error means that the command did not start.
    async fn exec(
        &self,
        request: ExecRequest,
        io: ExecIo<'_>,
    ) -> Result<ExecStatus, EnvironmentError>;

    /// Answers a call given as data, by the methods above.
    async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        use EnvironmentCall as Call;
        use EnvironmentReply as Reply;
        Ok(match call {
            Call::Initialize => self.initialize().await.map(|()| Reply::Done)?,
            Call::Cleanup => self.cleanup().await.map(|()| Reply::Done)?,
            Call::Read { path, max_bytes } => Reply::Bytes(self.read(&path, max_bytes).await?),
            Call::ReadPart {
                path,
                offset,
                max_bytes,
            } => Reply::Bytes(self.read_part(&path, offset, max_bytes).await?),
            Call::Write { path, content } => {
                self.write(&path, content).await.map(|()| Reply::Done)?
            }
            Call::Stat { path } => Reply::Stat(self.stat(&path).await?),
            Call::RealPath { path } => Reply::Path(self.real_path(&path).await?),
            Call::List { path, depth } => Reply::Entries(self.list(&path, depth).await?),
            Call::Remove { path } => self.remove(&path).await.map(|()| Reply::Done)?,
            Call::Rename { from, to } => self.rename(&from, &to).await.map(|()| Reply::Done)?,
            Call::MakeDir { path } => self.make_dir(&path).await.map(|()| Reply::Done)?,
            Call::Grep(request) => Reply::Matches(self.grep(request).await?),
            Call::Glob(request) => Reply::Entries(self.glob(request).await?),
        })
    }
}

/// What a command is connected to.
pub struct ExecIo<'a> {
    /// Takes the output as it arrives.
    pub output: &'a mut dyn OutputWriter,
    /// Ends the command early when it fires.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for ExecIo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecIo")
            .field("cancelled", &self.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Takes the output of a command. A closure `FnMut(OutputStream, Bytes)` that
/// does not wait is one.
#[async_trait]
pub trait OutputWriter: Send {
    /// Takes one chunk; returns when the next one may come.
    async fn write(&mut self, stream: OutputStream, data: Bytes);
}

#[async_trait]
impl<F: FnMut(OutputStream, Bytes) + Send> OutputWriter for F {
    async fn write(&mut self, stream: OutputStream, data: Bytes) {
        self(stream, data);
    }
}

/// Refuses a path that no system has.
///
/// # Errors
/// It holds a NUL byte.
pub(crate) fn without_nul(path: &str) -> Result<&str, EnvironmentError> {
    match path.contains('\0') {
        false => Ok(path),
        true => Err(EnvironmentError::new(
            EnvironmentErrorKind::InvalidInput,
            format!("the path `{}` holds a NUL byte", path.replace('\0', "\\0")),
        )),
    }
}

fn unsupported(call: &str, pattern: &str) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::Unsupported,
        format!("this environment has no {call} of its own (pattern `{pattern}`)"),
    )
}
