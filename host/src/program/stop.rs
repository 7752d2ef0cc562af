//! `Stop`: how a thread that runs a program hears that it must end, also while
//! it sleeps.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A flag with a bell. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<Inner>);

#[derive(Default)]
struct Inner {
    fired: Mutex<bool>,
    bell: Condvar,
}

/// Fires a stop when it is dropped.
pub(super) struct StopGuard(Stop);

impl Stop {
    /// Ends the program; again does nothing.
    pub(super) fn fire(&self) {
        *self.lock() = true;
        self.0.bell.notify_all();
    }

    pub(super) fn has_fired(&self) -> bool {
        *self.lock()
    }

    /// Waits until `time` is over or the stop fires; says whether it has fired.
    pub(super) fn wait(&self, time: Duration) -> bool {
        // A program may sleep for longer than a clock can count.
        let end = Instant::now().checked_add(time);
        let mut fired = self.lock();
        while !*fired {
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3_600),
            };
            if left.is_zero() {
                break;
            }
            let waited = self.0.bell.wait_timeout(fired, left);
            fired = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *fired
    }

    /// What fires it when the call is dropped.
    pub(super) fn guard(&self) -> StopGuard {
        StopGuard(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.fired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.fire();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_its_time_or_with_the_stop() {
        let stop = Stop::default();
        assert!(!stop.wait(Duration::from_millis(1)));
        let waiting = std::thread::spawn({
            let stop = stop.clone();
            move || stop.wait(Duration::MAX)
        });
        drop(stop.guard());
        assert!(waiting.join().expect("no panic"));
        assert!(stop.has_fired());
    }
}
