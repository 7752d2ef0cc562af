//! The web face in Chromium: finds or installs a browser and runs the tests that
//! need one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::npm;
use crate::workspace::{NODE_TEST, install_packages, root};

/// The session cases in a page, what a page keeps, what it tells when it cannot
/// start or has no network, what the browser keeps of the compiled core, and the
/// report of an evaluation.
pub(crate) fn cases(shell: &Shell, binary: &Path) -> Result<()> {
    let files = ["cases", "storage", "start", "network", "compiled", "report"]
        .map(|name| format!("tests/browser/{name}.test.mjs"));
    // Browsers wait for what they show: one file at a time.
    run(shell, binary, &files, 1, &[])
}

/// The packed package in fresh projects.
pub(crate) fn package(shell: &Shell, binary: &Path) -> Result<()> {
    let tarballs = npm::pack(&root().join("target/npm"))?;
    let environment = [
        ("TARBALL", tarballs.main.as_path()),
        ("PYTHON_TARBALL", tarballs.python.as_path()),
    ];
    let files = ["node", "pages"].map(|name| format!("tests/package/{name}.test.mjs"));
    // Half of their time is npm's waiting: both at a time.
    run(shell, binary, &files, 2, &environment)
}

fn run(
    shell: &Shell,
    binary: &Path,
    files: &[String],
    at_a_time: u32,
    environment: &[(&str, &Path)],
) -> Result<()> {
    let Some(browser) = find_or_skip(shell)? else {
        return Ok(());
    };
    npm::tools(shell)?;
    let at_a_time = format!("--test-concurrency={at_a_time}");
    cmd!(shell, "node {NODE_TEST...} {at_a_time} {files...}")
        .env("CHROMIUM", browser)
        .env("HERMITCRAB_BIN", binary)
        .envs(environment.iter().copied())
        .run()
        .with_context(|| format!("{} failed", files.join(" or ")))
}

/// The session cases and the playground, which must be built, in Firefox and
/// WebKit.
pub(crate) fn engines(shell: &Shell, binary: &Path) -> Result<()> {
    if unless_skipped(firefox_and_webkit(shell))?.is_none() {
        return Ok(());
    }
    let place = root().join("tests/engines");
    install_packages(shell, &place)?;
    let tests = place.join("engines.test.mjs");
    cmd!(shell, "node {NODE_TEST...} {tests}")
        .env("HERMITCRAB_BIN", binary)
        .run()
        .context("the tests in Firefox and WebKit failed")
}

/// The browser to test with, if there is one.
pub(crate) fn find_or_skip(shell: &Shell) -> Result<Option<PathBuf>> {
    unless_skipped(chromium(shell))
}

/// On a machine where a browser cannot be had, the other tests still count,
/// unless it is CI's.
fn unless_skipped<T>(browser: Result<T>) -> Result<Option<T>> {
    match browser {
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
    if let Some(browser) = on_path(&NAMES) {
        return Ok(browser);
    }
    apt(shell, &["chromium"])
        .context("no Chromium found and none can be installed; put `chromium` on the PATH")?;
    on_path(&NAMES).context("Debian's chromium is installed but not on the PATH")
}

/// Firefox, WebKit's driver and a screen for it; installs Debian's packages where
/// that is possible.
fn firefox_and_webkit(shell: &Shell) -> Result<()> {
    const PROGRAMS: [&str; 3] = ["firefox-esr", "WebKitWebDriver", "Xvfb"];
    if PROGRAMS.iter().all(|name| on_path(&[name]).is_some()) {
        return Ok(());
    }
    let packages = ["firefox-esr", "webkit2gtk-driver", "xvfb"];
    apt(shell, &packages).with_context(|| {
        format!(
            "one of {} is missing and cannot be installed; put them on the PATH",
            PROGRAMS.join(", ")
        )
    })
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|dir| names.iter().map(move |name| dir.join(name)))
        .find(|file| file.is_file())
}

fn apt(shell: &Shell, packages: &[&str]) -> Result<()> {
    let run = |command: xshell::Cmd| {
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .quiet()
            .ignore_stdout()
            .run()
    };
    run(cmd!(shell, "apt-get update -qq"))?;
    run(cmd!(shell, "apt-get install -y -qq {packages...}"))?;
    Ok(())
}
