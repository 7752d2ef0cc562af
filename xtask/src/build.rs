//! `cargo xtask build`: the release binary with the compiled core inside it.
//!
//! The core is prepared and compiled by a program of the host's own engine
//! (`host/engine/examples/make_core`), so that wasmtime's version and settings are
//! the same on both sides, and then the host is built around it. When the core has
//! not changed, nothing is compiled or linked again.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use xshell::Shell;

use crate::component;
use crate::native::{self, Made, build_host, core_path, host_binary};
use crate::workspace::shell;

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

/// Brings the compiled core up to date and returns its path.
fn compiled_core(shell: &Shell) -> Result<PathBuf> {
    let core = core_path();
    let wasm = core.with_extension("wasm");
    component::write(&wasm, &["sandbox"])?;
    native::make(shell, Made::Compiled, &wasm, &core)?;
    Ok(core)
}
