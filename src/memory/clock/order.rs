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
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::{Clock, Stop, Timeline};

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

/// The sleeps of one command and its place among the others.
pub(super) struct Turns {
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

impl Turns {
    pub(super) fn new(now_us: u64) -> Self {
        Self {
            phase: Cell::new(Phase::Settled),
            promised_us: Cell::new(None),
            waker: RefCell::default(),
            idle_since_us: Cell::new(now_us),
            sleepers: RefCell::default(),
            slept_before: Cell::new(0),
            marks: RefCell::default(),
        }
    }

    pub(super) fn run(&self) {
        self.phase.set(Phase::Running);
    }
}

/// What an idle command does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Time moved; sleepers were woken.
    Moved,
    /// A parallel command may have to move first; the command is woken when it
    /// is its turn.
    Behind,
    /// Nothing sleeps: only the world outside can wake the command.
    Outside,
}

impl Timeline {
    /// The command made progress: the next idle wait starts from here.
    pub fn busy(&self) {
        self.turns.promised_us.set(None);
        self.turns.idle_since_us.set(self.now_us.get());
    }

    /// The command has ended, or nobody will poll it again.
    pub fn settle(&self) {
        self.turns.phase.set(Phase::Settled);
    }

    /// Sleeps for `us` of virtual time, or until the command is stopped.
    pub fn sleep(self: &Rc<Self>, us: u64) -> Sleep {
        let id = self.turns.slept_before.get();
        self.turns.slept_before.set(id + 1);
        Sleep {
            id,
            until_us: self.now_us.get().saturating_add(us),
            timeline: self.clone(),
        }
    }

    /// Notes that something will look at the clock at `us` from now, so that no
    /// skipped slice of time jumps over it.
    pub fn mark(&self, us: u64) {
        let mut marks = self.turns.marks.borrow_mut();
        marks.insert(self.now_us.get().saturating_add(us));
    }

    /// Time until the command times out, or something that [`Timeline::mark`]
    /// announced looks at the clock, in µs.
    pub fn until_deadline_us(&self) -> u64 {
        let now = self.now_us.get();
        let until_mark = self.next_mark_us().map(|mark| mark - now);
        self.remaining_us().min(until_mark.unwrap_or(u64::MAX))
    }

    fn next_mark_us(&self) -> Option<u64> {
        let now = self.now_us.get();
        let mut marks = self.turns.marks.borrow_mut();
        marks.retain(|mark| *mark > now);
        marks.first().copied()
    }

    pub(super) fn wake_sleepers(&self) {
        for sleeper in self.turns.sleepers.take().into_values() {
            sleeper.waker.wake();
        }
    }

    /// Nothing can go on before time moves: moves it to the next event, or has
    /// `waker` called when it is this command's turn.
    pub fn idle(&self, waker: impl FnOnce() -> Waker) -> Idle {
        let turns = &self.turns;
        let Some(target) = self.next_event() else {
            turns.phase.set(Phase::Settled);
            return Idle::Outside;
        };
        turns.phase.set(Phase::Sleeping(target));
        if turns.promised_us.replace(Some(target)).is_none() {
            // Commands that start in the same turn of the executor get in.
            waker().wake();
            return Idle::Behind;
        }
        if self.clock.first() != Some(self.id) {
            *turns.waker.borrow_mut() = Some(waker());
            return Idle::Behind;
        }
        turns.promised_us.set(None);
        turns.phase.set(Phase::Running);
        self.release_clock();
        self.skip_to(target);
        if target >= self.deadline_us {
            self.stop(Stop::Timeout);
        }
        self.wake_sleepers();
        Idle::Moved
    }

    /// The time that an idle command moves to, if anything of it sleeps.
    fn next_event(&self) -> Option<u64> {
        let turns = &self.turns;
        let now = self.now_us.get();
        let sleepers = turns.sleepers.borrow();
        let first = sleepers.values().map(|s| s.until_us).min()?;
        let mark = self.next_mark_us().unwrap_or(u64::MAX);
        // Timers inside bashkit (`read -t`) are not known here: time moves in
        // slices that grow with the wait, so that each of them ends about right.
        let waited = now.saturating_sub(turns.idle_since_us.get());
        let slice = now.saturating_add(MIN_SLICE_US.max(waited / 4));
        // Being asked again while it waits moves a command's slice on, never
        // its turn, or two could step back behind each other for ever.
        let promised = turns.promised_us.get().filter(|promised| *promised > now);
        let target = first.min(mark).min(slice).min(self.deadline_us);
        Some(target.min(promised.unwrap_or(u64::MAX)))
    }

    /// Tells the command whose turn it is, if it waits for it.
    pub fn pass_turn(&self) {
        self.clock.pass_turn();
    }

    fn horizon(&self) -> Option<u64> {
        match self.turns.phase.get() {
            _ if self.is_outside() => None,
            Phase::Running => Some(self.now_us.get()),
            Phase::Sleeping(target) => Some(target),
            Phase::Settled => None,
        }
    }
}

impl Clock {
    /// The command with the earliest event.
    fn earliest(&self) -> Option<Rc<Timeline>> {
        let running = self.running.borrow();
        let running = running.iter().filter_map(std::rc::Weak::upgrade);
        let (.., timeline) = running
            .filter_map(|timeline| Some((timeline.horizon()?, timeline.id, timeline)))
            .min_by_key(|(horizon, id, _)| (*horizon, *id))?;
        Some(timeline)
    }

    fn first(&self) -> Option<u64> {
        self.earliest().map(|timeline| timeline.id)
    }

    fn pass_turn(&self) {
        let Some(timeline) = self.earliest() else {
            return;
        };
        if matches!(timeline.turns.phase.get(), Phase::Sleeping(_))
            && let Some(waker) = timeline.turns.waker.take()
        {
            waker.wake();
        }
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
        if timeline.now_us.get() >= self.until_us || timeline.stopped().is_some() {
            return Poll::Ready(());
        }
        let sleeper = Sleeper {
            until_us: self.until_us,
            waker: cx.waker().clone(),
        };
        let mut sleepers = timeline.turns.sleepers.borrow_mut();
        sleepers.insert(self.id, sleeper);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut sleepers = self.timeline.turns.sleepers.borrow_mut();
        sleepers.remove(&self.id);
    }
}
