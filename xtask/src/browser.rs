//! The web face in Chromium: finds or installs a browser and runs the tests that
//! need one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::npm;
use crate::workspace::root;

/// The session cases in a page, what a page keeps, and what it tells when it
/// cannot start or has no network.
pub(crate) fn cases(shell: &Shell, binary: &Path) -> Result<()> {
    let files = ["cases", "storage", "start", "network"]
        .map(|name| format!("tests/browser/{name}.test.mjs"));
    run(shell, binary, &files, &[])
}

/// The packed package in fresh projects.
pub(crate) fn package(shell: &Shell, binary: &Path) -> Result<()> {
    let tarball = npm::pack(&root().join("target/npm"))?;
    let environment = [("TARBALL", tarball.as_path())];
    let files = ["tests/package/package.test.mjs".to_owned()];
    run(shell, binary, &files, &environment)
}

fn run(
    shell: &Shell,
    binary: &Path,
    files: &[String],
    environment: &[(&str, &Path)],
) -> Result<()> {
    let Some(browser) = find_or_skip(shell)? else {
        return Ok(());
    };
    npm::tools(shell)?;
    cmd!(shell, "node --test {files...}")
        .env("CHROMIUM", browser)
        .env("HERMITCRAB_BIN", binary)
        .envs(environment.iter().copied())
        .run()
        .with_context(|| format!("{} failed", files.join(" or ")))
}

/// The browser to test with. On a machine where none can be had, the other
/// tests still count, unless it is CI's.
pub(crate) fn find_or_skip(shell: &Shell) -> Result<Option<PathBuf>> {
    match chromium(shell) {
        Ok(browser) => Ok(Some(browser)),
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped the browser test: {error:#}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Chromium or Chrome; installs Debian's package where that is possible.
pub(crate) fn chromium(shell: &Shell) -> Result<PathBuf> {
    const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let find = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .flat_map(|dir| NAMES.map(|name| dir.join(name)))
            .find(|file| file.is_file())
    };
    if let Some(browser) = find() {
        return Ok(browser);
    }
    let install = cmd!(shell, "apt-get update -qq")
        .quiet()
        .ignore_stdout()
        .run()
        .and_then(|()| {
            cmd!(shell, "apt-get install -y -qq chromium")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .quiet()
                .ignore_stdout()
                .run()
        });
    install.context("no Chromium found and none can be installed; put `chromium` on the PATH")?;
    find().context("Debian's chromium is installed but not on the PATH")
}
