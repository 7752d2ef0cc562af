//! What is computed without reading the clock, counted by the module itself.
//!
//! `xtask` puts a counter into the loops of a core (`xtask/src/count.rs`); when
//! it is used up, the core ticks. A poll that ticked did at least the work of its
//! ticks, whatever else was counted, so time passes in builtins that never look
//! at it. A command that must end and does not, some ticks later, is left where
//! it is ([`crate::memory::containment`]). Turns of loops and calls are counted, so a
//! replay ticks at the same places. Elsewhere nothing ticks.

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
use super::current::current_anywhere;

/// As many turns and calls were computed as are worth a tick. By this name `xtask`
/// finds it.
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
#[unsafe(no_mangle)]
extern "C" fn hermitcrab_tick() {
    if let Some(timeline) = current_anywhere() {
        timeline.tick();
    }
}
