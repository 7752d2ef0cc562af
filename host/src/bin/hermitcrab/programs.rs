//! Programs for the sandbox of `--env memory`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermitcrab::environment::ProgramResult;
use hermitcrab_host::{ProgramCall, ProgramFn, Python};
use tokio::sync::OnceCell;

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

/// The Python in the archive at `path`, read when it is first called: many runs
/// never call it. At most `workers` calls run at the same time.
pub(crate) fn python_when_called(path: PathBuf, workers: usize) -> ProgramFn {
    let loaded: Arc<OnceCell<ProgramFn>> = Arc::default();
    Arc::new(move |call: ProgramCall| {
        let (loaded, path) = (loaded.clone(), path.clone());
        Box::pin(async move {
            let load = || async move {
                let load = move || Python::builder(path).workers(workers).load();
                match tokio::task::spawn_blocking(load).await {
                    Ok(python) => python.map(|python| python.program()),
                    Err(error) => Err(hermitcrab_host::HostError::Setup(error.to_string())),
                }
            };
            match loaded.get_or_try_init(load).await {
                Ok(python) => python(call).await,
                Err(error) => {
                    let name = &call.request.name;
                    ProgramResult::failed(126, format!("{name}: {error}\n"))
                }
            }
        })
    })
}
