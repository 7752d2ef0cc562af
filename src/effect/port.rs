//! `EffectPort`: where awaiting code meets the step boundary. `request` queues
//! an effect and returns a [`Pending`] that yields its outcomes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::loan::{Loan, LoanGuard, Loans};
use super::{Effect, EffectKind, Outcome, OutcomeKind};
use crate::environment::{CancelGuard, ExecutionEnvironment, Scope};
use crate::text::SortedMap;

/// Session and subagent that an effect belongs to.
type Account = (Rc<str>, Option<Rc<str>>);

#[derive(Default)]
struct Slot {
    account: Account,
    in_background: bool,
    arrived: VecDeque<OutcomeKind>,
    done: bool,
    cancel_sent: bool,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    now_ms: Cell<u64>,
    next_id: Cell<u64>,
    outgoing: RefCell<Vec<Effect>>,
    pending: RefCell<SortedMap<u64, Rc<RefCell<Slot>>>>,
    settled: RefCell<Vec<Waker>>,
    loans: Loans,
}

/// The core side of the step boundary. Clones share one state.
#[derive(Clone, Default)]
pub struct EffectPort(Rc<State>);

impl EffectPort {
    /// A port with nothing under way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Time of the current step: ms since 1970-01-01 UTC.
    pub fn now_ms(&self) -> u64 {
        self.0.now_ms.get()
    }

    /// Sets the time of the current step. It never goes back.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.0.now_ms.set(self.now_ms().max(now_ms));
    }

    /// Queues an effect. When `scope.cancel` fires, or when the [`Pending`] is
    /// dropped early, the effect is cancelled; its final outcome is still
    /// waited for by [`EffectPort::settled`].
    pub fn request(&self, scope: &Scope, kind: EffectKind) -> Pending {
        let id = self.0.next_id.get() + 1;
        self.0.next_id.set(id);
        let slot = Rc::new(RefCell::new(Slot {
            account: (scope.owner.clone(), scope.agent.clone()),
            in_background: scope.in_background,
            ..Slot::default()
        }));
        self.0.pending.borrow_mut().insert(id, slot.clone());
        self.0.outgoing.borrow_mut().push(Effect {
            id,
            owner: scope.owner.clone(),
            kind,
        });
        let port = self.clone();
        let guard = scope.cancel.on_cancel(move |_| port.cancel(id));
        Pending {
            id,
            slot,
            port: self.clone(),
            _guard: guard,
        }
    }

    /// Lends `environment` to the host for as long as `pending` runs within
    /// `scope` and the guard lives.
    pub(crate) fn lend(
        &self,
        pending: &Pending,
        environment: Rc<dyn ExecutionEnvironment>,
        scope: &Scope,
    ) -> LoanGuard {
        self.0.loans.lend(pending.id, environment, scope)
    }

    /// What is lent to an effect now.
    pub(crate) fn loan(&self, effect: u64) -> Option<Loan> {
        self.0.loans.of(effect)
    }

    /// Sleeps for `ms` milliseconds of host time; `false` when cancelled.
    pub async fn sleep(&self, scope: &Scope, ms: u64) -> bool {
        let mut pending = self.request(scope, EffectKind::Sleep { ms });
        matches!(pending.finish().await, OutcomeKind::Slept)
    }

    /// Hands one outcome in. Unknown and finished ids are ignored.
    pub fn deliver(&self, outcome: Outcome) {
        let slot = self.0.pending.borrow().get(&outcome.id).cloned();
        let Some(slot) = slot else { return };
        let is_final = outcome.kind.is_final();
        let waker = {
            let mut slot = slot.borrow_mut();
            slot.arrived.push_back(outcome.kind);
            slot.done = is_final;
            slot.waker.take()
        };
        if is_final {
            self.0.pending.borrow_mut().remove(&outcome.id);
            for waker in self.0.settled.take() {
                waker.wake();
            }
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the effects queued since the last call.
    pub fn take_effects(&self) -> Vec<Effect> {
        self.0.outgoing.take()
    }

    /// Number of effects without a final outcome.
    pub fn outstanding(&self) -> usize {
        self.0.pending.borrow().len()
    }

    /// Resolves when every effect of this scope's session, or subagent of a
    /// session, has had its final outcome, but for those in the background.
    pub async fn settled(&self, scope: &Scope) {
        let account = (scope.owner.clone(), scope.agent.clone());
        poll_fn(|cx| {
            let pending = self.0.pending.borrow();
            let is_awaited = |slot: &Rc<RefCell<Slot>>| {
                let slot = slot.borrow();
                slot.account == account && !slot.in_background
            };
            if !pending.values().any(is_awaited) {
                return Poll::Ready(());
            }
            self.0.settled.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn cancel(&self, target: u64) {
        let Some(slot) = self.0.pending.borrow().get(&target).cloned() else {
            return;
        };
        let (owner, first) = {
            let mut slot = slot.borrow_mut();
            let first = !std::mem::replace(&mut slot.cancel_sent, true);
            (slot.account.0.clone(), first)
        };
        if first {
            let id = self.0.next_id.get() + 1;
            self.0.next_id.set(id);
            self.0.outgoing.borrow_mut().push(Effect {
                id,
                owner,
                kind: EffectKind::Cancel { target },
            });
        }
    }
}

impl std::fmt::Debug for EffectPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EffectPort")
            .field("now_ms", &self.now_ms())
            .field("outstanding", &self.outstanding())
            .finish()
    }
}

/// An effect under way. Dropping it early cancels the effect.
pub struct Pending {
    id: u64,
    slot: Rc<RefCell<Slot>>,
    port: EffectPort,
    _guard: CancelGuard,
}

impl Pending {
    /// The next outcome; `None` once the final one has been taken.
    pub async fn next(&mut self) -> Option<OutcomeKind> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Skips streamed outcomes and returns the final one. A host that breaks
    /// the contract cannot make this return twice.
    pub async fn finish(&mut self) -> OutcomeKind {
        loop {
            match self.next().await {
                Some(outcome) if outcome.is_final() => return outcome,
                Some(_) => {}
                None => return OutcomeKind::Cancelled,
            }
        }
    }

    /// Asks the host to stop the effect; the final outcome still arrives.
    pub fn cancel(&self) {
        self.port.cancel(self.id);
    }

    /// Polls for the next outcome, for use in hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<OutcomeKind>> {
        let mut slot = self.slot.borrow_mut();
        if let Some(outcome) = slot.arrived.pop_front() {
            return Poll::Ready(Some(outcome));
        }
        if slot.done {
            return Poll::Ready(None);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.port.cancel(self.id);
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("id", &self.id).finish()
    }
}
