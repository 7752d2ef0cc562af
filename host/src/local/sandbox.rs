//! `Sandbox`: what the tools of a local environment may change.

use std::path::PathBuf;

/// What commands and file tools may change. Reading is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Whatever the user may.
    #[default]
    Off,
    /// Nothing but `/dev/null`.
    ReadOnly,
    /// The working directory, the temporary directories, and devices that hold
    /// no data.
    WorkspaceWrite,
}

/// What a fence lets through.
#[derive(Clone, Default)]
pub(super) struct Bounds {
    pub(super) sandbox: Sandbox,
    /// Besides what the sandbox says.
    pub(super) writable: Vec<PathBuf>,
    /// In place of the system's temporary directories.
    pub(super) temporary: Option<Vec<PathBuf>>,
    pub(super) network: bool,
}
