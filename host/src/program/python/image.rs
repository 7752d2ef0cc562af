//! `Image`: the interpreter and its library out of an archive, compiled for
//! this machine. What is compiled is kept in the cache together with the
//! library, so that the archive is unpacked once.

use hermitcrab_engine::{self as engine, EngineError};
use std::path::Path;

use bytes::Bytes;
use wasmtime::{Engine, Module};

use crate::cache;
use crate::error::HostError;
use crate::program::archive;

/// The interpreter, ready to be linked, and what it reads.
pub(super) struct Image {
    pub(super) module: Module,
    /// The library that the interpreter's snapshot knows, as a zip.
    pub(super) library: Bytes,
    /// Further modules, as a zip; empty when there are none.
    pub(super) more: Bytes,
}

/// Names in the archive.
const MODULE: &str = "python.wasm";
const LIBRARY: &str = "python314.zip";
const MORE: &str = "more.zip";

impl Image {
    /// Loads the archive at `path` through the cache in `dir`; `on_compile` is
    /// called before something is compiled, which takes seconds. A cache that
    /// cannot be used costs time, not the program.
    pub(super) fn load(
        path: &Path,
        dir: Option<&Path>,
        on_compile: impl FnOnce(),
    ) -> Result<Self, HostError> {
        let engine = engine::programs()?;
        let packed = archive::read(path).map_err(|problem| refused(&problem))?;
        let file = dir.map(|dir| dir.join(format!("{}.program", engine::key(engine, &packed))));
        let cached = || Self::of_cache(engine, &cache::get(file.as_deref()?)?);
        if let Some(image) = cached() {
            return Ok(image);
        }
        let mut files = archive::unpack(&packed)
            .map_err(|problem| refused(&format!("{} {problem}", path.display())))?;
        drop(packed);
        let mut take = |name| files.remove(name).map(Bytes::from);
        let lacks = |name| refused(&format!("{} holds no {name}", path.display()));
        let wasm = take(MODULE).ok_or_else(|| lacks(MODULE))?;
        let library = take(LIBRARY).ok_or_else(|| lacks(LIBRARY))?;
        let more = take(MORE).unwrap_or_default();
        on_compile();
        let compiled = engine.precompile_module(&wasm).map_err(|error| {
            let problem = EngineError::new(&error);
            refused(&format!(
                "{MODULE} in {} cannot run: {problem}",
                path.display()
            ))
        })?;
        if let Some(file) = &file {
            // Another process may be faster, the disk may be full: both are fine.
            let _ = cache::store(file, &joined([&library, &more, &compiled]));
        }
        // SAFETY: the bytes come from this engine, just now.
        let module = unsafe { Module::deserialize(engine, &compiled) };
        Ok(Self {
            module: module.map_err(|error| EngineError::new(&error))?,
            library,
            more,
        })
    }

    fn of_cache(engine: &Engine, content: &Bytes) -> Option<Self> {
        let [library, more, compiled] = parts(content)?;
        // SAFETY: `cache::get` says where the bytes are from, and the name of
        // the file holds the engine's settings.
        let module = unsafe { Module::deserialize(engine, &compiled) }.ok()?;
        Some(Self {
            module,
            // Copies, so that the compiled code is not held twice.
            library: Bytes::copy_from_slice(&library),
            more: Bytes::copy_from_slice(&more),
        })
    }
}

fn refused(problem: &str) -> HostError {
    HostError::Setup(format!(
        "{problem}: name the file python.tar.gz that `cargo xtask python` makes"
    ))
}

/// Parts in one piece: the lengths of all but the last, then the parts.
fn joined(parts: [&[u8]; 3]) -> Vec<u8> {
    let [first, second, third] = parts;
    let lengths = [first, second].map(|part| (part.len() as u64).to_le_bytes());
    [&lengths[0], &lengths[1], first, second, third].concat()
}

fn parts(content: &Bytes) -> Option<[Bytes; 3]> {
    let mut rest = content.clone();
    let mut take = |length: usize| (length <= rest.len()).then(|| rest.split_to(length));
    let length = |bytes: Bytes| {
        let bytes = bytes[..].try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (first, second) = (length(take(8)?)?, length(take(8)?)?);
    let (first, second) = (take(first)?, take(second)?);
    Some([first, second, rest])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_apart_as_they_were_joined() {
        let whole = Bytes::from(joined([b"one", b"", b"three"]));
        let expected = [b"one".as_slice(), b"", b"three"].map(Bytes::from_static);
        assert_eq!(parts(&whole), Some(expected));
        for length in [0, 7, 15, 18] {
            assert_eq!(parts(&whole.slice(..length)), None, "{length} bytes");
        }
    }
}
