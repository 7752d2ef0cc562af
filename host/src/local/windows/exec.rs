//! Runs one command in a Job Object, which ends with everything in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::{
    EnvironmentError, EnvironmentErrorKind as Kind, ExecRequest, ExecStatus, OutputStream,
};
use process_wrap::tokio::{CommandWrap, JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, sleep, sleep_until};

use crate::environment::{ExecIo, OutputWriter};
use crate::local::failure::failure;
use crate::pipe::read;

/// Largest chunk of output handed over at once, bytes.
const CHUNK: usize = 32 * 1024;
/// How long the pipes of an ended command are read on, if somebody else holds them.
const REST: Duration = Duration::from_millis(300);
/// What a command that was ended exits with, as on other systems.
const TERMINATED: i32 = 143;

/// Runs `request` in `directory` with these variables.
pub(super) async fn run(
    request: &ExecRequest,
    directory: &Path,
    variables: &BTreeMap<OsString, OsString>,
    io: ExecIo<'_>,
) -> Result<ExecStatus, EnvironmentError> {
    let started = Instant::now();
    if !directory.is_dir() {
        let shown = request.working_dir.as_deref().unwrap_or_default();
        let error = io::Error::from(io::ErrorKind::NotFound);
        return Err(failure("run a command in", shown, &error));
    }
    let mut command = CommandWrap::with_new("bash", |command| {
        command
            .arg("-c")
            .arg(&request.command)
            .current_dir(directory)
            .env_clear()
            .envs(variables)
            .envs(&request.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    });
    let mut child =
        command
            .wrap(JobObject)
            .wrap(KillOnDrop)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => EnvironmentError::new(
                    Kind::Unsupported,
                    "cannot run a command: there is no bash; install Git for Windows",
                ),
                _ => failure("run", &request.command, &error),
            })?;
    let mut flow = Flow {
        stdout: child.stdout().take(),
        stderr: child.stderr().take(),
    };
    let deadline =
        (request.timeout_ms > 0).then(|| started + Duration::from_millis(request.timeout_ms));
    let (mut timed_out, mut cancelled) = (false, false);
    let mut status = None;
    tokio::select! {
        // Ends with the pipes, or is left by the others.
        () = async { flow.pump(io.output).await; std::future::pending().await } => {}
        ended = child.wait() => status = ended.ok(),
        () = io.cancel.cancelled() => cancelled = true,
        () = until(deadline) => timed_out = true,
    }
    if timed_out || cancelled {
        // There is no polite signal that every program knows.
        let _ = child.start_kill();
        status = child.wait().await.ok();
    }
    tokio::select! {
        () = flow.pump(io.output) => {}
        () = sleep(REST) => {}
    }
    let code = status.and_then(|status| status.code());
    Ok(ExecStatus {
        exit_code: match (timed_out, cancelled) {
            (true, _) => 124,
            (_, true) => TERMINATED,
            _ => code.unwrap_or(1),
        },
        timed_out,
        cancelled,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The output on its way.
struct Flow {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Flow {
    /// Moves chunks from both pipes to `output` until both have ended.
    async fn pump(&mut self, output: &mut dyn OutputWriter) {
        let mut of_stdout = vec![0; CHUNK];
        let mut of_stderr = vec![0; CHUNK];
        while self.stdout.is_some() || self.stderr.is_some() {
            let (stream, chunk) = tokio::select! {
                length = read(&mut self.stdout, &mut of_stdout) => {
                    (OutputStream::Stdout, Bytes::copy_from_slice(&of_stdout[..length]))
                }
                length = read(&mut self.stderr, &mut of_stderr) => {
                    (OutputStream::Stderr, Bytes::copy_from_slice(&of_stderr[..length]))
                }
            };
            if !chunk.is_empty() {
                output.write(stream, chunk).await;
            }
        }
    }
}
