//! `Machine`: a WebAssembly program, run once per instance. Its memory is
//! bounded, and a stop ends it wherever it is.

use wasmtime::{
    InstancePre, Linker, Memory, Module, ResourceLimiter, Result, Store, Trap, UpdateDeadline,
};

use super::output::Output;
use super::stop::Stop;
use super::tree::Tree;
use super::wasi::{self, Ended, Start, System};
use crate::engine::{EngineError, Ticking};

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
    /// Links `module`, whose function `entry` runs it and returns an exit code;
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
        let instance = self.pre.instantiate(&mut *store)?;
        store.data_mut().memory = instance.get_memory(&mut *store, "memory");
        let run = instance.get_typed_func::<(), i32>(&mut *store, self.entry)?;
        run.call(store, ())
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
