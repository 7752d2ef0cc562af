//! What readings of the clock say about the work that was done.
//!
//! The core cannot measure time, so work is counted: in readings of the clock,
//! in commands, in bytes. The weights below make a unit worth about 1 µs, so
//! that a command's own time passes about as fast as real time.

use std::cell::Cell;

use super::{Timeline, charge};
use crate::memory::heap;

/// bashkit's watcher for cancellation reads the clock until 10 ms have passed,
/// once in every poll. Those readings are neither time nor work of the command:
/// they are taken back when the watcher then wakes its task.
const WATCHER_US: u64 = 10_000;
/// After so many readings the watcher's time is passed in strides.
const WATCHER_STRIDES_FROM: u64 = 64;
/// Length of such a stride.
const WATCHER_STRIDE_US: u64 = 100;
/// Parts that a unit of work is counted in.
const PARTS: u64 = 16;
/// Parts that a reading is worth: most builtins check their limits for every byte or
/// line, `awk` for every statement.
const PARTS_OF_READ: u64 = 1;
const PARTS_OF_AWK: u64 = 4;
/// Bytes in large pieces that are worth one unit: whoever makes such a piece
/// mostly looks at each byte of it, too.
const COPIED_PER_WORK: usize = 2048;
/// The same beside a `read` from a file or a here-document: the shell hands it
/// all the input that is left, several times over, and nobody looks through it.
const COPIED_PER_WORK_OF_READ: usize = 16 << 10;
/// Builtins that a loop runs between two `read`s at most, for that weight.
const BUILTINS_NEAR_READ: u32 = 8;
/// Builtins that compute next to nothing, whatever they are given.
const SHORT_BUILTINS: [&str; 8] = ["read", ":", "true", "[", "test", "echo", "printf", "export"];
/// What a builtin costs beside its readings, in units.
const BUILTIN_WORK: u64 = 12;
/// Commands after which bashkit yields, and the units that they are worth at
/// least: a short one takes some 12 µs, whatever it reads.
const YIELD_WORK: u64 = 64 * 12;

/// Counters of one command.
pub(super) struct Meter {
    /// Where on the stack the last reading came from.
    frame: Cell<usize>,
    parts: Cell<u64>,
    run: Cell<u64>,
    poll_work: Cell<u64>,
    watching: Cell<bool>,
    watched_us: Cell<u64>,
    read_parts: Cell<u64>,
    copied: Cell<usize>,
    near_read: Cell<u32>,
    short_builtin: Cell<bool>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            frame: Cell::default(),
            parts: Cell::default(),
            run: Cell::default(),
            poll_work: Cell::default(),
            watching: Cell::default(),
            watched_us: Cell::default(),
            read_parts: Cell::new(PARTS_OF_READ),
            // What was copied before is not the command's.
            copied: Cell::new(heap::large()),
            near_read: Cell::default(),
            short_builtin: Cell::default(),
        }
    }
}

impl Meter {
    /// Units of work done in this poll.
    pub(super) fn poll_work(&self) -> u64 {
        self.poll_work.get()
    }

    pub(super) fn begin_poll(&self) {
        self.begin_run();
        self.poll_work.set(0);
        self.copied.set(heap::large());
    }

    fn begin_run(&self) {
        self.run.set(0);
        self.frame.set(0);
    }
}

impl Timeline {
    /// One reading: a part of a unit of work, and as much time.
    ///
    /// Only bashkit's watcher counts otherwise: it reads in a row from one depth of the
    /// stack, and then wakes its task. Whether it is polled before the command or
    /// behind it, chance decides (`tokio::select!`), which no replay repeats: so every
    /// row may be its, until it is longer. Whoever else reads is counted alike, because
    /// compilers lay out the stack in different ways, and every build of the core
    /// counts the same.
    pub fn read(&self, frame: usize) -> u64 {
        let meter = &self.meter;
        if meter.frame.replace(frame) != frame {
            self.end_run();
            meter.run.set(0);
            meter.watching.set(true);
        }
        let run = meter.run.get() + 1;
        meter.run.set(run);
        if meter.watching.get() {
            self.watch(run);
        } else {
            self.advance(meter.read_parts.get());
            self.judge();
        }
        self.seen_us()
    }

    /// A reading that is the watcher's, or the first of something else.
    fn watch(&self, run: u64) {
        // Its wait of 10 ms is passed in a hundred strides.
        let stride = if run < WATCHER_STRIDES_FROM {
            1
        } else {
            WATCHER_STRIDE_US
        };
        let meter = &self.meter;
        meter.watched_us.set(meter.watched_us.get() + stride);
        self.now_us.set(self.now_us.get() + stride);
        if meter.watched_us.get() > WATCHER_US + WATCHER_STRIDE_US {
            self.end_run();
        }
        // The flag must be down while the watcher looks, or it would drop the
        // command together with output that it has not delivered yet.
        if run == WATCHER_STRIDES_FROM {
            self.raise_flag(false);
        } else if run < WATCHER_STRIDES_FROM && self.stopped().is_some() {
            self.raise_flag(true);
        }
    }

    /// Ends a run of readings that was not the watcher's: it counts as work.
    pub(super) fn end_run(&self) {
        let meter = &self.meter;
        if !meter.watching.replace(false) {
            return;
        }
        let watched = meter.watched_us.replace(0);
        self.now_us.set(self.now_us.get() - watched);
        self.advance(meter.run.get());
        self.judge();
    }

    /// Counts work in parts of a unit.
    fn advance(&self, parts: u64) {
        let parts = self.meter.parts.get() + parts;
        self.meter.parts.set(parts % PARTS);
        self.add(parts / PARTS);
    }

    pub(super) fn add(&self, units: u64) {
        self.now_us.set(self.now_us.get() + units);
        self.meter.poll_work.set(self.meter.poll_work() + units);
        charge(units);
    }

    /// Counts what was copied in large pieces since the last time.
    pub(super) fn count_copies(&self) {
        let copied = heap::large();
        let new = copied.wrapping_sub(self.meter.copied.get());
        let per_work = match self.meter.near_read.get() {
            0 => COPIED_PER_WORK,
            _ => COPIED_PER_WORK_OF_READ,
        };
        if new >= per_work {
            self.meter.copied.set(copied);
            self.add((new / per_work) as u64);
        }
    }

    /// Adds work that was done without reading the clock.
    pub fn spend(&self, units: u64) {
        self.add(units);
        self.judge();
    }

    /// A builtin starts.
    pub fn builtin_starts(&self, name: &str) {
        let parts = match name {
            "awk" | "gawk" | "mawk" => PARTS_OF_AWK,
            _ => PARTS_OF_READ,
        };
        self.meter.read_parts.set(parts);
        self.meter.short_builtin.set(SHORT_BUILTINS.contains(&name));
        self.meter.near_read.set(match name {
            "read" => BUILTINS_NEAR_READ,
            _ => self.meter.near_read.get().saturating_sub(1),
        });
        self.spend(BUILTIN_WORK);
    }

    /// Whether what is computed now is mostly the shell's, which looks through all
    /// the input that is left for every command in a loop of `read`: turns that
    /// are short.
    pub(super) fn hands_input_over(&self) -> bool {
        self.meter.near_read.get() > 0 && self.meter.short_builtin.get()
    }

    /// The poll ended because as many commands ran as bashkit runs in one go.
    pub fn commands_ran(&self) {
        self.spend(YIELD_WORK.saturating_sub(self.meter.poll_work()));
    }

    /// Something was woken: if the watcher did it, its readings do not count.
    pub fn woken(&self) {
        let meter = &self.meter;
        if meter.watching.get() && meter.watched_us.get() >= WATCHER_US {
            self.now_us.set(self.now_us.get() - meter.watched_us.get());
            meter.watched_us.set(0);
            meter.watching.set(false);
        } else {
            self.end_run();
        }
        meter.begin_run();
    }
}
