//! `cargo xtask www`: builds the playground into `www/dist` and serves it; its
//! tests in Chromium.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use xshell::{Shell, cmd};

use crate::workspace::{NODE_TEST, install_packages, root, shell};
use crate::{browser, npm, python, web};

/// How to serve.
#[derive(Args)]
pub(crate) struct Options {
    /// Port on the loopback address.
    #[arg(long, default_value_t = 4173)]
    port: u16,
    /// Serve the sources, and reload the page when one changes.
    #[arg(long)]
    dev: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let shell = shell()?;
    web::build()?;
    let port = options.port.to_string();
    let script = if options.dev { "dev" } else { "preview" };
    if options.dev {
        prepare(&shell)?;
    } else {
        build(&shell)?;
    }
    let _www = shell.push_dir(root().join("www"));
    cmd!(
        shell,
        "npm run {script} -- --host 127.0.0.1 --port {port} --strictPort"
    )
    .run()
    .with_context(|| format!("the server ended; is port {port} taken? `--port` names another"))
}

/// What every run of the tests plays: a visitor's way through the page, projects that
/// stay, and runs that are shared. The rest takes ten minutes.
const WAY: [&str; 7] = [
    "playground.test.mjs",
    "playground-agent.test.mjs",
    "playground-load.test.mjs",
    "playground-project.test.mjs",
    "playground-server.test.mjs",
    "playground-share.test.mjs",
    "playground-transfer.test.mjs",
];

/// Builds the playground and plays it in Chromium, `is_whole` or [`WAY`]. The web face
/// must be built.
pub(crate) fn test(shell: &Shell, binary: &Path, is_whole: bool) -> Result<()> {
    let Some(chromium) = browser::find_or_skip(shell)? else {
        return Ok(());
    };
    npm::tools(shell)?;
    build(shell)?;
    let tests = match is_whole {
        true => tests()?,
        false => WAY
            .map(|name| root().join("tests/browser").join(name))
            .into(),
    };
    // One file at a time: each starts a browser.
    cmd!(shell, "node {NODE_TEST...} --test-concurrency=1 {tests...}")
        .env("CHROMIUM", chromium)
        .env("HERMITCRAB_BIN", binary)
        .run()
        .context("the tests of the playground in Chromium failed")
}

fn prepare(shell: &Shell) -> Result<()> {
    python::build()?;
    install_packages(shell, &root().join("www"))
}

/// Builds the playground. The web face must be built.
pub(crate) fn build(shell: &Shell) -> Result<()> {
    prepare(shell)?;
    let _www = shell.push_dir(root().join("www"));
    cmd!(shell, "npm run build")
        .quiet()
        .ignore_stdout()
        .run()
        .context("the playground cannot be built")
}

fn tests() -> Result<Vec<PathBuf>> {
    let dir = root().join("tests/browser");
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?
    {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("playground") && name.ends_with(".test.mjs")) {
            files.push(path);
        }
    }
    files.sort();
    anyhow::ensure!(!files.is_empty(), "no tests in {}", dir.display());
    Ok(files)
}
