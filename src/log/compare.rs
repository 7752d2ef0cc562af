//! `Comparison`: whether a core that repeats a log outputs the same.

use std::fmt;

use serde_json::Value;

use super::Output;
use super::encode::Encoder;

/// Characters of each side of a difference that are shown.
const SHOWN: usize = 2_000;

/// Where a core departs from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the step, from 1.
    pub step: u64,
    /// Answers of the models before it, those of subagents included.
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

/// Compares the outputs of steps, in order.
#[derive(Default)]
pub struct Comparison {
    encoder: Encoder,
    steps: u64,
    rounds: u64,
    line: Vec<u8>,
}

impl Comparison {
    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Answers of models so far: the log's rounds, those of subagents included.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Compares the output of the next step with `recorded`, which a log has.
    ///
    /// # Errors
    /// The first difference.
    pub fn step(&mut self, recorded: &str, output: &Output<'_>) -> Result<(), Box<Difference>> {
        self.steps += 1;
        self.line.clear();
        self.encoder.output(&mut self.line, output);
        if self.line != recorded.as_bytes() {
            let replayed = String::from_utf8_lossy(&self.line);
            let (what, recorded, replayed) = first_difference(recorded, &replayed);
            return Err(Box::new(Difference {
                step: self.steps,
                round: self.rounds,
                what,
                recorded,
                replayed,
            }));
        }
        self.rounds += answers(output);
        Ok(())
    }
}

/// Complete answers of models that a step tells.
fn answers(output: &Output<'_>) -> u64 {
    let is_answer = |(_, json): &&(&str, &bytes::Bytes)| super::tells_answer(json);
    output.events.iter().filter(is_answer).count() as u64
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
