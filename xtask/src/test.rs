//! `cargo xtask test`: everything that must hold, in the order in which it is
//! cheapest to fail, with the usual closing lines of cargo at the end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use xshell::{Shell, cmd};

use crate::workspace::{
    NATIVE, NODE_TEST, WASM_TARGET, cargo, ensure_wasm_target, root, shell, target_dir,
};
use crate::{browser, build, component, elsewhere, matrix, native, npm, python, web, www};

/// What to test.
#[derive(Args)]
pub(crate) struct Options {
    /// Which part; everything that CI runs when left out.
    #[arg(value_enum)]
    suite: Option<Suite>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Formatting and lints.
    Lint,
    /// Rust tests of the native and the component face.
    Rust,
    /// The web face in Node.
    Node,
    /// The web face in Chromium.
    Browser,
    /// The packed npm package in fresh projects (downloads bundlers).
    Package,
    /// Programs lent to the sandbox, in Node, in Chromium and natively (fetches CPython).
    Programs,
    /// The playground in Chromium (downloads its packages), whole; else its main way.
    Playground,
    /// Session cases and the playground in Firefox and WebKit (downloads them).
    Engines,
    /// The parity matrix of the specification; writes docs/parity.md.
    Matrix,
    /// Requests and streams against the official Python SDKs (downloads them).
    Sdk,
    /// A real llama.cpp over the three wires that it speaks (downloads it and a model).
    Llama,
    /// Trajectories of evaluations against the packages that read them (downloads them).
    Atif,
    /// Shards of an evaluation under Ray, a worker of which is killed (downloads it).
    Ray,
    /// An evaluation under faults: of the provider, of agents, of the driver and of the disk.
    Chaos,
    /// Environments on another machine (through a server of SSH here) and in containers.
    Elsewhere,
    /// The native host as the compiler sees it for Windows (needs MinGW's C compiler).
    Windows,
    /// apply_patch against codex's own (downloads it).
    Peers,
    /// Everything, also what is slow or needs downloads.
    All,
}

/// What CI runs in Node and in browsers, one after the other.
const SHOWN: [Suite; 3] = [Suite::Node, Suite::Browser, Suite::Playground];

/// What CI runs beside that, one after the other.
const BESIDE: [Suite; 4] = [Suite::Rust, Suite::Programs, Suite::Package, Suite::Matrix];

/// What runs only by its name or with [`Suite::All`].
const EXTRA: [Suite; 9] = [
    Suite::Engines,
    Suite::Sdk,
    Suite::Llama,
    Suite::Atif,
    Suite::Ray,
    Suite::Chaos,
    Suite::Elsewhere,
    Suite::Windows,
    Suite::Peers,
];

/// Has slow Rust tests run their long form.
const LONG: &str = "HERMITCRAB_TEST_ALL";

pub(crate) fn run(options: &Options) -> Result<()> {
    let shell = shell()?;
    match options.suite {
        None => whole(&shell, false),
        Some(Suite::All) => {
            whole(&shell, true)?;
            let binary = build::binary()?;
            EXTRA
                .into_iter()
                .try_for_each(|suite| timed(&suite.name(), || play(&shell, &binary, suite)))
        }
        Some(Suite::Lint) => timed("lint", || lint(&shell)),
        Some(suite) => {
            let binary = timed("build", build::binary)?;
            timed(&suite.name(), || play(&shell, &binary, suite))
        }
    }
}

/// Everything that CI runs; in its long form, where it has one, if `is_long`.
fn whole(shell: &Shell, is_long: bool) -> Result<()> {
    ensure_wasm_target(shell)?;
    timed("lint and compilation", || {
        let here = || {
            lint(shell)?;
            native::build_maker(shell)
        };
        both(here, compile_cores)
    })?;
    let binary = timed("build", build::binary)?;
    timed("what suites share", || {
        check_node(shell)?;
        web::build()?;
        web::build_slim()?;
        python::build()?;
        npm::tools(shell)?;
        browser::find_or_skip(shell)
    })?;
    // Half of a suite's time is waiting, for a server, a browser or npm.
    let shown = || {
        SHOWN.into_iter().try_for_each(|suite| {
            timed(&suite.name(), || match suite {
                Suite::Playground => www::test(shell, &binary, is_long),
                _ => play(shell, &binary, suite),
            })
        })
    };
    let beside = || {
        BESIDE
            .into_iter()
            .try_for_each(|suite| play_aside(suite, is_long))
    };
    both(shown, beside)
}

/// Runs a suite in another process, and shows what it printed when it has ended.
fn play_aside(suite: Suite, is_long: bool) -> Result<()> {
    let name = suite.name();
    let logs = target_dir().join("test");
    std::fs::create_dir_all(&logs)?;
    let path = logs.join(format!("{name}.log"));
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["test", &name]).stdin(Stdio::null());
    command.stdout(log.try_clone()?).stderr(log);
    if is_long {
        command.env(LONG, "1");
    }
    let status = command.status()?;
    let printed = std::fs::read(&path)?;
    println!("{}", String::from_utf8_lossy(&printed).trim_end());
    ensure!(status.success(), "the suite `{name}` failed ({status})");
    Ok(())
}

/// Runs one suite, all of it, whatever it needs beside the binary.
fn play(shell: &Shell, binary: &Path, suite: Suite) -> Result<()> {
    if suite.needs_node() {
        check_node(shell)?;
    }
    match suite {
        Suite::Lint => lint(shell),
        Suite::Rust => rust(shell, binary),
        Suite::Node => node(shell, binary, &web::build()?),
        Suite::Browser => {
            web::build()?;
            browser::cases(shell, binary)
        }
        Suite::Package => browser::package(shell, binary),
        Suite::Programs => {
            web::build()?;
            programs(shell)
        }
        Suite::Playground => {
            web::build()?;
            www::test(shell, binary, true)
        }
        Suite::Engines => {
            web::build()?;
            www::build(shell)?;
            browser::engines(shell, binary)
        }
        Suite::Matrix => matrix::run(shell, binary, &web::build()?),
        Suite::Sdk => sdk(shell, binary),
        Suite::Llama => llama(shell),
        Suite::Atif => atif(shell, binary),
        Suite::Ray => ray(shell, binary),
        Suite::Chaos => chaos(shell, binary),
        Suite::Elsewhere => elsewhere::test(shell),
        Suite::Windows => windows(shell),
        Suite::Peers => peers(shell),
        Suite::All => whole(shell, true),
    }
}

impl Suite {
    /// Its name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn needs_node(self) -> bool {
        SHOWN.contains(&self)
            || matches!(
                self,
                Self::Package | Self::Programs | Self::Engines | Self::Matrix | Self::Peers
            )
    }
}

/// Compiles the cores: a crate of each takes one thread for minutes, so something else
/// may be done beside.
fn compile_cores() -> Result<()> {
    component::compile(&["sandbox"])?;
    web::build()?;
    web::build_slim()?;
    Ok(())
}

/// Does both at the same time.
fn both(
    here: impl FnOnce() -> Result<()>,
    beside: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    std::thread::scope(|scope| {
        let beside = scope.spawn(beside);
        let here = here();
        let beside = beside.join();
        here?;
        beside.unwrap_or_else(|_| bail!("a thread of the build panicked"))
    })
}

/// Says how long a part took, so that a run shows where its time goes.
fn timed<T>(part: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let result = run();
    println!("xtask test: {part} took {} s", begun.elapsed().as_secs());
    result
}

/// Tests of the web face in Node.
pub(crate) fn node(shell: &Shell, binary: &Path, web: &Path) -> Result<()> {
    web::build_slim()?;
    npm::tools(shell)?;
    let tests = node_tests("tests/node")?;
    // Two files at a time: half of a file's time is waiting.
    cmd!(shell, "node {NODE_TEST...} --test-concurrency=2 {tests...}")
        .env("HERMITCRAB_BIN", binary)
        .env("HERMITCRAB_WEB", web)
        .run()
        .context("the tests of the web face in Node failed")
}

/// Tests of programs that are lent to the sandbox.
fn programs(shell: &Shell) -> Result<()> {
    let archive = python::build()?;
    let tests = node_tests("tests/programs")?;
    cmd!(shell, "node {NODE_TEST...} {tests...}")
        .run()
        .context("the tests of lent programs failed")?;
    cargo(shell)
        .arg("test")
        .args(NATIVE)
        .args(["--test", "programs", "--test", "eval"])
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_PYTHON", archive)
        .run()
        .context("the tests of lent programs in the native host failed")
}

/// Rust tests; slow ones run their long form where [`LONG`] is set.
pub(crate) fn rust(shell: &Shell, binary: &Path) -> Result<()> {
    cargo(shell)
        .arg("test")
        .args(NATIVE)
        .arg("--no-fail-fast")
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_BIN", binary)
        .run()
        .context("Rust tests failed")
}

/// apply_patch beside codex's.
fn peers(shell: &Shell) -> Result<()> {
    let peers = root().join("tests/peers/apply-patch.mjs");
    let ours = target_dir().join("release/examples/apply_patch");
    cmd!(shell, "node {NODE_TEST...} {peers}")
        .env("HERMITCRAB_APPLY_PATCH", ours)
        .run()
        .context("apply_patch differs from codex's")
}

/// The requests and streams of the official SDKs.
fn sdk(shell: &Shell, binary: &Path) -> Result<()> {
    let place = root().join("target/peers/sdk");
    let python = python_with(shell, &place, "requirements.txt")
        .context("cannot install the SDKs; they are downloaded with pip")?;
    let script = root().join("tests/peers/sdk.py");
    cmd!(shell, "{python} {script} {binary} {place}")
        .run()
        .context("a request or a stream is not what the SDKs know")
}

/// The trajectories of evaluations.
fn atif(shell: &Shell, binary: &Path) -> Result<()> {
    let place = root().join("target/peers/atif");
    let python = python_with(shell, &place, "requirements-atif.txt")
        .context("cannot install atif; it is downloaded with pip")?;
    let script = root().join("tests/peers/trajectories.py");
    cmd!(shell, "{python} {script} {binary} {place}")
        .run()
        .context("a trajectory is not what its readers know")
}

/// Shards of an evaluation under an engine that hands out indices.
fn ray(shell: &Shell, binary: &Path) -> Result<()> {
    let place = root().join("target/peers/ray");
    let python = python_with(shell, &place, "requirements-ray.txt")
        .context("cannot install Ray; it is downloaded with pip")?;
    let script = root().join("tests/peers/shards.py");
    cmd!(shell, "{python} {script} {binary} {place}")
        .run()
        .context("shards lost or doubled a trial")
}

/// An evaluation under faults. Its script needs Python alone.
fn chaos(shell: &Shell, binary: &Path) -> Result<()> {
    let place = root().join("target/peers/chaos");
    let script = root().join("tests/peers/chaos.py");
    cmd!(shell, "python3 {script} {binary} {place}")
        .run()
        .context("an evaluation does not stand the faults around it")
}

/// The host for Windows compiles; there is no machine here to run it.
fn windows(shell: &Shell) -> Result<()> {
    const TARGET: &str = "x86_64-pc-windows-gnu";
    cmd!(shell, "rustup target add {TARGET}").quiet().run()?;
    cargo(shell)
        .args(["clippy", "--package", "hermitcrab-host", "--target", TARGET])
        .args(["--", "-D", "warnings"])
        .run()
        .context("the host does not compile for Windows")
}

/// llama.cpp has no wheel for every machine: where it cannot be had, that is
/// said, and nothing is tested.
fn llama(shell: &Shell) -> Result<()> {
    let place = root().join("target/peers/llama");
    let python = match python_with(shell, &place, "requirements-llama.txt") {
        Ok(python) => python,
        Err(error) => {
            println!("llama.cpp is not tested: its packages cannot be installed: {error:#}");
            return Ok(());
        }
    };
    cargo(shell)
        .arg("build")
        .args(NATIVE)
        .args(["--example", "ask"])
        .env(native::EMBED, native::core_path())
        .run()
        .context("the example `ask` cannot be built")?;
    let script = root().join("tests/peers/llama.py");
    let example = target_dir().join("release/examples/ask");
    cmd!(shell, "{python} {script} {example}")
        .run()
        .context("a wire of llama.cpp does not give a whole answer")
}

/// The Python of a virtual environment at `place` that has what the file
/// `requirements` of tests/peers lists.
fn python_with(shell: &Shell, place: &Path, requirements: &str) -> Result<PathBuf> {
    let python = place.join("bin/python");
    if !python.exists() {
        cmd!(shell, "python3 -m venv {place}")
            .run()
            .context("cannot make a virtual environment; install Python 3.11 or newer")?;
    }
    let requirements = root().join("tests/peers").join(requirements);
    cmd!(
        shell,
        "{python} -m pip install --quiet --requirement {requirements}"
    )
    .run()?;
    Ok(python)
}

fn lint(shell: &Shell) -> Result<()> {
    cargo(shell)
        .args(["fmt", "--all", "--check"])
        .run()
        .context("the code is not formatted; run `cargo fmt --all`")?;
    ensure_wasm_target(shell)?;
    cargo(shell)
        .arg("clippy")
        .args(NATIVE)
        .args(["--all-targets", "--", "-D", "warnings"])
        .run()
        .context("clippy found something in the native code")?;
    cargo(shell)
        .args([
            "clippy",
            "--package",
            "hermitcrab",
            "--lib",
            "--profile",
            "wasm",
        ])
        .args([
            "--target",
            WASM_TARGET,
            "--features",
            "sandbox,component,web",
        ])
        .args(["--", "-D", "warnings"])
        .run()
        .context("clippy found something in the wasm code")?;
    Ok(())
}

/// Node 20 is the oldest one that has what the web face and its tests use.
fn check_node(shell: &Shell) -> Result<()> {
    let version = cmd!(shell, "node --version")
        .quiet()
        .read()
        .context("cannot run node; install Node.js 20 or newer")?;
    let major = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= 20 => Ok(()),
        _ => bail!("Node.js 20 or newer is needed, found {version}"),
    }
}

/// Test files by name: Node 20 does not expand patterns itself.
fn node_tests(dir: &str) -> Result<Vec<PathBuf>> {
    let dir = root().join(dir);
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?
    {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.ends_with(".test.mjs")) {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no tests in {}", dir.display());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_product_runs_in_ci() {
        let ci = std::fs::read_to_string(root().join(".ci/run")).expect("the script");
        assert!(ci.ends_with("\nexec cargo xtask test\n"), "{ci}");
        let suites = Suite::value_variants().iter();
        let left_out: Vec<_> = suites
            .filter(|suite| **suite != Suite::Lint)
            .filter(|suite| !SHOWN.contains(suite) && !BESIDE.contains(suite))
            .map(|suite| suite.name())
            .collect();
        let extra: Vec<_> = EXTRA.iter().map(|suite| suite.name()).collect();
        let expected = [
            "engines",
            "sdk",
            "llama",
            "atif",
            "ray",
            "chaos",
            "elsewhere",
            "windows",
            "peers",
            "all",
        ];
        assert_eq!(left_out, expected);
        let by_name = &expected[..extra.len()];
        assert_eq!(extra, by_name);
    }
}
