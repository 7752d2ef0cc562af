//! Runs one command: start, stream, end politely, then by force.
//!
//! A command has ended when its direct child has. Whoever still holds the pipes
//! then is a process that was left in the background; what was written so far
//! is taken and the pipes are closed. Source: spec 4.2, 5.4; DEMAND "Traps".

use std::ffi::{CStr, CString};
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::{ExecStatus, OutputStream};
use nix::libc;
use nix::sys::signal::Signal as Sig;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::family::Family;
use super::fence::Fence;
use super::guardian::Table;
use super::kin::Kin;
use super::spawn::{Spawned, spawn};
use super::watch::Watch;
use crate::environment::{ExecIo, OutputWriter};

/// Between SIGTERM and SIGKILL (spec 4.2).
const POLITE: Duration = Duration::from_secs(2);
/// How often a wait without a notification looks again.
const TICK: Duration = Duration::from_millis(20);
/// Ticks of silence after which a pipe that somebody else holds is closed.
const SILENT_TICKS: u32 = 5;
/// Longest stay with a pipe that somebody else keeps filling.
const NOISY: Duration = Duration::from_millis(500);
/// Bound of the work after SIGKILL, within the 2.5 s of the contract.
const FORCED: Duration = Duration::from_millis(300);
/// Largest chunk of output handed over at once, bytes.
const CHUNK: usize = 32 * 1024;

/// A command line, ready to start.
pub(super) struct Command<'a> {
    pub(super) shell: &'a CStr,
    pub(super) line: &'a CStr,
    pub(super) environment: &'a [CString],
    pub(super) directory: &'a CStr,
    pub(super) guardian: Option<&'a Table>,
    pub(super) fence: Option<&'a Fence>,
    pub(super) terminal: bool,
    /// None: no limit.
    pub(super) timeout: Option<Duration>,
}

impl<'a> Command<'a> {
    /// The program and its arguments.
    fn words(&self) -> Vec<&'a CStr> {
        let before = self.fence.map(Fence::before_shell).unwrap_or_default();
        before
            .iter()
            .map(|word| &**word)
            .chain([self.shell, c"-c", self.line])
            .collect()
    }
}

enum Ended {
    ByItself,
    TimedOut,
    Cancelled,
}

/// Runs `command` to its end. An error means that it could not be started.
pub(super) async fn run(command: Command<'_>, io: ExecIo<'_>) -> std::io::Result<ExecStatus> {
    let started = Instant::now();
    let cancel = io.cancel;
    if cancel.is_cancelled() {
        return Ok(ExecStatus {
            exit_code: 128 + libc::SIGTERM,
            cancelled: true,
            ..ExecStatus::default()
        });
    }
    let Spawned {
        pid,
        stdout,
        stderr,
        watched,
    } = spawn(
        &command.words(),
        command.environment,
        command.directory,
        command.guardian,
        command.fence,
        command.terminal,
    )?;
    let mut family = Family::new(pid, watched);
    let mut watch = Watch::new(pid)?;
    let flow = Flow::default();
    let pump = pump(
        match command.terminal {
            // Made for that: it does not block.
            true => pipe::Receiver::from_owned_fd_unchecked(stdout)?,
            false => pipe::Receiver::from_owned_fd(stdout)?,
        },
        pipe::Receiver::from_owned_fd(stderr)?,
        io.output,
        &flow,
    );
    let mut pump = std::pin::pin!(pump);

    let deadline = command.timeout.map(|timeout| started + timeout);
    let ended = tokio::select! {
        biased;
        () = leader_end(&family, &mut watch) => Ended::ByItself,
        () = cancel.cancelled() => Ended::Cancelled,
        () = until(deadline) => Ended::TimedOut,
        () = drained_forever(pump.as_mut(), &flow) => Ended::ByItself,
    };
    let status = match ended {
        Ended::ByItself => {
            drain(pump.as_mut(), &flow, &cancel).await;
            family.reap()
        }
        Ended::TimedOut | Ended::Cancelled => {
            terminate(&mut family, &mut watch, pump.as_mut(), &flow).await
        }
    };
    let timed_out = matches!(ended, Ended::TimedOut);
    Ok(ExecStatus {
        exit_code: if timed_out { 124 } else { exit_code(status) },
        timed_out,
        cancelled: matches!(ended, Ended::Cancelled),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// The code a shell would show: 128 + n after signal n. A leader that could not
/// be reaped counts as killed.
fn exit_code(status: Option<ExitStatus>) -> i32 {
    let Some(status) = status else {
        return 128 + libc::SIGKILL;
    };
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn leader_end(family: &Family, watch: &mut Watch) {
    while !family.leader_ended() {
        watch.changed().await;
    }
}

/// Moves output while somebody else decides when the command has ended.
async fn drained_forever(pump: Pin<&mut impl Future<Output = ()>>, flow: &Flow) {
    if !flow.ended.load(Ordering::Relaxed) {
        pump.await;
    }
    std::future::pending().await
}

/// Takes what is in the pipes: to their end, or until they are silent.
async fn drain(
    mut pump: Pin<&mut impl Future<Output = ()>>,
    flow: &Flow,
    cancel: &CancellationToken,
) {
    let longest = Instant::now() + NOISY;
    let mut silent = 0;
    let mut seen = flow.chunks();
    while !flow.ended.load(Ordering::Relaxed) {
        tokio::select! {
            biased;
            () = pump.as_mut() => return,
            () = cancel.cancelled() => return,
            () = sleep(TICK) => {}
        }
        let now = flow.chunks();
        silent = if now == seen { silent + 1 } else { 0 };
        seen = now;
        // A chunk on its way to a slow reader is not silence.
        let idle = !flow.writing.load(Ordering::Relaxed);
        if idle && (silent >= SILENT_TICKS || Instant::now() >= longest) {
            return;
        }
    }
}

/// SIGTERM to all, up to 2 s, SIGKILL to all that is left. What is printed
/// meanwhile is still taken.
async fn terminate(
    family: &mut Family,
    watch: &mut Watch,
    mut pump: Pin<&mut impl Future<Output = ()>>,
    flow: &Flow,
) -> Option<ExitStatus> {
    let kin = SharedKin::new(Mutex::new(Kin::new(family.leader())));
    with_kin(&kin, |kin| kin.signal(Sig::SIGTERM)).await;
    let gone = all_gone(family, watch, &kin);
    tokio::select! {
        () = gone => {}
        () = sleep(POLITE) => {}
        () = drained_forever(pump.as_mut(), flow) => {}
    }
    // Also after a polite end: somebody may have been born since the last look.
    let forced = Instant::now() + FORCED;
    loop {
        with_kin(&kin, |kin| kin.signal(Sig::SIGKILL)).await;
        tokio::select! {
            () = sleep(TICK / 4) => {}
            () = drained_forever(pump.as_mut(), flow) => {}
        }
        if (family.leader_ended() && !any_lives(&kin).await) || Instant::now() >= forced {
            break;
        }
    }
    // Everybody is dead: what is left in the pipes is all there will be.
    if !flow.ended.load(Ordering::Relaxed) {
        tokio::select! {
            biased;
            () = pump => {}
            () = sleep(TICK * 5) => {}
        }
    }
    family.reap()
}

/// Resolves when the leader has ended and nothing that it started runs.
async fn all_gone(family: &Family, watch: &mut Watch, kin: &SharedKin) {
    leader_end(family, watch).await;
    while any_lives(kin).await {
        sleep(TICK).await;
    }
}

async fn any_lives(kin: &SharedKin) -> bool {
    with_kin(kin, Kin::any_lives).await.unwrap_or(false)
}

type SharedKin = Arc<Mutex<Kin>>;

/// Works with the process table on another thread: reading it takes
/// milliseconds on a busy machine. None when the runtime shuts down.
async fn with_kin<T: Send + 'static>(
    kin: &SharedKin,
    work: impl FnOnce(&mut Kin) -> T + Send + 'static,
) -> Option<T> {
    let kin = kin.clone();
    let work = move || work(&mut kin.lock().unwrap_or_else(PoisonError::into_inner));
    tokio::task::spawn_blocking(work).await.ok()
}

/// What the pump tells those who wait for it.
#[derive(Default)]
struct Flow {
    chunks: AtomicU64,
    writing: AtomicBool,
    ended: AtomicBool,
}

impl Flow {
    fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }
}

/// Moves chunks from both pipes to `output` until both have ended. One chunk is
/// in memory at a time, so that a slow reader slows the command down.
async fn pump(
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    output: &mut dyn OutputWriter,
    flow: &Flow,
) {
    let mut buffer = vec![0; CHUNK];
    let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
    while stdout.is_some() || stderr.is_some() {
        let (stream, end) = tokio::select! {
            () = readable(stdout.as_ref()) => (OutputStream::Stdout, &mut stdout),
            () = readable(stderr.as_ref()) => (OutputStream::Stderr, &mut stderr),
        };
        let Some(receiver) = end else { continue };
        match receiver.try_read(&mut buffer) {
            Ok(0) => *end = None,
            Ok(length) => {
                flow.chunks.fetch_add(1, Ordering::Relaxed);
                flow.writing.store(true, Ordering::Relaxed);
                output
                    .write(stream, Bytes::copy_from_slice(&buffer[..length]))
                    .await;
                flow.writing.store(false, Ordering::Relaxed);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => *end = None,
        }
    }
    flow.ended.store(true, Ordering::Relaxed);
}

/// Resolves when `pipe` can be read; never for a pipe that has ended.
async fn readable(pipe: Option<&pipe::Receiver>) {
    match pipe {
        // An error of the reactor shows again at the read, which ends the pipe.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}
