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

/// Writes the component at `raw` to `out` with its tables read.
pub(crate) fn prepare(shell: &Shell, raw: &Path, out: &Path) -> Result<()> {
    // The binary of the last build does; it may hold an older core.
    build_host(shell, &core_path())?;
    let binary = host_binary();
    cmd!(shell, "{binary} prepare-core {raw} {out}")
        .quiet()
        .run()?;
    Ok(())
}

/// Builds the host around `core`.
pub(crate) fn build_host(shell: &Shell, core: &Path) -> Result<()> {
    // There are no examples: naming them takes in the features that tests
    // need, so that tests do not compile wasmtime again.
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
