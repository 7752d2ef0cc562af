//! Ends a search or a listing that runs on another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After this much wall time a search answers with what it has: a call must not
/// hold a session.
const LONGEST: Duration = Duration::from_secs(10);

/// Whether to stop: because nobody waits any more, or because it took too long.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    dropped: Arc<AtomicBool>,
    deadline: Instant,
}

impl Stop {
    /// A stop and the guard that fires it when dropped.
    pub(super) fn new() -> (Self, StopGuard) {
        let dropped = Arc::<AtomicBool>::default();
        let stop = Self {
            dropped: dropped.clone(),
            deadline: Instant::now() + LONGEST,
        };
        (stop, StopGuard(dropped))
    }

    /// Whether to stop now.
    pub(super) fn reached(&self) -> bool {
        self.dropped.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

/// Fires its [`Stop`] when dropped: it lives in the future of the call.
#[derive(Debug)]
pub(super) struct StopGuard(Arc<AtomicBool>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
