//! The engines: wasmtime set up for the core and for lent programs, the same
//! for compiling and running.
//!
//! The core needs no clock, thread or entropy of the engine. What keeps it in
//! its place: epochs (a guest that does not return is stopped) and a memory
//! limit per instance.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, MemoryCreator,
    PoolingAllocationConfig,
};

/// How often the epoch moves while an instance exists.
pub const TICK: Duration = Duration::from_millis(50);

/// The engine that cores run on unless a host asks for its own memory.
pub fn shared() -> Result<&'static Engine, EngineError> {
    static ENGINE: OnceLock<Result<Engine, EngineError>> = OnceLock::new();
    ENGINE
        .get_or_init(|| make(|_| {}))
        .as_ref()
        .map_err(Clone::clone)
}

/// An engine whose guests live in memory that `memory` makes, for hosts that
/// must see it, such as the test that looks for keys in it.
pub fn with_memory(memory: Arc<dyn MemoryCreator>) -> Result<Engine, EngineError> {
    make(|config| {
        // Copy-on-write images need memory that wasmtime itself has mapped.
        config.memory_init_cow(false);
        config.with_host_memory(memory);
    })
}

/// An engine whose instances take their memory from a pool of `size` places, each
/// of up to `memory_bytes`: a place is cleaned for the next instance, not unmapped.
pub fn pooled(size: u32, memory_bytes: usize) -> Result<Engine, EngineError> {
    let mut pool = PoolingAllocationConfig::new();
    // A core is one component instance of a few core instances, one of which has
    // the memory.
    pool.total_component_instances(size)
        .total_core_instances(size.saturating_mul(CORE_INSTANCES))
        .total_memories(size)
        .total_tables(size.saturating_mul(CORE_INSTANCES))
        .max_core_instance_size(CORE_INSTANCE_BYTES)
        .max_memory_size(memory_bytes.next_multiple_of(WASM_PAGE))
        // Only pages that were written to are cleaned, where Linux tells which (6.7).
        .pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT);
    make(|config| {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    })
}

/// Core instances and tables that a core may consist of.
const CORE_INSTANCES: u32 = 4;
/// Bytes of what wasmtime keeps for a core instance beside its memory.
const CORE_INSTANCE_BYTES: usize = 4 << 20;
const WASM_PAGE: usize = 64 << 10;
/// Bytes of a place that are cleaned by writing, which is faster than giving pages
/// back to the system and getting them again: a trial takes four fifths of the time.
const KEEP_RESIDENT: usize = 1 << 20;

/// The engine that lent programs run on, each on a thread with a stack of
/// [`PROGRAM_STACK`].
pub fn programs() -> Result<&'static Engine, EngineError> {
    static ENGINE: OnceLock<Result<Engine, EngineError>> = OnceLock::new();
    let make = || {
        let mut config = config()?;
        config.max_wasm_stack(PROGRAM_STACK / 2);
        // Not used, but must not be smaller.
        config.async_stack_size(PROGRAM_STACK / 2);
        Engine::new(&config).map_err(|error| EngineError::new(&error))
    };
    ENGINE.get_or_init(make).as_ref().map_err(Clone::clone)
}

/// Bytes of the stack of a thread that runs a program, half of it for the program:
/// CPython recurses in C, once per level of nested JSON for example, and has no
/// limit there. The system gives memory only to the part that is used.
pub const PROGRAM_STACK: usize = 64 << 20;

fn make(more: impl FnOnce(&mut Config)) -> Result<Engine, EngineError> {
    let mut config = config()?;
    #[cfg(unix)]
    config.with_custom_code_memory(Some(Arc::new(in_place::Protection)));
    more(&mut config);
    Engine::new(&config).map_err(|error| EngineError::new(&error))
}

/// What all engines have in common.
fn config() -> Result<Config, EngineError> {
    let mut config = Config::new();
    // The baseline of the target and not of this machine: a compiled core
    // travels inside release binaries.
    config
        .target(env!("HERMITCRAB_TARGET"))
        .map_err(|error| EngineError::new(&error))?;
    config.epoch_interruption(true);
    // The core is stepped by calls that return; nothing in it is concurrent.
    config.concurrency_support(false);
    // A trap in the core is reported by its kind; addresses would add a fifth
    // to the image, which is part of every binary.
    config.generate_address_map(false);
    config.wasm_backtrace_max_frames(None);
    Ok(config)
}

/// What compiled code depends on, in hexadecimal digits: the `source` that it is
/// made of, and the version and settings of the engine.
pub fn key(engine: &Engine, source: &[u8]) -> String {
    /// Wasmtime tells its version and settings to a `Hasher`; those of std
    /// have 64 bits and no stable result.
    struct Feed(Sha256);
    impl Hasher for Feed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut feed = Feed(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    feed.0.update(Sha256::digest(source));
    let digest = feed.0.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Wasmtime could not do what it must; nothing a caller can change but the
/// core file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(String);

impl EngineError {
    /// What wasmtime said, in one line.
    pub fn new(error: &wasmtime::Error) -> Self {
        Self(format!("{error:#}").replace('\n', "; "))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

/// Attempts at an instance while the system is busy.
const ATTEMPTS: u32 = 5;

/// Starts an instance by `start`, again where the system was busy: Linux does not seal
/// the image of a memory (`EBUSY`) while it holds one of its pages for itself, as it may
/// under load.
///
/// # Errors
/// That of `start`, after five attempts if it is that the system is busy.
pub fn instantiate<T>(mut start: impl FnMut() -> wasmtime::Result<T>) -> wasmtime::Result<T> {
    let is_busy = |error: &wasmtime::Error| {
        error
            .chain()
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .any(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
    };
    for _ in 1..ATTEMPTS {
        match start() {
            Err(error) if is_busy(&error) => {}
            result => return result,
        }
    }
    start()
}

/// Counts an instance: while one exists, the epoch of its engine moves.
pub struct Ticking(());

impl Ticking {
    /// Starts the thread at the first call of the process.
    pub fn start(engine: &Engine) -> Self {
        let ticker = ticker();
        {
            let mut engines = lock(&ticker.engines);
            engines.retain(|weak| weak.upgrade().is_some());
            let known = |weak: &EngineWeak| {
                weak.upgrade()
                    .is_some_and(|known| Engine::same(&known, engine))
            };
            if !engines.iter().any(known) {
                engines.push(engine.weak());
            }
        }
        ticker.instances.fetch_add(1, Ordering::SeqCst);
        if let Some(thread) = ticker.thread.get() {
            thread.unpark();
        }
        Self(())
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        ticker().instances.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Ticker {
    engines: Mutex<Vec<EngineWeak>>,
    instances: AtomicUsize,
    thread: OnceLock<Thread>,
}

fn ticker() -> &'static Ticker {
    static TICKER: Ticker = Ticker {
        engines: Mutex::new(Vec::new()),
        instances: AtomicUsize::new(0),
        thread: OnceLock::new(),
    };
    TICKER.thread.get_or_init(|| {
        let tick = || loop {
            if TICKER.instances.load(Ordering::SeqCst) == 0 {
                std::thread::park();
            } else {
                std::thread::sleep(TICK);
                for engine in lock(&TICKER.engines).iter().filter_map(EngineWeak::upgrade) {
                    engine.increment_epoch();
                }
            }
        };
        let thread = std::thread::Builder::new().name("hermitcrab-epoch".to_owned());
        match thread.spawn(tick) {
            Ok(handle) => handle.thread().clone(),
            // Without the thread a spinning core is not stopped; sessions still run.
            Err(_) => std::thread::current(),
        }
    });
    &TICKER
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Code that is already where it stays: only its protection changes. Needed
/// for the core inside the binary, which wasmtime did not map itself.
#[cfg(unix)]
mod in_place {
    use std::ffi::c_void;
    use std::ptr::NonNull;

    use nix::sys::mman::{ProtFlags, mprotect};
    use nix::unistd::{SysconfVar, sysconf};
    use wasmtime::{CustomCodeMemory, Result, format_err};

    pub(super) struct Protection;

    impl Protection {
        fn protect(ptr: *const u8, len: usize, flags: ProtFlags) -> Result<()> {
            let Some(start) = NonNull::new(ptr.cast_mut().cast::<c_void>()) else {
                return Ok(());
            };
            // SAFETY: wasmtime passes whole pages of an image that lives as
            // long as the code does; readable pages stay readable.
            unsafe { mprotect(start, len, flags) }
                .map_err(|errno| format_err!("cannot change memory protection: {errno}"))
        }
    }

    impl CustomCodeMemory for Protection {
        fn required_alignment(&self) -> usize {
            sysconf(SysconfVar::PAGE_SIZE)
                .ok()
                .flatten()
                .and_then(|size| usize::try_from(size).ok())
                .unwrap_or(4096)
        }

        fn publish_executable(&self, ptr: *const u8, len: usize) -> Result<()> {
            Self::protect(ptr, len, ProtFlags::PROT_READ | ProtFlags::PROT_EXEC)
        }

        fn unpublish_executable(&self, ptr: *const u8, len: usize) -> Result<()> {
            Self::protect(ptr, len, ProtFlags::PROT_READ)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_has_another_key() {
        let engine = shared().expect("an engine");
        assert_ne!(key(engine, b"one"), key(engine, b"other"));
        assert_eq!(key(engine, b"one").len(), 64);
    }

    /// The attempts at an instance that fails so often, and whether there is one.
    fn attempts(kind: io::ErrorKind, failures: u32) -> (u32, bool) {
        let mut made = 0;
        let started = instantiate(|| {
            made += 1;
            match made > failures {
                true => Ok(()),
                false => Err(wasmtime::Error::new(io::Error::from(kind)).context("no image")),
            }
        });
        (made, started.is_ok())
    }

    #[test]
    fn a_busy_system_is_asked_again() {
        assert_eq!(attempts(io::ErrorKind::ResourceBusy, 2), (3, true));
        assert_eq!(attempts(io::ErrorKind::ResourceBusy, 9), (ATTEMPTS, false));
        assert_eq!(attempts(io::ErrorKind::OutOfMemory, 9), (1, false));
    }
}
