//! `Python`: CPython for sandboxes. One compiled module, a new instance
//! per call, on a separate thread; the files of a sandbox stay between calls.

mod image;

use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::{Caller, Extern, Linker};

use super::ProgramFn;
use super::machine::{Machine, State};
use super::runner::{Runner, Setting};
use crate::cache::Cache;
use crate::error::HostError;
use image::Image;

/// Calls that may run at the same time, unless the builder says otherwise.
const WORKERS: usize = 4;

/// Name of the archive that `cargo xtask python` makes.
const ARCHIVE: &str = "python.tar.gz";

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
/// Each call is a new interpreter, without subprocesses, threads, sockets
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
pub struct Python(Arc<Runner>);

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
        let mut mounts = vec![(LIBRARY, image.library)];
        if !image.more.is_empty() {
            mounts.push((MORE, image.more));
        }
        let setting = Setting {
            machine,
            mounts,
            boot: &["-c", BOOT],
            called: "the interpreter",
            opens_here: false,
        };
        Ok(Python(Arc::new(Runner::new(setting, self.workers))))
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

    /// The archive where it is looked for: `python.tar.gz` beside this program, else
    /// in `hermitcrab` in the user's cache directory.
    pub fn find() -> Option<PathBuf> {
        let program = std::env::current_exe().ok();
        let beside = program.and_then(|program| Some(program.parent()?.join(ARCHIVE)));
        let kept = Cache::Default.dir(ARCHIVE);
        [beside, kept]
            .into_iter()
            .flatten()
            .find(|path| path.is_file())
    }

    /// To lend, under any name, to any number of sandboxes.
    pub fn program(&self) -> ProgramFn {
        self.0.program()
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
