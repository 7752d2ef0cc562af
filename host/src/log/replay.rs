//! Replay: passes the inputs of a log to a fresh core and compares the outputs.

use std::fmt;

use hermitcrab::effect::EffectKind;
use serde_json::Value;

use super::encode::Encoder;
use super::read::{Entry, LogError, LogReader};
use crate::core::{Core, CoreError, CoreEvent, CoreStep};

/// Characters of each side of a difference that are shown.
const SHOWN: usize = 2_000;

/// A replay whose outputs were all equal to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Steps.
    pub steps: u64,
    /// Requests to models.
    pub rounds: u64,
    /// Whether the log was closed by who wrote it; else its last lines may be missing.
    pub closed: bool,
}

/// Where a core departs from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the step, from 1.
    pub step: u64,
    /// Requests to models before it: the round whose answer it is about.
    pub round: u64,
    /// What differs: `event 3`, `effect 1`.
    pub what: String,
    /// What the log has; empty: nothing there.
    pub recorded: String,
    /// What the core output; empty: nothing there.
    pub replayed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |text: &str| match text {
            "" => "nothing".to_owned(),
            text => text.chars().take(SHOWN).collect(),
        };
        write!(
            f,
            "step {}, round {}: {} differs\n  recorded  {}\n  replayed  {}",
            self.step,
            self.round,
            self.what,
            side(&self.recorded),
            side(&self.replayed),
        )
    }
}

/// Why a replay did not come to its end.
#[derive(Debug)]
pub enum ReplayError {
    /// The log cannot be used.
    Log(LogError),
    /// An output of the core differs.
    Differs(Box<Difference>),
    /// The core failed in this step.
    Core(u64, CoreError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Differs(difference) => difference.fmt(f),
            Self::Core(step, error) => write!(f, "step {step}: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<LogError> for ReplayError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// Tells `core`, which was just started with the log's seed, what the rest of the
/// log says, and gives its events to `event`.
///
/// # Errors
/// The log is damaged, or the core gives something else: the first difference.
pub fn replay(
    log: &mut LogReader,
    core: &mut dyn Core,
    mut event: impl FnMut(&CoreEvent),
) -> Result<Replayed, ReplayError> {
    let mut encoder = Encoder::default();
    let (mut steps, mut rounds) = (0, 0);
    while let Some(entry) = log.read()? {
        match entry {
            Entry::Call(call) => match core.call(call) {
                // What was refused then is refused now.
                Ok(_) | Err(CoreError::Refused(_) | CoreError::Environment(_)) => {}
                Err(error) => return Err(ReplayError::Core(steps, error)),
            },
            Entry::Step {
                now_ms,
                outcomes,
                output: recorded,
            } => {
                steps += 1;
                let step = core
                    .step(now_ms, outcomes)
                    .map_err(|error| ReplayError::Core(steps, error))?;
                let replayed = encoder.output(&step);
                if replayed != recorded {
                    let (what, recorded, replayed) = first_difference(&recorded, &replayed);
                    return Err(ReplayError::Differs(Box::new(Difference {
                        step: steps,
                        round: rounds,
                        what,
                        recorded,
                        replayed,
                    })));
                }
                rounds += requests(&step);
                step.events.iter().for_each(&mut event);
            }
        }
    }
    Ok(Replayed {
        steps,
        rounds,
        closed: log.is_closed(),
    })
}

fn requests(step: &CoreStep) -> u64 {
    let asks = |kind: &EffectKind| matches!(kind, EffectKind::Http(_));
    step.effects
        .iter()
        .filter(|effect| asks(&effect.kind))
        .count() as u64
}

/// The first part of a step's output that differs, and both sides.
fn first_difference(recorded: &str, replayed: &str) -> (String, String, String) {
    let read = |text| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (old, new) = (read(recorded), read(replayed));
    for (list, name) in [
        ("events", "event"),
        ("effects", "effect"),
        ("reports", "report"),
        ("log", "line of a log"),
    ] {
        let empty = Vec::new();
        let old = old[list].as_array().unwrap_or(&empty);
        let new = new[list].as_array().unwrap_or(&empty);
        let count = old.len().max(new.len());
        if let Some(index) = (0..count).find(|index| old.get(*index) != new.get(*index)) {
            let side = |items: &[Value]| items.get(index).map(Value::to_string).unwrap_or_default();
            return (format!("{name} {}", index + 1), side(old), side(new));
        }
    }
    let whole = "what it output".to_owned();
    (whole, recorded.to_owned(), replayed.to_owned())
}
