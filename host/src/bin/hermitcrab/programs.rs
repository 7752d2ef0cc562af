//! Programs for the sandbox of `--env memory`.

use std::collections::BTreeMap;
use std::path::Path;

use hermitcrab_host::{ProgramFn, Python};

use crate::failure::Failure;

/// Programs by name.
pub(crate) type Programs = BTreeMap<String, ProgramFn>;

/// The Python in the archive at `path`, under its usual names.
///
/// # Errors
/// The archive is not Python's.
pub(crate) fn python(path: &Path) -> Result<Programs, Failure> {
    let python = Python::builder(path)
        .on_compile(|| {
            eprintln!("hermitcrab: compiling Python for this machine; that takes seconds, once");
        })
        .load()
        .map_err(|error| Failure::usage(format!("--python: {error}")))?;
    let names = ["python3", "python"];
    Ok(names.map(|name| (name.to_owned(), python.program())).into())
}
