//! `cargo xtask bench`: measures and prints; never judges. Subjects take turns
//! within each cycle, so that ratios hold when the machine's speed drifts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::usage::Used;
use crate::workspace::{NATIVE, WASM_TARGET, cargo, shell, target_dir};
use crate::{bench_web, build, component, floor, native, python};

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Which table; `run` and `sandbox` when left out.
    #[arg(value_enum)]
    table: Option<Table>,
    /// Cycles over all subjects; medians are over all rounds of all cycles.
    #[arg(long, default_value_t = 3)]
    cycles: usize,
    /// Core (as `cargo xtask component` writes it) to measure the sandbox of,
    /// instead of the embedded one; several share one table.
    #[arg(long = "core", value_name = "FILE")]
    cores: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// `hermitcrab run` beside a bare loop, on a scripted model over loopback.
    Run,
    /// The sandbox, in process.
    Sandbox,
    /// Trials of evaluations, and sessions alive, in process.
    Eval,
    /// Python lent to the sandbox of the native host (fetches CPython).
    Python,
    /// `glob` and `grep` on the local disk beside ripgrep (`rg` must be installed).
    Search,
    /// Streamed deltas inside the core, provider by provider.
    Deltas,
    /// Requests that the core writes late in a session, provider by provider.
    Requests,
    /// The web face: sizes, and its work in Chromium beside its peers on npm.
    Web,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let cycles = options.cycles.max(1);
    let cores = options.cores.iter().map(std::path::absolute);
    let cores = cores.collect::<std::io::Result<Vec<_>>>()?;
    match options.table {
        Some(Table::Run) => run_table(&build::binary()?, cycles),
        Some(Table::Sandbox) => {
            build::binary()?;
            sandbox_table(&cores)
        }
        Some(Table::Eval) => {
            build::binary()?;
            in_process("eval", &[])
        }
        Some(Table::Python) => {
            build::binary()?;
            in_process("python", &[python::build()?])
        }
        Some(Table::Search) => {
            build::binary()?;
            in_process("search", &[PathBuf::from("measure")])
        }
        Some(Table::Deltas) => {
            build::binary()?;
            in_process("deltas", &[])
        }
        Some(Table::Requests) => {
            build::binary()?;
            in_process("requests", &[])
        }
        Some(Table::Web) => bench_web::run(cycles),
        None => {
            run_table(&build::binary()?, cycles)?;
            sandbox_table(&cores)
        }
    }
}

/// The sandbox beside bashkit alone, compiled like the core (`bench/shell`).
fn sandbox_table(cores: &[PathBuf]) -> Result<()> {
    let shell = shell()?;
    cargo(&shell)
        .args(["build", "--package", "bare-shell", "--target", WASM_TARGET])
        .args(["--profile", component::PROFILE])
        .quiet()
        .run()?;
    let bare = target_dir()
        .join(WASM_TARGET)
        .join(component::PROFILE)
        .join("bare_shell.wasm");
    in_process("sandbox", &[&[bare], cores].concat())
}

/// Runs a bench target of the workspace, which needs the core that
/// `build::binary` left.
fn in_process(name: &str, files: &[PathBuf]) -> Result<()> {
    let shell = shell()?;
    cargo(&shell)
        .arg("test")
        .args(NATIVE)
        .args(["--bench", name, "--"])
        .args(files)
        .env(native::EMBED, native::core_path())
        .run()?;
    Ok(())
}

/// A script of `rounds` shell calls and a closing answer.
fn rounds_script(rounds: usize) -> Value {
    let call = json!({
        "text": "again",
        "tool_calls": [{"name": "shell", "arguments": {"command": "echo hi"}}]
    });
    let mut steps = vec![call; rounds];
    steps.push(json!({"text": "done"}));
    json!({ "steps": steps })
}

/// One answer of `count` text deltas.
fn deltas_script(count: usize) -> Value {
    json!({"steps": [{"texts": vec!["word "; count]}]})
}

/// The scripted model in a separate process.
struct Model {
    child: Child,
    url: String,
    _script: tempfile::NamedTempFile,
}

impl Model {
    fn start(binary: &Path, script: &Value) -> Result<Self> {
        let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
        file.write_all(script.to_string().as_bytes())?;
        let mut child = Command::new(binary)
            .args(["serve-model", "--port", "0"])
            .arg(file.path())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start serve-model")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("serve-model has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .with_context(|| format!("serve-model said {line:?}"))?;
        Ok(Self {
            url: url.to_owned(),
            child,
            _script: file,
        })
    }

    /// Time between the end of each answer and the next request, in ms.
    fn gaps_ms(&self) -> Result<Vec<f64>> {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "GET /_script/requests HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
        )?;
        let mut reader = BufReader::new(stream);
        let body = floor::read_response(&mut reader)?;
        let requests: Vec<Value> = serde_json::from_slice(&body)?;
        let times = |name: &str| -> Vec<Option<f64>> {
            requests
                .iter()
                .map(|request| request[name].as_f64())
                .collect()
        };
        let (received, answered) = (times("received_us"), times("answered_us"));
        Ok(answered
            .iter()
            .zip(received.iter().skip(1))
            .filter_map(|(answered, next)| Some((next.as_ref()? - answered.as_ref()?) / 1_000.0))
            .collect())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end, in a process of `crate::usage`.
fn measure(command: &Command) -> Result<Used> {
    let mut between = Command::new(std::env::current_exe()?);
    between
        .arg("usage")
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => between.env(name, value),
            None => between.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        between.current_dir(directory);
    }
    let output = between.output()?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Used::read(&String::from_utf8(output.stdout)?)
}

#[derive(Clone, Copy)]
enum Subject {
    Floor,
    Ours,
}

impl Subject {
    fn command(self, binary: &Path, url: &str, dir: &Path) -> Result<Command> {
        let mut command = match self {
            Self::Floor => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["floor", url]);
                command
            }
            Self::Ours => {
                let mut command = Command::new(binary);
                command
                    .args([
                        "run",
                        "--json",
                        "--provider",
                        "anthropic",
                        "--base-url",
                        url,
                    ])
                    .args(["--max-tool-rounds", "1000000", "go"])
                    .env("ANTHROPIC_API_KEY", "bench");
                command
            }
        };
        command.current_dir(dir);
        Ok(command)
    }
}

fn run_table(binary: &Path, cycles: usize) -> Result<()> {
    const ROUNDS: usize = 50;
    const LONG: usize = 200;
    const DELTAS: usize = 20_000;
    let dir = tempfile::tempdir()?;
    let mut gaps = [vec![], vec![]];
    let mut cpu = [vec![], vec![]];
    let mut peak = [vec![], vec![]];
    let mut start = [vec![], vec![]];
    let mut growth = [vec![], vec![]];
    let mut delta_us = vec![];
    for _ in 0..cycles {
        for (index, subject) in [Subject::Floor, Subject::Ours].into_iter().enumerate() {
            start[index].push(first_request_ms(subject, binary, dir.path())?);
            let model = Model::start(binary, &rounds_script(ROUNDS))?;
            let used = measure(&subject.command(binary, &model.url, dir.path())?)?;
            let measured = model.gaps_ms()?;
            ensure!(
                measured.len() == ROUNDS,
                "{} gaps of {ROUNDS}",
                measured.len()
            );
            gaps[index].extend(measured);
            cpu[index].push(used.cpu_s);
            peak[index].push(used.peak_mb);
            let model = Model::start(binary, &rounds_script(LONG))?;
            measure(&subject.command(binary, &model.url, dir.path())?)?;
            let measured = model.gaps_ms()?;
            ensure!(measured.len() == LONG, "{} gaps of {LONG}", measured.len());
            growth[index].push(median(&measured[LONG - 10..]) / median(&measured[5..15]));
        }
        let mut used = [0.0; 2];
        for (index, count) in [1, DELTAS].into_iter().enumerate() {
            let model = Model::start(binary, &deltas_script(count))?;
            let command = &Subject::Ours.command(binary, &model.url, dir.path())?;
            used[index] = measure(command)?.cpu_s;
        }
        delta_us.push((used[1] - used[0]) * 1e6 / DELTAS as f64);
    }
    println!("hermitcrab run on a scripted model over loopback, {ROUNDS} rounds of `echo hi`");
    println!("medians; {cycles} cycles; floor: the HTTP and the shell alone, without an agent\n");
    println!("| measure | floor | hermitcrab | ratio |");
    println!("|---|---|---|---|");
    row("gap per round, ms", &gaps);
    row("process start to first request, ms", &start);
    row("CPU of all rounds, s", &cpu);
    row("peak memory, MB", &peak);
    row(&format!("gap near round {LONG} ÷ near round 10"), &growth);
    println!(
        "| CPU per streamed delta, µs | – | {:.2} | – |",
        median(&delta_us)
    );
    Ok(())
}

fn row(name: &str, values: &[Vec<f64>; 2]) {
    let (floor, ours) = (median(&values[0]), median(&values[1]));
    println!("| {name} | {floor:.2} | {ours:.2} | {:.2} |", ours / floor);
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Time from starting the process until its first request is complete.
fn first_request_ms(subject: Subject, binary: &Path, dir: &Path) -> Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut command = subject.command(binary, &url, dir)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn()?;
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let elapsed = started.elapsed();
    child.kill()?;
    child.wait()?;
    Ok(elapsed.as_secs_f64() * 1_000.0)
}
