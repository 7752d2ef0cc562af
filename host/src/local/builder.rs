//! Settings of a local environment; the same on every platform.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use hermitcrab::environment::EnvironmentError;

use super::{Guardian, LocalEnvironment, Table};

/// What commands inherit from the host's own environment. In every case the
/// values of credentials that the host holds are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvPolicy {
    /// Everything except variables that look like secrets ([`looks_secret`](crate::looks_secret)).
    #[default]
    Filtered,
    /// Everything.
    All,
    /// Only what a shell and the tools of the common languages need to be
    /// found: `PATH`, `HOME`, `LANG`, `CARGO_HOME` and the like.
    CoreOnly,
    /// Nothing.
    None,
}

/// Settings of a [`LocalEnvironment`].
#[derive(Clone, Default)]
pub struct LocalBuilder {
    pub(super) directory: PathBuf,
    pub(super) policy: EnvPolicy,
    pub(super) secrets: Vec<String>,
    pub(super) extra: BTreeMap<OsString, OsString>,
    pub(super) guardian: Option<Table>,
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

    /// The environment.
    ///
    /// # Errors
    /// One sentence when the directory does not exist, is not a directory or
    /// cannot be entered, when its path is not UTF-8, or when this platform is
    /// not supported.
    pub fn build(self) -> Result<LocalEnvironment, EnvironmentError> {
        LocalEnvironment::from_settings(self)
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
