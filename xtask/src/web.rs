//! `cargo xtask web`: the core for JavaScript hosts. One build for web pages,
//! workers, bundlers and Node: wasm-bindgen's `web` target, which leaves the
//! loading of the `.wasm` file to the entry files in `js/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wasm_bindgen_cli_support::Bindgen;
use xshell::{Shell, cmd};

/// Where the entry files in `js/` look for the core.
pub(crate) const DEFAULT_OUT: &str = "js/wasm";

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the core with `features` beside `web` and writes `hermitcrab.js` and
/// `hermitcrab_bg.wasm` to `out`. `shell` stands in the root of the workspace.
/// Returns the size of the `.wasm` file in bytes.
pub(crate) fn build(shell: &Shell, out: &Path, features: &[&str]) -> Result<u64> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let features = [&["web"], features].concat().join(",");
    cmd!(
        shell,
        "{cargo} build --quiet --package hermitcrab --lib --profile wasm --target {TARGET} --features {features}"
    )
    .run()?;
    let module = target_dir(shell).join(TARGET).join("wasm/hermitcrab.wasm");
    let out = shell.current_dir().join(out);
    let mut output = Bindgen::new()
        .input_path(&module)
        .web(true)?
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()
        .with_context(|| format!("cannot generate bindings for {}", module.display()))?;
    let imports = output.wasm().imports.iter();
    check_imports(imports.map(|import| (import.module.as_str(), import.name.as_str())))?;
    check_glue(output.js())?;
    output
        .emit(&out)
        .with_context(|| format!("cannot write to {}", out.display()))?;
    let size = out.join("hermitcrab_bg.wasm").metadata()?.len();
    Ok(size)
}

/// What the core may import from JavaScript, without wasm-bindgen's hashes: the
/// promises, objects and streams that the driver handles. No clock, no entropy,
/// no console, no file, no process: time and seed are arguments.
const IMPORTS: &[&str] = &[];

fn check_imports<'a>(imports: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let unknown: BTreeSet<String> = imports
        .filter(|(module, name)| {
            *module != "./hermitcrab_bg.js" || !IMPORTS.contains(&without_hash(name))
        })
        .map(|(module, name)| format!("{module} {name}"))
        .collect();
    ensure!(
        unknown.is_empty(),
        "the web core imports what it must not; if the driver needs it, add it to IMPORTS in \
         xtask/src/web.rs: {unknown:?}"
    );
    Ok(())
}

/// `__wbg_abort_0123456789abcdef` → `abort`.
fn without_hash(name: &str) -> &str {
    let name = name.strip_prefix("__wbg_").unwrap_or(name);
    match name.rsplit_once('_') {
        Some((start, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            start
        }
        _ => name,
    }
}

/// Pages with a strict content security policy run the glue too.
fn check_glue(js: &str) -> Result<()> {
    for word in ["eval(", "new Function", "SharedArrayBuffer"] {
        ensure!(!js.contains(word), "the generated JavaScript uses `{word}`");
    }
    Ok(())
}

fn target_dir(shell: &Shell) -> PathBuf {
    let root = shell.current_dir();
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root.join(dir),
        None => root.join("target"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_known_by_name_whatever_their_hash() {
        assert_eq!(without_hash("__wbg_abort_0123456789abcdef"), "abort");
        assert_eq!(
            without_hash("__wbindgen_init_externref_table"),
            "__wbindgen_init_externref_table"
        );
    }

    #[test]
    fn a_clock_is_refused() {
        let clock = [("./hermitcrab_bg.js", "__wbg_now_0123456789abcdef")];
        assert!(check_imports(clock.into_iter()).is_err());
        assert!(check_imports([("env", "abort")].into_iter()).is_err());
    }

    #[test]
    fn eval_is_refused() {
        assert!(check_glue("const f = new Function('return this');").is_err());
        assert!(check_glue("const f = () => globalThis;").is_ok());
    }
}
