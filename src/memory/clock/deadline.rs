//! `Deadline`: the limits of one command, and why it must end.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::Allowance;

/// Why a command was ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its time limit passed.
    Timeout,
    /// It held the core for longer than its work bound.
    Work,
    /// It held more memory than there is for one command.
    Memory,
    /// It was cancelled from outside.
    Cancelled,
    /// It recursed until its stack was full.
    Stack,
    /// It failed in a way that is a mistake of ours ([`super::Timeline::failure`]).
    Failed,
}

thread_local! {
    static ENDING: Cell<Option<Stop>> = const { Cell::new(None) };
}

/// Commands that would run in this step end, for `reason`.
pub(crate) fn end_commands(reason: Stop) {
    ENDING.set(Some(reason));
}

/// Why commands that would run end; `None`: they run.
pub(crate) fn ending() -> Option<Stop> {
    ENDING.get()
}

/// The step is over: from now on commands run.
pub(crate) fn commands_ended() {
    ENDING.set(None);
}

/// The limits of one command.
pub(super) struct Deadline {
    pub(super) us: u64,
    pub(super) work_bound: u64,
    pub(super) memory: Allowance,
    stopped: Cell<Option<Stop>>,
    cancelled: Cell<bool>,
    /// What bashkit looks at before every command.
    flag: RefCell<Option<Arc<AtomicBool>>>,
    /// Ticks since it was stopped.
    pub(super) overdue: Cell<u32>,
    /// Whether the clock was read since the last tick, and before that one.
    pub(super) has_read: Cell<bool>,
    pub(super) had_read: Cell<bool>,
    /// What was said where it failed.
    pub(super) failure: RefCell<String>,
}

impl Deadline {
    /// Ends at `us` or after `work_bound` units of work in one go.
    pub(super) fn new(us: u64, work_bound: u64, memory: Allowance) -> Self {
        Self {
            us,
            work_bound,
            memory,
            stopped: Cell::default(),
            cancelled: Cell::default(),
            flag: RefCell::default(),
            overdue: Cell::default(),
            has_read: Cell::default(),
            had_read: Cell::default(),
            failure: RefCell::default(),
        }
    }

    /// Why the command must end, if it must.
    pub(super) fn stopped(&self) -> Option<Stop> {
        self.stopped.get()
    }

    /// It must end; the first reason counts.
    pub(super) fn stop(&self, reason: Option<Stop>) {
        self.stopped.set(self.stopped.get().or(reason));
    }

    /// It was cancelled from outside.
    pub(super) fn cancel(&self) {
        self.cancelled.set(true);
    }

    /// Why the command's time is over at `now_us`, if it is.
    pub(super) fn over(&self, now_us: u64) -> Option<Stop> {
        if self.cancelled.get() {
            return Some(Stop::Cancelled);
        }
        (now_us >= self.us).then_some(Stop::Timeout)
    }

    /// Why what it holds or has computed in one go, `work`, ends it.
    pub(super) fn exceeded(&self, work: u64) -> Option<Stop> {
        if self.memory.is_exceeded() {
            return Some(Stop::Memory);
        }
        (work >= self.work_bound).then_some(Stop::Work)
    }

    pub(super) fn set_flag(&self, flag: Arc<AtomicBool>) {
        *self.flag.borrow_mut() = Some(flag);
    }

    pub(super) fn raise_flag(&self, raised: bool) {
        // In the middle of anything: nothing is waited for.
        if let Ok(flag) = self.flag.try_borrow()
            && let Some(flag) = flag.as_ref()
        {
            flag.store(raised, Ordering::Relaxed);
        }
    }
}
