//! `LocalEnvironment` on Windows: files by the standard library, commands by `bash` in a
//! Job Object.
//!
//! **Untested.** It follows the contract as far as the compiler can see; it has not run on
//! Windows yet, and says so as its warning.
//!
//! Paths are those of Git for Windows, whose `bash` runs the commands: `/c/Users/me` is
//! `C:\Users\me`. There is no sandbox, and searches are the core's own.

mod exec;
mod files;
#[path = "../unsupported/guardian.rs"]
mod guardian;
mod paths;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    Entries, EnvironmentError, EnvironmentErrorKind as Kind, EnvironmentInfo, ExecRequest,
    ExecStatus, Metadata,
};

use super::LocalBuilder;
use super::env_policy::EnvPolicy;
use super::failure::failure;
use super::sandbox::Sandbox;
use super::secret::looks_secret;
use crate::environment::{ExecIo, HostEnvironment};
pub use guardian::Guardian;
pub(in crate::local) use guardian::Table;

/// What a person reads at the start.
const UNTESTED: &str = "the local environment of Windows has not been tested yet";

/// Runs tools on this machine, in one working directory, by the `bash` of Git for Windows.
///
/// Untested: see the module. A command that is ended takes everything along that it
/// started: all of it is in one Job Object.
pub struct LocalEnvironment {
    info: EnvironmentInfo,
    directory: PathBuf,
    variables: BTreeMap<OsString, OsString>,
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

    /// Why commands run without the [`Sandbox`] that was asked for; none is there on
    /// Windows, and [`LocalBuilder::build`] refuses it.
    pub fn unfenced(&self) -> Option<&str> {
        None
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, EnvironmentError> {
        paths::to_windows(&self.directory, path)
    }
}

impl LocalBuilder {
    /// The environment.
    ///
    /// # Errors
    /// One sentence when the directory does not exist or is not a directory, when its path
    /// is not UTF-8 or has no drive, or when a sandbox is asked for.
    pub fn build(self) -> Result<LocalEnvironment, EnvironmentError> {
        let shown = self.directory.to_string_lossy().into_owned();
        if self.bounds.sandbox != Sandbox::Off {
            return Err(EnvironmentError::new(
                Kind::Unsupported,
                "there is no sandbox around commands on Windows; use the memory environment",
            ));
        }
        let directory = std::fs::canonicalize(&self.directory)
            .map_err(|error| failure("work in", &shown, &error))?;
        if !directory.is_dir() {
            let error = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(failure("work in", &shown, &error));
        }
        let working_directory = paths::from_windows(&directory).ok_or_else(|| {
            EnvironmentError::new(
                Kind::InvalidInput,
                format!("cannot work in `{shown}`: its path has no drive or is not UTF-8"),
            )
        })?;
        let inherits = |name: &OsString, value: &OsString| match self.policy {
            EnvPolicy::All => true,
            EnvPolicy::None => false,
            EnvPolicy::CoreOnly => CORE.iter().any(|core| name.eq_ignore_ascii_case(core)),
            EnvPolicy::Filtered => !looks_secret(name, value),
        };
        let holds_secret = |value: &OsString| {
            let value = value.to_string_lossy();
            self.secrets.iter().any(|secret| value.contains(secret))
        };
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os()
            .filter(|(name, value)| inherits(name, value) && !holds_secret(value))
            .collect();
        variables.extend(self.extra);
        Ok(LocalEnvironment {
            info: EnvironmentInfo {
                working_directory,
                platform: "windows".to_owned(),
                os_version: String::new(),
                utc_offset_minutes: 0,
                bounds: String::new(),
                warning: UNTESTED.to_owned(),
            },
            directory,
            variables,
        })
    }
}

/// Without these no program starts.
const CORE: [&str; 9] = [
    "PATH",
    "PATHEXT",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "HOME",
];

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
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::read(&real, &shown, max_bytes)).await
    }

    async fn read_part(
        &self,
        path: &str,
        offset: u64,
        max_bytes: u64,
    ) -> Result<Bytes, EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::read_part(&real, &shown, offset, max_bytes)).await
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::write(&real, &shown, &content)).await
    }

    async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::stat(&real, &shown)).await
    }

    async fn real_path(&self, path: &str) -> Result<String, EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::real_path(&real, &shown)).await
    }

    async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::list(&real, &shown, depth)).await
    }

    async fn remove(&self, path: &str) -> Result<(), EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::remove(&real, &shown)).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError> {
        let (source, target) = (self.resolve(from)?, self.resolve(to)?);
        let (from, to) = (from.to_owned(), to.to_owned());
        blocking(move || files::rename(&source, &target, &from, &to)).await
    }

    async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        let (real, shown) = (self.resolve(path)?, path.to_owned());
        blocking(move || files::make_dir(&real, &shown)).await
    }

    async fn exec(
        &self,
        request: ExecRequest,
        io: ExecIo<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let directory = self.resolve(request.working_dir.as_deref().unwrap_or_default())?;
        exec::run(&request, &directory, &self.variables, io).await
    }
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
