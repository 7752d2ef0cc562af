//! `Python`: CPython for sandboxes. One compiled module, an instance of its own
//! per call, on a thread of its own; the files of a sandbox stay between calls.

mod image;
mod kept;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::environment::{ProgramFiles, ProgramRequest, ProgramResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use wasmtime::{Caller, Extern, Linker};

use super::machine::{End, Machine, State};
use super::stop::Stop;
use super::tree::{Device, Room, Tree};
use super::wasi::{Start, now_ns};
use super::{ProgramCall, ProgramFn};
use crate::cache::Cache;
use crate::engine::PROGRAM_STACK;
use crate::error::HostError;
use image::Image;
use kept::{Kept, Place};

/// Bytes that one call may print to each stream.
const OUTPUT_BYTES: usize = 64 << 20;
/// Calls that may run at the same time, unless the builder says otherwise.
const WORKERS: usize = 4;

/// 128 + SIGTERM, as of a process that was ended.
const TERMINATED: i32 = 143;
/// 128 + SIGABRT and 128 + SIGSEGV, as of a process that broke.
const BROKEN: i32 = 134;
const OVERFLOWN: i32 = 139;

/// Where the snapshot in python.wasm expects its library, and where ours is.
const LIBRARY: &str = "/usr/local/lib/python314.zip";
const MORE: &str = "/usr/local/lib/more.zip";

/// Runs first in every call. The interpreter was started when python.wasm was
/// made, isolated: without PYTHONPATH, and with the modules that it found then.
/// Its own driver is called a second time, with the arguments of the user.
const BOOT: &str = include_str!("boot.py");

/// CPython 3.14 with most of its standard library, as a program to lend. Clones
/// share it.
///
/// A call is an interpreter of its own, without subprocesses, threads, sockets
/// and native packages. It sees the files of the sandbox that calls it, and
/// nothing of the machine. Its memory ends at 1 GiB, with a `MemoryError`, its
/// output at 64 MiB per stream; it may add 512 MiB to the files.
///
/// ```no_run
/// use hermitcrab_host::{HostError, MemoryOptions, Python};
///
/// # fn example() -> Result<MemoryOptions, HostError> {
/// let python = Python::builder("python.tar.gz").load()?;
/// let mut options = MemoryOptions::default();
/// options.programs.insert("python3".to_owned(), python.program());
/// # Ok(options)
/// # }
/// ```
#[derive(Clone)]
pub struct Python(Arc<Inner>);

struct Inner {
    machine: Machine,
    library: Bytes,
    more: Bytes,
    workers: Arc<Semaphore>,
    kept: Kept,
}

/// Settings of a [`Python`].
pub struct PythonBuilder {
    archive: PathBuf,
    cache: Cache,
    workers: usize,
    on_compile: Box<dyn FnOnce() + Send>,
}

impl PythonBuilder {
    /// Directory of what is compiled; the default is `hermitcrab/programs` in
    /// the user's cache directory. It becomes private to the user.
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache = Cache::At(dir.into());
        self
    }

    /// Keeps nothing on disk.
    pub fn no_cache(mut self) -> Self {
        self.cache = Cache::Off;
        self
    }

    /// Calls that may run at the same time, at least one; 4 by default. Others
    /// wait. As many sandboxes have their files kept between calls.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Called before the interpreter is compiled, which takes seconds and
    /// happens once per machine.
    pub fn on_compile(mut self, tell: impl FnOnce() + Send + 'static) -> Self {
        self.on_compile = Box::new(tell);
        self
    }

    /// Reads the archive, and compiles it unless the cache holds that already.
    /// It blocks.
    ///
    /// # Errors
    /// An archive that cannot be read, or that is not Python's.
    pub fn load(self) -> Result<Python, HostError> {
        let dir = self.cache.dir("programs");
        let image = Image::load(&self.archive, dir.as_deref(), self.on_compile)?;
        let machine = Machine::new(&image.module, "bashkit_run", no_network);
        let machine = machine.map_err(|error| {
            let shown = self.archive.display();
            HostError::Setup(format!(
                "python.wasm in {shown} is not the Python that this version runs: {error}"
            ))
        })?;
        Ok(Python(Arc::new(Inner {
            machine,
            library: image.library,
            more: image.more,
            workers: Arc::new(Semaphore::new(self.workers)),
            kept: Kept::new(self.workers),
        })))
    }
}

impl std::fmt::Debug for PythonBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PythonBuilder")
            .field("archive", &self.archive)
            .field("cache", &self.cache)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Python {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Python")
    }
}

impl Python {
    /// Python from the archive at `archive`, which `cargo xtask python` makes.
    pub fn builder(archive: impl Into<PathBuf>) -> PythonBuilder {
        PythonBuilder {
            archive: archive.into(),
            cache: Cache::default(),
            workers: WORKERS,
            on_compile: Box::new(|| {}),
        }
    }

    /// To lend, under any name, to any number of sandboxes.
    pub fn program(&self) -> ProgramFn {
        let python = self.clone();
        Arc::new(move |call| Box::pin(python.clone().call(call)))
    }

    async fn call(self, call: ProgramCall) -> ProgramResult {
        let ProgramCall {
            request,
            sandbox,
            cancel,
        } = call;
        let place = Place::new(sandbox, &request.name);
        let known = self.0.kept.take(&place, request.since);
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
            permit = self.0.workers.clone().acquire_owned() => permit.ok(),
        };
        let Some(permit) = permit else {
            return ProgramResult::failed(TERMINATED, "");
        };
        let name = request.name.clone();
        let stop = Stop::default();
        // The thread ends also when nobody waits for it any more.
        let _ends = stop.guard();
        let work = Work {
            python: self,
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
    python: Python,
    place: Place,
    request: ProgramRequest,
    tree: Tree,
    stop: Stop,
    permit: OwnedSemaphorePermit,
}

impl Work {
    fn start(self) -> Option<oneshot::Receiver<ProgramResult>> {
        let (done, result) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("hermitcrab-python".to_owned())
            .stack_size(PROGRAM_STACK);
        let run = move || {
            // Whoever asked may be gone.
            let _ = done.send(self.run());
        };
        thread.spawn(run).ok().map(|_| result)
    }

    fn run(self) -> ProgramResult {
        let Self {
            python,
            place,
            request,
            mut tree,
            stop,
            permit,
        } = self;
        let inner = &*python.0;
        tree.apply(request.changes, now_ns());
        tree.mount(LIBRARY, inner.library.clone());
        if !inner.more.is_empty() {
            tree.mount(MORE, inner.more.clone());
        }
        tree.mount_device("/dev/null", Device::Null);
        tree.mount_device("/dev/zero", Device::Zero);
        tree.mount_device("/dev/urandom", Device::Random);
        tree.mark();
        let mut env = request.env;
        env.insert("PWD".to_owned(), request.working_dir);
        let command = [request.name.clone(), "-c".to_owned(), BOOT.to_owned()];
        let mut ran = inner.machine.run(Start {
            tree,
            args: command.into_iter().chain(request.args).collect(),
            env,
            stdin: request.stdin,
            output_bytes: OUTPUT_BYTES,
            stop,
        });
        let broke =
            |problem: &str| format!("{}: the interpreter broke down: {problem}\n", request.name);
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
                inner.kept.put(place, request.state, ran.tree);
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

/// What its HTTP modules call: the answer to every request is a
/// `ConnectionError`.
fn no_network(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    const SENTENCE: &[u8] = b"the sandbox has no network";
    const CONNECTION_ERROR: i32 = 1;

    /// Writes to the program's memory; what does not fit is its own mistake.
    fn put(caller: &mut Caller<'_, State>, at: u32, bytes: &[u8]) {
        if let Some(Extern::Memory(memory)) = caller.get_export("memory") {
            let _ = memory.write(caller, at as usize, bytes);
        }
    }

    linker.func_wrap(
        "bashkit",
        "http_request",
        |mut caller: Caller<'_, State>,
         _request: i32,
         _length: i32,
         _timeout_ms: i64,
         length: u32| {
            put(&mut caller, length, &(SENTENCE.len() as u32).to_le_bytes());
            CONNECTION_ERROR
        },
    )?;
    linker.func_wrap(
        "bashkit",
        "http_take",
        |mut caller: Caller<'_, State>, buffer: u32, length: u32| {
            let length = SENTENCE.len().min(length as usize);
            put(&mut caller, buffer, &SENTENCE[..length]);
            0
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn javascript_hosts_start_it_with_the_same_lines() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = manifest.join("../js/programs/python-worker.js");
        let script = std::fs::read_to_string(script).expect("the worker");
        assert!(script.replace("${MORE}", MORE).contains(BOOT));
        for path in [LIBRARY, MORE] {
            assert!(script.contains(&format!("\"{path}\"")), "{path}");
        }
    }
}
