//! `LocalEnvironment` where it does not exist yet: it cannot be made.

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

    pub(in crate::local) fn from_settings(
        settings: LocalBuilder,
    ) -> Result<Self, EnvironmentError> {
        Err(EnvironmentError::new(
            EnvironmentErrorKind::Unsupported,
            format!(
                "cannot work in `{}`: the local environment runs on Linux and macOS only so far; \
                 use WSL or the memory environment",
                settings.directory.display()
            ),
        ))
    }
}

/// Kills the commands of a host that was killed; none run on this platform.
#[derive(Debug)]
pub struct Guardian(());

impl Guardian {
    /// Does nothing on this platform.
    ///
    /// # Errors
    /// Never.
    ///
    /// # Safety
    /// No other thread runs in this process yet: the first thing in `main`.
    pub unsafe fn start() -> std::io::Result<Self> {
        Ok(Self(()))
    }

    pub(in crate::local) fn table(&self) -> Table {
        Table
    }
}

#[derive(Clone, Debug)]
pub(in crate::local) struct Table;

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
