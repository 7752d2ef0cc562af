//! `Cancel`: the one-shot signal that ends an input, a job or a single call, and
//! says why.
//!
//! Cancelling never drops a future: whoever awaits an effect keeps awaiting its
//! final outcome, so a cancelled call still reports what had arrived.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

type Callback = Box<dyn FnOnce(CancelReason)>;

/// Why a signal fired; models read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Somebody wanted it, or what it was done for is over.
    Interrupted,
    /// `max_wall_ms` of the session is over.
    TimeLimit,
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "interrupted",
            Self::TimeLimit => "the session's time limit was reached",
        })
    }
}

#[derive(Default)]
struct State {
    reason: Option<CancelReason>,
    wakers: Vec<Waker>,
    callbacks: Vec<(u64, Callback)>,
    next_callback: u64,
}

/// A cloneable one-shot cancellation signal. All clones share one state.
#[derive(Clone, Default)]
pub struct Cancel(Rc<RefCell<State>>);

impl Cancel {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires the signal because somebody wants it.
    pub fn cancel(&self) {
        self.cancel_for(CancelReason::Interrupted);
    }

    /// Fires the signal: wakes every waiter and runs every callback, once. The
    /// first reason stands.
    pub fn cancel_for(&self, reason: CancelReason) {
        let (reason, wakers, callbacks) = {
            let mut state = self.0.borrow_mut();
            (
                *state.reason.get_or_insert(reason),
                std::mem::take(&mut state.wakers),
                std::mem::take(&mut state.callbacks),
            )
        };
        for (_, callback) in callbacks {
            callback(reason);
        }
        for waker in wakers {
            waker.wake();
        }
    }

    /// Whether the signal has fired.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Why the signal has fired, if it has.
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.borrow().reason
    }

    /// Resolves when the signal fires; at once if it has.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled(self.clone())
    }

    /// Runs `callback` when the signal fires (at once if it has). The returned
    /// guard removes the callback when it is dropped.
    pub fn on_cancel(&self, callback: impl FnOnce(CancelReason) + 'static) -> CancelGuard {
        if let Some(reason) = self.reason() {
            callback(reason);
            return CancelGuard {
                cancel: None,
                id: 0,
            };
        }
        let mut state = self.0.borrow_mut();
        let id = state.next_callback;
        state.next_callback += 1;
        state.callbacks.push((id, Box::new(callback)));
        CancelGuard {
            cancel: Some(self.clone()),
            id,
        }
    }

    /// A signal that fires when this one does, for the same reason, and can also
    /// fire alone. The
    /// guard keeps the link; drop it and the child is independent.
    pub fn child(&self) -> (Cancel, CancelGuard) {
        let child = Cancel::new();
        let fire = child.clone();
        let guard = self.on_cancel(move |reason| fire.cancel_for(reason));
        (child, guard)
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancel").field(&self.reason()).finish()
    }
}

/// Future of [`Cancel::cancelled`].
#[derive(Debug)]
pub struct Cancelled(Cancel);

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.0.borrow_mut();
        if state.reason.is_some() {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Removes its callback from the signal when dropped.
#[derive(Debug)]
#[must_use = "dropping the guard removes the callback"]
pub struct CancelGuard {
    cancel: Option<Cancel>,
    id: u64,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel
                .0
                .borrow_mut()
                .callbacks
                .retain(|(id, _)| *id != self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stands_and_reaches_children() {
        let cancel = Cancel::new();
        let (child, _link) = cancel.child();
        assert_eq!((cancel.reason(), child.reason()), (None, None));
        cancel.cancel_for(CancelReason::TimeLimit);
        cancel.cancel();
        let expected = Some(CancelReason::TimeLimit);
        assert_eq!((cancel.reason(), child.reason()), (expected, expected));
        let (late, _link) = cancel.child();
        assert_eq!(late.reason(), expected);
    }

    #[test]
    fn a_child_alone() {
        let cancel = Cancel::new();
        let (child, _link) = cancel.child();
        child.cancel();
        assert_eq!(child.reason(), Some(CancelReason::Interrupted));
        assert_eq!(cancel.reason(), None);
    }
}
