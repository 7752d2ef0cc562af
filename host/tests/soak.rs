//! Many sessions one after another, and many rounds in one: no process, descriptor, file
//! or memory stays behind.
//!
//! A test has 150 sessions and 600 rounds, with `HERMITCRAB_TEST_ALL` 1,000 and 10,000;
//! `cargo xtask soak` runs sessions for a time that you choose and prints a line a minute.

#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;
use hermitcrab_host::{
    EnvironmentChoice, Host, LocalEnvironment, MemoryOptions, SessionConfig, SessionOptions,
};
use serde_json::{Value, json};
use support::harness::{self, Trial};

/// Names what a process of this test is to do.
const PART: &str = "HERMITCRAB_SOAK_PART";
/// Minutes of a soak.
const MINUTES: &str = "HERMITCRAB_SOAK_MINUTES";
/// In the environment of every command.
const MARK: &str = "HERMITCRAB_SOAK_MARK";
/// Sessions after which memory and descriptors have the size that they keep.
const WARM: usize = 50;
/// Memory that may come after that, kB: what allocators and pools still take.
const GROWTH_KB: u64 = 64 * 1024;
/// Memory that a round of one session may leave, kB: its part of the history, and what
/// the core's allocator loses between bodies that grow. A copy of each request would be
/// 270 bytes times the rounds before it, 1,350 kB on average of 10,000.
const ROUND_KB: u64 = 64;
/// How long the last processes may take to be gone.
const GONE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    if let Ok(part) = std::env::var(PART) {
        let result = match part.as_str() {
            "sessions" => sessions(Until::Count(if is_long() { 1_000 } else { 150 })),
            "rounds" => rounds(if is_long() { 10_000 } else { 600 }),
            _ => sessions(Until::Time(Instant::now() + minutes())),
        };
        return match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let parts: &[&str] = match std::env::var_os(MINUTES) {
        Some(_) => &["time"],
        None => &["sessions", "rounds"],
    };
    let trials = parts
        .iter()
        .map(|&part| Trial::new(part, move || inside(part)));
    harness::main(trials.collect())
}

fn is_long() -> bool {
    std::env::var_os("HERMITCRAB_TEST_ALL").is_some()
}

fn minutes() -> Duration {
    let minutes = std::env::var(MINUTES).ok();
    let minutes = minutes.and_then(|minutes| minutes.parse::<f64>().ok());
    Duration::from_secs_f64(60.0 * minutes.unwrap_or(30.0))
}

/// Runs a part in a process whose temporary files are its own, and looks for what stayed.
fn inside(part: &str) -> Result<(), String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let status = Command::new(program)
        .env(PART, part)
        .env(MARK, place.path())
        .env("TMPDIR", place.path())
        .status()
        .map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{part}: {status}"));
    }
    let left: Vec<_> = std::fs::read_dir(place.path())
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("files stayed: {left:?}")),
    }
}

#[derive(Clone, Copy)]
enum Until {
    Count(usize),
    Time(Instant),
}

impl Until {
    fn is_over(self, done: usize) -> bool {
        match self {
            Self::Count(count) => done >= count,
            Self::Time(end) => Instant::now() >= end,
        }
    }
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// What the model says in a session on this machine: it leaves a process in each way that
/// there is.
fn local_steps() -> Vec<Value> {
    vec![
        call(
            "write_file",
            json!({"file_path": "a.txt", "content": "one\n"}),
        ),
        call(
            "shell",
            json!({"command": "sleep 300", "run_in_background": true}),
        ),
        call("shell", json!({"command": "cat a.txt; seq 2000; exit 3"})),
        call("shell", json!({"command": "sleep 300", "timeout_ms": 20})),
        json!({"text": "Done."}),
    ]
}

fn sandbox_steps() -> Vec<Value> {
    vec![
        call(
            "shell",
            json!({"command": "seq 5000 > a.txt; sort -r a.txt | head -3"}),
        ),
        json!({"text": "Done."}),
    ]
}

fn model(steps: &[Value]) -> ServeModel {
    let script = json!({ "steps": steps }).to_string();
    let model = ScriptedModel::from_json(&script).expect("a script");
    // All requests of a long session are as large as the square of its rounds.
    let model = model.keep_requests(1);
    ServeModel::start(model, 0).expect("a model")
}

fn host(model: &ServeModel) -> Result<Host, String> {
    let url = model.url();
    let builder = Host::builder().credential("anthropic", "sk-test", &url);
    builder.build().map_err(|error| error.to_string())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads")
}

/// One session from its opening to its end.
async fn session(host: &Host, model: &ServeModel, directory: Option<&Path>) -> Result<(), String> {
    let config = SessionConfig {
        base_url: Some(model.url()),
        background_commands: directory.is_some(),
        max_turns: 0,
        max_tool_rounds_per_input: u32::MAX,
        ..SessionConfig::default()
    };
    let environment = match directory {
        None => EnvironmentChoice::Memory(MemoryOptions::default()),
        Some(directory) => {
            let mark = std::env::var_os(MARK).unwrap_or_default();
            let local = LocalEnvironment::builder(directory).env(MARK, mark);
            let local = local.build().map_err(|error| error.to_string())?;
            EnvironmentChoice::Host(Arc::new(local))
        }
    };
    let failed = |error: hermitcrab_host::HostError| error.to_string();
    let opened = host.open_session(SessionOptions::new(config, environment));
    let mut session = opened.await.map_err(failed)?;
    session.submit("Go.").await.map_err(failed)?;
    let mut reason = None;
    while let Some(event) = session.next_event().await {
        if event.kind() == "PROCESSING_END" {
            reason = event.data()["reason"].as_str().map(str::to_owned);
            break;
        }
    }
    session.close().await.map_err(failed)?;
    match reason.as_deref() {
        Some("completed") => Ok(()),
        other => Err(format!("a session ended with {other:?}")),
    }
}

/// What this process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: usize,
    memory_kb: u64,
}

impl Held {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("it");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let memory = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").expect("it").count(),
            memory_kb: memory.expect("a number"),
        }
    }
}

/// Commands of this test that run.
fn running() -> usize {
    let mark = std::env::var(MARK).unwrap_or_default();
    let wanted = format!("{MARK}={mark}");
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("it").flatten();
    let processes = processes.filter(|process| {
        let name = process.file_name();
        let is_process = name
            .to_str()
            .is_some_and(|name| name.parse::<u32>().is_ok());
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        is_process && name != *own && variables.any(|one| one == wanted.as_bytes())
    });
    processes.count()
}

fn sessions(until: Until) -> Result<(), String> {
    let both = [local_steps(), sandbox_steps()].concat();
    runtime().block_on(async {
        let (mut warm, mut last) = (None, Held::now());
        let (mut done, mut told) = (0, Instant::now());
        while !until.is_over(done) {
            let steps = vec![both.clone(); WARM / 2].concat();
            let model = model(&steps);
            let host = host(&model)?;
            for _ in 0..WARM / 2 {
                let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
                session(&host, &model, Some(directory.path())).await?;
                session(&host, &model, None).await?;
                done += 2;
            }
            drop((host, model));
            last = Held::now();
            let first = warm.get_or_insert(last);
            if told.elapsed() >= Duration::from_secs(60) {
                told = Instant::now();
                println!("{done} sessions: {last:?}, {} commands run", running());
            }
            if last.memory_kb > first.memory_kb + GROWTH_KB {
                return Err(format!("{done} sessions: memory grew: {first:?}, {last:?}"));
            }
            if last.descriptors > first.descriptors + 8 {
                return Err(format!(
                    "{done} sessions: descriptors stay: {first:?}, {last:?}"
                ));
            }
        }
        println!("{done} sessions: {:?} at first, {last:?} at last", warm);
        nothing_runs().await
    })
}

async fn nothing_runs() -> Result<(), String> {
    let begun = Instant::now();
    while running() > 0 {
        if begun.elapsed() > GONE {
            return Err(format!("{} commands run", running()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn rounds(count: usize) -> Result<(), String> {
    let mut steps = vec![call("shell", json!({"command": "echo round"})); count];
    steps.push(json!({"text": "Done."}));
    runtime().block_on(async {
        let model = model(&steps);
        let host = host(&model)?;
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let first = Held::now();
        session(&host, &model, Some(directory.path())).await?;
        let last = Held::now();
        println!("{count} rounds: {first:?} at first, {last:?} at last");
        if last.memory_kb > first.memory_kb + GROWTH_KB + ROUND_KB * count as u64 {
            return Err(format!("{count} rounds: memory grew: {first:?}, {last:?}"));
        }
        nothing_runs().await
    })
}
