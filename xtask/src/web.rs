//! `cargo xtask web`: the core for JavaScript hosts. One build for web pages,
//! workers, bundlers and Node: wasm-bindgen's `web` target, which leaves the
//! loading of the `.wasm` file to the entry files in `js/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use wasm_bindgen_cli_support::Bindgen;
use xshell::{Shell, cmd};

use crate::workspace::{
    WASM_TARGET, cargo, ensure_wasm_target, root, shell, target_dir, write_if_changed,
};
use crate::{count, order, packages};

/// Which build, and where to.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory to write to; `js/wasm`, where the entry files look (`js/wasm/slim`
    /// without the sandbox), when left out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Leave the in-memory sandbox out.
    #[arg(long)]
    slim: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let core = match options.slim {
        true => Core::Slim,
        false => Core::Full,
    };
    let out = match &options.out {
        Some(out) => std::path::absolute(out)?,
        None if options.slim => slim_out(),
        None => default_out(),
    };
    if matches!(core, Core::Full) {
        packages::build(&shell()?)?;
    }
    let size = write(&out, core)?;
    println!("{}: {size} bytes of wasm", out.display());
    Ok(())
}

/// Builds the full core where the entry files look for it; returns that directory.
pub(crate) fn build() -> Result<PathBuf> {
    let out = default_out();
    packages::build(&shell()?)?;
    write(&out, Core::Full)?;
    Ok(out)
}

/// Builds the core without a sandbox where its entry file looks for it.
pub(crate) fn build_slim() -> Result<PathBuf> {
    let out = slim_out();
    write(&out, Core::Slim)?;
    Ok(out)
}

fn slim_out() -> PathBuf {
    default_out().join("slim")
}

fn default_out() -> PathBuf {
    root().join("js/wasm")
}

/// Which of the two cores.
#[derive(Clone, Copy)]
enum Core {
    /// With the in-memory sandbox.
    Full,
    /// Without it.
    Slim,
}

impl Core {
    /// Cargo features. The default ones would bring the parser of commands into
    /// the slim core.
    fn features(self) -> &'static str {
        match self {
            Self::Full => "web,sandbox",
            Self::Slim => "web",
        }
    }

    /// Profile of `Cargo.toml`.
    fn profile(self) -> &'static str {
        match self {
            Self::Full => "wasm",
            Self::Slim => "wasm-slim",
        }
    }

    /// LLVM's options. It copies a function that is marked `#[inline]` into its
    /// callers up to a cost of 325, by its own count, even if the profile asks
    /// for few bytes; profiles have no option for it.
    fn llvm(self) -> &'static [&'static str] {
        match self {
            Self::Full => &["-inlinehint-threshold=60", "-inline-threshold=25"],
            // `opt-level = "z"` has no such exception. What the branches of a
            // function end with alike stands once.
            Self::Slim => &["-sink-common-insts"],
        }
    }
}

/// A call that traps leaves the stack where it was. JavaScript puts it back, so
/// that the failure of one core is not that of the others (`js/core/runtime.js`).
const STACK_POINTER: &str = "-Clink-arg=--export=__stack_pointer";

/// What messages of panics call the places where this machine keeps sources:
/// nothing. A build is the same wherever it is made.
fn unnamed_places(shell: &Shell) -> Result<Vec<String>> {
    let sysroot = cmd!(shell, "rustc --print sysroot").read()?;
    let mut places = vec![Path::new(&sysroot).join("lib/rustlib/src/rust"), root()];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registries = home.map(|home| home.join("registry/src"));
    for registry in registries
        .iter()
        .filter_map(|it| std::fs::read_dir(it).ok())
    {
        for entry in registry {
            places.push(entry?.path());
        }
    }
    let places = places
        .iter()
        .map(|it| format!("--remap-path-prefix={}=", it.display()));
    Ok(places.collect())
}

/// The core, and the JavaScript that wasm-bindgen makes for it.
const MODULE: &str = "hermitcrab_bg.wasm";
const GLUE: &str = "hermitcrab.js";

/// Builds a core and writes [`MODULE`] and [`GLUE`] to `out`.
/// Returns the size of the latter in bytes.
fn write(out: &Path, core: Core) -> Result<u64> {
    let shell = shell()?;
    ensure_wasm_target(&shell)?;
    let profile = core.profile();
    let llvm = core
        .llvm()
        .iter()
        .map(|option| format!("-Cllvm-args={option}"));
    let flags: Vec<String> = llvm.chain(unnamed_places(&shell)?).collect();
    let flags = format!("target.{WASM_TARGET}.rustflags={flags:?}");
    cargo(&shell)
        .args(["rustc", "--package", "hermitcrab", "--lib"])
        .arg("--no-default-features")
        .args(["--profile", profile, "--target", WASM_TARGET])
        .args(["--features", core.features()])
        .args(["--config", &flags])
        .args(["--", STACK_POINTER])
        .quiet()
        .run()?;
    let module = target_dir()
        .join(WASM_TARGET)
        .join(profile)
        .join("hermitcrab.wasm");
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
    let written = tempfile::tempdir()?;
    output
        .emit(written.path())
        .context("cannot write the bindings")?;
    let read = |name: &str| std::fs::read(written.path().join(name)).context("no bindings");
    let ordered = order::by_likeness(&count::in_loops(&read(MODULE)?)?)?;
    // Tests may be reading what is there.
    write_if_changed(&out.join(MODULE), &ordered)?;
    write_if_changed(&out.join(GLUE), &read(GLUE)?)?;
    Ok(ordered.len() as u64)
}

/// What the core may import from JavaScript, without wasm-bindgen's hashes: the
/// promises, objects and streams that the driver handles. No clock, no entropy,
/// no console, no file, no process: time and seed are arguments.
const IMPORTS: &[&str] = &[
    "__wbindgen_generic",
    "__wbindgen_init_externref_table",
    "__wbindgen_is_falsy",
    "__wbindgen_is_function",
    "__wbindgen_is_object",
    "__wbindgen_is_undefined",
    "__wbindgen_number_get",
    "__wbindgen_string_get",
    "__wbindgen_throw",
    "_wbg_cb_unref",
    "abort",
    "askApproval",
    "body",
    "call",
    "callEnvironment",
    "callTool",
    "cancel",
    "contain",
    "done",
    "entries",
    "events",
    "exec",
    "fetch",
    "get",
    "getReader",
    "get_unchecked",
    "headers",
    "instanceof_Object",
    "instanceof_Uint8Array",
    "isArray",
    "iterator",
    "length",
    "logLine",
    "modelstream_new",
    "new",
    "new_from_slice",
    "new_typed",
    "new_with_length",
    "next",
    "of",
    "parse",
    "prototypesetcall",
    "push",
    "queueMicrotask",
    "read",
    "reports",
    "resolve",
    "room",
    "runProgram",
    "set",
    "signal",
    "sleep",
    "static_accessor_GLOBAL",
    "static_accessor_GLOBAL_THIS",
    "static_accessor_SELF",
    "static_accessor_WINDOW",
    "status",
    "stringify",
    "subarray",
    "then",
    "value",
    "wake",
];

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
