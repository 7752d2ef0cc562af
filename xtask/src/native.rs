//! The native binary, and where the compiled core is that it embeds.

use std::path::{Path, PathBuf};

use anyhow::Result;
use xshell::{Shell, cmd};

use crate::workspace::{NATIVE, cargo, target_dir};

/// Names the compiled core wherever cargo builds the host crate.
pub(crate) const EMBED: &str = "HERMITCRAB_EMBED";

/// The file to name in [`EMBED`]. Always the same, so that cargo sees a change
/// only when its content changes.
pub(crate) fn core_path() -> PathBuf {
    target_dir().join("core").join("hermitcrab.cwasm")
}

/// What is made of a component.
#[derive(Clone, Copy)]
pub(crate) enum Made {
    /// A component that starts with its tables read.
    Prepared,
    /// Machine code.
    Compiled,
}

/// Makes `out` of `component`, unless that has been done.
pub(crate) fn make(shell: &Shell, made: Made, component: &Path, out: &Path) -> Result<()> {
    build_maker(shell)?;
    let maker = target_dir()
        .join("release/examples")
        .join(format!("make_core{}", std::env::consts::EXE_SUFFIX));
    let work = match made {
        Made::Prepared => "prepare",
        Made::Compiled => "compile",
    };
    cmd!(shell, "{maker} {work} {component} {out}")
        .quiet()
        .run()?;
    Ok(())
}

/// Builds what prepares and compiles cores (`host/engine/examples/make_core`).
pub(crate) fn build_maker(shell: &Shell) -> Result<()> {
    cargo(shell)
        .arg("build")
        .args(NATIVE)
        .args(["--example", "make_core"])
        .quiet()
        .run()?;
    Ok(())
}

/// Builds the host around `core`.
pub(crate) fn build_host(shell: &Shell, core: &Path) -> Result<()> {
    // Naming examples takes in the features that tests need, so that tests do not
    // compile wasmtime again.
    cargo(shell)
        .arg("build")
        .args(NATIVE)
        .args(["--bin", "hermitcrab", "--examples"])
        .env(EMBED, core)
        .quiet()
        .run()?;
    Ok(())
}

/// The binary of the last build.
pub(crate) fn host_binary() -> PathBuf {
    target_dir()
        .join("release")
        .join(format!("hermitcrab{}", std::env::consts::EXE_SUFFIX))
}
