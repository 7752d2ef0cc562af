//! What a session knows of its compactions.

use std::cell::Cell;

/// Summaries that fail in a row before the threshold counts no more.
pub(super) const MAX_FAILURES: u32 = 2;

/// Calls and failures of compactions.
#[derive(Default)]
pub(in crate::session) struct Attempts {
    /// The host has called, and it has not happened yet.
    called: Cell<bool>,
    /// Failures in a row.
    failures: Cell<u32>,
}

impl Attempts {
    /// Has the conversation compacted before the next request.
    pub(in crate::session) fn call(&self) {
        self.called.set(true);
    }

    /// Whether the host has called since it was last asked.
    pub(super) fn take_call(&self) -> bool {
        self.called.take()
    }

    /// Whether the threshold still counts.
    pub(super) fn may_go_on(&self) -> bool {
        self.failures.get() < MAX_FAILURES
    }

    /// A summary has helped.
    pub(super) fn succeed(&self) {
        self.failures.set(0);
    }

    /// A summary has failed or did not help. Says whether the threshold has just stopped
    /// to count.
    pub(super) fn fail(&self) -> bool {
        self.failures.set(self.failures.get().saturating_add(1));
        self.failures.get() == MAX_FAILURES
    }
}
