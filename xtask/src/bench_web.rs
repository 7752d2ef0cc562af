//! `cargo xtask bench web`: builds both web cores and hands them to
//! `bench/web/run.mjs`, which measures them in Chromium and in Node beside
//! their peers on npm.

use anyhow::Result;
use xshell::cmd;

use crate::workspace::{install_packages, root, shell};
use crate::{browser, web};

pub(crate) fn run(cycles: usize) -> Result<()> {
    let shell = shell()?;
    web::build()?;
    let slim = web::build_slim()?;
    let browser = browser::chromium(&shell)?;
    let directory = root().join("bench/web");
    install_packages(&shell, &directory)?;
    let script = directory.join("run.mjs");
    let cycles = cycles.to_string();
    cmd!(shell, "node {script} {slim} {browser} {cycles}")
        .quiet()
        .run()?;
    Ok(())
}
