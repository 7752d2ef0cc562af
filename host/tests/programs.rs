//! Programs lent to sandboxes: CPython in the cases that JavaScript hosts play,
//! too (tests/programs/python.json), and what only this host does. They need the
//! archive of `cargo xtask python`: `HERMITCRAB_PYTHON` says where it is, and
//! `cargo xtask test programs` sets that.

mod support;

#[path = "programs/calls.rs"]
mod calls;
#[cfg(unix)]
#[path = "programs/run.rs"]
mod run;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use hermitcrab::environment::{ExecRequest, ExecStatus};
use hermitcrab_host::{EnvironmentHandle, Host, MemoryOptions, Python};
use serde::Deserialize;
use std::collections::BTreeMap;
use support::harness::{self, Trial};

const CASES: &str = include_str!("../../tests/programs/python.json");

/// Commands in a sandbox of their own.
#[derive(Clone, Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    steps: Vec<Step>,
}

/// One command, and what it answers: whole streams, or what must be in them.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    command: String,
    #[serde(default = "two_minutes")]
    timeout_ms: u64,
    #[serde(default)]
    exit_code: i32,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    stdout_has: Option<Vec<String>>,
    stderr_has: Option<Vec<String>>,
}

fn two_minutes() -> u64 {
    120_000
}

fn main() -> ExitCode {
    let Some(archive) = std::env::var_os("HERMITCRAB_PYTHON").map(PathBuf::from) else {
        println!("no tests: HERMITCRAB_PYTHON names no archive; see `cargo xtask test programs`");
        return ExitCode::SUCCESS;
    };
    ARCHIVE.get_or_init(|| archive);
    let cases: Vec<Case> = match serde_json::from_str(CASES) {
        Ok(cases) => cases,
        Err(error) => {
            println!("tests/programs/python.json: {error}");
            return ExitCode::FAILURE;
        }
    };
    let trials = cases.into_iter().map(|case| {
        let name = format!("python::{}", case.name);
        Trial::new(name, move || play(&case))
    });
    let mut trials: Vec<Trial> = trials.collect();
    trials.extend(calls::trials());
    #[cfg(unix)]
    trials.extend(run::trials());
    harness::main(trials)
}

static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();

fn archive() -> &'static PathBuf {
    ARCHIVE.get_or_init(PathBuf::new)
}

/// One for all tests: what is compiled once stays, in a cache of the tests.
fn python() -> &'static Python {
    static PYTHON: OnceLock<Python> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let python = Python::builder(archive()).cache_dir(cache()).load();
        python.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Where the tests keep what they compile: beside what cargo makes.
fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("programs")
}

/// A sandbox with `files` and Python.
async fn sandbox(files: &BTreeMap<String, String>) -> Result<EnvironmentHandle, String> {
    let files = files.iter();
    let mut options = MemoryOptions {
        files: files
            .map(|(path, content)| (path.clone(), content.clone().into()))
            .collect(),
        ..MemoryOptions::default()
    };
    let programs = &mut options.programs;
    programs.insert("python3".to_owned(), python().program());
    let host = Host::builder().build().map_err(|error| error.to_string())?;
    let instance = host.instance().map_err(|error| error.to_string())?;
    let sandbox = instance.add_memory(options).await;
    sandbox.map_err(|error| error.to_string())
}

/// What a command answered.
#[derive(Debug, PartialEq)]
struct Answer {
    exit_code: i32,
    timed_out: bool,
    stdout: String,
    stderr: String,
}

fn answer(exit_code: i32, stdout: &str, stderr: &str) -> Answer {
    Answer {
        exit_code,
        timed_out: false,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

async fn exec(
    sandbox: &EnvironmentHandle,
    command: &str,
    timeout_ms: u64,
) -> Result<(Answer, ExecStatus), String> {
    let request = ExecRequest {
        command: command.to_owned(),
        timeout_ms,
        ..ExecRequest::default()
    };
    let output = sandbox.exec(request).await;
    let output = output.map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let answer = Answer {
        exit_code: output.status.exit_code,
        timed_out: output.status.timed_out,
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    Ok((answer, output.status))
}

/// Runs a command and compares all that it answers.
async fn check(
    sandbox: &EnvironmentHandle,
    command: &str,
    expected: &Answer,
) -> Result<(), String> {
    let (actual, _) = exec(sandbox, command, two_minutes()).await?;
    equal(&actual, expected, command)
}

fn equal<T: PartialEq + std::fmt::Debug>(
    actual: &T,
    expected: &T,
    what: &str,
) -> Result<(), String> {
    match actual == expected {
        true => Ok(()),
        false => Err(format!(
            "{what}\n  is       {actual:?}\n  should be {expected:?}"
        )),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn play(case: &Case) -> Result<(), String> {
    let sandbox = sandbox(&case.files).await?;
    for step in &case.steps {
        let (actual, _) = exec(&sandbox, &step.command, step.timeout_ms).await?;
        let stream = |whole: &String, parts: &Option<Vec<String>>, actual: &String| {
            let Some(parts) = parts else {
                return Ok(whole.clone());
            };
            match parts.iter().find(|part| !actual.contains(*part)) {
                Some(part) => Err(format!("{}: no {part:?} in {actual:?}", step.command)),
                None => Ok(actual.clone()),
            }
        };
        let expected = Answer {
            exit_code: step.exit_code,
            timed_out: step.timed_out,
            stdout: stream(&step.stdout, &step.stdout_has, &actual.stdout)?,
            stderr: stream(&step.stderr, &step.stderr_has, &actual.stderr)?,
        };
        equal(&actual, &expected, &step.command)?;
    }
    Ok(())
}
