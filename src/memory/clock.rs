//! The sandbox clock: virtual time that costs nothing to wait for.
//!
//! An environment has one [`Clock`], `max(step time + skew, last)`, which never
//! goes back. Each command runs on its own [`Timeline`], started from that
//! clock: every reading moves it by 1 µs (bashkit waits by reading), a virtual
//! sleep moves it at once, waiting for a lent program moves it by the real time
//! that passed. So a command times out by its own time, never because a
//! parallel one slept; and sleeps of parallel commands end in the order of
//! their ends. Readings are also the unit of work: the core has no other clock,
//! and a replay must stop at the same place (DESIGN §2).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use super::random::Random;
use crate::environment::Scope;

/// Tells the time of the current step, in ms since 1970-01-01 UTC.
pub type TimeSource = Rc<dyn Fn() -> u64>;

/// bashkit's watcher for cancellation reads the clock until 10 ms have passed,
/// once in every poll. Those readings are neither time nor work of the command:
/// they are taken back when the watcher then wakes its task.
const WATCHER_US: u64 = 10_000;
/// After so many readings the watcher's time is passed in strides.
const WATCHER_STRIDES_FROM: u64 = 64;
/// Length of such a stride.
const WATCHER_STRIDE_US: u64 = 100;
/// The watcher's first reading is among so many after a wake.
const READS_AFTER_WAKE: u64 = 8;
/// Readings from recently seen depths of the stack that are worth one unit of work.
const READS_PER_WORK: u64 = 16;
/// Depths of the stack that count as recently seen.
const FRAMES: usize = 4;
/// Bytes of `/dev/zero` and `/dev/urandom` for a command that names no number.
const DEVICE_BYTES: usize = 64 << 10;
/// Shortest slice of time to skip when only unknown timers can end a wait.
const MIN_SLICE_US: u64 = 50_000;
/// Polls without any progress of the others before a sleeper stops waiting for them.
const PATIENCE: u32 = 3;
/// Polls in a row that a sleeper waits for others in any case. Two that each
/// take the other for behind would otherwise wait for ever.
const MAX_WAITS: u32 = 64;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Timeline>>> = const { RefCell::new(None) };
    static WORK: Cell<u64> = const { Cell::new(0) };
}

/// Work done so far in this instance by sandboxed commands and searches, in
/// units worth about 1 µs. The executor ends a step after some 4,000 of them.
pub fn work() -> u64 {
    WORK.get()
}

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

/// The timeline whose command is being polled.
pub fn current() -> Option<Rc<Timeline>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// One reading of the clock by the running command. `frame` tells callers
/// apart: the address of a local variable of the reader.
pub fn read_current(frame: usize) -> u64 {
    CURRENT.with(|current| match current.borrow().as_ref() {
        Some(timeline) => timeline.read(frame),
        None => 0,
    })
}

/// Saved time of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
        let timeline = Rc::new(Timeline {
            clock: self.clone(),
            id,
            random,
            started_us: now,
            now_us: Cell::new(now),
            slept_us: Cell::new(0),
            deadline_us: now.saturating_add(timeout_us),
            work_bound,
            stop: Cell::new(None),
            stop_flag: RefCell::default(),
            scope: RefCell::default(),
            device_bytes: Cell::new(DEVICE_BYTES),
            frames: Cell::new([0; FRAMES]),
            parts: Cell::new(0),
            run: Cell::new(0),
            poll_work: Cell::new(0),
            since_wake: Cell::new(0),
            watching: Cell::new(false),
            watched_us: Cell::new(0),
            polls: Cell::new(0),
            idle_since_us: Cell::new(now),
            target_us: Cell::new(None),
            patience: Cell::new((0, 0)),
            waits: Cell::new(0),
            sleepers: RefCell::default(),
            slept_before: Cell::new(0),
            marks: RefCell::default(),
            outside: Cell::new(0),
            outside_since_us: Cell::new(0),
        });
        let mut running = self.running.borrow_mut();
        running.retain(|other| other.strong_count() > 0);
        running.push(Rc::downgrade(&timeline));
        timeline
    }

    fn end(&self, timeline: &Timeline) {
        let end = timeline.now_us.get();
        self.last_us.set(self.last_us.get().max(end));
        if timeline.slept_us.get() > 0 {
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

/// Why a command was ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time limit passed.
    Timeout,
    /// It held the core for longer than its work bound.
    Work,
    /// It was cancelled from outside.
    Cancelled,
}

/// The time of one running command.
pub struct Timeline {
    clock: Rc<Clock>,
    id: u64,
    random: Random,
    started_us: u64,
    now_us: Cell<u64>,
    slept_us: Cell<u64>,
    deadline_us: u64,
    work_bound: u64,
    stop: Cell<Option<Stop>>,
    stop_flag: RefCell<Option<Arc<AtomicBool>>>,
    scope: RefCell<Option<Scope>>,
    device_bytes: Cell<usize>,
    frames: Cell<[usize; FRAMES]>,
    parts: Cell<u64>,
    run: Cell<u64>,
    poll_work: Cell<u64>,
    since_wake: Cell<u64>,
    watching: Cell<bool>,
    watched_us: Cell<u64>,
    polls: Cell<u64>,
    idle_since_us: Cell<u64>,
    target_us: Cell<Option<u64>>,
    patience: Cell<(u64, u32)>,
    waits: Cell<u32>,
    sleepers: RefCell<BTreeMap<u64, Sleeper>>,
    slept_before: Cell<u64>,
    marks: RefCell<BTreeSet<u64>>,
    outside: Cell<u32>,
    outside_since_us: Cell<u64>,
}

struct Sleeper {
    until_us: u64,
    waker: Waker,
}

/// What an idle command does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Time moved; sleepers were woken.
    Moved,
    /// A parallel command must move first.
    Behind,
    /// Nothing sleeps: only the world outside can wake the command.
    Outside,
}

impl Timeline {
    /// The time without reading the clock, in µs since 1970-01-01 UTC.
    pub fn peek_us(&self) -> u64 {
        self.now_us.get()
    }

    /// Time that the command has taken, in µs.
    pub fn elapsed_us(&self) -> u64 {
        self.now_us.get().saturating_sub(self.started_us)
    }

    /// Time until the command times out, in µs.
    pub fn remaining_us(&self) -> u64 {
        self.deadline_us.saturating_sub(self.now_us.get())
    }

    /// The stream of random bytes of the environment.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// Why the command must end, if it must.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop.get()
    }

    /// Ends the command at its next check; the first reason counts.
    pub fn stop(&self, reason: Stop) {
        if self.stop.get().is_none() {
            self.stop.set(Some(reason));
        }
        for sleeper in self.sleepers.take().into_values() {
            sleeper.waker.wake();
        }
    }

    /// The flag that bashkit looks at before every command.
    pub fn set_stop_flag(&self, flag: Arc<AtomicBool>) {
        *self.stop_flag.borrow_mut() = Some(flag);
    }

    /// The scope that the command runs in; lent programs run in it, too.
    pub fn scope(&self) -> Option<Scope> {
        self.scope.borrow().clone()
    }

    /// Bytes that one read of an endless device gives.
    pub fn device_bytes(&self) -> usize {
        self.device_bytes.get()
    }

    /// Sets the bytes of an endless device, if more than there were.
    pub fn need_device_bytes(&self, bytes: usize) {
        self.device_bytes.set(self.device_bytes.get().max(bytes));
    }

    /// Sets the scope.
    pub fn set_scope(&self, scope: Scope) {
        *self.scope.borrow_mut() = Some(scope);
    }

    /// One reading: 1 µs and one unit of work, or a part of it.
    ///
    /// Commands read from many depths of the stack, some 15 times in 14 µs. A
    /// builtin that checks its limits in a loop reads from a few, 16 times as
    /// often for the same work. bashkit's watcher reads from one, soon after a
    /// wake.
    pub fn read(&self, frame: usize) -> u64 {
        let mut frames = self.frames.get();
        let known = frames.iter().position(|known| *known == frame);
        if known != Some(0) {
            self.end_run();
            frames[..=known.unwrap_or(FRAMES - 1)].rotate_right(1);
            frames[0] = frame;
            self.frames.set(frames);
            self.run.set(0);
            self.watching.set(self.since_wake.get() < READS_AFTER_WAKE);
        }
        self.since_wake.set(self.since_wake.get() + 1);
        let run = self.run.get() + 1;
        self.run.set(run);
        if self.watching.get() {
            self.watch(run);
        } else {
            let parts = if known.is_some() { 1 } else { READS_PER_WORK };
            self.advance(parts);
            self.judge();
        }
        self.now_us.get()
    }

    /// A reading that is the watcher's, or the first of something else.
    fn watch(&self, run: u64) {
        // Its wait of 10 ms is passed in a hundred strides.
        let stride = if run < WATCHER_STRIDES_FROM {
            1
        } else {
            WATCHER_STRIDE_US
        };
        self.watched_us.set(self.watched_us.get() + stride);
        self.now_us.set(self.now_us.get() + stride);
        if self.watched_us.get() > WATCHER_US + WATCHER_STRIDE_US {
            self.end_run();
        }
        // The flag must be down while the watcher looks, or it would drop the
        // command together with output that it has not delivered yet.
        if run == WATCHER_STRIDES_FROM {
            self.raise_flag(false);
        } else if run < WATCHER_STRIDES_FROM && self.stop.get().is_some() {
            self.raise_flag(true);
        }
    }

    /// Ends a run of readings that was not the watcher's: it counts as work.
    fn end_run(&self) {
        if !self.watching.replace(false) {
            return;
        }
        let watched = self.watched_us.replace(0);
        self.now_us.set(self.now_us.get() - watched);
        self.advance(READS_PER_WORK - 1 + self.run.get());
        self.judge();
    }

    /// Counts work in parts of a unit.
    fn advance(&self, parts: u64) {
        let parts = self.parts.get() + parts;
        self.parts.set(parts % READS_PER_WORK);
        let units = parts / READS_PER_WORK;
        self.now_us.set(self.now_us.get() + units);
        self.poll_work.set(self.poll_work.get() + units);
        charge(units);
    }

    fn judge(&self) {
        if self.now_us.get() >= self.deadline_us {
            self.stop(Stop::Timeout);
        } else if self.poll_work.get() >= self.work_bound {
            self.stop(Stop::Work);
        }
        if self.stop.get().is_some() {
            self.raise_flag(true);
        }
    }

    /// Something was woken: if the watcher did it, its readings do not count.
    pub fn woken(&self) {
        if self.watching.get() && self.watched_us.get() >= WATCHER_US {
            self.now_us.set(self.now_us.get() - self.watched_us.get());
            self.watched_us.set(0);
            self.watching.set(false);
        } else {
            self.end_run();
        }
        self.run.set(0);
        self.frames.set([0; FRAMES]);
        self.since_wake.set(0);
    }

    /// A poll begins.
    pub fn begin_poll(&self) {
        self.run.set(0);
        self.frames.set([0; FRAMES]);
        self.since_wake.set(0);
        self.poll_work.set(0);
        self.polls.set(self.polls.get() + 1);
        self.target_us.set(None);
        self.count_outside();
        if self.now_us.get() >= self.deadline_us {
            self.stop(Stop::Timeout);
        }
    }

    /// A poll ended; returns the work it did.
    pub fn end_poll(&self) -> u64 {
        self.end_run();
        self.raise_flag(false);
        self.poll_work.get()
    }

    fn raise_flag(&self, raised: bool) {
        if let Some(flag) = self.stop_flag.borrow().as_ref() {
            flag.store(raised, Ordering::Relaxed);
        }
    }

    /// The command made progress: the next idle wait starts from here.
    pub fn busy(&self) {
        self.idle_since_us.set(self.now_us.get());
    }

    /// Sleeps for `us` of virtual time, or until the command is stopped.
    pub fn sleep(self: &Rc<Self>, us: u64) -> Sleep {
        let id = self.slept_before.get();
        self.slept_before.set(id + 1);
        Sleep {
            id,
            until_us: self.now_us.get().saturating_add(us),
            timeline: self.clone(),
        }
    }

    /// Notes that something will look at the clock at `us` from now, so that no
    /// skipped slice of time jumps over it.
    pub fn mark(&self, us: u64) {
        let mut marks = self.marks.borrow_mut();
        marks.insert(self.now_us.get().saturating_add(us));
    }

    /// Nothing can go on before time moves: moves it to the next event.
    pub fn idle(&self) -> Idle {
        let now = self.now_us.get();
        let first = self.sleepers.borrow().values().map(|s| s.until_us).min();
        let Some(first) = first else {
            return Idle::Outside;
        };
        let mark = {
            let mut marks = self.marks.borrow_mut();
            marks.retain(|mark| *mark > now);
            marks.first().copied().unwrap_or(u64::MAX)
        };
        // Timers inside bashkit (`read -t`) are not known here: time moves in
        // slices that grow with the wait, so that each of them ends about right.
        let waited = now.saturating_sub(self.idle_since_us.get());
        let slice = now.saturating_add(MIN_SLICE_US.max(waited / 4));
        let target = first.min(mark).min(slice).min(self.deadline_us);
        self.target_us.set(Some(target));
        if !self.may_move_to(target) {
            return Idle::Behind;
        }
        if target > now {
            self.slept_us.set(self.slept_us.get() + (target - now));
            self.now_us.set(target);
        }
        if target >= self.deadline_us {
            self.stop(Stop::Timeout);
        }
        for sleeper in self.sleepers.take().into_values() {
            sleeper.waker.wake();
        }
        Idle::Moved
    }

    /// Whether no parallel command has something to do before `target`.
    fn may_move_to(&self, target: u64) -> bool {
        let mut progress = 0u64;
        let mut behind = false;
        for other in self.clock.running.borrow().iter() {
            let Some(other) = other.upgrade() else {
                continue;
            };
            if other.id == self.id || other.outside.get() > 0 {
                continue;
            }
            progress = progress.wrapping_add(other.polls.get());
            let horizon = other.target_us.get().unwrap_or(other.now_us.get());
            behind |= (horizon, other.id) < (target, self.id);
        }
        let (seen, rounds) = self.patience.get();
        let rounds = if seen == progress { rounds + 1 } else { 0 };
        self.patience.set((progress, rounds));
        let waits = if behind { self.waits.get() + 1 } else { 0 };
        self.waits.set(waits);
        !behind || rounds >= PATIENCE || waits >= MAX_WAITS
    }

    /// The command waits for something outside; real time counts until
    /// [`Timeline::leave_outside`].
    pub fn enter_outside(&self) {
        if self.outside.get() == 0 {
            self.outside_since_us.set(self.clock.source_us());
        }
        self.outside.set(self.outside.get() + 1);
    }

    /// Whether the command waits for something outside.
    pub fn is_outside(&self) -> bool {
        self.outside.get() > 0
    }

    /// What the command waited for outside has come.
    pub fn leave_outside(&self) {
        self.count_outside();
        self.outside.set(self.outside.get().saturating_sub(1));
    }

    /// Adds the real time that passed while waiting outside.
    pub fn count_outside(&self) {
        if self.outside.get() > 0 {
            let now = self.clock.source_us();
            let passed = now.saturating_sub(self.outside_since_us.replace(now));
            self.now_us.set(self.now_us.get() + passed);
        }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.clock.clone().end(self);
    }
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeline")
            .field("now_us", &self.now_us.get())
            .field("stop", &self.stop.get())
            .finish()
    }
}

/// A virtual sleep; see [`Timeline::sleep`].
#[derive(Debug)]
pub struct Sleep {
    id: u64,
    timeline: Rc<Timeline>,
    until_us: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let timeline = &self.timeline;
        if timeline.now_us.get() >= self.until_us || timeline.stop.get().is_some() {
            return Poll::Ready(());
        }
        let sleeper = Sleeper {
            until_us: self.until_us,
            waker: cx.waker().clone(),
        };
        timeline.sleepers.borrow_mut().insert(self.id, sleeper);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.timeline.sleepers.borrow_mut().remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
