//! `Timeline`: one running command: its time, its limits, its work.

use std::cell::{OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Waker;

use super::allowance::Allowance;
use super::base::Clock;
use super::deadline::{Deadline, Stop};
use super::meter::Meter;
use super::order::{Idle, Runner};
use crate::memory::Snapshot;
use crate::memory::bashkit::hooks::Hooks;
use crate::memory::bashkit::last_words::{LastWords, ProgramLimit};
use crate::memory::bashkit::watcher::Rows;
use crate::memory::containment::{self, Left};
use crate::memory::random::Random;
use crate::memory::tree::Tree;
use crate::memory::{counter, heap};

/// Ticks that a command may take to end by itself.
const TICKS_TO_STOP: u32 = 200;

/// Short ticks after that, until it is left wherever it is.
const SHORT_TICKS: u32 = 400;

/// One running command.
pub(crate) struct Timeline {
    clock: Rc<Clock>,
    /// Virtual time, and the order among commands.
    pub(super) runner: Rc<Runner>,
    deadline: Deadline,
    meter: Meter,
    readings: Rows,
    /// What the shell asks of it.
    pub hooks: Hooks,
    /// What comes out after its end.
    pub last_words: LastWords,
    random: Random,
    files: OnceCell<Weak<RefCell<Tree>>>,
}

impl Timeline {
    /// The timeline of a command that may take `timeout_us` of virtual time and
    /// `work_bound` units of work in one go.
    pub(crate) fn start(
        clock: &Rc<Clock>,
        timeout_us: u64,
        work_bound: u64,
        random: Random,
    ) -> Rc<Self> {
        let runner = clock.begin();
        let ends_us = runner.time.now_us().saturating_add(timeout_us);
        let memory = Allowance::new(clock.lost_bytes());
        Rc::new(Self {
            clock: clock.clone(),
            runner,
            deadline: Deadline::new(ends_us, work_bound, memory),
            meter: Meter::default(),
            readings: Rows::default(),
            hooks: Hooks::default(),
            last_words: LastWords::default(),
            random,
            files: OnceCell::new(),
        })
    }

    /// Remembers what the sandbox was when the command began.
    pub(crate) fn set_before(&self, before: Snapshot) {
        self.runner.before.replace(Some(before));
    }

    /// Names the files that it changes: it is not left in the middle of that.
    pub(crate) fn set_files(&self, files: &Rc<RefCell<Tree>>) {
        let _ = self.files.set(Rc::downgrade(files));
    }

    /// The files that it changes.
    pub(crate) fn files(&self) -> Option<Rc<RefCell<Tree>>> {
        self.files.get().and_then(Weak::upgrade)
    }

    /// The stream of random bytes of the environment.
    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    /// Whether it is in the middle of nothing that others share: a change of
    /// files, for example.
    pub(crate) fn is_apart(&self) -> bool {
        let files = self.files.get().and_then(Weak::upgrade);
        !heap::is_busy()
            && self.random.is_apart()
            && files.is_none_or(|files| files.try_borrow_mut().is_ok())
    }
}

/// When and why the command ends.
impl Timeline {
    /// Why the command must end, if it must.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.deadline.stopped()
    }

    /// Ends the command at its next check; the first reason counts.
    pub(crate) fn stop(&self, reason: Stop) {
        self.deadline.stop(Some(reason));
        self.runner.wake_sleepers();
    }

    /// The host cancels the command. A lent program that runs is ended by the same
    /// cancellation, and then the command.
    pub(crate) fn cancel(&self) {
        self.deadline.cancel();
        if !self.is_outside() {
            self.stop(Stop::Cancelled);
        }
    }

    /// Ends the command before its next poll, because that poll would not return. If its
    /// time limit would have come before the work bound, the reason is the time limit.
    pub(crate) fn end(&self, reason: Stop) {
        let in_time = self.remaining_us() > self.deadline.work_bound;
        self.stop(match reason {
            Stop::Work if !in_time => Stop::Timeout,
            reason => reason,
        });
    }

    /// The command was abandoned in the middle of a poll and has ended now. The memory
    /// that it holds is lost.
    pub(crate) fn leave(&self, left: Left) {
        self.runner.before.take();
        self.clock.end(&self.runner);
        self.clock.lose(self.deadline.memory.held());
        match left {
            Left::Asked => self.stop(Stop::Work),
            Left::Stack => self.stop(Stop::Stack),
            Left::Memory => self.stop(Stop::Memory),
            Left::Failed(sentence) => {
                self.deadline.failure.replace(sentence);
                self.stop(Stop::Failed);
            }
        }
    }

    /// What was said where it failed.
    pub(crate) fn failure(&self) -> String {
        self.deadline.failure.borrow().clone()
    }

    /// Memory that the command may hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.deadline.memory.bytes()
    }

    /// Why the command's time is over, if it is.
    pub(crate) fn over(&self) -> Option<Stop> {
        self.deadline.over(self.now_us())
    }

    /// Why the command must end now: last words are waited for.
    fn due(&self) -> Option<Stop> {
        if self.last_words.are_awaited() {
            return None;
        }
        self.over()
    }

    /// Stops the command if its time or its work is used up.
    fn judge(&self) {
        self.look();
        if self.stopped().is_some() {
            self.runner.wake_sleepers();
        }
    }

    /// The same in the middle of anything, such as the allocator or a change of the
    /// sleepers: borrows and wakes nothing. The end of the poll does.
    fn look(&self) {
        self.add(self.meter.copies());
        let reason = self.due();
        let work = self.meter.poll_work();
        self.deadline
            .stop(reason.or_else(|| self.deadline.exceeded(work)));
        if self.stopped().is_some() {
            self.deadline.raise_flag(true);
        }
    }

    /// It asks for more memory than there is for it, and may be left here.
    pub(super) fn outgrow(&self) {
        self.deadline.stop(Some(Stop::Memory));
        self.deadline.raise_flag(true);
        if self.is_apart() && containment::is_under_way() {
            containment::leave();
        }
    }

    /// The flag that bashkit looks at before every command.
    pub(crate) fn set_stop_flag(&self, flag: Arc<AtomicBool>) {
        self.deadline.set_flag(flag);
    }
}

/// The work that the command does: readings, ticks, bytes, polls.
impl Timeline {
    /// Units of work done in the last poll, or so far in this one.
    pub(crate) fn poll_work(&self) -> u64 {
        self.meter.poll_work()
    }

    /// A poll begins.
    pub(crate) fn begin_poll(&self) {
        let units = self.meter.begin_poll();
        self.readings.begin_poll();
        counter::refill();
        heap::set_limit(self.deadline.memory.last_limit());
        self.runner.run();
        self.add(units);
        self.count_outside();
        self.runner.time.put_back();
        if self.due().is_some() && self.is_outside() {
            // A program is ended first: its output is to come out.
            self.last_words.await_them();
        }
        if let Some(reason) = self.due() {
            self.stop(reason);
        }
    }

    /// A poll ended; returns the work it did.
    pub(crate) fn end_poll(&self) -> u64 {
        heap::set_limit(usize::MAX);
        self.count(self.readings.end());
        self.judge();
        self.deadline.raise_flag(false);
        // Whatever is polled next need not be the `grep`.
        self.hooks.set_narrow(None);
        self.meter.poll_work()
    }

    /// One reading: a part of a unit of work, and as much time, as far as it is known
    /// not to be that of bashkit's watcher ([`Rows`]).
    pub(crate) fn read(&self) -> u64 {
        self.deadline.has_read.set(true);
        let counted = self.readings.read();
        self.count(counted.unwrap_or(0));
        self.look();
        if counted.is_some() {
            // The watcher may look now: it would drop the command together with output
            // that it has not delivered yet.
            self.deadline.raise_flag(false);
        }
        self.runner.time.seen_us() + self.readings.ahead_us()
    }

    /// Counts readings.
    fn count(&self, readings: u64) {
        self.add(self.meter.readings(readings));
    }

    /// Something was woken.
    pub(crate) fn woken(&self) {
        self.count(self.readings.end_by_waking());
    }

    fn add(&self, units: u64) {
        self.runner.time.advance(units);
        self.meter.add(units);
    }

    /// Adds work that was done without reading the clock.
    pub(crate) fn spend(&self, units: u64) {
        self.count(self.readings.end());
        self.add(units);
        self.judge();
    }

    /// A builtin starts.
    pub(crate) fn builtin_starts(&self, name: &str) {
        self.count(self.readings.end());
        self.spend(self.meter.builtin_starts(name));
    }

    /// The poll ended because as many commands ran as bashkit runs in one go.
    pub(crate) fn commands_ran(&self) {
        self.spend(self.meter.short_of_yield());
    }

    /// The module has ticked ([`super::ticks`]).
    #[cfg_attr(
        not(all(target_arch = "wasm32", feature = "sandbox")),
        allow(dead_code)
    )]
    pub(super) fn tick(&self) {
        self.add(self.meter.tick());
        self.look();
        if self.stopped().is_none() || !self.is_apart() {
            return;
        }
        let overdue = self.deadline.overdue.get() + 1;
        self.deadline.overdue.set(overdue);
        if overdue <= TICKS_TO_STOP || !containment::may_leave() {
            return;
        }
        // Who reads the clock to see whether it must end may hold something then that
        // outlives it: `jq` does, and would be broken for good. Shortly after a reading
        // it holds nothing, and the next one is far.
        let has_read = self.deadline.has_read.replace(false);
        let had_read = self.deadline.had_read.replace(has_read);
        if had_read && !has_read || overdue > TICKS_TO_STOP + SHORT_TICKS {
            containment::leave();
        }
        counter::hurry();
    }
}

/// The virtual time of the command.
impl Timeline {
    /// The time without reading the clock, in µs since 1970-01-01 UTC.
    pub(crate) fn now_us(&self) -> u64 {
        self.runner.time.now_us()
    }

    /// Time that the command has taken, in µs.
    pub(crate) fn elapsed_us(&self) -> u64 {
        self.runner.time.elapsed_us()
    }

    /// Time until the command times out, in µs.
    pub(crate) fn remaining_us(&self) -> u64 {
        self.deadline.us.saturating_sub(self.now_us())
    }

    /// Notes that something will look at the clock at `us` from now, so that no
    /// skipped slice of time jumps over it.
    pub(crate) fn mark(&self, us: u64) {
        self.runner.mark(us);
    }

    /// Time until the command times out, or something that [`Timeline::mark`]
    /// announced looks at the clock, in µs.
    pub(crate) fn until_deadline_us(&self) -> u64 {
        let mark = self.runner.next_mark_us();
        let until_mark = mark.map_or(u64::MAX, |mark| mark - self.now_us());
        self.remaining_us().min(until_mark)
    }

    /// The command made progress: the next idle wait starts from here.
    pub(crate) fn busy(&self) {
        self.runner.busy();
    }

    /// Nothing can go on before time moves: moves it to the next event, or has
    /// `waker` called when it is this command's turn.
    pub(crate) fn idle(&self, waker: impl FnOnce() -> Waker) -> Idle {
        let target = match self.clock.queue.idle(&self.runner, self.deadline.us, waker) {
            Ok(target) => target,
            Err(idle) => return idle,
        };
        self.runner.time.release();
        self.runner.time.skip_to(target);
        if target >= self.deadline.us {
            self.stop(Stop::Timeout);
        }
        self.runner.wake_sleepers();
        Idle::Moved
    }

    /// Tells the command whose turn it is, if it waits for it.
    pub(crate) fn pass_turn(&self) {
        self.clock.queue.pass_turn();
    }

    /// The command has ended, or nobody will poll it again.
    pub(crate) fn settle(&self) {
        self.runner.settle();
    }

    /// The command waits for something outside; real time counts until
    /// [`Timeline::leave_outside`].
    pub(crate) fn enter_outside(&self) {
        self.runner.time.enter_outside();
    }

    /// Whether the command waits for something outside.
    pub(crate) fn is_outside(&self) -> bool {
        self.runner.time.is_outside()
    }

    /// What the command waited for outside has come.
    pub(crate) fn leave_outside(&self) {
        self.runner.time.leave_outside();
    }

    /// Adds the real time that passed while waiting outside.
    pub(crate) fn count_outside(&self) {
        self.runner.time.count_outside();
    }
}

/// Output that still comes out after the end, and limits of the programs that the
/// command calls.
impl Timeline {
    /// A `timeout` is about to start `command`, `us` before its time is over.
    pub(crate) fn set_timeout(&self, command: &str, us: u64, preserve_status: bool) {
        self.mark(us);
        let us = self.now_us().saturating_add(us);
        let limit = ProgramLimit {
            us,
            preserve_status,
        };
        self.last_words.set_timeout(command, limit);
    }

    /// A command is about to start; says whether it must not, because only last
    /// words were awaited.
    pub(crate) fn refuses(&self, name: &str) -> bool {
        self.runner.time.release();
        let refused = self.last_words.refuse(name);
        if refused {
            self.judge();
        }
        refused
    }

    /// No poll begins at `us` or later, as commands see it, until
    /// [`Timeline::end_hold`].
    pub(crate) fn hold_clock(&self, us: u64) {
        self.runner.time.hold(us);
    }

    /// Ends a hold; if `us` has passed, only when the next command starts.
    pub(crate) fn end_hold(&self, us: u64) {
        self.runner.time.end_hold(us);
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.clock.end(&self.runner);
    }
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeline")
            .field("now_us", &self.now_us())
            .field("stop", &self.stopped())
            .finish()
    }
}
