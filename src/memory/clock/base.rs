//! `Clock`: the time of one environment, from which its commands start.

use std::cell::Cell;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::allowance;
use super::order::{Queue, Runner};
use super::time::{TimeSource, VirtualTime};
use crate::memory::Snapshot;

/// Saved time of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    skew_us: u64,
    last_us: u64,
}

/// The clock of one environment.
pub(crate) struct Clock {
    source: TimeSource,
    skew_us: Cell<u64>,
    last_us: Cell<u64>,
    lost: Cell<usize>,
    pub(super) queue: Queue,
}

impl Clock {
    /// A clock without skew.
    pub(crate) fn new(source: TimeSource) -> Self {
        Self {
            source,
            skew_us: Cell::new(0),
            last_us: Cell::new(0),
            lost: Cell::new(0),
            queue: Queue::default(),
        }
    }

    /// The time, in µs since 1970-01-01 UTC.
    pub(crate) fn now_us(&self) -> u64 {
        let now = self.source_us().saturating_add(self.skew_us.get());
        let now = now.max(self.last_us.get());
        self.last_us.set(now);
        now
    }

    fn source_us(&self) -> u64 {
        (self.source)().saturating_mul(1_000)
    }

    /// What to save.
    pub(crate) fn state(&self) -> ClockState {
        ClockState {
            skew_us: self.skew_us.get(),
            last_us: self.last_us.get(),
        }
    }

    /// Goes on from a saved time; never back.
    pub(crate) fn restore(&self, state: ClockState) {
        self.skew_us.set(self.skew_us.get().max(state.skew_us));
        self.last_us.set(self.last_us.get().max(state.last_us));
    }

    /// What the sandbox was when the first of the commands that run now began;
    /// `None`: none runs.
    pub(crate) fn before(&self) -> Option<Snapshot> {
        self.queue.before()
    }

    /// A command begins now.
    pub(super) fn begin(&self) -> Rc<Runner> {
        let time = VirtualTime::new(self.source.clone(), self.now_us());
        self.queue.start(time)
    }

    /// `runner` has ended.
    pub(super) fn end(&self, runner: &Runner) {
        self.queue.end(runner);
        let end = runner.time.now_us();
        self.last_us.set(self.last_us.get().max(end));
        if runner.time.slept_us() > 0 {
            let skew = end.saturating_sub(self.source_us());
            self.skew_us.set(self.skew_us.get().max(skew));
        }
    }

    /// A command that was left has `bytes` for good. Those after it have as much
    /// less, so that what one environment loses is not missed by others.
    pub(super) fn lose(&self, bytes: usize) {
        self.lost.set(self.lost.get() + bytes);
        allowance::lose(bytes);
    }

    /// Bytes that are lost so.
    pub(super) fn lost_bytes(&self) -> usize {
        self.lost.get()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock")
            .field("state", &self.state())
            .finish()
    }
}
