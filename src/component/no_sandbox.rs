//! Stands in for the sandbox in builds without the feature `sandbox`: opening
//! one is a typed error, so that none of the other calls can be reached.

use bytes::Bytes;

use crate::environment::FileChange;
use crate::session::{Instance, SessionError, SessionErrorKind};

/// A sandbox; there are none.
pub(super) enum Sandbox {}

/// A remembered file tree; nothing makes one.
pub(super) struct Tree;

impl Sandbox {
    pub(super) fn open(_: &mut Instance, _: &str) -> Result<(u32, Self), SessionError> {
        Err(SessionError::new(
            SessionErrorKind::InvalidInput,
            "this core was built without the in-memory sandbox; use the full core",
        ))
    }

    pub(super) fn import_tar(&self, _: &str, _: &[u8]) -> Result<(), SessionError> {
        match *self {}
    }

    pub(super) fn export_tar(&self, _: &str) -> Result<Vec<u8>, SessionError> {
        match *self {}
    }

    pub(super) fn import_files(&self, _: Vec<(String, Bytes)>) -> Result<(), SessionError> {
        match *self {}
    }

    pub(super) fn snapshot(&self) -> Tree {
        match *self {}
    }

    pub(super) fn restore(&self, _: &Tree) {
        match *self {}
    }

    pub(super) fn changes_since(&self, _: &Tree) -> Vec<FileChange> {
        match *self {}
    }
}
