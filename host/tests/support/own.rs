//! An environment as a consumer of the crate writes it: the required methods of
//! `HostEnvironment` over a directory, and none of the provided ones.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, ExecRequest,
    ExecStatus, Metadata, OutputStream,
};
use hermitcrab_host::{CancellationToken, ExecIo, HostEnvironment};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// How long a command that was told to end may take.
const GRACE: Duration = Duration::from_secs(2);

/// What is still in the pipes of an ended command arrives within this.
const SILENCE: Duration = Duration::from_millis(100);

/// Runs tools in one directory.
pub struct OwnEnvironment {
    directory: PathBuf,
}

impl OwnEnvironment {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// Does `work` on the real path of `path`; it fails in a sentence that
    /// names `path`.
    async fn at<T: Send + 'static>(
        &self,
        verb: &'static str,
        path: &str,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, EnvironmentError> {
        let real = self.directory.join(path);
        tokio::task::spawn_blocking(move || work(&real))
            .await
            .unwrap_or_else(|ended| Err(io::Error::other(ended)))
            .map_err(|error| failure(verb, path, &error))
    }
}

#[async_trait]
impl HostEnvironment for OwnEnvironment {
    fn info(&self) -> EnvironmentInfo {
        EnvironmentInfo {
            working_directory: self.directory.to_string_lossy().into_owned(),
            platform: "linux".to_owned(),
            os_version: String::new(),
            utc_offset_minutes: 0,
            bounds: String::new(),
            warning: String::new(),
        }
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError> {
        let read = move |path: &Path| {
            let metadata = path.metadata()?;
            match metadata.is_file() || metadata.is_dir() {
                false => Err(io::Error::other("not a regular file")),
                true if metadata.is_file() && metadata.len() > max_bytes => {
                    Err(io::ErrorKind::FileTooLarge.into())
                }
                true => std::fs::read(path).map(Bytes::from),
            }
        };
        self.at("read", path, read).await
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        let write = move |path: &Path| {
            // A link is followed; what it leads to is replaced at once, or not at all.
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            if path.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let parent = path.parent().unwrap_or(&path);
            std::fs::create_dir_all(parent)?;
            let mut written = tempfile::NamedTempFile::new_in(parent)?;
            io::Write::write_all(&mut written, &content)?;
            if let Ok(metadata) = path.metadata() {
                written.as_file().set_permissions(metadata.permissions())?;
            }
            written.persist(&path)?;
            Ok(())
        };
        self.at("write", path, write).await
    }

    async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError> {
        let stat = |path: &Path| {
            path.metadata().map(|metadata| Metadata {
                is_dir: metadata.is_dir(),
                size: if metadata.is_dir() { 0 } else { metadata.len() },
                modified_ms: modified_ms(&metadata),
            })
        };
        self.at("look at", path, stat).await
    }

    async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        let list = move |path: &Path| {
            let mut entries = Vec::new();
            collect(path, "", depth.max(1), &mut entries)?;
            entries.sort_by(|a, b| a.path.cmp(&b.path));
            Ok(Entries {
                entries,
                truncated: false,
            })
        };
        self.at("list", path, list).await
    }

    async fn remove(&self, path: &str) -> Result<(), EnvironmentError> {
        let remove = |path: &Path| match path.symlink_metadata()?.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        self.at("remove", path, remove).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError> {
        let target = self.directory.join(to);
        let rename = move |path: &Path| {
            path.symlink_metadata()?;
            std::fs::create_dir_all(target.parent().unwrap_or(&target))?;
            std::fs::rename(path, &target)
        };
        self.at("rename", from, rename).await
    }

    async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        let make = |path: &Path| std::fs::create_dir_all(path);
        self.at("make directory", path, make).await
    }

    async fn exec(
        &self,
        request: ExecRequest,
        io: ExecIo<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let started = Instant::now();
        let place = request.working_dir.as_deref().unwrap_or_default();
        let directory = self.directory.join(place);
        if !directory.is_dir() {
            let missing = io::ErrorKind::NotFound.into();
            return Err(failure("run a command in", place, &missing));
        }
        let not_run = |error| failure("run", &request.command, &error);
        let mut child = Command::new("/bin/bash")
            .args(["-c", &request.command])
            .current_dir(directory)
            .envs(&request.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(not_run)?;
        let group = Group::of(&child);
        let (sender, mut chunks) = mpsc::channel(8);
        pump(child.stdout.take(), OutputStream::Stdout, sender.clone());
        pump(child.stderr.take(), OutputStream::Stderr, sender);
        let end = {
            let mut end = pin!(end(&mut child, &group, request.timeout_ms, &io.cancel));
            loop {
                tokio::select! {
                    end = &mut end => break end.map_err(not_run)?,
                    Some((stream, data)) = chunks.recv() => io.output.write(stream, data).await,
                }
            }
        };
        // What it left behind would hold the pipes.
        drop(group);
        while let Ok(Some((stream, data))) = tokio::time::timeout(SILENCE, chunks.recv()).await {
            io.output.write(stream, data).await;
        }
        Ok(ExecStatus {
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..end
        })
    }
}

/// The processes of a command. Dropped, it kills them.
struct Group(Pid);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.expect("a child that nobody has waited for has an id");
        Self(Pid::from_raw(id))
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = killpg(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// Waits for a command, and ends it when its time is over or it is cancelled.
async fn end(
    child: &mut Child,
    group: &Group,
    timeout_ms: u64,
    cancel: &CancellationToken,
) -> io::Result<ExecStatus> {
    let over = async {
        match timeout_ms {
            0 => std::future::pending().await,
            limit => tokio::time::sleep(Duration::from_millis(limit)).await,
        }
    };
    let cancelled = tokio::select! {
        status = child.wait() => return status.map(|status| ExecStatus {
            exit_code: exit_code(status),
            ..ExecStatus::default()
        }),
        () = over => false,
        () = cancel.cancelled() => true,
    };
    group.signal(Signal::SIGTERM);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        group.signal(Signal::SIGKILL);
    }
    let status = child.wait().await?;
    Ok(ExecStatus {
        exit_code: if cancelled { exit_code(status) } else { 124 },
        timed_out: !cancelled,
        cancelled,
        ..ExecStatus::default()
    })
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Reads a pipe to its end.
fn pump<R: AsyncRead + Unpin + Send + 'static>(
    pipe: Option<R>,
    stream: OutputStream,
    chunks: mpsc::Sender<(OutputStream, Bytes)>,
) {
    tokio::spawn(async move {
        let mut pipe = pipe.expect("it was asked for");
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            let data = Bytes::copy_from_slice(&buffer[..length]);
            if chunks.send((stream, data)).await.is_err() {
                break;
            }
        }
    });
}

fn collect(
    directory: &Path,
    prefix: &str,
    depth: u32,
    entries: &mut Vec<DirEntry>,
) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let is_dir = entry.file_type()?.is_dir();
        let metadata = entry.path().metadata().ok();
        entries.push(DirEntry {
            is_dir,
            size: metadata.as_ref().filter(|m| m.is_file()).map(|m| m.len()),
            modified_ms: metadata.as_ref().and_then(modified_ms),
            path: path.clone(),
        });
        if is_dir && depth > 1 {
            collect(&entry.path(), &format!("{path}/"), depth - 1, entries)?;
        }
    }
    Ok(())
}

fn modified_ms(metadata: &std::fs::Metadata) -> Option<u64> {
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

fn failure(verb: &str, what: &str, error: &io::Error) -> EnvironmentError {
    use EnvironmentErrorKind as Kind;
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        io::ErrorKind::PermissionDenied => Kind::PermissionDenied,
        io::ErrorKind::IsADirectory => Kind::IsDirectory,
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Kind::NotDirectory,
        io::ErrorKind::FileTooLarge => Kind::TooLarge,
        _ => Kind::Io,
    };
    EnvironmentError::new(kind, format!("cannot {verb} `{what}`: {error}"))
}
