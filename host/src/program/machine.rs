//! `Machine`: a WebAssembly program, run once per instance. Its memory is
//! bounded, and a stop ends it wherever it is.

use hermitcrab_engine::{EngineError, Ticking, instantiate};
use wasmtime::{
    InstancePre, Linker, Memory, Module, ResourceLimiter, Result, Store, Trap, UpdateDeadline, Val,
    format_err,
};

use super::output::Output;
use super::stop::Stop;
use super::tree::Tree;
use super::wasi::{self, Ended, Start, System};

/// Bytes of memory that a program may have; the module says so, too.
const MEMORY_BYTES: usize = 1 << 30;
/// Elements of a table; that of Python has some thousands.
const TABLE_ELEMENTS: usize = 1_000_000;

/// A program that is compiled and linked. Instances start in about a
/// millisecond and share the pages that they do not write to.
pub(super) struct Machine {
    pre: InstancePre<State>,
    entry: &'static str,
}

/// How a run ended, and what it left.
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) tree: Tree,
    pub(super) output: Output,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, with this exit code.
    Exit(i32),
    /// By the stop.
    Stopped,
    /// Its stack was used up.
    Overflow,
    /// Something else that no program does by intent.
    Broke(String),
}

/// What a store holds.
pub(super) struct State {
    system: System,
    memory: Option<Memory>,
}

impl wasi::Host for State {
    fn parts(&mut self) -> (Option<Memory>, &mut System) {
        (self.memory, &mut self.system)
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        Ok(desired <= MEMORY_BYTES)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }
}

impl Machine {
    /// Links `module`, whose function `entry` runs it and may return an exit code;
    /// `more` adds imports that are not WASI's.
    pub(super) fn new(
        module: &Module,
        entry: &'static str,
        more: impl FnOnce(&mut Linker<State>) -> Result<()>,
    ) -> Result<Self, EngineError> {
        let mut linker = Linker::new(module.engine());
        wasi::link(&mut linker, module)
            .and_then(|()| more(&mut linker))
            .and_then(|()| linker.instantiate_pre(module))
            .map(|pre| Self { pre, entry })
            .map_err(|error| EngineError::new(&error))
    }

    /// Runs the program to its end, on this thread.
    pub(super) fn run(&self, start: Start) -> Ran {
        let engine = self.pre.module().engine();
        let _ticking = Ticking::start(engine);
        let stop = start.stop.clone();
        let state = State {
            system: System::new(start),
            memory: None,
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| state);
        store.set_epoch_deadline(1);
        let asked = stop.clone();
        store.epoch_deadline_callback(move |_| match asked.has_fired() {
            true => Err(Ended::Stopped.into()),
            false => Ok(UpdateDeadline::Continue(1)),
        });
        let end = match self.enter(&mut store, &stop) {
            Ok(code) => End::Exit(code),
            Err(error) => ended(&error),
        };
        let (tree, output) = store.into_data().system.end();
        Ran { end, tree, output }
    }

    fn enter(&self, store: &mut Store<State>, stop: &Stop) -> Result<i32> {
        if stop.has_fired() {
            return Err(Ended::Stopped.into());
        }
        let instance = instantiate(|| self.pre.instantiate(&mut *store))?;
        store.data_mut().memory = instance.get_memory(&mut *store, "memory");
        let run = instance
            .get_func(&mut *store, self.entry)
            .ok_or_else(|| format_err!("there is no function {}", self.entry))?;
        // A command returns nothing, and ends otherwise with an exit code.
        let mut results = vec![Val::I32(0); run.ty(&*store).results().len()];
        run.call(store, &[], &mut results)?;
        Ok(results.first().and_then(Val::i32).unwrap_or(0))
    }
}

fn ended(error: &wasmtime::Error) -> End {
    match (error.downcast_ref::<Ended>(), error.downcast_ref::<Trap>()) {
        (Some(Ended::Exit(code)), _) => End::Exit(*code),
        (Some(Ended::Stopped), _) => End::Stopped,
        (None, Some(Trap::StackOverflow)) => End::Overflow,
        (None, Some(trap)) => End::Broke(trap.to_string()),
        (None, None) => End::Broke(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::program::tree::Room;
    use hermitcrab_engine as engine;

    // Modules of one function `run` each, which is the comment before it.

    /// `loop br 0 end`
    const SPIN: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x05\x01`\x00\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x00\x0a\x0b\x01\x09\x00\x03@\x0c\x00\x0bA\x00\x0b";
    /// `i32.const 7 call $proc_exit`
    const EXIT: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x09\x02`\x00\x01\x7f`\x01\x7f\x00\x02$\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x01\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x01\x0a\x0a\x01\x08\x00A\x07\x10\x00A\x00\x0b";
    /// `i32.const 0 i32.const 0 call $sock_shutdown`
    const UNKNOWN: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x0b\x02`\x00\x01\x7f`\x02\x7f\x7f\x01\x7f\x02(\x01\x16wasi_snapshot_preview1\x0dsock_shutdown\x00\x01\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x01\x0a\x0a\x01\x08\x00A\x00A\x00\x10\x00\x0b";
    /// `i32.const 16384 memory.grow`, over one page that is there already
    const GROW: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x05\x01`\x00\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x00\x0a\x0a\x01\x08\x00A\x80\x80\x01@\x00\x0b";
    /// `unreachable`
    const TRAP: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x05\x01`\x00\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x00\x0a\x05\x01\x03\x00\x00\x0b";
    /// `call $run i32.const 1 i32.add`
    const RECURSE: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x05\x01`\x00\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x00\x0a\x09\x01\x07\x00\x10\x00A\x01j\x0b";
    /// `call $env.run`
    const ALIEN: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x05\x01`\x00\x01\x7f\x02\x0b\x01\x03env\x03run\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x10\x02\x06memory\x02\x00\x03run\x00\x01\x0a\x06\x01\x04\x00\x10\x00\x0b";

    fn machine(wasm: &[u8]) -> Result<Machine, EngineError> {
        let engine = engine::programs()?;
        let module = Module::new(engine, wasm).expect("a module");
        Machine::new(&module, "run", |_| Ok(()))
    }

    fn run(wasm: &[u8], stop: Stop) -> End {
        let start = Start {
            tree: Tree::new(Room::default()),
            args: vec!["p".to_owned()],
            env: BTreeMap::new(),
            stdin: Default::default(),
            output_bytes: 100,
            stop,
            here: None,
        };
        let machine = machine(wasm).expect("linked");
        let thread = std::thread::Builder::new().stack_size(engine::PROGRAM_STACK);
        let run = thread.spawn(move || machine.run(start).end);
        run.expect("a thread").join().expect("no panic")
    }

    #[test]
    fn every_end_has_its_name() {
        let unreachable = "wasm trap: wasm `unreachable` instruction executed";
        for (wasm, expected) in [
            (EXIT, End::Exit(7)),
            // The number of "not supported".
            (UNKNOWN, End::Exit(58)),
            // Refused: one page more than there may be.
            (GROW, End::Exit(-1)),
            (TRAP, End::Broke(unreachable.to_owned())),
            (RECURSE, End::Overflow),
        ] {
            assert_eq!(run(wasm, Stop::default()), expected);
        }
    }

    #[test]
    fn a_stop_ends_what_spins() {
        let stop = Stop::default();
        stop.fire();
        assert_eq!(run(SPIN, stop), End::Stopped);
        let stop = Stop::default();
        let later = stop.clone();
        let ends = std::thread::spawn(move || {
            later.wait(Duration::from_millis(100));
            later.fire();
        });
        assert_eq!(run(SPIN, stop), End::Stopped);
        ends.join().expect("no panic");
    }

    #[test]
    fn a_program_that_wants_more_is_not_linked() {
        let error = machine(ALIEN).err().expect("refused").to_string();
        assert!(error.contains("unknown import: `env::run`"), "{error}");
    }
}
