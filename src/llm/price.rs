//! Prices of models, and what an answer costs at them.
//!
//! Prices are the providers' list prices for the standard tier, as of November
//! 2026; discounts, other tiers and a longer life of cached prompts are not in
//! them. A host overrides them with the setting `prices`.

use serde::{Deserialize, Serialize};

use super::response::Usage;

/// US dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input that is not cached.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from the prompt cache; absent: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to the prompt cache; absent: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// What a long prompt changes, where the provider has such a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
}

/// A request with a long prompt costs more, all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrompt {
    /// Tokens of the prompt, cached ones included, above which this holds.
    pub above_tokens: u64,
    /// Factor for all input, cached or not.
    pub input_factor: f64,
    /// Factor for the output.
    pub output_factor: f64,
}

/// An amount of money in billionths of a US dollar: amounts add up exactly, in
/// any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost(u64);

impl Cost {
    /// The amount in US dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// An amount in US dollars; what is no amount counts as nothing.
    pub fn from_usd(usd: f64) -> Self {
        // The conversion keeps to the range of the number.
        Self((usd * 1e9).round() as u64)
    }

    /// Both amounts together.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Prices {
    /// What an answer with `usage` costs.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let prompt = usage.prompt_tokens_total();
        let read = usage.cache_read_tokens.unwrap_or(0);
        let write = usage.cache_write_tokens.unwrap_or(0);
        let plain = prompt.saturating_sub(read).saturating_sub(write);
        let long = self.long_prompt.as_ref();
        let (input_factor, output_factor) = match long.filter(|long| prompt > long.above_tokens) {
            Some(long) => (long.input_factor, long.output_factor),
            None => (1.0, 1.0),
        };
        let input = plain as f64 * self.input
            + read as f64 * self.cache_read.unwrap_or(self.input)
            + write as f64 * self.cache_write.unwrap_or(self.input);
        let output = usage.output_tokens as f64 * self.output;
        // A millionth of a dollar per token is a thousand billionths.
        Cost(((input * input_factor + output * output_factor) * 1e3).round() as u64)
    }

    /// The first price that makes no sense.
    pub(crate) fn problem(&self) -> Option<String> {
        let long = self.long_prompt.as_ref();
        let fields = [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cache_read", self.cache_read),
            ("cache_write", self.cache_write),
            (
                "long_prompt.input_factor",
                long.map(|long| long.input_factor),
            ),
            (
                "long_prompt.output_factor",
                long.map(|long| long.output_factor),
            ),
        ];
        let bad = |value: f64| !value.is_finite() || value < 0.0;
        let mut fields = fields.into_iter();
        let (name, value) = fields
            .find_map(|(name, value)| Some((name, value?)).filter(|(_, value)| bad(*value)))?;
        Some(format!("`{name}` is {value}; give a price of 0 or more"))
    }
}
