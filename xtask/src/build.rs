//! `cargo xtask build`: the release binary with the compiled core inside it.
//!
//! The core is prepared and compiled by the binary itself (its hidden commands
//! `prepare-core` and `compile-core`), so that wasmtime's version and settings
//! are the same on both sides, and then the host crate alone is built again
//! around it. When the core has not changed, nothing is compiled or linked
//! again.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use xshell::{Shell, cmd};

use crate::component;
use crate::workspace::{NATIVE, cargo, shell, target_dir};

/// Names the compiled core wherever cargo builds the host crate.
pub(crate) const EMBED: &str = "HERMITCRAB_EMBED";

/// What to build.
#[derive(Args)]
pub(crate) struct Options {}

pub(crate) fn run(_: &Options) -> Result<()> {
    println!("{}", binary()?.display());
    Ok(())
}

/// Builds the binary and returns its path.
pub(crate) fn binary() -> Result<PathBuf> {
    let shell = shell()?;
    let core = compiled_core(&shell)?;
    build_host(&shell, &core)?;
    Ok(host_binary())
}

/// The file to name in [`EMBED`]. Always the same, so that cargo sees a change
/// only when its content changes.
pub(crate) fn core_path() -> PathBuf {
    target_dir().join("core").join("hermitcrab.cwasm")
}

/// Brings the compiled core up to date and returns its path.
fn compiled_core(shell: &Shell) -> Result<PathBuf> {
    let core = core_path();
    let wasm = core.with_extension("wasm");
    component::write(&wasm, &["sandbox"])?;
    let binary = host_binary();
    cmd!(shell, "{binary} compile-core {wasm} {core}")
        .quiet()
        .run()?;
    Ok(core)
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

fn build_host(shell: &Shell, core: &Path) -> Result<()> {
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

fn host_binary() -> PathBuf {
    target_dir()
        .join("release")
        .join(format!("hermitcrab{}", std::env::consts::EXE_SUFFIX))
}
