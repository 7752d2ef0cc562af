//! `cargo xtask test`: everything that must hold, in the order in which it is
//! cheapest to fail, with the usual closing lines of cargo at the end.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use xshell::{Shell, cmd};

use crate::workspace::{
    NATIVE, NODE_TEST, WASM_TARGET, cargo, cargo_in_spare_time, ensure_wasm_target, root, shell,
    target_dir,
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

pub(crate) fn run(options: &Options) -> Result<()> {
    let shell = shell()?;
    let wants = |suite| match options.suite {
        None => !EXTRA.contains(&suite),
        Some(Suite::All) => true,
        Some(wanted) => wanted == suite,
    };
    let is_whole = matches!(options.suite, None | Some(Suite::All));
    if is_whole {
        ensure_wasm_target(&shell)?;
        timed("lint and compilation", || {
            let here = || {
                lint(&shell)?;
                native::build_host(&shell, &native::core_path())
            };
            both(here, compile_cores)
        })?;
    } else if wants(Suite::Lint) {
        timed("lint", || lint(&shell))?;
    }
    let binary = timed("build", build::binary)?;
    let with_web = || web_suites(&shell, &binary, options.suite, wants);
    match is_whole {
        true => both(with_web, compile_rust_tests)?,
        false => with_web()?,
    }
    if wants(Suite::Rust) {
        let is_long = options.suite == Some(Suite::All);
        timed("rust", || rust(&shell, &binary, is_long))?;
    }
    if wants(Suite::Package) {
        check_node(&shell)?;
        timed("package", || browser::package(&shell, &binary))?;
    }
    if wants(Suite::Matrix) {
        timed("matrix", || matrix::run(&shell, &binary, &web::build()?))?;
    }
    if wants(Suite::Sdk) {
        timed("sdk", || sdk(&shell, &binary))?;
    }
    if wants(Suite::Llama) {
        timed("llama", || llama(&shell))?;
    }
    if wants(Suite::Atif) {
        timed("atif", || atif(&shell, &binary))?;
    }
    if wants(Suite::Ray) {
        timed("ray", || ray(&shell, &binary))?;
    }
    if wants(Suite::Chaos) {
        timed("chaos", || chaos(&shell, &binary))?;
    }
    if wants(Suite::Elsewhere) {
        timed("elsewhere", || elsewhere::test(&shell))?;
    }
    if wants(Suite::Windows) {
        timed("windows", || windows(&shell))?;
    }
    if wants(Suite::Peers) {
        check_node(&shell)?;
        timed("peers", || peers(&shell))?;
    }
    Ok(())
}

/// The suites over the web face, of those that are wanted.
fn web_suites(
    shell: &Shell,
    binary: &Path,
    suite: Option<Suite>,
    wants: impl Fn(Suite) -> bool,
) -> Result<()> {
    if [
        Suite::Node,
        Suite::Browser,
        Suite::Programs,
        Suite::Playground,
        Suite::Engines,
    ]
    .into_iter()
    .any(&wants)
    {
        let web = timed("build of the web face", web::build)?;
        check_node(shell)?;
        if wants(Suite::Node) {
            timed("node", || node(shell, binary, &web))?;
        }
    }
    // Browsers wait for what they show: no other suite runs beside them.
    if wants(Suite::Browser) {
        timed("browser", || browser::cases(shell, binary))?;
    }
    if wants(Suite::Programs) {
        timed("programs", || programs(shell))?;
    }
    if wants(Suite::Playground) {
        // Without a suite's name its main way, which takes a third.
        let is_whole = suite.is_some();
        timed("playground", || www::test(shell, binary, is_whole))?;
    }
    if wants(Suite::Engines) {
        timed("engines", || {
            www::build(shell)?;
            browser::engines(shell, binary)
        })?;
    }
    Ok(())
}

/// Compiles the Rust tests beside other suites, which wait for most of their time.
fn compile_rust_tests() -> Result<()> {
    let shell = shell()?;
    cargo_in_spare_time(&shell)
        .arg("test")
        .args(NATIVE)
        .arg("--no-run")
        .env(native::EMBED, native::core_path())
        .run()
        .context("the Rust tests do not compile")
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

/// Rust tests; slow ones run their long form where that is asked for.
pub(crate) fn rust(shell: &Shell, binary: &Path, is_long: bool) -> Result<()> {
    let mut test = cargo(shell)
        .arg("test")
        .args(NATIVE)
        .arg("--no-fail-fast")
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_BIN", binary);
    if is_long {
        test = test.env("HERMITCRAB_TEST_ALL", "1");
    }
    test.run().context("Rust tests failed")
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
    anyhow::ensure!(!files.is_empty(), "no tests in {}", dir.display());
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
            .filter(|suite| EXTRA.contains(suite) || **suite == Suite::All)
            .map(|suite| {
                suite
                    .to_possible_value()
                    .expect("a name")
                    .get_name()
                    .to_owned()
            })
            .collect();
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
    }
}
