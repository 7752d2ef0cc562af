//! Compiling cores, and the disk cache for cores that are not built in and for
//! lent programs.
//!
//! Loading compiled code is trusting it, so the cache is private (directory
//! 0700, files 0600), files appear whole (written aside, then renamed), their
//! names say what they were made of (hash of the source, wasmtime's version and
//! settings), and a digest guards against damage.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::{self, EngineError};
use crate::error::HostError;
use crate::prepare::prepare;

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

/// Compiles the component `wasm` to `out` for this version of the host; does
/// nothing if `out` was made from the same component by the same host.
///
/// # Errors
/// A file that cannot be read or written, or that is no core.
pub fn compile_core(wasm: &Path, out: &Path) -> Result<(), HostError> {
    make(wasm, out, |engine, component| {
        compile(engine, wasm, component)
    })
}

/// Writes the component `wasm` to `out` with its tables already read, see
/// `prepare` in `wit/hermitcrab.wit`; does nothing if `out` was made from the
/// same component by the same host.
///
/// # Errors
/// A file that cannot be read or written, or that is no core.
pub fn prepare_core(wasm: &Path, out: &Path) -> Result<(), HostError> {
    make(wasm, out, |engine, component| {
        prepare(engine, component).map_err(|error| unusable(wasm, &error))
    })
}

/// Makes `out` of the component `wasm` unless that has been done.
fn make(
    wasm: &Path,
    out: &Path,
    work: impl FnOnce(&Engine, &[u8]) -> Result<Vec<u8>, HostError>,
) -> Result<(), HostError> {
    let engine = engine::shared()?;
    let component = read(wasm)?;
    let key = key(engine, &component);
    // The key lies beside the file and is written after it.
    let mut key_file = out.as_os_str().to_owned();
    key_file.push(".key");
    let key_file = PathBuf::from(key_file);
    if out.is_file() && fs::read_to_string(&key_file).is_ok_and(|old| old == key) {
        return Ok(());
    }
    let made = work(engine, &component)?;
    let _ = fs::remove_file(&key_file);
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(|error| failed("create", parent, &error))?;
    }
    fs::write(out, made).map_err(|error| failed("write", out, &error))?;
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

/// What compiled code depends on, in hexadecimal.
pub(crate) fn key(engine: &Engine, source: &[u8]) -> String {
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
    feed.0.update(Sha256::digest(source));
    hex(&feed.0.finalize())
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
        let engine = engine::shared().expect("an engine");
        load(engine, &wasm, Some(&dir)).expect("a component");
        let mut files = fs::read_dir(&dir).expect("a cache");
        let file = files.next().expect("a file").expect("an entry").path();
        assert!(files.next().is_none(), "nothing but the file is left");
        (root, dir, file)
    }

    fn hits(file: &Path) -> bool {
        load_cached(engine::shared().expect("an engine"), file).is_some()
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
        let engine = engine::shared().expect("an engine");
        load(engine, &root.path().join("core.wasm"), Some(&dir)).expect("a component");
        assert!(hits(&file));
    }

    #[test]
    fn another_core_has_another_name() {
        let engine = engine::shared().expect("an engine");
        assert_ne!(key(engine, EMPTY), key(engine, b"other"));
        assert_eq!(key(engine, EMPTY).len(), 64);
    }

    #[test]
    fn compile_core_works_only_when_something_changed() {
        let root = tempfile::tempdir().expect("a directory");
        let (wasm, out) = (
            root.path().join("core.wasm"),
            root.path().join("core.cwasm"),
        );
        fs::write(&wasm, EMPTY).expect("written");
        compile_core(&wasm, &out).expect("compiled");
        fs::write(&out, "kept").expect("written");
        compile_core(&wasm, &out).expect("nothing to do");
        assert_eq!(fs::read(&out).expect("readable"), b"kept");
        // A custom section makes it another component.
        fs::write(&wasm, [EMPTY, b"\0\x02\x01x"].concat()).expect("written");
        compile_core(&wasm, &out).expect("compiled");
        assert_ne!(fs::read(&out).expect("readable"), b"kept");
    }

    #[test]
    fn what_is_no_core_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let wasm = root.path().join("core.wasm");
        fs::write(&wasm, "not a core").expect("written");
        let error = compile_core(&wasm, &root.path().join("out")).expect_err("no core");
        assert!(
            error.to_string().contains("core.wasm is not a core"),
            "{error}"
        );
        let missing = root.path().join("missing.wasm");
        let error = compile_core(&missing, &root.path().join("out")).expect_err("no file");
        assert!(error.to_string().starts_with("cannot read "), "{error}");
    }
}
