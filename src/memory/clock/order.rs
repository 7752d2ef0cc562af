//! Who may move time: sleeps of one command, and the order among commands.
//!
//! Of all commands of an environment that compute or sleep, only the one whose
//! next event is the earliest may move its time. The event of a computing
//! command is its own time now; that of a sleeping one is the time it would
//! move to. A sleeper that is not the earliest waits for its turn and is woken
//! when it comes: whenever a command stops being the earliest, the next one is
//! told. A command that waits for the world outside holds nobody up.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::task::Waker;

use super::time::VirtualTime;
use crate::memory::Snapshot;

/// Shortest slice of time to skip when only unknown timers can end a wait.
const MIN_SLICE_US: u64 = 50_000;

/// What a command does, as far as others depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It computes, or it is about to.
    Running,
    /// It sleeps, and would move its time to this next.
    Sleeping(u64),
    /// It was never polled, has ended, or has nothing to do until the world
    /// outside wakes it.
    Settled,
}

/// What an idle command does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// Time moved; sleepers were woken.
    Moved,
    /// A parallel command may have to move first; the command is woken when it
    /// is its turn.
    Behind,
    /// Nothing sleeps: only the world outside can wake the command.
    Outside,
}

/// The commands of one environment that run.
#[derive(Default)]
pub(super) struct Queue {
    running: RefCell<Vec<Weak<Runner>>>,
    started: Cell<u64>,
}

/// One of them: its time, its sleeps and its place among the others.
pub(super) struct Runner {
    id: u64,
    pub(super) time: VirtualTime,
    /// What the sandbox was when the command began.
    pub(super) before: RefCell<Option<Snapshot>>,
    phase: Cell<Phase>,
    /// Where the command said that it would move when it began to wait.
    promised_us: Cell<Option<u64>>,
    waker: RefCell<Option<Waker>>,
    idle_since_us: Cell<u64>,
    sleepers: RefCell<BTreeMap<u64, Sleeper>>,
    slept_before: Cell<u64>,
    marks: RefCell<BTreeSet<u64>>,
}

struct Sleeper {
    until_us: u64,
    waker: Waker,
}

impl Queue {
    /// A command begins, at its `time`.
    pub(super) fn start(&self, time: VirtualTime) -> Rc<Runner> {
        let id = self.started.get();
        self.started.set(id + 1);
        let runner = Rc::new(Runner {
            id,
            before: RefCell::default(),
            phase: Cell::new(Phase::Settled),
            promised_us: Cell::default(),
            waker: RefCell::default(),
            idle_since_us: Cell::new(time.now_us()),
            sleepers: RefCell::default(),
            slept_before: Cell::default(),
            marks: RefCell::default(),
            time,
        });
        let mut running = self.running.borrow_mut();
        running.retain(|other| other.strong_count() > 0);
        running.push(Rc::downgrade(&runner));
        runner
    }

    pub(super) fn end(&self, runner: &Runner) {
        let mut running = self.running.borrow_mut();
        running.retain(|other| !std::ptr::eq(other.as_ptr(), runner));
    }

    /// What the sandbox was when the first of the commands that run now began.
    pub(super) fn before(&self) -> Option<Snapshot> {
        let running = self.running.borrow();
        let mut runners = running.iter().filter_map(Weak::upgrade);
        runners.find_map(|runner| runner.before.borrow().clone())
    }

    /// The command with the earliest event.
    fn earliest(&self) -> Option<Rc<Runner>> {
        let running = self.running.borrow();
        let runners = running.iter().filter_map(Weak::upgrade);
        let (.., runner) = runners
            .filter_map(|runner| Some((runner.horizon()?, runner.id, runner)))
            .min_by_key(|(horizon, id, _)| (*horizon, *id))?;
        Some(runner)
    }

    /// Tells the command whose turn it is, if it waits for it.
    pub(super) fn pass_turn(&self) {
        let Some(runner) = self.earliest() else {
            return;
        };
        if matches!(runner.phase.get(), Phase::Sleeping(_))
            && let Some(waker) = runner.waker.take()
        {
            waker.wake();
        }
    }

    /// `runner` can do nothing before time moves. Gives the time to move to; else
    /// `waker` is called when it is its turn.
    pub(super) fn idle(
        &self,
        runner: &Runner,
        deadline_us: u64,
        waker: impl FnOnce() -> Waker,
    ) -> Result<u64, Idle> {
        let Some(target) = runner.next_event(deadline_us) else {
            runner.settle();
            return Err(Idle::Outside);
        };
        runner.phase.set(Phase::Sleeping(target));
        if runner.promised_us.replace(Some(target)).is_none() {
            // Commands that start in the same turn of the executor get in.
            waker().wake();
            return Err(Idle::Behind);
        }
        if self.earliest().map(|first| first.id) != Some(runner.id) {
            *runner.waker.borrow_mut() = Some(waker());
            return Err(Idle::Behind);
        }
        runner.promised_us.set(None);
        runner.run();
        Ok(target)
    }
}

impl Runner {
    pub(super) fn run(&self) {
        self.phase.set(Phase::Running);
    }

    /// It made progress: the next idle wait starts from here.
    pub(super) fn busy(&self) {
        self.promised_us.set(None);
        self.idle_since_us.set(self.time.now_us());
    }

    /// It has ended, or nobody will poll it again.
    pub(super) fn settle(&self) {
        self.phase.set(Phase::Settled);
    }

    /// The number of another sleep.
    pub(super) fn next_sleep(&self) -> u64 {
        let id = self.slept_before.get();
        self.slept_before.set(id + 1);
        id
    }

    /// The sleep `id` lasts until `until_us`.
    pub(super) fn add_sleeper(&self, id: u64, until_us: u64, waker: Waker) {
        let mut sleepers = self.sleepers.borrow_mut();
        sleepers.insert(id, Sleeper { until_us, waker });
    }

    pub(super) fn remove_sleeper(&self, id: u64) {
        self.sleepers.borrow_mut().remove(&id);
    }

    pub(super) fn wake_sleepers(&self) {
        for sleeper in self.sleepers.take().into_values() {
            sleeper.waker.wake();
        }
    }

    /// Notes that something will look at the clock at `us` from now, so that no
    /// skipped slice of time jumps over it.
    pub(super) fn mark(&self, us: u64) {
        let mut marks = self.marks.borrow_mut();
        marks.insert(self.time.now_us().saturating_add(us));
    }

    pub(super) fn next_mark_us(&self) -> Option<u64> {
        let now = self.time.now_us();
        let mut marks = self.marks.borrow_mut();
        marks.retain(|mark| *mark > now);
        marks.first().copied()
    }

    /// The time that it moves to while it is idle, if anything of it sleeps.
    fn next_event(&self, deadline_us: u64) -> Option<u64> {
        let now = self.time.now_us();
        let sleepers = self.sleepers.borrow();
        let first = sleepers.values().map(|s| s.until_us).min()?;
        let mark = self.next_mark_us().unwrap_or(u64::MAX);
        // Timers inside bashkit (`read -t`) are not known here: time moves in
        // slices that grow with the wait, so that each of them ends about right.
        let waited = now.saturating_sub(self.idle_since_us.get());
        let slice = now.saturating_add(MIN_SLICE_US.max(waited / 4));
        // Being asked again while it waits moves a command's slice on, never
        // its turn, or two could step back behind each other for ever.
        let promised = self.promised_us.get().filter(|promised| *promised > now);
        let target = first.min(mark).min(slice).min(deadline_us);
        Some(target.min(promised.unwrap_or(u64::MAX)))
    }

    fn horizon(&self) -> Option<u64> {
        match self.phase.get() {
            _ if self.time.is_outside() => None,
            Phase::Running => Some(self.time.now_us()),
            Phase::Sleeping(target) => Some(target),
            Phase::Settled => None,
        }
    }
}
