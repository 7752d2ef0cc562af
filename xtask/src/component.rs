//! `cargo xtask component`: the core as a component that imports nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use wit_component::{ComponentEncoder, DecodedWasm};

use crate::count;
use crate::native::{self, Made};
use crate::workspace::{
    WASM_TARGET, cargo, ensure_wasm_target, shell, target_dir, write_if_changed,
};

/// How the core is compiled; see `Cargo.toml`.
pub(crate) const PROFILE: &str = "wasm-component";

/// Which component, and where to.
#[derive(Args)]
pub(crate) struct Options {
    /// File to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Leave the in-memory sandbox out.
    #[arg(long)]
    slim: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let features: &[&str] = if options.slim { &[] } else { &["sandbox"] };
    let out = std::path::absolute(&options.out)?;
    let size = write(&out, features)?;
    println!("{}: {size} bytes, no imports", options.out.display());
    Ok(())
}

/// Compiles the core with `features` beside `component`; returns the module.
pub(crate) fn compile(features: &[&str]) -> Result<PathBuf> {
    let shell = shell()?;
    ensure_wasm_target(&shell)?;
    let features = [&["component"], features].concat().join(",");
    cargo(&shell)
        .args([
            "build",
            "--package",
            "hermitcrab",
            "--lib",
            "--profile",
            PROFILE,
        ])
        .args(["--target", WASM_TARGET, "--no-default-features"])
        .args(["--features", &features])
        .quiet()
        .run()?;
    Ok(target_dir()
        .join(WASM_TARGET)
        .join(PROFILE)
        .join("hermitcrab.wasm"))
}

/// Builds the core with `features` beside `component`, writes it as a
/// component to `out` and returns its size in bytes.
pub(crate) fn write(out: &Path, features: &[&str]) -> Result<u64> {
    let module_path = compile(features)?;
    let module = std::fs::read(&module_path)
        .with_context(|| format!("cannot read {}", module_path.display()))?;
    let component = ComponentEncoder::default()
        .module(&count::in_loops(&without_names(&module)?)?)?
        .validate(true)
        .encode()
        .context("cannot encode the core as a component; does it import something?")?;
    let imports = imports(&component)?;
    ensure!(
        imports.is_empty(),
        "the core imports {}; it must import nothing",
        imports.join(", ")
    );
    let raw = target_dir().join("core").join("unprepared.wasm");
    write_if_changed(&raw, &component)?;
    native::make(&shell()?, Made::Prepared, &raw, out)?;
    let size = std::fs::metadata(out)
        .with_context(|| format!("cannot read {}", out.display()))?
        .len();
    Ok(size)
}

/// The module without the custom sections that only debuggers read. The
/// encoder needs the others.
fn without_names(module: &[u8]) -> Result<Vec<u8>> {
    let (header, mut rest) = module.split_at_checked(8).context("not a module")?;
    let mut kept = header.to_vec();
    while let Some((id, after)) = rest.split_first() {
        let (size, content) = leb128(after)?;
        let content = content.get(..size).context("a section is cut off")?;
        let length = after.len() - leb128(after)?.1.len() + 1 + size;
        let is_for_debuggers = |content| -> Result<bool> {
            let (size, name) = leb128(content)?;
            let name = name.get(..size).context("a name is cut off")?;
            Ok(name == b"name" || name == b"producers" || name.starts_with(b".debug"))
        };
        if *id != 0 || !is_for_debuggers(content)? {
            kept.extend_from_slice(&rest[..length]);
        }
        rest = &rest[length..];
    }
    Ok(kept)
}

/// The number at the beginning of `bytes`, and what follows it.
fn leb128(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    anyhow::bail!("a number has no end")
}

/// Names of what the component imports.
fn imports(component: &[u8]) -> Result<Vec<String>> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component)? else {
        anyhow::bail!("the encoder wrote no component");
    };
    let names = resolve.worlds[world].imports.keys();
    Ok(names.map(|name| resolve.name_world_key(name)).collect())
}
