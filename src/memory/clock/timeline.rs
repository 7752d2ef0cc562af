//! `Timeline`: the time of one running command, its limits and why it must end.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Clock;
use super::last_words::LastWords;
use super::meter::Meter;
use super::order::Turns;
use crate::environment::Scope;
use crate::memory::Snapshot;
use crate::memory::containment::{self, Left};
use crate::memory::heap;
use crate::memory::narrow::Narrow;
use crate::memory::random::Random;
use crate::memory::tree::Tree;

/// Bytes of `/dev/zero` and `/dev/urandom` for a command that names no number.
const DEVICE_BYTES: usize = 64 << 10;

/// Bytes that a command may hold. A list that grows is for a moment there
/// twice, and the new half as large again: so a third of what is left.
const HELD_BYTES: usize = 384 << 20;
/// Bytes beyond that at which a command is left that does not end by itself.
const SLACK_BYTES: usize = 64 << 20;
/// Bytes that a command may hold at least where others were left before it.
const LEAST_BYTES: usize = 32 << 20;
/// Bytes that an environment may lose to commands that were left: beyond, it runs
/// none any more.
const LOST_BYTES: usize = 512 << 20;
/// Bytes that are lost in all before what is lost counts as held. The nearer, the
/// less a command may hold, so that no few of them take all.
const ALL_LOST_BYTES: usize = 1_536 << 20;
/// Bytes that everything together may hold.
const HEAP_BYTES: usize = 900 << 20;

/// Why a command was ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
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
    /// It failed in a way that is a mistake of ours ([`Timeline::failure`]).
    Failed,
}

/// The time of one running command.
pub struct Timeline {
    pub(super) clock: Rc<Clock>,
    pub(super) id: u64,
    pub(super) now_us: Cell<u64>,
    pub(super) deadline_us: u64,
    pub(super) work_bound: u64,
    pub(super) meter: Meter,
    pub(super) turns: Turns,
    random: Random,
    started_us: u64,
    slept_us: Cell<u64>,
    stop: Cell<Option<Stop>>,
    stop_flag: RefCell<Option<Arc<AtomicBool>>>,
    scope: RefCell<Option<Scope>>,
    device_bytes: Cell<usize>,
    streams_head: Cell<bool>,
    narrow: RefCell<Option<Narrow>>,
    filter_file: RefCell<Option<String>>,
    script_file: RefCell<Option<String>>,
    outside: Cell<u32>,
    outside_since_us: Cell<u64>,
    pub(super) last_words: LastWords,
    cancelled: Cell<bool>,
    refusal: RefCell<Option<String>>,
    before: RefCell<Option<Snapshot>>,
    files: OnceCell<Weak<RefCell<Tree>>>,
    failure: RefCell<String>,
    /// Work that the ticks of this poll are worth.
    pub(super) ticked: Cell<u64>,
    pub(super) overdue: Cell<u32>,
    /// Bytes of all that may be allocated while it runs.
    memory_bytes: usize,
    held_before: usize,
    heap_limit: usize,
}

impl Timeline {
    pub(super) fn new(
        clock: Rc<Clock>,
        id: u64,
        now_us: u64,
        deadline_us: u64,
        work_bound: u64,
        random: Random,
    ) -> Self {
        let held_before = heap::live();
        let memory_bytes = memory_bytes(held_before, clock.lost_bytes());
        Self {
            clock,
            id,
            now_us: Cell::new(now_us),
            deadline_us,
            work_bound,
            meter: Meter::default(),
            turns: Turns::new(now_us),
            random,
            started_us: now_us,
            slept_us: Cell::new(0),
            stop: Cell::new(None),
            stop_flag: RefCell::default(),
            scope: RefCell::default(),
            device_bytes: Cell::new(DEVICE_BYTES),
            streams_head: Cell::new(false),
            narrow: RefCell::default(),
            filter_file: RefCell::default(),
            script_file: RefCell::default(),
            outside: Cell::new(0),
            outside_since_us: Cell::new(0),
            last_words: LastWords::default(),
            cancelled: Cell::new(false),
            refusal: RefCell::default(),
            before: RefCell::default(),
            files: OnceCell::new(),
            failure: RefCell::default(),
            ticked: Cell::new(0),
            overdue: Cell::new(0),
            held_before,
            memory_bytes,
            heap_limit: held_before + memory_bytes,
        }
    }

    /// Remembers what the sandbox was when the command began.
    pub fn set_before(&self, before: Snapshot) {
        self.before.replace(Some(before));
    }

    /// What the sandbox was when the command began, if that was remembered.
    pub(super) fn before(&self) -> Option<Snapshot> {
        self.before.borrow().clone()
    }

    /// Names the files that it changes: it is not left in the middle of that.
    pub fn set_files(&self, files: &Rc<RefCell<Tree>>) {
        let _ = self.files.set(Rc::downgrade(files));
    }

    /// Whether it is in the middle of nothing that others share: a change of
    /// files, for example.
    pub fn is_apart(&self) -> bool {
        let files = self.files.get().and_then(Weak::upgrade);
        !heap::is_busy()
            && self.random.is_apart()
            && files.is_none_or(|files| files.try_borrow_mut().is_ok())
    }

    /// It asks for more memory than there is for it, and may be left here.
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    pub(super) fn outgrow(&self) {
        self.stop.set(self.stop.get().or(Some(Stop::Memory)));
        self.raise_flag(true);
        if self.is_apart() && containment::is_under_way() {
            containment::leave();
        }
    }

    /// It would not pause, or not come back: it ends before it goes on.
    pub fn end(&self, reason: Stop) {
        // Whichever it would have come to first.
        let in_time = self.remaining_us() > self.work_bound;
        self.stop(match reason {
            Stop::Work if !in_time => Stop::Timeout,
            reason => reason,
        });
    }

    /// It was left where it was, and its end is now: some of that has it for good.
    pub fn leave(&self, left: Left) {
        self.before.take();
        self.clock.end(self);
        self.clock
            .lost(heap::live().saturating_sub(self.held_before));
        match left {
            Left::Asked => self.stop(Stop::Work),
            Left::Stack => self.stop(Stop::Stack),
            Left::Memory => self.stop(Stop::Memory),
            Left::Failed(sentence) => {
                self.failure.replace(sentence);
                self.stop(Stop::Failed);
            }
        }
    }

    /// What was said where it failed.
    pub fn failure(&self) -> String {
        self.failure.borrow().clone()
    }

    /// Memory that the command may hold.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

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

    /// Time that was slept, in µs; it stays as skew of the clock.
    pub(super) fn slept_us(&self) -> u64 {
        self.slept_us.get()
    }

    /// Moves time without work.
    pub(super) fn skip_to(&self, target_us: u64) {
        let now = self.now_us.get();
        if target_us > now {
            self.slept_us.set(self.slept_us.get() + (target_us - now));
            self.now_us.set(target_us);
        }
    }

    /// The stream of random bytes of the environment.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// Why the command must end, if it must.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop.get()
    }

    /// The host cancels the command. A lent program that runs is ended by the same
    /// cancellation, and then the command.
    pub fn cancel(&self) {
        self.cancelled.set(true);
        if !self.is_outside() {
            self.stop(Stop::Cancelled);
        }
    }

    /// Ends the command at its next check; the first reason counts.
    pub fn stop(&self, reason: Stop) {
        if self.stop.get().is_none() {
            self.stop.set(Some(reason));
        }
        self.wake_sleepers();
    }

    /// Why the command's time is over, if it is.
    pub fn over(&self) -> Option<Stop> {
        if self.cancelled.get() {
            return Some(Stop::Cancelled);
        }
        (self.now_us.get() >= self.deadline_us).then_some(Stop::Timeout)
    }

    /// Why the command must end now: last words are waited for.
    fn due(&self) -> Option<Stop> {
        if self.awaits_words() {
            return None;
        }
        self.over()
    }

    /// Stops the command if its time or its work is used up.
    pub(super) fn judge(&self) {
        self.look();
        if self.stop.get().is_some() {
            self.wake_sleepers();
        }
    }

    /// The same in the middle of anything, such as the allocator or a change of the
    /// sleepers: borrows and wakes nothing. The end of the poll does.
    pub(super) fn look(&self) {
        self.count_copies();
        let reason = if let Some(reason) = self.due() {
            Some(reason)
        } else if heap::live() > self.heap_limit {
            Some(Stop::Memory)
        } else if self.meter.poll_work() >= self.work_bound {
            Some(Stop::Work)
        } else {
            None
        };
        self.stop.set(self.stop.get().or(reason));
        if self.stop.get().is_some() {
            self.raise_flag(true);
        }
    }

    /// What is said in place of bashkit's sentence on a builtin that was not
    /// started.
    pub fn set_refusal(&self, sentence: String) {
        *self.refusal.borrow_mut() = Some(sentence);
    }

    /// Takes that sentence.
    pub fn take_refusal(&self) -> Option<String> {
        self.refusal.take()
    }

    /// The flag that bashkit looks at before every command.
    pub fn set_stop_flag(&self, flag: Arc<AtomicBool>) {
        *self.stop_flag.borrow_mut() = Some(flag);
    }

    pub(super) fn raise_flag(&self, raised: bool) {
        if let Ok(flag) = self.stop_flag.try_borrow()
            && let Some(flag) = flag.as_ref()
        {
            flag.store(raised, Ordering::Relaxed);
        }
    }

    /// The scope that the command runs in; lent programs run in it, too.
    pub fn scope(&self) -> Option<Scope> {
        self.scope.borrow().clone()
    }

    /// Sets the scope.
    pub fn set_scope(&self, scope: Scope) {
        *self.scope.borrow_mut() = Some(scope);
    }

    /// Bytes that one read of an endless device gives.
    pub fn device_bytes(&self) -> usize {
        self.device_bytes.get()
    }

    /// Sets the bytes of an endless device, if more than there were.
    pub fn need_device_bytes(&self, bytes: usize) {
        self.device_bytes.set(self.device_bytes.get().max(bytes));
    }

    /// Whether `head` may take the pipe that it reads.
    pub fn streams_head(&self) -> bool {
        self.streams_head.get()
    }

    /// Lets `head` take the pipe that it reads, or not.
    pub fn set_streams_head(&self, streams: bool) {
        self.streams_head.set(streams);
    }

    /// How the `grep` that runs lists directories, until it has listed the next.
    pub fn take_narrow(&self) -> Option<Narrow> {
        self.narrow.take()
    }

    /// Sets how the builtin that runs lists directories.
    pub fn set_narrow(&self, narrow: Option<Narrow>) {
        *self.narrow.borrow_mut() = narrow;
    }

    /// Whether `path` is the file whose filter the `jq` that runs reads now.
    pub fn is_filter_file(&self, path: &str) -> bool {
        is_named(self.filter_file.borrow().as_deref(), path)
    }

    /// Sets the file of which the builtin that runs takes its filter.
    pub fn set_filter_file(&self, file: Option<String>) {
        *self.filter_file.borrow_mut() = file;
    }

    /// Whether `path` is the script that the builtin that runs reads now.
    pub fn is_script_file(&self, path: &str) -> bool {
        is_named(self.script_file.borrow().as_deref(), path)
    }

    /// Sets the file that the builtin that runs runs as a script.
    pub fn set_script_file(&self, file: Option<String>) {
        *self.script_file.borrow_mut() = file;
    }

    /// Units of work done in the last poll, or so far in this one.
    pub fn poll_work(&self) -> u64 {
        self.meter.poll_work()
    }

    /// A poll begins.
    pub fn begin_poll(&self) {
        self.meter.begin_poll();
        self.begin_ticks();
        heap::set_limit(self.heap_limit + SLACK_BYTES.min(self.memory_bytes));
        self.turns.run();
        self.count_outside();
        self.put_back_clock();
        if self.due().is_some() && self.is_outside() {
            // A program is ended first: its output is to come out.
            self.await_last_words();
        }
        if let Some(reason) = self.due() {
            self.stop(reason);
        }
    }

    /// A poll ended; returns the work it did.
    pub fn end_poll(&self) -> u64 {
        heap::set_limit(usize::MAX);
        self.end_run();
        self.judge();
        self.raise_flag(false);
        // Whatever is polled next need not be the `grep`.
        self.set_narrow(None);
        self.meter.poll_work()
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

/// Memory for a command that begins while `held` bytes are in use, of which its
/// environment has lost `lost`.
fn memory_bytes(held: usize, lost: usize) -> usize {
    let gone = super::lost_in_all().min(ALL_LOST_BYTES);
    let left = HEAP_BYTES.saturating_sub(held.saturating_sub(gone)) / 3;
    let share = HELD_BYTES
        .min(left)
        .min((ALL_LOST_BYTES - gone) / 3)
        .max(LEAST_BYTES.min(left));
    let least = match lost > LOST_BYTES {
        true => 0,
        false => LEAST_BYTES.min(share),
    };
    share.saturating_sub(lost).max(least)
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

/// Whether `file`, as an argument says it, may be `path`: where it is looked for, the
/// shell knows.
fn is_named(file: Option<&str>, path: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    file.is_some_and(|file| name(file) == name(path))
}
