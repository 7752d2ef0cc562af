//! `OutcomeSink`: where the outcomes of an exchange go.

use async_trait::async_trait;
use hermitcrab::effect::OutcomeKind;

/// Takes the outcomes of one exchange. A closure `FnMut(OutcomeKind)` that does
/// not wait is one.
#[async_trait]
pub trait OutcomeSink: Send {
    /// Takes one outcome; returns when the next one may come.
    async fn put(&mut self, outcome: OutcomeKind);
}

#[async_trait]
impl<F: FnMut(OutcomeKind) + Send> OutcomeSink for F {
    async fn put(&mut self, outcome: OutcomeKind) {
        self(outcome);
    }
}
