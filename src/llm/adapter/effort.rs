//! Levels of reasoning effort (LLM-client brief §7.3).

use crate::llm::warning::Warning;

/// All levels, ascending.
const LEVELS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The accepted level nearest below `asked`, else the lowest one; a word that
/// is no level passes through, for levels that this table does not know yet.
pub(super) fn nearest<'a>(asked: &'a str, accepted: &[&'a str]) -> Option<&'a str> {
    let rank = |level: &str| LEVELS.iter().position(|known| *known == level);
    if accepted.contains(&asked) || rank(asked).is_none() {
        return Some(asked);
    }
    accepted
        .iter()
        .rev()
        .find(|level| rank(level) <= rank(asked))
        .or(accepted.first())
        .copied()
}

/// Says that `model` does not reason.
pub(super) fn dropped(model: &str) -> Warning {
    let message = format!("the model `{model}` does not reason; the effort is left out");
    Warning::new("effort_dropped", message)
}

/// Says that `model` has no effort `asked`.
pub(super) fn changed(model: &str, asked: &str, given: &str) -> Warning {
    let message = format!("the model `{model}` has no effort `{asked}`; `{given}` is used");
    Warning::new("effort_changed", message)
}
