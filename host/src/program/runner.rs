//! `Runner`: runs the calls of a lent program: a new instance for each, on a
//! separate thread, over the files of the sandbox, which stay between calls.

use hermitcrab_engine::PROGRAM_STACK;
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::environment::{ProgramFiles, ProgramRequest, ProgramResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::kept::{Kept, TreeKey};
use super::machine::{End, Machine};
use super::stop::Stop;
use super::tree::{Device, Room, Tree};
use super::wasi::{Start, now_ns};
use super::{ProgramCall, ProgramFn};

/// Bytes that one call may print to each stream.
const OUTPUT_BYTES: usize = 64 << 20;

/// 128 + SIGTERM, as of a process that was ended.
const TERMINATED: i32 = 143;
/// 128 + SIGABRT and 128 + SIGSEGV, as of a process that broke.
const BROKEN: i32 = 134;
const OVERFLOWN: i32 = 139;

/// A program and how it is started.
pub(super) struct Setting {
    pub(super) machine: Machine,
    /// Files that it sees beside those of the sandbox.
    pub(super) mounts: Vec<(&'static str, Bytes)>,
    /// Arguments before those of the call.
    pub(super) boot: &'static [&'static str],
    /// What it is called where it breaks down.
    pub(super) called: &'static str,
    /// Whether the working directory is open from the start.
    pub(super) opens_here: bool,
}

/// Runs a program.
pub(super) struct Runner {
    setting: Setting,
    workers: Arc<Semaphore>,
    kept: Kept,
}

impl Runner {
    /// Runs at most `workers` calls at the same time.
    pub(super) fn new(setting: Setting, workers: usize) -> Self {
        Self {
            setting,
            workers: Arc::new(Semaphore::new(workers)),
            kept: Kept::new(workers),
        }
    }

    /// To lend.
    pub(super) fn program(self: &Arc<Self>) -> ProgramFn {
        let runner = self.clone();
        Arc::new(move |call| Box::pin(runner.clone().call(call)))
    }

    async fn call(self: Arc<Self>, call: ProgramCall) -> ProgramResult {
        let ProgramCall {
            request,
            sandbox,
            cancel,
        } = call;
        let place = TreeKey::new(sandbox, &request.name);
        let known = self.kept.take(&place, request.since);
        let tree = match (known, request.since) {
            (Some(tree), _) => tree,
            (None, None) => Tree::new(Room::default()),
            (None, Some(_)) => {
                return ProgramResult {
                    files: ProgramFiles::Missing,
                    ..ProgramResult::default()
                };
            }
        };
        let permit = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            permit = self.workers.clone().acquire_owned() => permit.ok(),
        };
        let Some(permit) = permit else {
            return ProgramResult::failed(TERMINATED, "");
        };
        let name = request.name.clone();
        let stop = Stop::default();
        // The thread ends also when nobody waits for it any more.
        let _ends = stop.guard();
        let work = Work {
            runner: self,
            place,
            request,
            tree,
            stop: stop.clone(),
            permit,
        };
        let Some(mut result) = work.start() else {
            return ProgramResult::failed(126, format!("{name}: the host has no thread left\n"));
        };
        let ended = tokio::select! {
            biased;
            ended = &mut result => ended,
            () = cancel.cancelled() => {
                stop.fire();
                result.await
            }
        };
        ended.unwrap_or_else(|_| {
            ProgramResult::failed(BROKEN, format!("{name}: ended by an error of the host\n"))
        })
    }
}

/// One call on its thread.
struct Work {
    runner: Arc<Runner>,
    place: TreeKey,
    request: ProgramRequest,
    tree: Tree,
    stop: Stop,
    permit: OwnedSemaphorePermit,
}

impl Work {
    fn start(self) -> Option<oneshot::Receiver<ProgramResult>> {
        let (done, result) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("hermitcrab-program".to_owned())
            .stack_size(PROGRAM_STACK);
        let run = move || {
            // Whoever asked may be gone.
            let _ = done.send(self.run());
        };
        thread.spawn(run).ok().map(|_| result)
    }

    fn run(self) -> ProgramResult {
        let Self {
            runner,
            place,
            request,
            mut tree,
            stop,
            permit,
        } = self;
        let setting = &runner.setting;
        tree.apply(request.changes, now_ns());
        for (path, content) in &setting.mounts {
            tree.mount(path, content.clone());
        }
        tree.mount_device("/dev/null", Device::Null);
        tree.mount_device("/dev/zero", Device::Zero);
        tree.mount_device("/dev/urandom", Device::Random);
        tree.mark();
        let here = setting.opens_here.then(|| request.working_dir.clone());
        let mut env = request.env;
        env.insert("PWD".to_owned(), request.working_dir);
        let boot = setting.boot.iter().map(|it| (*it).to_owned());
        let command = [request.name.clone()].into_iter().chain(boot);
        let mut ran = setting.machine.run(Start {
            tree,
            args: command.chain(request.args).collect(),
            env,
            stdin: request.stdin,
            output_bytes: OUTPUT_BYTES,
            stop,
            here,
        });
        let broke = |problem: &str| {
            let (name, called) = (&request.name, setting.called);
            format!("{name}: {called} broke down: {problem}\n")
        };
        let is_stopped = ran.end == End::Stopped;
        let exit_code = match ran.end {
            End::Exit(code) => code & 0xff,
            End::Stopped => TERMINATED,
            End::Overflow => {
                ran.output.say(&broke("call stack exhausted"));
                OVERFLOWN
            }
            End::Broke(problem) => {
                ran.output.say(&broke(&problem));
                BROKEN
            }
        };
        let (stdout, stderr) = ran.output.into_streams();
        // What an ended program changed is not kept.
        let (changes, files) = match is_stopped {
            true => (Vec::new(), ProgramFiles::Lost),
            false => {
                let changes = ran.tree.changes();
                runner.kept.put(place, request.state, ran.tree);
                (changes, ProgramFiles::Kept)
            }
        };
        drop(permit);
        ProgramResult {
            exit_code,
            stdout,
            stderr,
            changes,
            files,
        }
    }
}
