//! `LocalEnvironment` where it does not exist yet: it cannot be made.

mod guardian;

use std::convert::Infallible;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    Entries, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, ExecRequest, ExecStatus,
    Metadata,
};

use super::LocalBuilder;
use crate::environment::{ExecIo, HostEnvironment};
pub use guardian::Guardian;
pub(in crate::local) use guardian::Table;

/// Runs tools on this machine; not on this platform, where making one fails.
#[derive(Debug)]
pub struct LocalEnvironment(Infallible);

impl LocalEnvironment {
    /// Fails on this platform.
    ///
    /// # Errors
    /// One sentence, always.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Self, EnvironmentError> {
        Self::builder(directory).build()
    }

    /// Settings for an environment of `directory`.
    pub fn builder(directory: impl Into<PathBuf>) -> LocalBuilder {
        LocalBuilder::new(directory)
    }

    /// Why commands run without the [`Sandbox`](crate::Sandbox) that was asked for.
    pub fn unfenced(&self) -> Option<&str> {
        match self.0 {}
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
        Err(EnvironmentError::new(
            EnvironmentErrorKind::Unsupported,
            format!(
                "cannot work in `{}`: the local environment runs on Linux and macOS only so far; \
                 use WSL or the memory environment",
                self.directory.display()
            ),
        ))
    }
}

#[async_trait]
impl HostEnvironment for LocalEnvironment {
    fn info(&self) -> EnvironmentInfo {
        match self.0 {}
    }

    async fn read(&self, _: &str, _: u64) -> Result<Bytes, EnvironmentError> {
        match self.0 {}
    }

    async fn write(&self, _: &str, _: Bytes) -> Result<(), EnvironmentError> {
        match self.0 {}
    }

    async fn stat(&self, _: &str) -> Result<Metadata, EnvironmentError> {
        match self.0 {}
    }

    async fn list(&self, _: &str, _: u32) -> Result<Entries, EnvironmentError> {
        match self.0 {}
    }

    async fn remove(&self, _: &str) -> Result<(), EnvironmentError> {
        match self.0 {}
    }

    async fn rename(&self, _: &str, _: &str) -> Result<(), EnvironmentError> {
        match self.0 {}
    }

    async fn make_dir(&self, _: &str) -> Result<(), EnvironmentError> {
        match self.0 {}
    }

    async fn exec(&self, _: ExecRequest, _: ExecIo<'_>) -> Result<ExecStatus, EnvironmentError> {
        match self.0 {}
    }
}
