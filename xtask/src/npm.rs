//! `cargo xtask npm`: the npm packages as tarballs. What goes in is staged in
//! `target/npm`: of `hermitcrab` the JavaScript as it is, both cores, TypeScript
//! declarations, documents and examples; of `hermitcrab-python` CPython. Their
//! `package.json` is without what only this repository needs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::workspace::{install_packages, root, shell};
use crate::{python, web};

/// Where to.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory that gets the tarball.
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
}

/// What `hermitcrab` needs at its root, beside `js/`, `types/` and `docs/`.
const FILES: [(&str, &str); 4] = [
    ("js/README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// The documents that its README and its types point to.
const DOCS: [&str; 9] = [
    "approval.md",
    "programs.md",
    "projects.md",
    "sandbox.md",
    "sandboxing.md",
    "script.md",
    "settings.md",
    "toolsets.md",
    "events.schema.json",
];

/// Where `hermitcrab-python` is.
const PYTHON: &str = "js/python";

/// What it holds; `cargo xtask python` makes the last two.
const PYTHON_FILES: [&str; 5] = [
    "index.js",
    "index.d.ts",
    "README.md",
    "LICENSES.md",
    "python.tar.gz",
];

/// The packages, packed.
pub(crate) struct Tarballs {
    /// `hermitcrab`.
    pub(crate) main: PathBuf,
    /// `hermitcrab-python`.
    pub(crate) python: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Tarballs { main, python } = pack(&std::path::absolute(&options.out)?)?;
    for tarball in [main, python] {
        println!("{}: {} bytes", tarball.display(), tarball.metadata()?.len());
    }
    Ok(())
}

/// Builds and packs everything; the tarballs are in `out`.
pub(crate) fn pack(out: &Path) -> Result<Tarballs> {
    let shell = shell()?;
    web::build_slim()?;
    web::build()?;
    python::build()?;
    tools(&shell)?;
    Ok(Tarballs {
        main: main_tarball(&shell, out)?,
        python: python_tarball(&shell, out)?,
    })
}

fn main_tarball(shell: &Shell, out: &Path) -> Result<PathBuf> {
    let stage = emptied("target/npm/package")?;
    copy(&root().join("js"), &stage.join("js"), &root().join(PYTHON))?;
    copy(
        &root().join("examples/js"),
        &stage.join("examples"),
        &root().join("examples/js/node_modules"),
    )?;
    declarations(shell, &stage.join("types"))?;
    for (from, to) in FILES {
        shell.copy_file(root().join(from), stage.join(to))?;
    }
    shell.create_dir(stage.join("docs"))?;
    for name in DOCS {
        shell.copy_file(root().join("docs").join(name), stage.join("docs"))?;
    }
    // docs/programs.md points to it.
    shell.copy_file(root().join("examples/pyodide.js"), stage.join("examples"))?;
    tarball(shell, &root().join("package.json"), &stage, out)
}

fn python_tarball(shell: &Shell, out: &Path) -> Result<PathBuf> {
    let stage = emptied("target/npm/python")?;
    for name in PYTHON_FILES {
        shell.copy_file(root().join(PYTHON).join(name), &stage)?;
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        shell.copy_file(root().join(name), &stage)?;
    }
    tarball(
        shell,
        &root().join(PYTHON).join("package.json"),
        &stage,
        out,
    )
}

/// A directory below the root, without what was in it.
fn emptied(place: &str) -> Result<PathBuf> {
    let place = root().join(place);
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    Ok(place)
}

/// Packs `stage` with the published form of `manifest`.
fn tarball(shell: &Shell, manifest: &Path, stage: &Path, out: &Path) -> Result<PathBuf> {
    let manifest = std::fs::read_to_string(manifest)?;
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
    install_packages(shell, &root())
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
        "platform.d.ts",
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

/// Copies what runs or shows how, JavaScript and the cores, but for `without`.
fn copy(from: &Path, to: &Path, without: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
    {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let extension = source.extension().and_then(|extension| extension.to_str());
        if source == without {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&source, &target, without)?;
        } else if matches!(
            extension,
            Some("js" | "mjs" | "jsx" | "html" | "md" | "wasm")
        ) && source.file_name() != Some("README.md".as_ref())
        {
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

    #[test]
    fn documents_of_the_package_point_to_others_of_it() {
        for name in DOCS {
            let text = std::fs::read_to_string(root().join("docs").join(name)).expect(name);
            let links = text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next());
            for link in links.filter(|link| link.ends_with(".md")) {
                assert!(DOCS.contains(&link), "docs/{name} points to {link}");
            }
        }
    }
}
