//! Containment: a command that cannot go on is left where it is, and what called
//! it goes on.
//!
//! Nothing unwinds in the core, so a builtin that never looks at its limits, that
//! panics, or whose stack or memory ends, would end the instance. A host may
//! offer to leave such a command ([`offer`]): JavaScript catches what is thrown
//! through the module. What the command held then stays held; no destructor
//! runs. Without an offer the instance ends, and with it its sessions.

use std::cell::Cell;

use super::{counter, heap};

/// What a host offers.
#[derive(Clone, Copy)]
pub(crate) struct Containment {
    /// Calls `work`; an error says why it was left before its end.
    pub run: fn(work: &mut dyn FnMut()) -> Result<(), String>,
    /// Leaves the `run` that is under way.
    pub leave: fn(reason: &str) -> !,
}

/// What a host says of a `run` whose stack ended.
pub(crate) const STACK: &str = "stack";

thread_local! {
    static OFFERED: Cell<Option<Containment>> = const { Cell::new(None) };
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Why a command was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// By [`leave`].
    Asked,
    /// The stack ended.
    Stack,
    /// The memory ended.
    Memory,
    /// It failed, and this was said.
    Failed(String),
}

/// Said by [`leave`].
const ASKED: &str = "the command is left";

/// Contains commands by `containment` from now on.
pub(crate) fn offer(containment: Containment) {
    OFFERED.set(Some(containment));
}

/// Calls `work`; an error says why it was left.
pub(super) fn run(work: &mut dyn FnMut()) -> Result<(), Left> {
    let Some(containment) = OFFERED.get().filter(|_| !INSIDE.get()) else {
        work();
        return Ok(());
    };
    heap::forget_refusal();
    INSIDE.set(true);
    let done = (containment.run)(work);
    INSIDE.set(false);
    done.map_err(|said| match said.as_str() {
        ASKED => Left::Asked,
        STACK => Left::Stack,
        _ if heap::refused() => Left::Memory,
        _ => Left::Failed(said),
    })
}

/// Whether a command is contained now.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
pub(super) fn is_under_way() -> bool {
    INSIDE.get()
}

/// Whether what runs now can be left: where nobody contains commands, its instance
/// ends with it; where somebody does, what runs outside is the core's own.
pub(super) fn may_leave() -> bool {
    INSIDE.get() || OFFERED.get().is_none()
}

/// Leaves the command that is contained. Without containment the instance ends.
pub(super) fn leave() -> ! {
    match OFFERED.get().filter(|_| INSIDE.get()) {
        Some(containment) => (containment.leave)(ASKED),
        None => {
            counter::trap();
            panic!("{ASKED}")
        }
    }
}
