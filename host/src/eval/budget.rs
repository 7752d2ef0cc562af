//! Limits of a trial and of a whole run, asked before each call of a model: also
//! those of subagents, which share them. A call that is refused is never sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use hermitcrab::effect::OutcomeKind;
use hermitcrab::llm::{HttpRequest, TransportError, TransportErrorKind};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::suite::Limits;
use crate::http::{HttpPerformer, OutcomeSink};

/// Limits of all trials of a run together; absent: none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunLimits {
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// Price of what models answered, in US dollars.
    pub cost_usd: Option<f64>,
}

/// What all trials of a run have used.
#[derive(Debug, Default)]
pub(super) struct RunBudget {
    limits: RunLimits,
    tokens: AtomicU64,
    /// Millionths of a dollar.
    micro_usd: AtomicU64,
}

impl RunBudget {
    pub(super) fn new(limits: RunLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            ..Self::default()
        })
    }

    pub(super) fn is_limited(&self) -> bool {
        self.limits.tokens.is_some() || self.limits.cost_usd.is_some()
    }

    pub(super) fn add(&self, tokens: u64, cost_usd: f64) {
        self.tokens.fetch_add(tokens, Ordering::Relaxed);
        let micro = (cost_usd * 1e6).round().max(0.0) as u64;
        self.micro_usd.fetch_add(micro, Ordering::Relaxed);
    }

    /// Why no further call may be made, if none may.
    pub(super) fn used_up(&self) -> Option<String> {
        let cost = self.micro_usd.load(Ordering::Relaxed) as f64 / 1e6;
        if let Some(limit) = self.limits.cost_usd
            && cost >= limit
        {
            return Some(format!("the run's budget of ${limit} is used up"));
        }
        let limit = self.limits.tokens?;
        (self.tokens.load(Ordering::Relaxed) >= limit)
            .then(|| format!("the run's budget of {limit} tokens is used up"))
    }
}

/// What one trial has used.
#[derive(Debug)]
pub(super) struct Meter {
    limits: Limits,
    run: Arc<RunBudget>,
    /// Calls that were let through and not made again.
    calls: u64,
    pub(super) tokens: u64,
    pub(super) cost_usd: Option<f64>,
    /// Why the last call was refused.
    pub(super) refusal: Option<Refusal>,
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A limit of the trial.
    Trial(String),
    /// A limit of the run.
    Run(String),
}

impl Meter {
    pub(super) fn new(limits: Limits, run: Arc<RunBudget>) -> Self {
        Self {
            limits,
            run,
            calls: 0,
            tokens: 0,
            cost_usd: Some(0.0),
            refusal: None,
        }
    }

    /// Whether calls have to be asked for.
    pub(super) fn asks(&self) -> bool {
        let Limits {
            rounds,
            tokens,
            cost_usd,
            ..
        } = self.limits;
        self.run.is_limited() || rounds.is_some() || tokens.is_some() || cost_usd.is_some()
    }

    /// A response has been paid for.
    pub(super) fn used(&mut self, tokens: u64, cost_usd: Option<f64>) {
        self.tokens += tokens;
        self.cost_usd = self.cost_usd.zip(cost_usd).map(|(all, one)| all + one);
        self.run.add(tokens, cost_usd.unwrap_or(0.0));
    }

    /// The same call will be made again.
    pub(super) fn retried(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    /// Whether a call may be made now.
    ///
    /// # Errors
    /// A sentence with the limit that is reached.
    pub(super) fn ask(&mut self) -> Result<(), String> {
        let refusal = self.refuses();
        match &refusal {
            None => {
                self.calls += 1;
                Ok(())
            }
            Some(Refusal::Trial(why) | Refusal::Run(why)) => {
                let why = why.clone();
                self.refusal = refusal;
                Err(why)
            }
        }
    }

    fn refuses(&self) -> Option<Refusal> {
        let trial = |why| Some(Refusal::Trial(why));
        if let Some(why) = self.run.used_up() {
            return Some(Refusal::Run(why));
        }
        if let Some(rounds) = self.limits.rounds
            && self.calls >= rounds
        {
            return trial(format!("the limit of {rounds} rounds is reached"));
        }
        if let Some(tokens) = self.limits.tokens
            && self.tokens >= tokens
        {
            return trial(format!(
                "the limit of {tokens} tokens is reached: {} are used",
                self.tokens
            ));
        }
        let limit = self.limits.cost_usd?;
        match self.cost_usd {
            Some(cost) if cost >= limit => trial(format!(
                "the limit of ${limit} is reached: ${cost:.4} are spent"
            )),
            Some(_) => None,
            None => trial(format!(
                "the limit of ${limit} cannot be kept: the price of the model is not known; set \
                 `prices` or a limit of tokens"
            )),
        }
    }
}

/// Somebody who wants to call a model.
pub(super) type Ask = oneshot::Sender<Result<(), String>>;

/// Lets a trial decide about each call of a model, once it has seen all events that
/// came before.
pub(super) struct Gate {
    inner: Arc<dyn HttpPerformer>,
    asks: mpsc::UnboundedSender<Ask>,
}

impl Gate {
    /// A gate before `inner`, and the calls that ask it.
    pub(super) fn before(inner: Arc<dyn HttpPerformer>) -> (Self, mpsc::UnboundedReceiver<Ask>) {
        let (asks, receiver) = mpsc::unbounded_channel();
        (Self { inner, asks }, receiver)
    }
}

#[async_trait]
impl HttpPerformer for Gate {
    async fn perform(
        &self,
        request: HttpRequest,
        cancel: &CancellationToken,
        sink: &mut dyn OutcomeSink,
    ) {
        // Only calls of models carry a key; others are `web_fetch`.
        if request.auth.is_some() {
            let (reply, answer) = oneshot::channel();
            // A trial that is over answers nobody.
            let _ = self.asks.send(reply);
            let refused = tokio::select! {
                biased;
                () = cancel.cancelled() => Some(OutcomeKind::Cancelled),
                answer = answer => match answer {
                    Ok(Ok(())) => None,
                    Ok(Err(message)) => Some(OutcomeKind::HttpFailed(TransportError {
                        kind: TransportErrorKind::Invalid,
                        message,
                    })),
                    Err(_) => Some(OutcomeKind::Cancelled),
                },
            };
            if let Some(refused) = refused {
                sink.put(refused).await;
                return;
            }
        }
        self.inner.perform(request, cancel, sink).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(limits: Limits, run: RunLimits) -> Meter {
        Meter::new(limits, RunBudget::new(run))
    }

    #[test]
    fn rounds_count_retries_once() {
        let limits = Limits {
            rounds: Some(2),
            ..Limits::default()
        };
        let mut meter = meter(limits, RunLimits::default());
        assert_eq!(meter.ask(), Ok(()));
        meter.retried();
        assert_eq!(meter.ask(), Ok(()));
        assert_eq!(meter.ask(), Ok(()));
        let why = "the limit of 2 rounds is reached".to_owned();
        assert_eq!(meter.ask(), Err(why.clone()));
        assert_eq!(meter.refusal, Some(Refusal::Trial(why)));
    }

    #[test]
    fn tokens_and_cost_are_asked_before_the_call() {
        let limits = Limits {
            tokens: Some(100),
            ..Limits::default()
        };
        let mut tokens = meter(limits, RunLimits::default());
        tokens.used(99, None);
        assert_eq!(tokens.ask(), Ok(()));
        tokens.used(1, None);
        assert!(tokens.ask().is_err());
        let limits = Limits {
            cost_usd: Some(0.5),
            ..Limits::default()
        };
        let mut cost = meter(limits, RunLimits::default());
        cost.used(10, Some(0.4));
        assert_eq!(cost.ask(), Ok(()));
        cost.used(10, None);
        assert!(cost.ask().is_err(), "a price that is not known");
    }

    #[test]
    fn trials_share_the_budget_of_a_run() {
        let run = RunBudget::new(RunLimits {
            tokens: Some(100),
            cost_usd: None,
        });
        let mut one = Meter::new(Limits::default(), run.clone());
        let mut other = Meter::new(Limits::default(), run);
        one.used(60, None);
        assert_eq!(other.ask(), Ok(()));
        one.used(40, None);
        let why = "the run's budget of 100 tokens is used up".to_owned();
        assert_eq!(other.ask(), Err(why.clone()));
        assert_eq!(other.refusal, Some(Refusal::Run(why)));
    }
}
