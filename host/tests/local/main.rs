//! `LocalEnvironment` on real files and processes.

#![cfg(any(target_os = "linux", target_os = "macos"))]

mod checkpoint;
mod exec;
mod fence;
mod files;
mod kill;
mod search;
mod terminal;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::{ExecRequest, ExecStatus, OutputStream};
use hermitcrab_host::{CancellationToken, ExecIo, HostEnvironment, LocalEnvironment};
use tempfile::TempDir;

/// A hang guard, far above what any test takes.
const GUARD: Duration = Duration::from_secs(60);

/// A fresh directory and an environment of it.
fn fresh() -> (TempDir, LocalEnvironment) {
    let directory = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::new(directory.path()).unwrap();
    (directory, environment)
}

/// A fresh directory holding `files`.
fn with_files(files: &[(&str, &str)]) -> (TempDir, LocalEnvironment) {
    let (directory, environment) = fresh();
    for (path, content) in files {
        put(directory.path(), path, content);
    }
    (directory, environment)
}

fn put(directory: &Path, path: &str, content: &str) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// What a command did.
#[derive(Debug, PartialEq)]
struct Ran {
    status: ExecStatus,
    stdout: String,
    stderr: String,
}

async fn run(environment: &LocalEnvironment, request: ExecRequest) -> Ran {
    run_until(environment, request, CancellationToken::new()).await
}

/// Runs a command; the measured duration is set to 0 so that the rest compares.
async fn run_until(
    environment: &LocalEnvironment,
    request: ExecRequest,
    cancel: CancellationToken,
) -> Ran {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut output = |stream, data: Bytes| match stream {
        OutputStream::Stdout => stdout.extend_from_slice(&data),
        OutputStream::Stderr => stderr.extend_from_slice(&data),
    };
    let io = ExecIo {
        output: &mut output,
        cancel,
    };
    let mut status = tokio::time::timeout(GUARD, environment.exec(request, io))
        .await
        .expect("the command hangs")
        .unwrap();
    status.duration_ms = 0;
    Ran {
        status,
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A command line with a generous time limit.
fn command(line: impl Into<String>) -> ExecRequest {
    ExecRequest {
        command: line.into(),
        timeout_ms: 30_000,
        ..ExecRequest::default()
    }
}
