//! `LocalEnvironment` on Linux and macOS: the calls, and which thread they run on.
//!
//! A small file is read or written where the call runs: reading 10 KB takes 3 µs
//! and writing it 60 µs, while moving the work to another thread costs some
//! 10 µs and, when all are busy, a wait. Large files, listings, removals and
//! searches run on tokio's blocking threads.

mod denial;
mod exec;
mod facts;
mod family;
#[cfg_attr(target_os = "macos", path = "fence_macos.rs")]
mod fence;
mod files;
mod guardian;
mod hands;
mod kin;
mod policy;
mod real;
mod search;
mod spawn;
mod stop;
mod terminal;
mod watch;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    Entries, EnvironmentError, EnvironmentErrorKind as Kind, EnvironmentInfo, ExecRequest,
    ExecStatus, GlobRequest, GrepRequest, Matches, Metadata, OutputStream,
};

use super::LocalBuilder;
use super::failure::failure;
use super::sandbox::Bounds;
use crate::environment::{ExecIo, HostEnvironment, OutputWriter, without_nul};
use denial::Signs;
use exec::Command;
use fence::Fence;
pub use guardian::Guardian;
pub(in crate::local) use guardian::Table;
use hands::Hands;
pub(crate) use real::follow_links;
use stop::Stop;
pub(crate) use write::stays_in_place;

/// Up to this size, in bytes, files are read and written without changing thread.
const SMALL: u64 = 256 * 1024;

/// Runs tools on this machine, in one working directory.
///
/// Commands run under `/bin/bash -c` (`/bin/sh -c` where there is no bash), each
/// in a new session without a terminal, with an empty standard input.
/// What a command leaves in the background after it has ended by itself lives
/// on, as in a shell, but its output is read for at most about 100 ms of silence
/// more: redirect the output of a server to a file. A command that is ended by
/// its time limit or by a cancel takes everything it started with it, except
/// what has deliberately become a daemon (`setsid` and an ended parent). When the
/// host itself is killed (SIGKILL, out of memory), its commands go on unless a
/// [`Guardian`] watches them.
pub struct LocalEnvironment {
    info: EnvironmentInfo,
    directory: PathBuf,
    shell: &'static CStr,
    variables: BTreeMap<OsString, OsString>,
    /// The same, as the system takes them.
    environment: Vec<CString>,
    guardian: Option<Table>,
    fence: Option<Arc<Fence>>,
    /// Whether commands write to a terminal.
    terminal: bool,
    /// Who changes files, if there is a fence.
    hands: Option<Hands>,
    /// What the fence lets through.
    allowed: String,
    unfenced: Option<String>,
}

impl LocalEnvironment {
    /// The environment of `directory` with the default settings.
    ///
    /// # Errors
    /// As [`LocalBuilder::build`].
    pub fn new(directory: impl Into<PathBuf>) -> Result<Self, EnvironmentError> {
        Self::builder(directory).build()
    }

    /// Settings for an environment of `directory`.
    pub fn builder(directory: impl Into<PathBuf>) -> LocalBuilder {
        LocalBuilder::new(directory)
    }

    /// Why commands or file tools run without the [`Sandbox`](crate::Sandbox) that was
    /// asked for; None when they have it or none was asked for.
    pub fn unfenced(&self) -> Option<&str> {
        self.unfenced.as_deref()
    }

    /// `path` on the machine; an empty one is the working directory.
    fn resolve(&self, path: &str) -> Result<PathBuf, EnvironmentError> {
        Ok(self.directory.join(without_nul(path)?))
    }

    /// Changes files, within the fence if there is one.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, EnvironmentError> + Send + 'static,
    ) -> Result<T, EnvironmentError> {
        match &self.hands {
            Some(hands) => hands.run(work).await,
            None => blocking(work).await,
        }
    }

    fn variables_with(&self, request: &ExecRequest) -> Cow<'_, [CString]> {
        if request.env.is_empty() {
            return Cow::Borrowed(&self.environment);
        }
        Cow::Owned(policy::strings(&policy::with(
            &self.variables,
            &request.env,
        )))
    }
}

impl LocalBuilder {
    /// The environment.
    ///
    /// # Errors
    /// One sentence when the directory does not exist, is not a directory or
    /// cannot be entered, when its path is not UTF-8, or when this platform is
    /// not supported.
    pub fn build(self) -> Result<LocalEnvironment, EnvironmentError> {
        let shown = self.directory.to_string_lossy().into_owned();
        // A directory that may not be entered has no `.`.
        let directory = std::fs::canonicalize(&self.directory)
            .and_then(|path| path.join(".").metadata().map(|_| path))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotADirectory => EnvironmentError::new(
                    Kind::NotDirectory,
                    format!("cannot work in `{shown}`: it is not a directory"),
                ),
                _ => failure("work in", &shown, &error),
            })?;
        let Some(working_directory) = directory.to_str() else {
            return Err(EnvironmentError::new(
                Kind::InvalidInput,
                format!("cannot work in `{shown}`: its path is not UTF-8"),
            ));
        };
        let variables =
            policy::select(std::env::vars_os(), self.policy, &self.secrets, &self.extra);
        let allowed = denial::allowed(&self.bounds, &directory);
        let Fenced {
            fence,
            hands,
            unfenced,
        } = Fenced::new(&self.bounds, &directory, &allowed);
        let bounds = match (&fence, &*allowed) {
            (Some(_), clause) => format!("{}{}.", clause[..1].to_uppercase(), &clause[1..]),
            (None, _) => String::new(),
        };
        let warning = unfenced.as_ref().map_or_else(String::new, |why| {
            format!("the sandbox that was asked for is not there: {why}")
        });
        let info = EnvironmentInfo {
            working_directory: working_directory.to_owned(),
            platform: facts::platform().to_owned(),
            os_version: facts::os_version(),
            utc_offset_minutes: facts::utc_offset_minutes(),
            bounds,
            warning,
        };
        Ok(LocalEnvironment {
            fence,
            hands,
            allowed,
            unfenced,
            info,
            directory,
            shell: if Path::new("/bin/bash").exists() {
                c"/bin/bash"
            } else {
                c"/bin/sh"
            },
            environment: policy::strings(&variables),
            variables,
            guardian: self.guardian,
            terminal: self.terminal,
        })
    }
}

/// What [`Bounds`] lead to on this system.
struct Fenced {
    fence: Option<Arc<Fence>>,
    hands: Option<Hands>,
    unfenced: Option<String>,
}

impl Fenced {
    fn new(bounds: &Bounds, directory: &Path, allowed: &str) -> Self {
        let without = |unfenced| Self {
            fence: None,
            hands: None,
            unfenced,
        };
        let fence = match Fence::new(bounds, directory) {
            Ok(Some(fence)) => Arc::new(fence),
            Ok(None) => return without(None),
            Err(reason) => return without(Some(reason)),
        };
        if !fence.bounds_threads() {
            let unfenced = "on this system it bounds commands only, not the file tools";
            return Self {
                fence: Some(fence),
                hands: None,
                unfenced: Some(unfenced.to_owned()),
            };
        }
        match Hands::new(fence.clone(), allowed.to_owned()) {
            Ok(hands) => Self {
                unfenced: fence.lacks(),
                fence: Some(fence),
                hands: Some(hands),
            },
            Err(reason) => without(Some(reason)),
        }
    }
}

impl fmt::Debug for LocalEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnvironment")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl HostEnvironment for LocalEnvironment {
    fn info(&self) -> EnvironmentInfo {
        self.info.clone()
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError> {
        let (file, length) = files::open_regular(&self.resolve(path)?, path)?;
        if length.min(max_bytes) <= SMALL {
            return files::read_all(file, length, max_bytes, path);
        }
        let shown = path.to_owned();
        blocking(move || files::read_all(file, length, max_bytes, &shown)).await
    }

    async fn read_part(
        &self,
        path: &str,
        offset: u64,
        max_bytes: u64,
    ) -> Result<Bytes, EnvironmentError> {
        let (file, _) = files::open_regular(&self.resolve(path)?, path)?;
        if max_bytes <= SMALL {
            return files::read_part(file, offset, max_bytes, path);
        }
        let shown = path.to_owned();
        blocking(move || files::read_part(file, offset, max_bytes, &shown)).await
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        let target = self.resolve(path)?;
        if content.len() as u64 <= SMALL && self.hands.is_none() {
            return write::write(&target, path, &content);
        }
        let shown = path.to_owned();
        self.change(move || write::write(&target, &shown, &content))
            .await
    }

    async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError> {
        files::stat(&self.resolve(path)?, path)
    }

    async fn real_path(&self, path: &str) -> Result<String, EnvironmentError> {
        real::real_path(&self.resolve(path)?, path)
    }

    async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        let root = self.resolve(path)?;
        let shown = path.to_owned();
        let (stop, _guard) = Stop::new();
        blocking(move || files::list(&root, &shown, depth, &stop)).await
    }

    async fn remove(&self, path: &str) -> Result<(), EnvironmentError> {
        let target = self.resolve(path)?;
        let shown = path.to_owned();
        self.change(move || files::remove(&target, &shown)).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError> {
        let (source, target) = (self.resolve(from)?, self.resolve(to)?);
        if self.hands.is_none() {
            return files::rename(&source, &target, from, to);
        }
        let (from, to) = (from.to_owned(), to.to_owned());
        self.change(move || files::rename(&source, &target, &from, &to))
            .await
    }

    async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        let target = self.resolve(path)?;
        if self.hands.is_none() {
            return files::make_dir(&target, path);
        }
        let shown = path.to_owned();
        self.change(move || files::make_dir(&target, &shown)).await
    }

    async fn grep(&self, request: GrepRequest) -> Result<Matches, EnvironmentError> {
        self.resolve(&request.path)?;
        let directory = self.directory.clone();
        let (stop, _guard) = Stop::new();
        blocking(move || search::grep(&directory, &request, &stop)).await
    }

    async fn glob(&self, request: GlobRequest) -> Result<Entries, EnvironmentError> {
        self.resolve(&request.path)?;
        let directory = self.directory.clone();
        let (stop, _guard) = Stop::new();
        blocking(move || search::glob(&directory, &request, &stop)).await
    }

    async fn exec(
        &self,
        request: ExecRequest,
        io: ExecIo<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let shown = request.working_dir.as_deref().unwrap_or_default();
        let directory = self.resolve(shown)?;
        // Told apart here: the shell and the directory fail with the same error.
        let kind = std::fs::metadata(&directory);
        if !kind.is_ok_and(|metadata| metadata.is_dir()) {
            return Err(EnvironmentError::new(
                Kind::NotFound,
                match shown {
                    "" => format!(
                        "cannot run a command: the working directory `{}` is gone",
                        self.directory.display()
                    ),
                    shown => format!("cannot run a command in `{shown}`: no such directory"),
                },
            ));
        }
        let directory = c_string("working directory", directory.into_os_string())?;
        let line = c_string("command", OsStr::new(&request.command).to_owned())?;
        let command = Command {
            shell: self.shell,
            line: &line,
            environment: &self.variables_with(&request),
            directory: &directory,
            guardian: self.guardian.as_ref(),
            fence: self.fence.as_deref(),
            terminal: self.terminal,
            timeout: (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms)),
        };
        let ran = match self.fence {
            Some(_) => fenced(command, io, &self.allowed).await,
            None => exec::run(command, io).await,
        };
        ran.map_err(|error| not_started(&request.command, &error))
    }
}

/// Output on its way, looked through.
struct Looking<'a> {
    output: &'a mut dyn OutputWriter,
    signs: Signs,
}

#[async_trait]
impl OutputWriter for Looking<'_> {
    async fn write(&mut self, stream: OutputStream, data: Bytes) {
        self.signs.look(&data);
        self.output.write(stream, data).await;
    }
}

/// Runs a command within a fence and, if it seems to have failed at that, says what is
/// `allowed`.
async fn fenced(command: Command<'_>, io: ExecIo<'_>, allowed: &str) -> io::Result<ExecStatus> {
    let mut looking = Looking {
        output: io.output,
        signs: Signs::new(),
    };
    let io = ExecIo {
        output: &mut looking,
        cancel: io.cancel,
    };
    let status = exec::run(command, io).await?;
    if status.exit_code != 0 && looking.signs.were_seen() {
        let note = format!("hermitcrab: {allowed}\n");
        looking
            .output
            .write(OutputStream::Stderr, note.into())
            .await;
    }
    Ok(status)
}

fn c_string(what: &str, text: OsString) -> Result<CString, EnvironmentError> {
    CString::new(text.into_vec()).map_err(|error| {
        let shown = OsStr::from_bytes(&error.into_vec())
            .to_string_lossy()
            .replace('\0', "\\0");
        EnvironmentError::new(
            Kind::InvalidInput,
            format!("the {what} `{shown}` holds a NUL byte"),
        )
    })
}

fn not_started(command: &str, error: &io::Error) -> EnvironmentError {
    if error.kind() == io::ErrorKind::ArgumentListTooLong {
        return EnvironmentError::new(
            Kind::TooLarge,
            format!(
                "the command is too long for the system ({} bytes); write it to a file and run that",
                command.len()
            ),
        );
    }
    failure("run", command.lines().next().unwrap_or_default(), error)
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EnvironmentError> + Send + 'static,
) -> Result<T, EnvironmentError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(EnvironmentError::new(
            Kind::Io,
            "the runtime shut down before the call was done",
        ))
    })
}
