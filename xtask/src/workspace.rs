//! Where things are, and how commands of this workspace are run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

/// The target triple of the core.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// How every native build and test of the workspace is selected. Cargo unites
/// the features of all selected packages, so another selection would compile
/// wasmtime again.
pub(crate) const NATIVE: [&str; 2] = ["--release", "--workspace"];

/// How Node runs test files: with the names of what failed at the end, and an end, with
/// its name, for a file that hangs for a quarter of an hour.
pub(crate) const NODE_TEST: [&str; 3] = ["--test", "--test-reporter=spec", "--test-timeout=900000"];

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A shell in the root of the workspace.
pub(crate) fn shell() -> Result<Shell> {
    let shell = Shell::new()?;
    shell.change_dir(root());
    Ok(shell)
}

/// The cargo that runs this task, in the environment that a person's shell
/// gives it: build scripts of dependencies watch what `cargo run` tells about
/// the task's own package, and would run again, with all that builds on them.
pub(crate) fn cargo(shell: &Shell) -> Cmd<'_> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    without_own_package(cmd!(shell, "{cargo}"))
}

fn without_own_package(command: Cmd<'_>) -> Cmd<'_> {
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| told(name))
        .fold(command, |command, name| command.env_remove(name))
}

/// Writes `content` unless the file holds it already, so that its time stamp
/// moves only when something changed; creates parent directories. Whoever reads the
/// file meanwhile gets it as it was or as it will be.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    std::fs::write(&aside, content)
        .and_then(|()| std::fs::rename(&aside, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Installs the wasm target through rustup where it is missing.
pub(crate) fn ensure_wasm_target(shell: &Shell) -> Result<()> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let target = WASM_TARGET;
    let libdir = cmd!(shell, "{rustc} --print target-libdir --target {target}")
        .quiet()
        .ignore_stderr()
        .read()
        .context("cannot run rustc; install Rust with rustup from https://rustup.rs")?;
    if Path::new(libdir.trim()).is_dir() {
        return Ok(());
    }
    cmd!(shell, "rustup target add {target}")
        .run()
        .with_context(|| {
            format!("cannot install the target {target}; run `rustup target add {target}`")
        })
}

/// The packages of `place`, at the versions of its `package-lock.json`.
pub(crate) fn install_packages(shell: &Shell, place: &Path) -> Result<()> {
    let lock = place.join("package-lock.json").metadata()?.modified()?;
    let installed = place.join("node_modules/.package-lock.json").metadata();
    let is_current = installed
        .and_then(|file| file.modified())
        .is_ok_and(|time| time >= lock);
    if is_current {
        return Ok(());
    }
    let _place = shell.push_dir(place);
    cmd!(
        shell,
        "npm ci --ignore-scripts --no-audit --no-fund --silent"
    )
    .run()
    .with_context(|| {
        format!(
            "cannot install the packages of {}; `npm ci` downloads them",
            place.join("package.json").display()
        )
    })
}
