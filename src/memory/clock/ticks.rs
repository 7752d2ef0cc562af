//! What is computed without reading the clock, counted by the module itself.
//!
//! `xtask` puts a counter into the loops of a core (`xtask/src/count.rs`); when
//! it is used up, the core ticks. A poll that ticked did at least the work of its
//! ticks, whatever else was counted, so time passes in builtins that never look
//! at it. A command that must end and does not, some ticks later, is left where
//! it is ([`containment`]). Turns of loops and calls are counted, so a replay ticks
//! at the same places. Elsewhere nothing ticks.

use super::Timeline;
use crate::memory::containment;

/// Units of work that a tick is worth: with 62,500 turns of loops and calls, the
/// time of `jq`, `awk`, `sort`, `sed` and `gzip` passes at 0.8 to 2 times the real
/// one on the machine of docs/measurements.md.
const TICK_WORK: u64 = 500;
/// The same where the shell hands input over: see [`Timeline::hands_input_over`].
const TICK_WORK_OF_SHELL: u64 = TICK_WORK / 4;
/// Units of ticks that a poll may have before they count. What a compiler makes of a
/// loop decides how many turns it has, so short commands would differ a little between
/// the builds of the core; the rest of the count is the same in all.
const TICKS_FREE: u64 = 50 * TICK_WORK;
/// Ticks that a command may take to end by itself.
const TICKS_TO_STOP: u32 = 200;

/// As many turns and calls were computed as are worth that.
#[cfg_attr(
    not(all(target_arch = "wasm32", feature = "sandbox")),
    allow(dead_code)
)]
fn tick() {
    if let Some(timeline) = super::current_anywhere() {
        timeline.tick();
    }
}

/// The counter is full.
pub(super) fn refill() {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    exported::hermitcrab_refill();
}

/// Ends the instance by a trap that nothing else causes.
pub(in crate::memory) fn trap() {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    exported::hermitcrab_leave();
}

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod exported {
    //! By these names `xtask` finds them.

    /// Called when the counter is used up.
    #[unsafe(no_mangle)]
    extern "C" fn hermitcrab_tick() {
        super::tick();
    }

    /// Fills the counter: `xtask` writes that.
    #[unsafe(no_mangle)]
    #[inline(never)]
    pub(super) extern "C" fn hermitcrab_refill() {
        effect(1);
    }

    /// Traps: `xtask` writes that.
    #[unsafe(no_mangle)]
    #[inline(never)]
    pub(super) extern "C" fn hermitcrab_leave() {
        effect(2);
    }

    /// A call without an effect would be left out, and of two functions that do the
    /// same one would remain.
    fn effect(which: u8) {
        std::hint::black_box(&raw const which);
        std::hint::black_box(which);
    }
}

impl Timeline {
    /// The poll that begins has computed nothing yet.
    pub(super) fn begin_ticks(&self) {
        self.ticked.set(0);
        refill();
    }

    pub(super) fn tick(&self) {
        let worth = match self.hands_input_over() {
            true => TICK_WORK_OF_SHELL,
            false => TICK_WORK,
        };
        let ticked = self.ticked.get() + worth;
        self.ticked.set(ticked);
        if ticked > TICKS_FREE {
            self.add(ticked.saturating_sub(self.poll_work()));
        }
        self.look();
        if self.stopped().is_none() || !self.is_apart() {
            return;
        }
        let overdue = self.overdue.get() + 1;
        self.overdue.set(overdue);
        if overdue > TICKS_TO_STOP && containment::may_leave() {
            containment::leave();
        }
    }
}
