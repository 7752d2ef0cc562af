//! `cargo xtask npm`: the npm package as a tarball. What goes in is staged in
//! `target/npm/package`: the JavaScript as it is, both cores, TypeScript
//! declarations, and a `package.json` without what only this repository needs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::workspace::{root, shell};
use crate::{python, web};

/// Where to.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory that gets the tarball.
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
}

/// The licences of CPython, which stand beside it.
const LICENSES: &str = "python/LICENSES.md";

/// What a package needs at its root, beside `js/` and `types/`.
const FILES: [(&str, &str); 3] = [
    ("js/README.md", "README.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let tarball = pack(&std::path::absolute(&options.out)?)?;
    println!("{}: {} bytes", tarball.display(), tarball.metadata()?.len());
    Ok(())
}

/// Builds and packs everything; returns the tarball in `out`.
pub(crate) fn pack(out: &Path) -> Result<PathBuf> {
    let shell = shell()?;
    web::build_slim()?;
    web::build()?;
    python::build()?;
    tools(&shell)?;
    let stage = root().join("target/npm/package");
    if stage.exists() {
        std::fs::remove_dir_all(&stage)?;
    }
    copy(&root().join("js"), &stage.join("js"))?;
    declarations(&shell, &stage.join("types"))?;
    for (from, to) in FILES {
        shell.copy_file(root().join(from), stage.join(to))?;
    }
    let manifest = std::fs::read_to_string(root().join("package.json"))?;
    std::fs::write(stage.join("package.json"), published(&manifest)?)?;
    std::fs::create_dir_all(out)?;
    let name = cmd!(shell, "npm pack {stage} --pack-destination {out} --silent")
        .read()
        .context("npm cannot pack the package")?;
    let name = name.lines().last().unwrap_or_default();
    Ok(out.join(name))
}

/// The repository's npm tools.
pub(crate) fn tools(shell: &Shell) -> Result<()> {
    install(shell, &root())
}

/// The packages of `place`, at the versions of its `package-lock.json`.
pub(crate) fn install(shell: &Shell, place: &Path) -> Result<()> {
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

/// Writes `*.d.ts` for all that the entry files export.
pub(crate) fn declarations(shell: &Shell, out: &Path) -> Result<()> {
    tools(shell)?;
    let project = root().join("js/tsconfig.json");
    cmd!(
        shell,
        "node node_modules/typescript/bin/tsc --project {project} --outDir {out}"
    )
    .run()
    .context("TypeScript cannot make declarations from js/")?;
    // Written by hand, or made from the schema of the events: tsc does not copy them.
    for name in [
        "events.d.ts",
        "types.d.ts",
        "worker.d.ts",
        "worker-node.d.ts",
        "wasm.d.ts",
    ] {
        shell.copy_file(root().join("js").join(name), out.join(name))?;
    }
    Ok(())
}

/// `package.json` as it is published.
fn published(manifest: &str) -> Result<String> {
    let mut manifest: Value = serde_json::from_str(manifest)?;
    let fields = manifest
        .as_object_mut()
        .context("package.json is not an object")?;
    for name in ["private", "scripts", "devDependencies"] {
        fields.shift_remove(name);
    }
    let mut text = serde_json::to_string_pretty(&manifest)?;
    text.push('\n');
    Ok(text)
}

/// Copies what runs: JavaScript and the cores.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
    {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let extension = source.extension().and_then(|extension| extension.to_str());
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else if matches!(extension, Some("js" | "wasm" | "gz")) || source.ends_with(LICENSES) {
            std::fs::copy(&source, &target)
                .with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    ensure!(to.read_dir()?.next().is_some(), "{} is empty", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_repository_needs_is_not_published() {
        let text = published(r#"{"name": "x", "private": true, "devDependencies": {}, "a": 1}"#);
        let manifest: Value = serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(manifest, serde_json::json!({"name": "x", "a": 1}));
    }
}
