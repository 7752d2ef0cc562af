//! Work: what sandboxed commands and searches have computed, and how a command
//! gives way to others.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// Work after which a step ends: worth about 4 ms, so that a cancellation and other
/// sessions do not wait for longer.
pub(crate) const STEP_WORK: u64 = 4_000;

thread_local! {
    static WORK: Cell<u64> = const { Cell::new(0) };
}

/// Work done so far in this instance by sandboxed commands and searches, in
/// units worth about 1 µs. The executor ends a step after some 4,000 of them.
pub(crate) fn work() -> u64 {
    WORK.get()
}

/// Adds to [`work`] what was done without reading the clock.
pub(crate) fn charge(units: u64) {
    WORK.set(WORK.get().wrapping_add(units));
}

/// Ends the poll once, so that others run; if it did enough, the step ends, too.
pub(crate) async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        // By value: by reference would say that many commands ran (`Drive`).
        let waker = cx.waker().clone();
        waker.wake();
        Poll::Pending
    })
    .await;
}

/// Ends the step, so that the host learns what has happened before what comes next.
pub(crate) async fn end_step() {
    charge(STEP_WORK);
    pause().await;
}
