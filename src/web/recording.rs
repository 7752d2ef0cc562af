//! The log of a core, as bytes that JavaScript takes piece by piece.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use crate::effect::Outcome;
use crate::log::{CoreId, Header, LogWriter};
use crate::session::{InstanceCall, Step};

/// The core of the package, as logs name it.
pub(super) fn web() -> CoreId {
    CoreId {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hash: "web".to_owned(),
    }
}

/// What was written and not yet taken.
#[derive(Clone, Default)]
struct Pieces(Rc<RefCell<Vec<u8>>>);

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the log of a core, if it is recorded.
#[derive(Default)]
pub(super) struct Recording {
    writer: RefCell<Option<LogWriter<Pieces>>>,
    pieces: Pieces,
    is_on: Cell<bool>,
}

impl Recording {
    /// Of a core with this seed.
    pub(super) fn begin(seed: &[u8; 32]) -> Self {
        let pieces = Pieces::default();
        let header = Header::new(web(), seed, u64::from(u32::MAX));
        // Into memory: it is always written.
        let writer = LogWriter::begin(pieces.clone(), &header).ok();
        Self {
            is_on: Cell::new(writer.is_some()),
            writer: RefCell::new(writer),
            pieces,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Notes a call that was made.
    pub(super) fn call(&self, call: &InstanceCall) {
        if let Some(writer) = &mut *self.writer.borrow_mut() {
            writer.call(call);
        }
    }

    /// Notes a step.
    pub(super) fn step(&self, now_ms: u64, outcomes: &[Outcome], step: &Step) {
        if let Some(writer) = &mut *self.writer.borrow_mut() {
            writer.step(now_ms, outcomes, &step.into());
        }
    }

    /// What was written since the last time. With `flush`: all that was noted.
    pub(super) fn take(&self, flush: bool) -> Vec<u8> {
        if flush && let Some(writer) = &mut *self.writer.borrow_mut() {
            writer.flush();
        }
        self.pieces.0.take()
    }

    /// Closes the log.
    pub(super) fn end(&self) {
        self.is_on.set(false);
        drop(self.writer.take());
    }
}
