//! `Loans`: environments that running effects may use. A tool that the host
//! executes reaches its session's environment through the effect that calls it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::environment::{Cancel, CancelGuard, ExecutionEnvironment, Scope};
use crate::text::SortedMap;

/// What is lent, by effect. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Loans(Rc<RefCell<SortedMap<u64, Loan>>>);

/// An environment that an effect may use until its end.
#[derive(Clone)]
pub(crate) struct Loan {
    pub(crate) environment: Rc<dyn ExecutionEnvironment>,
    /// Fires at the end of the effect, and when that is cancelled.
    pub(crate) cancel: Cancel,
}

/// Ends the loan when it is dropped.
pub(crate) struct LoanGuard {
    loans: Loans,
    effect: u64,
    cancel: Cancel,
    _link: CancelGuard,
}

impl Loans {
    /// Lends `environment` to `effect`, which runs within `scope`.
    pub(crate) fn lend(
        &self,
        effect: u64,
        environment: Rc<dyn ExecutionEnvironment>,
        scope: &Scope,
    ) -> LoanGuard {
        let (cancel, link) = scope.cancel.child();
        let loan = Loan {
            environment,
            cancel: cancel.clone(),
        };
        self.0.borrow_mut().insert(effect, loan);
        LoanGuard {
            loans: self.clone(),
            effect,
            cancel,
            _link: link,
        }
    }

    /// What is lent to `effect` now.
    pub(crate) fn of(&self, effect: u64) -> Option<Loan> {
        self.0.borrow().get(&effect).cloned()
    }
}

impl Drop for LoanGuard {
    fn drop(&mut self) {
        self.loans.0.borrow_mut().remove(&self.effect);
        self.cancel.cancel();
    }
}
