//! `cargo xtask python`: CPython for the sandbox, as one archive that the
//! JavaScript package ships and the binary reads.
//!
//! The interpreter and its library come out of a crate's data, the modules
//! that it lacks (`unittest` above all) out of another's; cargo fetches and
//! checks both (`xtask/python/Cargo.lock`). The interpreter itself compiles
//! those modules, so that importing them costs a fraction.

use std::fs;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::workspace::{cargo, root, shell, write_if_changed};

/// Where to.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory to write to; `js/python`, where `pythonProgram` looks, when left out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The archive, and the licences that must go where it goes.
const ARCHIVE: &str = "python.tar.gz";
const LICENSES: &str = "LICENSES.md";

/// Pages of 64 KiB that a program may have: 1 GiB.
const MEMORY_PAGES: u32 = 16_384;

/// Modules of the standard library that the interpreter's crate leaves out and
/// that work in a sandbox without threads, sockets and subprocesses.
const MODULES: &[&str] = &[
    "bdb.py",
    "cmd.py",
    "compileall.py",
    "dbm",
    "doctest.py",
    "modulefinder.py",
    "netrc.py",
    "pickletools.py",
    "plistlib.py",
    "profile.py",
    "pstats.py",
    "pyclbr.py",
    "shelve.py",
    "tabnanny.py",
    "trace.py",
    "unittest",
    "zipapp.py",
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let archive = match &options.out {
        Some(out) => write(&std::path::absolute(out)?)?,
        None => build()?,
    };
    println!("{}: {} bytes", archive.display(), archive.metadata()?.len());
    Ok(())
}

/// Writes the archive to `js/python`, unless it is there and up to date;
/// returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    write(&root().join("js/python"))
}

fn write(out: &Path) -> Result<PathBuf> {
    let archive = out.join(ARCHIVE);
    // What the archive is made from, beside it.
    let recipe = recipe()?;
    let stamp = out.join("recipe");
    if archive.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == recipe) {
        return Ok(archive);
    }
    let shell = shell()?;
    let interpreter = package(&shell, "bashkit-cpython-wasm")?;
    let library = package(&shell, "rustpython-pylib")?.join("Lib");
    let read = |path: &Path| {
        fs::read(path).with_context(|| format!("the package has no {}", path.display()))
    };

    let compressed = read(&interpreter.join("artifacts/python.wasm.xz"))?;
    let mut wasm = Vec::new();
    lzma_rs::xz_decompress(&mut BufReader::new(&*compressed), &mut wasm)
        .context("python.wasm.xz is damaged")?;
    let wasm = with_memory_limit(&wasm).context("python.wasm is not the module that it was")?;
    let licenses = licenses(&String::from_utf8(read(
        &interpreter.join("THIRD_PARTY_LICENSES.md"),
    )?)?);
    let mut files = vec![
        (LICENSES, licenses.clone().into_bytes()),
        (
            "python314.zip",
            read(&interpreter.join("artifacts/python314.zip"))?,
        ),
        ("python.wasm", wasm),
    ];

    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let work = tempfile::tempdir()?;
    let sources = work.path().join("sources");
    for name in MODULES {
        copy(&library.join(name), &sources.join(name))?;
    }
    let bare = work.path().join("bare.tar.gz");
    pack(&bare, &files, flate2::Compression::fast())?;
    let more = work.path().join("more.zip");
    let script = root().join("xtask/python/compile.mjs");
    cmd!(shell, "node {script} {bare} {sources} {more}")
        .quiet()
        .run()
        .context("the interpreter could not compile its library in node")?;
    files.push(("more.zip", read(&more)?));

    pack(&archive, &files, flate2::Compression::best())?;
    write_if_changed(&out.join(LICENSES), licenses.as_bytes())?;
    write_if_changed(&stamp, recipe.as_bytes())?;
    Ok(archive)
}

/// The module with a maximum for its memory: a program that asks for more gets
/// Python's `MemoryError`, instead of a tab that the browser ends.
fn with_memory_limit(wasm: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 8;
    const MEMORY_SECTION: u8 = 5;
    let mut at = HEADER;
    while at < wasm.len() {
        let (size, body) = leb(wasm, at + 1)?;
        let end = body + size as usize;
        if wasm[at] == MEMORY_SECTION {
            // One memory, without a maximum so far: count, flags, minimum.
            let [1, 0, ..] = wasm.get(body..end)? else {
                return None;
            };
            let mut section = vec![1, 1];
            section.extend_from_slice(&wasm[body + 2..end]);
            write_leb(&mut section, MEMORY_PAGES);
            let mut limited = wasm[..=at].to_vec();
            write_leb(&mut limited, section.len() as u32);
            limited.extend(section);
            limited.extend_from_slice(&wasm[end..]);
            return Some(limited);
        }
        at = end;
    }
    None
}

/// A number in LEB128 at `at`, and where it ends.
fn leb(bytes: &[u8], mut at: usize) -> Option<(u32, usize)> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(at)?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        at += 1;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
        shift += 7;
    }
}

fn write_leb(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn recipe() -> Result<String> {
    let files = [
        "xtask/src/python.rs",
        "xtask/python/Cargo.lock",
        "xtask/python/compile.mjs",
    ];
    files
        .iter()
        .map(|name| fs::read_to_string(root().join(name)).with_context(|| format!("no {name}")))
        .collect()
}

/// Where cargo has unpacked the package `name` of `xtask/python`.
fn package(shell: &Shell, name: &str) -> Result<PathBuf> {
    let manifest = root().join("xtask/python/Cargo.toml");
    let output = cargo(shell)
        .args(["metadata", "--locked", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(manifest)
        .quiet()
        .ignore_stderr()
        .read()
        .context("cannot fetch CPython; it is downloaded by cargo")?;
    let metadata: Value = serde_json::from_str(&output)?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .with_context(|| format!("cargo names no package {name}"))?;
    let directory = Path::new(manifest).parent();
    Ok(directory
        .context("a manifest without a directory")?
        .to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| format!("the library has no {}", from.display()))?;
    Ok(())
}

/// Writes a gzipped tar of plain files; the same files give the same bytes.
fn pack(path: &Path, files: &[(&str, Vec<u8>)], level: flate2::Compression) -> Result<()> {
    let file =
        fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(file, level));
    for (name, content) in files {
        ensure!(!content.is_empty(), "{name} is empty");
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, &**content)?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

/// The licences of everything in the archive. Those of the modules in
/// `more.zip` are CPython's, whose text the interpreter's crate brings.
fn licenses(third_party: &str) -> String {
    let (_, texts) = third_party.split_once("\n## ").unwrap_or(("", third_party));
    format!(
        "# Licences of {ARCHIVE}\n\n\
         | file | what | licence |\n|---|---|---|\n\
         | `python.wasm` | CPython 3.14.8 with libmpdec, Expat, HACL*, zlib, SQLite, wasi-libc and \
         compiler-rt, as built by the crate `bashkit-cpython-wasm` 0.20.2 | Python-2.0 and those below; \
         its driver: MIT |\n\
         | `python314.zip` | the standard library of CPython 3.14.8, compiled, with modules of that crate \
         for HTTP | Python-2.0; those modules: MIT |\n\
         | `more.zip` | further modules of the standard library of CPython 3.14, from the crate \
         `rustpython-pylib` 0.6.0, which changes a few, compiled | Python-2.0 |\n\n\
         ## bashkit-cpython-wasm\n\n```text\n{MIT}```\n\n## {texts}"
    )
}

/// The crate names its licence and its authors, and brings no text of it.
const MIT: &str = "\
MIT License

Copyright (c) Mykhailo Chalyi and Everruns

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the \"Software\"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_gets_a_maximum_and_nothing_else_changes() {
        let header = b"\0asm\x01\0\0\0";
        let types = [1, 1, 0];
        let memory = [5, 4, 1, 0, 0x80, 5];
        let rest = [11, 1, 0];
        let module = [&header[..], &types, &memory, &rest].concat();
        let limited = [5, 7, 1, 1, 0x80, 5, 0x80, 0x80, 1];
        assert_eq!(
            with_memory_limit(&module),
            Some([&header[..], &types, &limited, &rest].concat())
        );
        assert_eq!(with_memory_limit(header), None);
        assert_eq!(with_memory_limit(&module[..12]), None);
    }
}
