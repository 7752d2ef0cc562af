//! The disk cache for cores that are not built in and for lent programs.
//!
//! Loading compiled code is trusting it, so the cache is private (directory
//! 0700, files 0600), files appear whole (written aside, then renamed), their
//! names say what they were made of (hash of the source, wasmtime's version and
//! settings), and a digest guards against damage.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hermitcrab_engine::{EngineError, key};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::error::HostError;

/// Bytes of the digest in front of the compiled code.
const DIGEST: usize = 32;

/// Where compiled code is kept.
#[derive(Clone, Debug, Default)]
pub(crate) enum Cache {
    /// In the user's cache directory.
    #[default]
    Default,
    /// Nowhere.
    Off,
    /// In this directory.
    At(PathBuf),
}

impl Cache {
    /// The directory for a kind of code, `cores` or `programs`.
    pub(crate) fn dir(&self, kind: &str) -> Option<PathBuf> {
        match self {
            Self::Default => Some(user_dir()?.join("hermitcrab").join(kind)),
            Self::Off => None,
            Self::At(dir) => Some(dir.clone()),
        }
    }
}

/// SHA-256 of a file, in hexadecimal digits; empty if it is gone.
pub(crate) fn hash_of(file: &Path) -> String {
    let digest = std::fs::read(file).map(Sha256::digest);
    digest.map(|digest| hex(&digest)).unwrap_or_default()
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

/// The user's cache directory.
fn user_dir() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        Some(absolute("HOME")?.join("Library").join("Caches"))
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
    }
}

fn compile(engine: &Engine, path: &Path, wasm: &[u8]) -> Result<Vec<u8>, HostError> {
    let compiled = engine.precompile_component(wasm);
    compiled.map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &wasmtime::Error) -> HostError {
    HostError::Setup(format!(
        "{} is not a core that this version can run: {}; make one with `cargo xtask component`",
        path.display(),
        EngineError::new(error)
    ))
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The component in `file`, if there is one and it is whole and private.
fn load_cached(engine: &Engine, file: &Path) -> Option<Component> {
    let compiled = get(file)?;
    // SAFETY: `get` says where it is from, and the name of the file holds the
    // engine's settings.
    unsafe { Component::deserialize(engine, &compiled) }.ok()
}

/// What [`store`] wrote to `file`: whole, and by nobody but this user.
pub(crate) fn get(file: &Path) -> Option<Bytes> {
    let mut bytes = Bytes::from(read_private(file).ok()?);
    if bytes.len() < DIGEST {
        return None;
    }
    let digest = bytes.split_to(DIGEST);
    (Sha256::digest(&bytes).as_slice() == &*digest).then_some(bytes)
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

/// Writes a digest and `content` to `file`: private, and whole or not at all.
pub(crate) fn store(file: &Path, content: &[u8]) -> io::Result<()> {
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
        aside.write_all(&Sha256::digest(content))?;
        aside.write_all(content)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest component there is.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    /// Compiles the empty component through a new cache; returns the directory
    /// that holds everything, the cache and its only file.
    fn filled() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().expect("a directory");
        let (wasm, dir) = (root.path().join("core.wasm"), root.path().join("cores"));
        fs::write(&wasm, EMPTY).expect("written");
        let engine = hermitcrab_engine::shared().expect("an engine");
        load(engine, &wasm, Some(&dir)).expect("a component");
        let mut files = fs::read_dir(&dir).expect("a cache");
        let file = files.next().expect("a file").expect("an entry").path();
        assert!(files.next().is_none(), "nothing but the file is left");
        (root, dir, file)
    }

    fn hits(file: &Path) -> bool {
        load_cached(hermitcrab_engine::shared().expect("an engine"), file).is_some()
    }

    #[test]
    #[cfg(unix)]
    fn the_cache_is_private() {
        use std::os::unix::fs::PermissionsExt;

        let (_root, dir, file) = filled();
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&file)), (0o700, 0o600));
        assert!(hits(&file));
        for (path, open, closed) in [(&file, 0o644, 0o600), (&dir, 0o777, 0o700)] {
            let set = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
            set(open).expect("set");
            assert!(!hits(&file), "{} with {open:o}", path.display());
            set(closed).expect("set");
        }
        assert!(hits(&file));
    }

    #[test]
    fn damage_is_noticed_and_repaired() {
        let (root, dir, file) = filled();
        let whole = fs::read(&file).expect("readable");
        for position in [0, DIGEST, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[position] ^= 1;
            fs::write(&file, damaged).expect("written");
            assert!(!hits(&file), "byte {position}");
        }
        for length in [0, DIGEST - 1, DIGEST, whole.len() - 1] {
            fs::write(&file, &whole[..length]).expect("written");
            assert!(!hits(&file), "{length} bytes");
        }
        let engine = hermitcrab_engine::shared().expect("an engine");
        load(engine, &root.path().join("core.wasm"), Some(&dir)).expect("a component");
        assert!(hits(&file));
    }

    #[test]
    fn what_is_no_core_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let engine = hermitcrab_engine::shared().expect("an engine");
        let refusal = |file: &str| {
            let loaded = load(engine, &root.path().join(file), None);
            loaded.expect_err("no core").to_string()
        };
        fs::write(root.path().join("core.wasm"), "not a core").expect("written");
        let error = refusal("core.wasm");
        assert!(error.contains("core.wasm is not a core"), "{error}");
        let error = refusal("missing.wasm");
        assert!(error.starts_with("cannot read "), "{error}");
    }
}
