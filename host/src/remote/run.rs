//! One command there: start, stream, end politely, then by force.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::{EnvironmentError, ExecRequest, ExecStatus, OutputStream};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout};

use super::carrier::Carrier;
use super::failure;
use crate::environment::{ExecIo, OutputWriter};
use crate::pipe::read;

/// Largest chunk of output handed over at once, bytes.
const CHUNK: usize = 32 * 1024;
/// The other side ends a command within 2.3 s; the contract has 2.5 s.
const FORCED: Duration = Duration::from_millis(2_400);
/// What stands before the line in which the script says the exit code.
const SIGN: u8 = 0x1e;
/// Bytes of standard error that are kept for the sentence of an error.
const SAID: usize = 500;
/// Longest such line, bytes: the sign, the mark, a blank and the code.
const LAST_LINE: usize = 1 + 32 + 1 + 3;

/// Runs `request` in `directory`.
pub(super) async fn run(
    carrier: &Arc<Carrier>,
    request: &ExecRequest,
    directory: &str,
    io: ExecIo<'_>,
) -> Result<ExecStatus, EnvironmentError> {
    carrier.reach().await?;
    let started = Instant::now();
    let mark = mark();
    let variables: Vec<String> = request
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut arguments = vec!["run", &*mark, directory, &*request.command];
    arguments.extend(variables.iter().map(String::as_str));
    let mut command = carrier.call(&arguments)?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let broken = |error: std::io::Error| carrier.broken(&error.to_string());
    let mut child = command.spawn().map_err(broken)?;
    let mut running = Running {
        carrier: carrier.clone(),
        mark,
        is_over: false,
    };
    let mut flow = Flow::new(&running.mark, child.stdout.take(), child.stderr.take());
    let deadline =
        (request.timeout_ms > 0).then(|| started + Duration::from_millis(request.timeout_ms));
    let (mut timed_out, mut cancelled) = (false, false);
    tokio::select! {
        () = flow.pump(io.output) => {}
        () = io.cancel.cancelled() => cancelled = true,
        () = until(deadline) => timed_out = true,
    }
    if timed_out || cancelled {
        let stop = running.stop();
        // The call ends once nothing is left that could print.
        let rest = async {
            tokio::join!(stop, flow.pump(io.output));
        };
        // What does not end by then is cut off from its output.
        let _ = timeout(FORCED, rest).await;
    }
    running.is_over = true;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let code = flow.code();
    if timed_out || cancelled {
        return Ok(ExecStatus {
            exit_code: if timed_out { 124 } else { code.unwrap_or(143) },
            timed_out,
            cancelled,
            duration_ms,
        });
    }
    let status = child.wait().await.map_err(broken)?;
    let Some(exit_code) = code else {
        let said = String::from_utf8_lossy(&flow.said).into_owned();
        let shown = request.working_dir.as_deref().unwrap_or(directory);
        let refused = status
            .code()
            .and_then(|code| failure::of_code(code, "run a command in", shown, &said));
        return Err(refused.unwrap_or_else(|| carrier.cut_off(&said)));
    };
    Ok(ExecStatus {
        exit_code,
        duration_ms,
        ..ExecStatus::default()
    })
}

/// 32 hexadecimal digits that no other command has.
fn mark() -> String {
    let mut bytes = [0; 16];
    // Without randomness of the system there are no keys for the connection either.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A command there. Dropped before it is over, it is ended in the background.
struct Running {
    carrier: Arc<Carrier>,
    mark: String,
    is_over: bool,
}

impl Running {
    /// Ends everything that bears the mark.
    fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        let command = self.carrier.call(&["stop", &self.mark]);
        async move {
            if let Ok(mut command) = command {
                let _ = command.status().await;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let stop = self.stop();
            // The way stays open for it.
            let carrier = self.carrier.clone();
            runtime.spawn(async move {
                stop.await;
                drop(carrier);
            });
        }
    }
}

/// The output on its way.
struct Flow {
    mark: Vec<u8>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Of standard error: what may be the script's last line.
    held: Vec<u8>,
    /// The end of what was handed over of it.
    said: Vec<u8>,
}

impl Flow {
    fn new(mark: &str, stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> Self {
        Self {
            mark: mark.as_bytes().to_vec(),
            stdout,
            stderr,
            held: Vec::new(),
            said: Vec::new(),
        }
    }

    /// Moves chunks from both pipes to `output` until both have ended. One chunk is in
    /// memory at a time, so that a slow reader slows the command down.
    async fn pump(&mut self, output: &mut dyn OutputWriter) {
        let mut of_stdout = vec![0; CHUNK];
        let mut of_stderr = vec![0; CHUNK];
        while self.stdout.is_some() || self.stderr.is_some() {
            tokio::select! {
                length = read(&mut self.stdout, &mut of_stdout) => {
                    let chunk = Bytes::copy_from_slice(&of_stdout[..length]);
                    if !chunk.is_empty() {
                        output.write(OutputStream::Stdout, chunk).await;
                    }
                }
                length = read(&mut self.stderr, &mut of_stderr) => {
                    let chunk = self.without_last_line(&of_stderr[..length]);
                    self.said.extend_from_slice(&chunk);
                    self.said.drain(..self.said.len().saturating_sub(SAID));
                    if !chunk.is_empty() {
                        output.write(OutputStream::Stderr, chunk).await;
                    }
                }
            }
        }
        let rest = self.rest();
        if !rest.is_empty() {
            self.said.extend_from_slice(&rest);
            output.write(OutputStream::Stderr, rest).await;
        }
    }

    /// What can be handed over of standard error with `chunk` added.
    fn without_last_line(&mut self, chunk: &[u8]) -> Bytes {
        self.held.extend_from_slice(chunk);
        let from = self.held.len().saturating_sub(LAST_LINE);
        let sign = self.held[from..].iter().position(|byte| *byte == SIGN);
        let kept = sign.map_or_else(Vec::new, |at| self.held.split_off(from + at));
        std::mem::replace(&mut self.held, kept).into()
    }

    /// What is held that is not the script's last line.
    fn rest(&mut self) -> Bytes {
        let at = self.last_line().unwrap_or(self.held.len());
        let line = self.held.split_off(at);
        std::mem::replace(&mut self.held, line).into()
    }

    /// Where the script's last line begins.
    fn last_line(&self) -> Option<usize> {
        let is_there = |at: &usize| {
            let line = self.held[*at..].strip_prefix(&[SIGN]);
            line.is_some_and(|line| line.starts_with(&self.mark))
        };
        (0..self.held.len()).find(is_there)
    }

    /// The exit code, once the script has said it.
    fn code(&self) -> Option<i32> {
        let line = self.held.get(self.last_line()?..)?;
        let code = line.get(1 + self.mark.len() + 1..)?;
        std::str::from_utf8(code).ok()?.parse().ok()
    }
}
