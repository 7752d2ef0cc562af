//! Follows a session to the end of its input: collects its trajectory, asks its limits
//! before each call of a model, and says whose fault the end is.

use std::time::{Duration, Instant};

use hermitcrab::event::{CloseReason, EndReason, EventKind};
use tokio::sync::mpsc;

use super::atif::Trajectory;
use super::budget::{Ask, Meter, Refusal};
use super::suite::Limits;
use crate::error::HostError;
use crate::session::Session;

/// How a session came to the end of its input.
pub(super) enum Ended {
    /// The model says that it is done.
    Naturally,
    /// A limit ended it.
    ByLimit(String),
    /// The agent failed.
    ByAgent(String),
    /// Provider, machine or setup failed.
    Infra(Class, String),
}

impl Ended {
    /// How an input ended that could not begin.
    pub(super) fn by(error: HostError) -> Self {
        match error {
            HostError::Core(failure) => Self::ByAgent(failure.message),
            other => Self::Infra(Class::Machine, other.to_string()),
        }
    }
}

/// Kinds of failures that are not the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Trying again does not help: a key, a setting, a task that is none.
    Setup,
    /// The provider wants fewer calls.
    RateLimit,
    /// The provider or the way to it failed.
    Provider,
    /// This machine failed.
    Machine,
    /// The log cannot be written: the disk is full, or fails.
    Disk,
    /// The budget of the run is used up.
    Budget,
}

impl Class {
    /// Attempts after the first, of at most `retries`, and the factor of the wait
    /// between them.
    pub(super) fn retries(self, retries: u32) -> (u32, u32) {
        match self {
            Self::Setup | Self::Budget | Self::Disk => (0, 1),
            Self::Machine => (retries.min(1), 1),
            Self::Provider => (retries, 1),
            // Waiting is all that helps.
            Self::RateLimit => (retries.saturating_mul(2), 4),
        }
    }
}

/// What following a session needs.
pub(super) struct Follower<'a> {
    pub(super) trajectory: &'a mut Trajectory,
    pub(super) meter: &'a mut Meter,
    /// Calls of models that wait for an answer, where there is a [`Gate`](super::budget::Gate).
    pub(super) asks: &'a mut Option<mpsc::UnboundedReceiver<Ask>>,
    pub(super) limits: Limits,
    /// What the wall time counts from.
    pub(super) began: Instant,
}

impl Follower<'_> {
    /// Follows a session whose input has begun to the end of it.
    pub(super) async fn follow(self, session: &mut Session) -> Ended {
        let wall = self.limits.wall_ms.map(Duration::from_millis);
        let deadline = wall.map(|wall| self.began + wall);
        let mut seen = Seen::default();
        loop {
            tokio::select! {
                // What happened before a call was asked for is seen before.
                biased;
                event = session.next_event() => {
                    let Some(event) = event else {
                        seen.over = true;
                        break;
                    };
                    let Some((kind, is_own)) = self.trajectory.see(&event) else { continue };
                    if seen.see(&kind, is_own, self.meter) {
                        break;
                    }
                }
                ask = next(self.asks) => {
                    let _ = ask.send(self.meter.ask());
                }
                () = at(deadline), if !seen.late => {
                    seen.late = true;
                    // What comes of it are events.
                    let _ = session.abort().await;
                }
            }
        }
        seen.end(self.meter, self.limits)
    }
}

async fn next(asks: &mut Option<mpsc::UnboundedReceiver<Ask>>) -> Ask {
    let asked = match asks {
        Some(asks) => asks.recv().await,
        None => None,
    };
    match asked {
        Some(ask) => ask,
        None => std::future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// What the events of an input say about its end.
#[derive(Default)]
struct Seen {
    reason: Option<EndReason>,
    /// Code and message of the last error.
    error: Option<(String, String)>,
    /// No event follows.
    over: bool,
    closed_by_error: bool,
    /// The wall time is over.
    late: bool,
}

impl Seen {
    /// Takes an event; says whether the input is done.
    fn see(&mut self, kind: &EventKind, is_own: bool, meter: &mut Meter) -> bool {
        match kind {
            EventKind::Usage {
                prompt_tokens,
                output_tokens,
                cost_usd,
                ..
            } => meter.used(prompt_tokens + output_tokens, *cost_usd),
            EventKind::Retry { .. } => meter.retried(),
            EventKind::Error { code, message, .. } if is_own => {
                self.error = Some((code.clone(), message.clone()));
            }
            EventKind::ProcessingEnd { reason, .. } if is_own => {
                self.reason = Some(*reason);
                return !self.late;
            }
            EventKind::SessionEnd { reason, .. } if is_own => {
                self.closed_by_error = *reason == CloseReason::Error;
                return true;
            }
            _ => {}
        }
        false
    }

    fn end(self, meter: &Meter, limits: Limits) -> Ended {
        match &meter.refusal {
            Some(Refusal::Trial(why)) => return Ended::ByLimit(why.clone()),
            Some(Refusal::Run(why)) => return Ended::Infra(Class::Budget, why.clone()),
            None => {}
        }
        if self.late {
            let ms = limits.wall_ms.unwrap_or_default();
            return Ended::ByLimit(format!("the limit of {ms} ms wall time is reached"));
        }
        match self.reason {
            Some(EndReason::Completed | EndReason::AwaitingInput) if !self.closed_by_error => {
                Ended::Naturally
            }
            Some(EndReason::RoundLimit) => {
                Ended::ByLimit("the limit of tool rounds is reached".into())
            }
            Some(EndReason::TurnLimit) => Ended::ByLimit("the limit of turns is reached".into()),
            Some(EndReason::CostLimit) => Ended::ByLimit("the limit of cost is reached".into()),
            Some(EndReason::TimeLimit) => {
                Ended::ByLimit("the limit of wall time is reached".into())
            }
            _ => {
                let (code, message) = self
                    .error
                    .unwrap_or_else(|| (String::new(), "the session ended early".to_owned()));
                classified(&code, message)
            }
        }
    }
}

/// Whose fault an error is (`LlmErrorKind`, `CoreFailure`).
fn classified(code: &str, message: String) -> Ended {
    let message = message
        .strip_suffix(crate::core::CoreFailure::WAY_OUT)
        .map(str::to_owned)
        .unwrap_or(message);
    match code {
        "rate_limit" => Ended::Infra(Class::RateLimit, message),
        "server" | "network" | "stream" | "request_timeout" | "unknown" => {
            Ended::Infra(Class::Provider, message)
        }
        "authentication" | "access_denied" | "quota_exceeded" | "not_found" | "configuration" => {
            Ended::Infra(Class::Setup, message)
        }
        // What its commands took.
        "core_stalled" | "core_memory" => Ended::ByLimit(message),
        _ => Ended::ByAgent(message),
    }
}
