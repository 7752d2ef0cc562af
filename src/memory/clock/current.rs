//! The command that is being polled: whose clock the shell reads.

use std::cell::RefCell;
use std::rc::Rc;

use super::timeline::Timeline;
use super::work::charge;
use crate::memory::heap;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Timeline>>> = const { RefCell::new(None) };
}

/// Runs `body` with `timeline` as the one that the clock symbol reads.
pub(crate) fn enter<R>(timeline: &Rc<Timeline>, body: impl FnOnce() -> R) -> R {
    struct Leave(Option<Rc<Timeline>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    heap::on_excess(outgrown);
    let _leave = Leave(CURRENT.with(|current| current.replace(Some(timeline.clone()))));
    body()
}

/// Nothing is polled: what was when the instance failed, or the command was left,
/// never ended.
pub(crate) fn abandon() {
    // Kept for good: it is in the middle of whatever it did.
    std::mem::forget(CURRENT.take());
}

/// The timeline whose command is being polled.
pub(crate) fn current() -> Option<Rc<Timeline>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// The same in the middle of anything; `None` also while that is being changed.
pub(super) fn current_anywhere() -> Option<Rc<Timeline>> {
    CURRENT.with(|current| current.try_borrow().ok()?.clone())
}

/// The running command asks for more memory than there is for it.
fn outgrown() {
    heap::set_limit(usize::MAX);
    if let Some(timeline) = current_anywhere() {
        timeline.outgrow();
    }
}

/// Adds `units` to the time and the work of the running command: work that it
/// does without reading the clock.
pub(crate) fn spend(units: u64) {
    match current() {
        Some(timeline) => timeline.spend(units),
        None => charge(units),
    }
}

/// One reading of the clock by the running command.
pub(crate) fn read_current() -> u64 {
    // Not borrowed meanwhile: it may end where it is.
    current().map_or(0, |timeline| timeline.read())
}
