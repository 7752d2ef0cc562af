//! Files of a sandbox that `--edit` replaces.

use std::fs;

use bytes::Bytes;

use crate::failure::{Failure, reason};

/// The files that `--edit` names: path in the sandbox, and content.
pub(crate) fn read(options: &[String]) -> Result<Vec<(String, Bytes)>, Failure> {
    let edit = |option: &String| {
        let parts = option.split_once('=').filter(|(path, _)| !path.is_empty());
        let (path, file) = parts.ok_or_else(|| {
            Failure::usage(format!(
                "--edit {option}: write PATH=FILE, a path in the sandbox and the file to put there"
            ))
        })?;
        let content = fs::read(file).map_err(|error| {
            Failure::usage(format!("--edit: cannot read {file}: {}", reason(&error)))
        })?;
        Ok((path.to_owned(), content.into()))
    };
    options.iter().map(edit).collect()
}

/// Replaces files of a sandbox.
///
/// # Errors
/// One cannot be written.
pub(crate) async fn write(
    session: &hermitcrab_host::Session,
    edits: Vec<(String, Bytes)>,
) -> Result<(), Failure> {
    for (path, content) in edits {
        let written = session.environment().write(&path, content).await;
        written.map_err(|error| Failure::usage(format!("--edit {path}: {error}")))?;
    }
    Ok(())
}
