//! What readings of the clock say about the work that was done.
//!
//! The core cannot measure time, so work is counted: in readings of the clock (in
//! rows: see [`crate::memory::bashkit::watcher`]), in turns of loops and calls
//! (ticks), in bytes, in builtins and in polls. The weights below make a unit worth
//! about 1 µs, so that a command's own time passes about as fast as real time.

use std::cell::Cell;

use super::work::charge;
use crate::memory::bashkit::costs;
use crate::memory::heap;

/// Units of work that a tick is worth where the shell hands input over: see
/// [`Meter::hands_input_over`]. Elsewhere the builtin that runs says it ([`costs`]).
const TICK_WORK_OF_SHELL: u64 = 125;
/// Units of ticks that a poll may have before they count. What a compiler makes of a
/// loop decides how many turns it has, so short commands would differ a little between
/// the builds of the core; the rest of the count is the same in all.
const TICKS_FREE: u64 = 50_000;
/// Units that all polls of a command may have free together: one that looks through the
/// same text in every poll takes no time otherwise.
const TICKS_FREE_OF_COMMAND: u64 = 1_000_000;
/// Parts that a unit of work is counted in.
const PARTS: u64 = 16;
/// Bytes in large pieces that are worth one unit: whoever makes such a piece
/// mostly looks at each byte of it, too.
const COPIED_PER_WORK: usize = 4096;
/// The same beside a `read` from a file or a here-document: the shell hands it
/// all the input that is left, several times over, and nobody looks through it.
const COPIED_PER_WORK_OF_READ: usize = 16 << 10;
/// Builtins that a loop runs between two `read`s at most, for that weight.
const BUILTINS_NEAR_READ: u32 = 8;
/// Builtins that may start in the same pipe behind one that takes pieces.
const BUILTINS_NEAR_PIECES: u32 = 4;
/// What a poll beside one is worth, in units: it has a piece.
const PIECE_WORK: u64 = 450;
/// Units that the commands of a poll are worth at least: a short one takes some 12 µs,
/// whatever it reads.
const YIELD_WORK: u64 = costs::COMMANDS_IN_A_POLL * 12;

/// Counters of one command.
pub(super) struct Meter {
    parts: Cell<u64>,
    poll_work: Cell<u64>,
    read_parts: Cell<u64>,
    copied: Cell<usize>,
    near_read: Cell<u32>,
    near_pieces: Cell<u32>,
    short_builtin: Cell<bool>,
    /// What a tick is worth for the builtin that runs, and the bytes of memory that grow
    /// for a unit.
    tick: Cell<u64>,
    bytes_per_work: Cell<usize>,
    /// Work that the ticks of this poll are worth.
    ticked: Cell<u64>,
    /// Units of ticks that earlier polls had free.
    free: Cell<u64>,
    /// Work that the growth of memory in this poll is worth.
    grown: Cell<u64>,
    /// Bytes that are held, and those of all large pieces so far, at the last tick.
    held: Cell<usize>,
    large: Cell<usize>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            parts: Cell::default(),
            poll_work: Cell::default(),
            read_parts: Cell::new(costs::of("").reading),
            // What was copied before is not the command's.
            copied: Cell::new(heap::large()),
            near_read: Cell::default(),
            near_pieces: Cell::default(),
            short_builtin: Cell::default(),
            tick: Cell::new(costs::of("").tick),
            bytes_per_work: Cell::new(costs::of("").bytes_grown),
            ticked: Cell::default(),
            free: Cell::default(),
            grown: Cell::default(),
            held: Cell::new(heap::live()),
            large: Cell::new(heap::large()),
        }
    }
}

impl Meter {
    /// Units of work done in this poll.
    pub(super) fn poll_work(&self) -> u64 {
        self.poll_work.get()
    }

    /// A poll begins. Gives the units that it is worth, whatever it does.
    pub(super) fn begin_poll(&self) -> u64 {
        self.poll_work.set(0);
        let ticked = self.ticked.replace(0);
        self.free.set(self.free.get() + ticked.min(TICKS_FREE));
        self.grown.set(0);
        self.copied.set(heap::large());
        self.growth();
        match self.near_pieces.get() {
            0 => 0,
            _ => PIECE_WORK,
        }
    }

    /// Counts units of work.
    pub(super) fn add(&self, units: u64) {
        self.poll_work.set(self.poll_work() + units);
        charge(units);
    }

    /// The units that so many readings make, by the builtin that runs.
    pub(super) fn readings(&self, readings: u64) -> u64 {
        let parts = self.parts.get() + readings * self.read_parts.get();
        self.parts.set(parts % PARTS);
        parts / PARTS
    }

    /// The units that were copied in large pieces since the last time.
    pub(super) fn copies(&self) -> u64 {
        let copied = heap::large();
        let new = copied.wrapping_sub(self.copied.get());
        let per_work = match self.near_read.get() {
            0 => COPIED_PER_WORK,
            _ => COPIED_PER_WORK_OF_READ,
        };
        if new < per_work {
            return 0;
        }
        self.copied.set(copied);
        (new / per_work) as u64
    }

    /// The units that the start of a builtin is worth.
    pub(super) fn builtin_starts(&self, name: &str) -> u64 {
        let cost = costs::of(name);
        self.read_parts.set(cost.reading);
        self.tick.set(cost.tick);
        self.bytes_per_work.set(cost.bytes_grown);
        self.near_pieces.set(match cost.takes_pieces {
            true => BUILTINS_NEAR_PIECES,
            false => self.near_pieces.get().saturating_sub(1),
        });
        self.short_builtin.set(cost.is_short);
        self.near_read.set(match cost.reads_rest {
            true => BUILTINS_NEAR_READ,
            false => self.near_read.get().saturating_sub(1),
        });
        cost.start
    }

    /// Whether what is computed now is mostly the shell's, which looks through all
    /// the input that is left for every command in a loop of `read`: turns that
    /// are short.
    fn hands_input_over(&self) -> bool {
        self.near_read.get() > 0 && self.short_builtin.get()
    }

    /// The units by which a tick raises those of the poll.
    pub(super) fn tick(&self) -> u64 {
        let worth = match self.hands_input_over() {
            true => TICK_WORK_OF_SHELL,
            false => self.tick.get(),
        };
        let ticked = self.ticked.get() + worth;
        self.ticked.set(ticked);
        let grown = self.grown.get() + (self.growth() / self.bytes_per_work.get()) as u64;
        self.grown.set(grown);
        match ticked > TICKS_FREE || self.free.get() > TICKS_FREE_OF_COMMAND {
            true => (ticked + grown).saturating_sub(self.poll_work()),
            false => 0,
        }
    }

    /// Bytes of small pieces by which the memory grew since the last time: large ones
    /// count where they are copied.
    fn growth(&self) -> usize {
        let (held, large) = (heap::live(), heap::large());
        let grown = held.saturating_sub(self.held.replace(held));
        grown.saturating_sub(large.wrapping_sub(self.large.replace(large)))
    }

    /// The units by which a poll falls short of the commands that bashkit runs in
    /// one go.
    pub(super) fn short_of_yield(&self) -> u64 {
        YIELD_WORK.saturating_sub(self.poll_work())
    }
}
