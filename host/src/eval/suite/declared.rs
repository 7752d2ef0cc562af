//! `task.toml` as data, and a line of a JSONL suite: the same keys. Unknown keys
//! are errors.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::SuiteError;
use super::limits::Limits;

/// Where the agent's tools act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentKind {
    /// In a separate sandbox.
    #[default]
    Memory,
    /// On this machine, in a copy in a temporary directory.
    Local,
}

impl EnvironmentKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Local => "local",
        }
    }
}

/// What a task declares.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Declared {
    pub(super) instruction: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) script: Option<String>,
    pub(super) env: EnvironmentKind,
    pub(super) limits: DeclaredLimits,
    pub(super) programs: BTreeMap<String, bool>,
    pub(super) check: Check,
    pub(super) steps: Vec<Step>,
}

/// `[limits]`
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DeclaredLimits {
    rounds: Option<u64>,
    wall_ms: Option<u64>,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
}

impl DeclaredLimits {
    /// # Errors
    /// One is not above zero.
    pub(super) fn checked(self, place: &str) -> Result<Limits, SuiteError> {
        let wrong = |name: &str| {
            Err(SuiteError::new(format!(
                "{place}: limits.{name} must be above 0"
            )))
        };
        for (name, value) in [
            ("rounds", self.rounds),
            ("wall_ms", self.wall_ms),
            ("tokens", self.tokens),
        ] {
            if value == Some(0) {
                return wrong(name);
            }
        }
        if self
            .cost_usd
            .is_some_and(|cost| cost.is_nan() || cost <= 0.0)
        {
            return wrong("cost_usd");
        }
        Ok(Limits {
            rounds: self.rounds,
            wall_ms: self.wall_ms,
            tokens: self.tokens,
            cost_usd: self.cost_usd,
        })
    }
}

/// `[check]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Check {
    pub(super) timeout_ms: u64,
}

impl Default for Check {
    fn default() -> Self {
        Self { timeout_ms: 60_000 }
    }
}

/// `[[steps]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) instruction: String,
    /// A script of this step's own: its steps follow those of the task's.
    pub(super) script: Option<String>,
    pub(super) check: Option<String>,
}

/// Reads `text`; `place` is how errors name it.
pub(super) fn read_toml<T: serde::de::DeserializeOwned>(
    place: &str,
    text: &str,
) -> Result<T, SuiteError> {
    toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1)
            .map(|line| format!(" line {line}"))
            .unwrap_or_default();
        let message = error.message().trim().replace('\n', "; ");
        SuiteError::new(format!("{place}{line}: {message}"))
    })
}
