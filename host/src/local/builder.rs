//! Settings of a local environment; the same on every platform.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::env_policy::EnvPolicy;
use super::sandbox::Bounds;
use super::{Guardian, Sandbox, Table};

/// Settings of a [`LocalEnvironment`](crate::LocalEnvironment).
#[derive(Clone, Default)]
pub struct LocalBuilder {
    pub(super) directory: PathBuf,
    pub(super) policy: EnvPolicy,
    pub(super) secrets: Vec<String>,
    pub(super) extra: BTreeMap<OsString, OsString>,
    pub(super) guardian: Option<Table>,
    pub(super) bounds: Bounds,
    pub(super) terminal: bool,
}

impl LocalBuilder {
    pub(super) fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            ..Self::default()
        }
    }

    /// What commands inherit; [`EnvPolicy::Filtered`] by default.
    pub fn env_policy(mut self, policy: EnvPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Values that no command may inherit under any name or policy, such as
    /// [`crate::Credentials::secrets`].
    pub fn secrets(mut self, secrets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let secrets = secrets.into_iter().map(Into::into);
        self.secrets
            .extend(secrets.filter(|secret: &String| !secret.is_empty()));
        self
    }

    /// A variable given to every command, whatever the policy: also the way to
    /// let one through that looks like a secret.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// Has `guardian` end commands that this process leaves behind when it is
    /// killed. Without one they go on.
    pub fn guardian(mut self, guardian: &Guardian) -> Self {
        self.guardian = Some(guardian.table());
        self
    }

    /// Gives commands a terminal of 80 columns for standard output and standard error, which
    /// then arrive as one: programs that look for one write as they do for a person. It
    /// translates nothing, and nobody types: standard input stays empty.
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// What commands and file tools may change; [`Sandbox::Off`] by default. In a
    /// sandbox commands have no network unless [`LocalBuilder::network`] is called.
    /// Where the system has no fence, they run without one;
    /// [`LocalEnvironment::unfenced`](crate::LocalEnvironment::unfenced) says why.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.bounds.sandbox = sandbox;
        self
    }

    /// Lets commands and file tools change this file or directory, too, in
    /// [`Sandbox::WorkspaceWrite`]. One that does not exist when a command starts
    /// is left out.
    pub fn writable(mut self, path: impl Into<PathBuf>) -> Self {
        self.bounds.writable.push(path.into());
        self
    }

    /// The temporary directories that may be changed, in place of the system's
    /// (`TMPDIR`, `/tmp`, `/var/tmp`).
    pub fn temporary(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.bounds.temporary = Some(directories.into_iter().collect());
        self
    }

    /// Gives commands in a sandbox the network.
    pub fn network(mut self) -> Self {
        self.bounds.network = true;
        self
    }
}

impl fmt::Debug for LocalBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBuilder")
            .field("directory", &self.directory)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
