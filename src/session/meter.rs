//! The meter: what a session and its subagents have used.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::event::Totals;
use crate::llm::{Cost, Usage};

/// Counts for one session, or for a subagent and all above it.
#[derive(Clone, Default)]
pub(super) struct Meter(Rc<Counts>);

#[derive(Default)]
struct Counts {
    /// Without the price, which `cost` has.
    totals: RefCell<Totals>,
    cost: Cell<Priced>,
    parent: Option<Meter>,
}

/// The price of everything so far.
#[derive(Clone, Copy)]
enum Priced {
    Known(Cost),
    /// A response had no known price.
    Unknown,
}

impl Default for Priced {
    fn default() -> Self {
        Self::Known(Cost::default())
    }
}

impl Meter {
    /// The meter of a subagent: what it counts, this one counts too.
    pub(super) fn child(&self) -> Self {
        Self(Rc::new(Counts {
            parent: Some(self.clone()),
            ..Counts::default()
        }))
    }

    /// Goes on from what an earlier session used.
    pub(super) fn take_over(&self, used: &Totals) {
        let counts = &self.0;
        counts.cost.set(match used.cost_usd {
            Some(usd) => Priced::Known(Cost::from_usd(usd)),
            None => Priced::Unknown,
        });
        *counts.totals.borrow_mut() = Totals {
            cost_usd: None,
            ..used.clone()
        };
    }

    /// Counts a model response.
    pub(super) fn add(&self, usage: &Usage, cost: Option<Cost>) {
        let counts = &self.0;
        {
            let mut totals = counts.totals.borrow_mut();
            let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
            add(&mut totals.responses, 1);
            add(&mut totals.prompt_tokens, usage.prompt_tokens_total());
            add(&mut totals.output_tokens, usage.output_tokens);
            add(
                &mut totals.reasoning_tokens,
                usage.reasoning_tokens.unwrap_or(0),
            );
            add(
                &mut totals.cache_read_tokens,
                usage.cache_read_tokens.unwrap_or(0),
            );
            add(
                &mut totals.cache_write_tokens,
                usage.cache_write_tokens.unwrap_or(0),
            );
        }
        counts.cost.set(match (counts.cost.get(), cost) {
            (Priced::Known(sum), Some(cost)) => Priced::Known(sum.plus(cost)),
            _ => Priced::Unknown,
        });
        if let Some(parent) = &counts.parent {
            parent.add(usage, cost);
        }
    }

    /// What the session that the host opened has cost with all its subagents, in US
    /// dollars; none: not known.
    pub(super) fn whole_cost_usd(&self) -> Option<f64> {
        match &self.0.parent {
            Some(parent) => parent.whole_cost_usd(),
            None => self.totals().cost_usd,
        }
    }

    /// Everything so far.
    pub(super) fn totals(&self) -> Totals {
        let cost_usd = match self.0.cost.get() {
            Priced::Known(cost) => Some(cost.usd()),
            Priced::Unknown => None,
        };
        Totals {
            cost_usd,
            ..self.0.totals.borrow().clone()
        }
    }
}
