//! Memory that one command may hold, of what the core has.

use std::cell::Cell;

use crate::memory::heap;

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

thread_local! {
    static LOST: Cell<usize> = const { Cell::new(0) };
}

/// `bytes` stay with a command that was left.
pub(super) fn lose(bytes: usize) {
    LOST.set(LOST.get() + bytes);
}

/// The memory of one command.
pub(super) struct Allowance {
    bytes: usize,
    held_before: usize,
}

impl Allowance {
    /// For a command that begins now in an environment that has lost `lost` bytes.
    pub(super) fn new(lost: usize) -> Self {
        let held_before = heap::live();
        Self {
            bytes: share(held_before, lost),
            held_before,
        }
    }

    /// What the command may hold.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What has been allocated since it began.
    pub(super) fn held(&self) -> usize {
        heap::live().saturating_sub(self.held_before)
    }

    /// Whether it holds more.
    pub(super) fn is_exceeded(&self) -> bool {
        heap::live() > self.held_before + self.bytes
    }

    /// Bytes of all that may be allocated before the command is left.
    pub(super) fn last_limit(&self) -> usize {
        self.held_before + self.bytes + SLACK_BYTES.min(self.bytes)
    }
}

/// Memory for a command that begins while `held` bytes are in use, of which its
/// environment has lost `lost`.
fn share(held: usize, lost: usize) -> usize {
    let gone = LOST.get().min(ALL_LOST_BYTES);
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
