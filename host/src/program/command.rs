//! `WasiCommand`: any command compiled for WASI preview 1 (`wasm32-wasip1`), to lend
//! to sandboxes.

use hermitcrab_engine::{self as engine, EngineError};
use std::path::Path;
use std::sync::Arc;

use wasmtime::Module;

use super::ProgramFn;
use super::machine::Machine;
use super::runner::{Runner, Setting};
use crate::cache::{self, Cache};
use crate::error::HostError;

/// Bytes that a module may have.
const LIMIT: u64 = 256 << 20;
/// What a module begins with, and its version; a component has another one.
const MAGIC: &[u8] = b"\0asm";
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// A command for the sandbox out of a WebAssembly module. Clones share it.
///
/// Each call is a new instance, with the files of the sandbox that calls it,
/// standard streams, a clock and random bytes. Its memory ends at 1 GiB, its output at
/// 64 MiB per stream. Relative paths start at the working directory; one that begins
/// with the name of a directory at the root is taken for that.
#[derive(Clone)]
pub struct WasiCommand(Arc<Runner>);

impl std::fmt::Debug for WasiCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WasiCommand")
    }
}

impl WasiCommand {
    /// Reads the module at `path`, and compiles it unless the cache holds that
    /// already. It blocks. At most `workers` calls run at the same time.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or is no command of WASI.
    pub fn load(path: &Path, workers: usize) -> Result<Self, HostError> {
        let shown = path.display();
        let refuse = |problem: &str| {
            HostError::Setup(format!(
                "{shown} {problem}: name a command compiled for wasm32-wasip1"
            ))
        };
        let metadata = std::fs::metadata(path);
        let metadata = metadata.map_err(|error| refuse(&format!("cannot be read ({error})")))?;
        // Nobody waits for the end of a pipe or a device.
        if !metadata.is_file() || metadata.len() > LIMIT {
            return Err(refuse("is not a WebAssembly module"));
        }
        let wasm = std::fs::read(path);
        let wasm = wasm.map_err(|error| refuse(&format!("cannot be read ({error})")))?;
        if !wasm.starts_with(MAGIC) {
            return Err(refuse("is not a WebAssembly module"));
        }
        if !wasm.starts_with(MODULE) {
            return Err(refuse("is a component or of another version"));
        }
        let module =
            compiled(&wasm).map_err(|error| refuse(&format!("does not load ({error})")))?;
        if module.get_export("_start").is_none() {
            return Err(refuse("has no function _start, so it is no command"));
        }
        if module.get_export("memory").is_none() {
            return Err(refuse("exports no memory, so it is no command"));
        }
        let machine = Machine::new(&module, "_start", |_| Ok(()));
        let machine =
            machine.map_err(|error| refuse(&format!("is no command of WASI ({error})")))?;
        let setting = Setting {
            machine,
            mounts: Vec::new(),
            boot: &[],
            called: "the program",
            opens_here: true,
        };
        Ok(Self(Arc::new(Runner::new(setting, workers.max(1)))))
    }

    /// To lend, under any name, to any number of sandboxes.
    pub fn program(&self) -> ProgramFn {
        self.0.program()
    }
}

fn compiled(wasm: &[u8]) -> Result<Module, EngineError> {
    let engine = engine::programs()?;
    let told = |error: wasmtime::Error| EngineError::new(&error);
    let dir = Cache::Default.dir("programs");
    let file = dir.map(|dir| dir.join(format!("{}.program", engine::key(engine, wasm))));
    if let Some(compiled) = file.as_deref().and_then(cache::get) {
        // SAFETY: `cache::get` says where the bytes are from, and the name of the
        // file holds the engine's settings.
        if let Ok(module) = unsafe { Module::deserialize(engine, &compiled) } {
            return Ok(module);
        }
    }
    let compiled = engine.precompile_module(wasm).map_err(told)?;
    if let Some(file) = &file {
        // Another process may be faster, the disk may be full: both are fine.
        let _ = cache::store(file, &compiled);
    }
    // SAFETY: the bytes come from this engine, just now.
    unsafe { Module::deserialize(engine, &compiled) }.map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_is_refused_in_a_sentence() {
        let check = |bytes: &[u8], problem: &str| {
            let place = tempfile::tempdir().expect("a folder");
            let file = place.path().join("p.wasm");
            std::fs::write(&file, bytes).expect("a file");
            let refused = WasiCommand::load(&file, 1).expect_err("refused");
            let expected = format!(
                "{} {problem}: name a command compiled for wasm32-wasip1",
                file.display()
            );
            assert_eq!(refused.to_string(), expected);
        };
        check(b"#!/bin/sh\n", "is not a WebAssembly module");
        check(b"\0asm\x0d\0\x01\0", "is a component or of another version");
        check(MODULE, "has no function _start, so it is no command");
    }
}
