//! The counter in the loops of the module: `xtask` puts it there
//! (`xtask/src/count.rs`) and calls `hermitcrab_tick` (`clock/ticks.rs`) when it is
//! used up. Elsewhere there is none.

/// Fills the counter.
pub(super) fn refill() {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    exported::hermitcrab_refill();
}

/// Leaves little in it: the next tick comes soon.
pub(super) fn hurry() {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    exported::hermitcrab_hurry();
}

/// Ends the instance by a trap that nothing else causes.
pub(super) fn trap() {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    exported::hermitcrab_leave();
}

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod exported {
    //! By these names `xtask` finds them and writes their bodies.

    #[unsafe(no_mangle)]
    #[inline(never)]
    pub(super) extern "C" fn hermitcrab_refill() {
        effect(1);
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    pub(super) extern "C" fn hermitcrab_hurry() {
        effect(3);
    }

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
