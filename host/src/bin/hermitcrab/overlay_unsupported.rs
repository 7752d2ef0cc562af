//! `--env overlay` where there is no local environment yet.

use std::path::{Path, PathBuf};

use crate::cli::{FenceOptions, OverlayOptions};
use crate::failure::{Code, Failure};
use crate::workspace::Variables;

const WHY: &str = "there are no overlays on this platform: use --env memory";

/// No overlay.
pub(crate) enum Working {}

/// Fails on this platform.
///
/// # Errors
/// Always.
pub(crate) fn begin(_: &Path) -> Result<Working, Failure> {
    Err(Failure::usage(WHY))
}

impl Working {
    /// Nowhere.
    pub(crate) fn directory(&self) -> PathBuf {
        match *self {}
    }

    /// None.
    ///
    /// # Errors
    /// None.
    pub(crate) fn fence(
        &self,
        _: &FenceOptions,
        _: Variables,
    ) -> Result<(FenceOptions, Variables), Failure> {
        match *self {}
    }

    /// Never.
    ///
    /// # Errors
    /// None.
    pub(crate) fn end(self, _: Result<Code, Failure>) -> Result<Code, Failure> {
        match self {}
    }
}

/// Fails on this platform.
///
/// # Errors
/// Always.
pub(crate) fn overlay(_: &OverlayOptions) -> Result<Code, Failure> {
    Err(Failure::usage(WHY))
}
