//! `VirtualTime`: what time it is for one command.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Tells the time of the current step, in ms since 1970-01-01 UTC.
pub(crate) type TimeSource = Rc<dyn Fn() -> u64>;

/// How far from the end of a hold the clock is put back: more than one poll takes.
const PUT_BACK_US: u64 = 1_000_000;

/// The time of one command: work and waiting outside move it, sleeps skip it.
pub(super) struct VirtualTime {
    source: TimeSource,
    now_us: Cell<u64>,
    started_us: u64,
    slept_us: Cell<u64>,
    outside: Cell<u32>,
    outside_since_us: Cell<u64>,
    /// Times before which polls begin, as commands see it: ends of the `timeout`s
    /// that call a lent program,
    held: RefCell<Vec<u64>>,
    /// and of one whose program has just ended.
    held_last: Cell<Option<u64>>,
    /// How far the clock that commands see is put back.
    behind_us: Cell<u64>,
}

impl VirtualTime {
    pub(super) fn new(source: TimeSource, now_us: u64) -> Self {
        Self {
            source,
            now_us: Cell::new(now_us),
            started_us: now_us,
            slept_us: Cell::default(),
            outside: Cell::default(),
            outside_since_us: Cell::default(),
            held: RefCell::default(),
            held_last: Cell::default(),
            behind_us: Cell::default(),
        }
    }

    /// µs since 1970-01-01 UTC.
    pub(super) fn now_us(&self) -> u64 {
        self.now_us.get()
    }

    /// Time since the command began.
    pub(super) fn elapsed_us(&self) -> u64 {
        self.now_us.get().saturating_sub(self.started_us)
    }

    /// Time that was slept; it stays as skew of the clock.
    pub(super) fn slept_us(&self) -> u64 {
        self.slept_us.get()
    }

    /// Something took `us`.
    pub(super) fn advance(&self, us: u64) {
        self.now_us.set(self.now_us.get() + us);
    }

    /// Moves time without work.
    pub(super) fn skip_to(&self, target_us: u64) {
        let now = self.now_us.get();
        if target_us > now {
            self.slept_us.set(self.slept_us.get() + (target_us - now));
            self.now_us.set(target_us);
        }
    }

    fn source_us(&self) -> u64 {
        (self.source)().saturating_mul(1_000)
    }

    /// Real time counts until [`VirtualTime::leave_outside`].
    pub(super) fn enter_outside(&self) {
        if self.outside.get() == 0 {
            self.outside_since_us.set(self.source_us());
        }
        self.outside.set(self.outside.get() + 1);
    }

    /// Whether the command waits for something outside.
    pub(super) fn is_outside(&self) -> bool {
        self.outside.get() > 0
    }

    pub(super) fn leave_outside(&self) {
        self.count_outside();
        self.outside.set(self.outside.get().saturating_sub(1));
    }

    /// Adds the real time that passed while waiting outside.
    pub(super) fn count_outside(&self) {
        if self.outside.get() > 0 {
            let now = self.source_us();
            let passed = now.saturating_sub(self.outside_since_us.replace(now));
            self.now_us.set(self.now_us.get() + passed);
        }
    }

    /// No poll begins at `us` or later, as commands see it, until
    /// [`VirtualTime::end_hold`].
    pub(super) fn hold(&self, us: u64) {
        self.held.borrow_mut().push(us);
    }

    /// Ends a hold; if `us` has passed, only at [`VirtualTime::release`].
    pub(super) fn end_hold(&self, us: u64) {
        let mut held = self.held.borrow_mut();
        if let Some(index) = held.iter().position(|other| *other == us) {
            held.swap_remove(index);
        }
        if self.now_us.get() >= us {
            self.held_last.set(Some(us));
        }
    }

    /// Ends the holds that have been ended.
    pub(super) fn release(&self) {
        self.held_last.set(None);
        self.put_back();
    }

    /// Puts the clock back that commands see, if it is held.
    pub(super) fn put_back(&self) {
        let now = self.now_us.get();
        let held = self.held.borrow();
        let first = held.iter().copied().chain(self.held_last.get()).min();
        let first = first.filter(|us| now >= *us);
        let seen = first.map_or(now, |us| us.saturating_sub(PUT_BACK_US));
        self.behind_us.set(now - seen);
    }

    /// The time that commands see.
    pub(super) fn seen_us(&self) -> u64 {
        self.now_us.get().saturating_sub(self.behind_us.get())
    }
}
