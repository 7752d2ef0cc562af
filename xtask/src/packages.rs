//! The npm packages behind the modules of `node` in the sandbox, as one file that
//! its worker imports (`xtask/node/`).

use std::fs;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::workspace::{install_packages, root, write_if_changed};

/// What the file is made from, below `xtask/node`.
const SOURCES: [&str; 7] = [
    "abort.js",
    "buffer.js",
    "bundle.mjs",
    "entry.js",
    "package-lock.json",
    "process.js",
    "util.js",
];

/// Writes `packages.js` and `packages.md`, their licences, to `js/programs/node`, unless
/// they are there and up to date.
pub(crate) fn build(shell: &Shell) -> Result<()> {
    let place = root().join("xtask/node");
    let out = root().join("js/programs/node");
    let (packages, licenses) = (out.join("packages.js"), out.join("packages.md"));
    let recipe: String = SOURCES
        .iter()
        .map(|name| fs::read_to_string(place.join(name)).with_context(|| format!("no {name}")))
        .collect::<Result<_>>()?;
    let stamp = out.join("packages.recipe");
    let is_made = packages.exists() && licenses.exists();
    if is_made && fs::read_to_string(&stamp).is_ok_and(|made| made == recipe) {
        return Ok(());
    }
    install_packages(shell, &place)?;
    let script = place.join("bundle.mjs");
    cmd!(shell, "node {script} {packages} {licenses}")
        .quiet()
        .run()
        .context("the packages of xtask/node could not be put into one file")?;
    write_if_changed(&stamp, recipe.as_bytes())
}
