//! Environments of an instance as the host's users hold them: sandboxes with
//! their files and snapshots, and commands and calls outside of any session.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentReply, ExecRequest,
    ExecStatus, OutputStream,
};
use hermitcrab::memory::{Change, MemoryLimits};
use hermitcrab::session::{InstanceCall, InstanceReply};
use serde_json::{Value, json};

use crate::core::{CommandPolicy, Core as _, out_of_place};
use crate::driver::DriverHandle;
use crate::environment::HostEnvironment;
use crate::error::HostError;
use crate::job::{self, Target};
use crate::program::{Lent, ProgramFn};

/// What a sandbox starts from.
#[derive(Clone)]
pub struct MemoryOptions {
    /// Absolute path that relative paths start at.
    pub working_directory: String,
    /// Minutes east of UTC of the user's clock.
    pub utc_offset_minutes: i32,
    /// Limits.
    pub limits: MemoryLimits,
    /// A tar archive of what the working directory holds.
    pub archive: Option<Bytes>,
    /// Files (path, content) on top of the archive.
    pub files: Vec<(String, Bytes)>,
    /// Programs that the host lends to the shell, by name.
    pub programs: BTreeMap<String, ProgramFn>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        let core = hermitcrab::memory::MemoryOptions::default();
        Self {
            working_directory: core.working_directory,
            utc_offset_minutes: core.utc_offset_minutes,
            limits: core.limits,
            archive: None,
            files: Vec::new(),
            programs: BTreeMap::new(),
        }
    }
}

impl MemoryOptions {
    /// The settings as the core takes them (`wit/hermitcrab.wit`, `memory`).
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "working_directory": self.working_directory,
            "utc_offset_minutes": self.utc_offset_minutes,
            "programs": self.programs.keys().collect::<Vec<_>>(),
            "limits": {
                "total_bytes": self.limits.tree.total_bytes,
                "file_bytes": self.limits.tree.file_bytes,
                "entries": self.limits.tree.entries,
                "path_bytes": self.limits.tree.path_bytes,
                "output_bytes": self.limits.output_bytes,
                "work_bound": self.limits.work_bound,
                "idle_shells": self.limits.idle_shells,
            },
        })
    }
}

impl std::fmt::Debug for MemoryOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryOptions")
            .field("working_directory", &self.working_directory)
            .field("limits", &self.limits)
            .field("programs", &self.programs.keys())
            .finish_non_exhaustive()
    }
}

/// Where the tools of a session run.
#[derive(Clone)]
pub enum EnvironmentChoice {
    /// Outside of the core: [`crate::LocalEnvironment`] or your own.
    Host(Arc<dyn HostEnvironment>),
    /// Inside the core: a new sandbox.
    Memory(MemoryOptions),
    /// One that the instance has already, shared with other sessions.
    Existing(EnvironmentHandle),
}

impl std::fmt::Debug for EnvironmentChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(environment) => f.debug_tuple("Host").field(&environment.info()).finish(),
            Self::Memory(options) => f.debug_tuple("Memory").field(options).finish(),
            Self::Existing(handle) => f.debug_tuple("Existing").field(handle).finish(),
        }
    }
}

/// An environment of an instance. Clones are handles to the same one. Calls
/// that say so work with sandboxes only.
#[derive(Clone)]
pub struct EnvironmentHandle {
    driver: DriverHandle,
    number: u32,
}

/// What a command printed and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutput {
    /// How it ended.
    pub status: ExecStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// A remembered state of a sandbox; forgotten when the last clone is gone.
#[derive(Clone, Debug)]
pub struct Snapshot(Arc<Remembered>);

struct Remembered {
    driver: DriverHandle,
    number: u64,
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        let number = self.number;
        self.driver.send(move |driver| {
            let forget = InstanceCall::ForgetSnapshot { snapshot: number };
            let _ = driver.core.tell(forget);
        });
    }
}

impl EnvironmentHandle {
    pub(crate) fn new(driver: DriverHandle, number: u32) -> Self {
        Self { driver, number }
    }

    /// Number of the environment within its instance.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Rejects writes by tools from now on, and commands unless allowed.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn make_read_only(&self, commands: CommandPolicy) -> Result<(), HostError> {
        let call = InstanceCall::MakeReadOnly {
            environment: self.number,
            allow_commands: commands == CommandPolicy::Allow,
        };
        self.driver.core(|core| core.tell(call)).await
    }

    /// Calls `log` with a line before and after each call from now on, those of
    /// sessions included: `write a.txt (14 bytes)`, then `write a.txt (14 bytes):
    /// ok`; `exec: ls`, then `exit: 0 in 3 ms`. Contents of files and variables
    /// of commands are not in it; a command is there as it is, even one of many
    /// lines. Wrappers lie around each other in the order of these calls: a log
    /// begun after [`make_read_only`](Self::make_read_only) has the calls that
    /// this rejects, too.
    ///
    /// `log` runs on the task that steps the instance, before the result of the
    /// call is given out: it must be quick and not panic. Send lines on that are
    /// worth waiting for.
    ///
    /// # Errors
    /// The instance is dead.
    pub async fn log_calls(&self, log: impl FnMut(&str) + Send + 'static) -> Result<(), HostError> {
        let environment = self.number;
        self.driver
            .call(move |driver| {
                let call = InstanceCall::LogCalls { environment };
                let number = driver.core.small_number(call)?;
                driver.logs.insert(number, Box::new(log));
                Ok(())
            })
            .await
    }

    /// Adds the files of a tar archive below the working directory; all or
    /// none. Sandbox only.
    ///
    /// # Errors
    /// A broken archive, or one that does not fit the limits.
    pub async fn import_tar(&self, archive: impl Into<Bytes>) -> Result<(), HostError> {
        let call = InstanceCall::ImportTar {
            environment: self.number,
            archive: archive.into(),
        };
        self.driver.core(|core| core.tell(call)).await
    }

    /// Adds files (path, content) below the working directory; all or none.
    /// Sandbox only.
    ///
    /// # Errors
    /// A path that cannot be used, or files that do not fit the limits.
    pub async fn import_files(&self, files: Vec<(String, Bytes)>) -> Result<(), HostError> {
        let call = InstanceCall::ImportFiles {
            environment: self.number,
            files,
        };
        self.driver.core(|core| core.tell(call)).await
    }

    /// The working directory as a tar archive. Sandbox only.
    ///
    /// # Errors
    /// The environment is not a sandbox.
    pub async fn export_tar(&self) -> Result<Bytes, HostError> {
        let number = self.number;
        self.driver.core(move |core| core.export_tar(number)).await
    }

    /// After the instance has died: the working directory as it was before the
    /// call that ended it, as a tar archive. To go on, open a sandbox with it as
    /// [`MemoryOptions::archive`], and a session with
    /// [`Controller::recover_record`](crate::Controller::recover_record).
    ///
    /// The first of these calls takes about as long as the instance has worked:
    /// a fresh core gets the inputs of this one again. Sandbox only.
    ///
    /// # Errors
    /// The instance lives, or its inputs were more than
    /// [`CoreLimits::journal_bytes`](crate::CoreLimits::journal_bytes).
    pub async fn recover_tar(&self) -> Result<Bytes, HostError> {
        let number = self.number;
        self.driver
            .call(move |driver| Ok(driver.recovered()?.export_tar(number)?))
            .await
    }

    /// Remembers files, clock and randomness as they are now. Sandbox only.
    ///
    /// # Errors
    /// The environment is not a sandbox.
    pub async fn snapshot(&self) -> Result<Snapshot, HostError> {
        let call = InstanceCall::Snapshot {
            environment: self.number,
        };
        let snapshot = self.driver.core(|core| core.number(call)).await?;
        Ok(Snapshot(Arc::new(Remembered {
            driver: self.driver.clone(),
            number: snapshot,
        })))
    }

    /// A sandbox more that is as this one is now: files, clock, random numbers and lent
    /// programs. Takes constant time. Wrappers stay behind. Sandbox only.
    ///
    /// # Errors
    /// The environment is not a sandbox.
    pub async fn copy(&self) -> Result<Self, HostError> {
        let environment = self.number;
        let copy = self
            .driver
            .call(move |driver| {
                let call = InstanceCall::CopyEnvironment { environment };
                let copy = driver.core.small_number(call)?;
                let lent = driver.programs.get(&environment);
                let programs = lent.map(|lent| lent.programs.clone()).unwrap_or_default();
                driver.programs.insert(copy, Lent::new(programs));
                Ok(copy)
            })
            .await?;
        Ok(Self::new(self.driver.clone(), copy))
    }

    /// Whether it is a sandbox.
    pub(crate) async fn is_sandbox(&self) -> Result<bool, HostError> {
        let number = self.number;
        self.driver
            .call(move |driver| Ok(driver.programs.contains_key(&number)))
            .await
    }

    /// Puts the sandbox back to `snapshot`.
    ///
    /// # Errors
    /// The snapshot is of another instance.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), HostError> {
        let call = InstanceCall::Restore {
            environment: self.number,
            snapshot: self.own(snapshot)?,
        };
        self.driver.core(|core| core.tell(call)).await
    }

    /// What changed since `snapshot`, sorted by path.
    ///
    /// # Errors
    /// The snapshot is of another instance.
    pub async fn changes(&self, snapshot: &Snapshot) -> Result<Vec<Change>, HostError> {
        let call = InstanceCall::Changes {
            environment: self.number,
            snapshot: self.own(snapshot)?,
        };
        self.driver
            .core(|core| match core.call(call)? {
                InstanceReply::Changes(changes) => Ok(changes),
                other => Err(out_of_place("changes", &other)),
            })
            .await
    }

    /// Runs a command to its end, outside of any session.
    ///
    /// # Errors
    /// The command could not be started, or the instance died.
    pub async fn exec(&self, request: ExecRequest) -> Result<ExecOutput, HostError> {
        let mut result = ExecOutput::default();
        let (stdout, stderr) = (&mut result.stdout, &mut result.stderr);
        result.status = self
            .exec_with(request, |stream, data| match stream {
                OutputStream::Stdout => stdout.extend_from_slice(&data),
                OutputStream::Stderr => stderr.extend_from_slice(&data),
            })
            .await?;
        Ok(result)
    }

    /// Runs a command and hands its output over as it comes. Dropping the
    /// future cancels the command; [`exec_until`](Self::exec_until) also tells
    /// how it ended then.
    ///
    /// # Errors
    /// The command could not be started, or the instance died.
    pub async fn exec_with(
        &self,
        request: ExecRequest,
        output: impl FnMut(OutputStream, Bytes),
    ) -> Result<ExecStatus, HostError> {
        self.exec_until(request, output, std::future::pending())
            .await
    }

    /// Runs a command and hands its output over as it comes. When `stop`
    /// resolves, the command is cancelled; it ends within 2.5 s, and its status
    /// says so.
    ///
    /// # Errors
    /// The command could not be started, or the instance died.
    pub async fn exec_until(
        &self,
        request: ExecRequest,
        output: impl FnMut(OutputStream, Bytes),
        stop: impl Future<Output = ()>,
    ) -> Result<ExecStatus, HostError> {
        job::exec(&self.driver, self.target(), request, output, stop).await
    }

    /// Content of a file.
    ///
    /// # Errors
    /// There is no such file.
    pub async fn read(&self, path: &str) -> Result<Bytes, HostError> {
        job::read(&self.driver, self.target(), path).await
    }

    /// Replaces or creates a file, with its parents.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn write(&self, path: &str, content: impl Into<Bytes>) -> Result<(), HostError> {
        job::write(&self.driver, self.target(), path, content.into()).await
    }

    /// Makes any call, outside of any session.
    ///
    /// # Errors
    /// What the environment answers.
    pub async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, HostError> {
        job::call(&self.driver, self.target(), call).await
    }

    fn target(&self) -> Target {
        Target::Environment(self.number)
    }

    fn own(&self, snapshot: &Snapshot) -> Result<u64, HostError> {
        if self.driver.same(&snapshot.0.driver) {
            return Ok(snapshot.0.number);
        }
        let error = "the snapshot belongs to another instance";
        Err(EnvironmentError::new(EnvironmentErrorKind::InvalidInput, error).into())
    }
}

impl std::fmt::Debug for EnvironmentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvironmentHandle")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
