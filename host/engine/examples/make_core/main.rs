//! Makes the core that the host carries, for `cargo xtask build`: the component
//! starts with its tables read, and then it is compiled.
//!
//! It is a program of the engine alone: neither the core nor the host has to be
//! compiled before it, and both sides have the same wasmtime with the same settings.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use hermitcrab_engine::{key, shared};
use wasmtime::{Engine, Error, Result, format_err};

mod prepare;

const USAGE: &str = "usage: make_core prepare|compile COMPONENT OUT";

/// What is made of a component.
type Work = fn(&Engine, &[u8]) -> Result<Vec<u8>>;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [work, component, out] = arguments.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let work: Work = match work.to_str() {
        Some("prepare") => prepare::prepare,
        Some("compile") => Engine::precompile_component,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match make(Path::new(component), Path::new(out), work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make_core: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Makes `out` of the component in `file`, unless that has been done by the same engine.
fn make(file: &Path, out: &Path, work: Work) -> Result<()> {
    let engine = shared()?;
    let component = fs::read(file).map_err(|error| failed("read", file, &error))?;
    let key = key(engine, &component);
    // The key lies beside the file and is written after it.
    let mut key_file = out.as_os_str().to_owned();
    key_file.push(".key");
    let key_file = PathBuf::from(key_file);
    if out.is_file() && fs::read_to_string(&key_file).is_ok_and(|old| old == key) {
        return Ok(());
    }
    let made = work(engine, &component)
        .map_err(|error| error.context(format!("{} is not a core", file.display())))?;
    let _ = fs::remove_file(&key_file);
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(|error| failed("create", parent, &error))?;
    }
    fs::write(out, made).map_err(|error| failed("write", out, &error))?;
    fs::write(&key_file, key).map_err(|error| failed("write", &key_file, &error))
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Error {
    format_err!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest component there is.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn compile(file: &Path, out: &Path) -> Result<()> {
        make(file, out, Engine::precompile_component)
    }

    #[test]
    fn it_works_only_when_something_changed() {
        let root = tempfile::tempdir().expect("a directory");
        let (wasm, out) = (
            root.path().join("core.wasm"),
            root.path().join("core.cwasm"),
        );
        fs::write(&wasm, EMPTY).expect("written");
        compile(&wasm, &out).expect("compiled");
        fs::write(&out, "kept").expect("written");
        compile(&wasm, &out).expect("nothing to do");
        assert_eq!(fs::read(&out).expect("readable"), b"kept");
        // A custom section makes it another component.
        fs::write(&wasm, [EMPTY, b"\0\x02\x01x"].concat()).expect("written");
        compile(&wasm, &out).expect("compiled");
        assert_ne!(fs::read(&out).expect("readable"), b"kept");
    }

    #[test]
    fn what_is_no_core_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let (wasm, out) = (root.path().join("core.wasm"), root.path().join("out"));
        let missing = compile(&wasm, &out).expect_err("no file").to_string();
        assert!(missing.starts_with("cannot read "), "{missing}");
        fs::write(&wasm, "not a core").expect("written");
        let error = compile(&wasm, &out).expect_err("no core").to_string();
        assert!(error.ends_with("core.wasm is not a core"), "{error}");
        fs::write(&wasm, EMPTY).expect("written");
        let error = make(&wasm, &out, prepare::prepare).expect_err("empty");
        assert!(format!("{error:#}").contains("prepare"), "{error:#}");
        assert!(!out.exists());
    }
}
