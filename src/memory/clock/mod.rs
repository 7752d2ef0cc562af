//! The sandbox clock: virtual time that costs nothing to wait for.
//!
//! An environment has one [`Clock`], `max(step time + skew, last)`, which never
//! goes back. Each command runs on its own [`Timeline`], started from that
//! clock: work moves it by about the time that the work takes (`meter`), a
//! virtual sleep moves it at once (`order`), waiting for a lent program moves it
//! by the real time that passed. So a command times out by its own time, never
//! because a parallel one slept; and sleeps of parallel commands end in the
//! order of their ends. Work is counted, not timed: the core has no other clock,
//! and a replay must stop at the same place (DESIGN §2).

mod last_words;
mod meter;
mod order;
mod ticks;
mod timeline;

pub use last_words::ProgramLimit;
pub use order::{Idle, Sleep};
pub(super) use ticks::trap;
pub use timeline::{Stop, Timeline};

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use serde::{Deserialize, Serialize};

use super::Snapshot;
use super::heap;
use super::random::Random;

/// Tells the time of the current step, in ms since 1970-01-01 UTC.
pub type TimeSource = Rc<dyn Fn() -> u64>;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Timeline>>> = const { RefCell::new(None) };
    static WORK: Cell<u64> = const { Cell::new(0) };
    static LOST: Cell<usize> = const { Cell::new(0) };
    static ENDING: Cell<Option<Stop>> = const { Cell::new(None) };
}

/// Work done so far in this instance by sandboxed commands and searches, in
/// units worth about 1 µs. The executor ends a step after some 4,000 of them.
pub fn work() -> u64 {
    WORK.get()
}

/// Work after which a step ends: worth about 4 ms (DESIGN §2 "A step is short").
pub const STEP_WORK: u64 = 4_000;

/// Adds to [`work`] what was done without reading the clock.
pub fn charge(units: u64) {
    WORK.set(WORK.get().wrapping_add(units));
}

/// Runs `body` with `timeline` as the one that the clock symbol reads.
pub fn enter<R>(timeline: &Rc<Timeline>, body: impl FnOnce() -> R) -> R {
    struct Leave(Option<Rc<Timeline>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let _leave = Leave(CURRENT.with(|current| current.replace(Some(timeline.clone()))));
    body()
}

/// Nothing is polled: what was when the instance failed, or the command was left,
/// never ended.
pub fn abandon() {
    // Kept for good: it is in the middle of whatever it did.
    std::mem::forget(CURRENT.take());
}

/// Bytes that all environments of this instance's memory have lost to commands
/// that were left.
fn lost_in_all() -> usize {
    LOST.get()
}

/// Commands that would run in this step end, for `reason`.
pub fn end_commands(reason: Stop) {
    ENDING.set(Some(reason));
}

/// Why commands that would run end; `None`: they run.
pub fn ending() -> Option<Stop> {
    ENDING.get()
}

/// The step is over: from now on commands run.
pub fn commands_ended() {
    ENDING.set(None);
}

/// The running command asks for more memory than there is for it.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
pub(super) fn outgrown() {
    heap::set_limit(usize::MAX);
    if let Some(timeline) = current_anywhere() {
        timeline.outgrow();
    }
}

/// The timeline whose command is being polled.
pub fn current() -> Option<Rc<Timeline>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// The same in the middle of anything; `None` also while that is being changed.
fn current_anywhere() -> Option<Rc<Timeline>> {
    CURRENT.with(|current| current.try_borrow().ok()?.clone())
}

/// Adds `units` to the time and the work of the running command: work that it
/// does without reading the clock.
pub fn spend(units: u64) {
    match current() {
        Some(timeline) => timeline.spend(units),
        None => charge(units),
    }
}

/// Ends the poll once, so that others run; if it did enough, the step ends, too.
pub async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        // By value: by reference would say that many commands ran (`Drive`).
        let waker = cx.waker().clone();
        waker.wake();
        Poll::Pending
    })
    .await;
}

/// Ends the step, so that the host learns what has happened before what comes next.
pub async fn end_step() {
    charge(STEP_WORK);
    pause().await;
}

/// One reading of the clock by the running command. `frame` tells bashkit's watcher
/// from other readers: the address of a local variable of the reader.
pub fn read_current(frame: usize) -> u64 {
    // Not borrowed meanwhile: it may end where it is.
    current().map_or(0, |timeline| timeline.read(frame))
}

/// Saved time of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    skew_us: u64,
    last_us: u64,
}

/// The clock of one environment.
pub struct Clock {
    source: TimeSource,
    skew_us: Cell<u64>,
    last_us: Cell<u64>,
    running: RefCell<Vec<Weak<Timeline>>>,
    started: Cell<u64>,
    lost: Cell<usize>,
}

impl Clock {
    /// A clock without skew.
    pub fn new(source: TimeSource) -> Self {
        Self {
            source,
            skew_us: Cell::new(0),
            last_us: Cell::new(0),
            running: RefCell::default(),
            started: Cell::new(0),
            lost: Cell::new(0),
        }
    }

    /// The time, in µs since 1970-01-01 UTC.
    pub fn now_us(&self) -> u64 {
        let now = self.source_us().saturating_add(self.skew_us.get());
        let now = now.max(self.last_us.get());
        self.last_us.set(now);
        now
    }

    fn source_us(&self) -> u64 {
        (self.source)().saturating_mul(1_000)
    }

    /// What to save.
    pub fn state(&self) -> ClockState {
        ClockState {
            skew_us: self.skew_us.get(),
            last_us: self.last_us.get(),
        }
    }

    /// Goes on from a saved time; never back.
    pub fn restore(&self, state: ClockState) {
        self.skew_us.set(self.skew_us.get().max(state.skew_us));
        self.last_us.set(self.last_us.get().max(state.last_us));
    }

    /// Starts the timeline of a command that may take `timeout_us` of its own
    /// time and `work_bound` units of work in one go.
    pub fn start(
        self: &Rc<Self>,
        timeout_us: u64,
        work_bound: u64,
        random: Random,
    ) -> Rc<Timeline> {
        let now = self.now_us();
        let id = self.started.get();
        self.started.set(id + 1);
        let timeline = Rc::new(Timeline::new(
            self.clone(),
            id,
            now,
            now.saturating_add(timeout_us),
            work_bound,
            random,
        ));
        let mut running = self.running.borrow_mut();
        running.retain(|other| other.strong_count() > 0);
        running.push(Rc::downgrade(&timeline));
        timeline
    }

    /// What the sandbox was when the first of the commands that run now began;
    /// `None`: none runs.
    pub fn before(&self) -> Option<Snapshot> {
        let running = self.running.borrow();
        let mut timelines = running.iter().filter_map(Weak::upgrade);
        timelines.find_map(|timeline| timeline.before())
    }

    /// A command that was left has `bytes` for good. Those after it have as much
    /// less, so that what one environment loses is not missed by others.
    fn lost(&self, bytes: usize) {
        self.lost.set(self.lost.get() + bytes);
        LOST.set(LOST.get() + bytes);
    }

    /// Bytes that are lost so.
    fn lost_bytes(&self) -> usize {
        self.lost.get()
    }

    fn end(&self, timeline: &Timeline) {
        let mut running = self.running.borrow_mut();
        running.retain(|other| !std::ptr::eq(other.as_ptr(), timeline));
        let end = timeline.now_us.get();
        self.last_us.set(self.last_us.get().max(end));
        if timeline.slept_us() > 0 {
            let skew = end.saturating_sub(self.source_us());
            self.skew_us.set(self.skew_us.get().max(skew));
        }
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock")
            .field("state", &self.state())
            .finish()
    }
}

#[cfg(test)]
mod tests;
