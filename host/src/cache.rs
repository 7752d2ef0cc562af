//! Compiling cores, and the disk cache for cores that are not built in.
//!
//! Loading compiled code is trusting it, so the cache is private (directory
//! 0700, files 0600), files appear whole (written aside, then renamed), their
//! names say what they were made of (hash of the core, wasmtime's version and
//! settings), and a digest guards against damage.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::{self, EngineError};
use crate::error::HostError;

/// Bytes of the digest in front of the compiled code.
const DIGEST: usize = 32;

/// Compiles the component `wasm` to `out` for this version of the host; does
/// nothing if `out` was made from the same component by the same host.
///
/// # Errors
/// A file that cannot be read or written, or that is no core.
pub fn compile_core(wasm: &Path, out: &Path) -> Result<(), HostError> {
    let engine = engine::shared()?;
    let component = read(wasm)?;
    let key = key(engine, &component);
    // The key lies beside the file and is written after it.
    let key_file = out.with_extension("key");
    if out.is_file() && fs::read_to_string(&key_file).is_ok_and(|old| old == key) {
        return Ok(());
    }
    let compiled = compile(engine, wasm, &component)?;
    let _ = fs::remove_file(&key_file);
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(|error| failed("create", parent, &error))?;
    }
    fs::write(out, compiled).map_err(|error| failed("write", out, &error))?;
    fs::write(&key_file, key).map_err(|error| failed("write", &key_file, &error))
}

/// Loads the core at `path`, compiled through the cache in `dir`. A cache that
/// cannot be used costs time, not the session.
pub(crate) fn load(
    engine: &Engine,
    path: &Path,
    dir: Option<&Path>,
) -> Result<Component, HostError> {
    let wasm = read(path)?;
    let file = dir.map(|dir| dir.join(format!("{}.core", key(engine, &wasm))));
    if let Some(component) = file.as_deref().and_then(|file| load_cached(engine, file)) {
        return Ok(component);
    }
    let compiled = compile(engine, path, &wasm)?;
    if let Some(file) = &file {
        // Another process may be faster, the disk may be full: both are fine.
        let _ = store(file, &compiled);
    }
    // SAFETY: the bytes come from this engine, just now.
    let component = unsafe { Component::deserialize(engine, &compiled) };
    component.map_err(|error| EngineError::new(&error).into())
}

/// Where the cache is unless the host says otherwise.
pub(crate) fn default_dir() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        absolute("HOME")?.join("Library").join("Caches")
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?
    };
    Some(base.join("hermitcrab").join("cores"))
}

fn compile(engine: &Engine, path: &Path, wasm: &[u8]) -> Result<Vec<u8>, HostError> {
    engine.precompile_component(wasm).map_err(|error| {
        HostError::Setup(format!(
            "{} is not a core that this version can run: {}; make one with `cargo xtask component`",
            path.display(),
            EngineError::new(&error)
        ))
    })
}

/// What compiled code depends on, in hexadecimal.
fn key(engine: &Engine, wasm: &[u8]) -> String {
    /// Wasmtime tells its version and settings to a `Hasher`; those of std
    /// have 64 bits and no stable result.
    struct Feed(Sha256);
    impl Hasher for Feed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut feed = Feed(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    feed.0.update(Sha256::digest(wasm));
    hex(&feed.0.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The component in `file`, if there is one and it is whole and private.
fn load_cached(engine: &Engine, file: &Path) -> Option<Component> {
    let bytes = read_private(file).ok()?;
    let (digest, compiled) = bytes.split_at_checked(DIGEST)?;
    if Sha256::digest(compiled).as_slice() != digest {
        return None;
    }
    // SAFETY: only this user can write the file, `store` wrote it under a name
    // that holds the engine's settings, and the digest says that it is whole.
    unsafe { Component::deserialize(engine, compiled) }.ok()
}

/// Reads a file that nobody else could have written.
fn read_private(file: &Path) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let user = nix::unistd::geteuid().as_raw();
        for path in file.parent().into_iter().chain([file]) {
            let metadata = fs::symlink_metadata(path)?;
            if metadata.uid() != user || metadata.mode() & 0o077 != 0 {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
    }
    fs::read(file)
}

/// Writes digest and code to `file`: private, and whole or not at all.
fn store(file: &Path, compiled: &[u8]) -> io::Result<()> {
    let Some(dir) = file.parent() else {
        return Ok(());
    };
    let mut builder = fs::DirBuilder::new();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

        builder.mode(0o700);
        options.mode(0o600);
        if dir.is_dir() {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        }
    }
    builder.recursive(true).create(dir)?;
    let aside = file.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&aside);
    let written = options.open(&aside).and_then(|mut aside| {
        aside.write_all(&Sha256::digest(compiled))?;
        aside.write_all(compiled)
    });
    match written.and_then(|()| fs::rename(&aside, file)) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, HostError> {
    fs::read(path).map_err(|error| failed("read", path, &error))
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> HostError {
    HostError::Setup(format!("cannot {verb} {}: {error}", path.display()))
}
