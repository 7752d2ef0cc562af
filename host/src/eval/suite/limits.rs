//! `Limits`: what a trial may use.

/// Limits of one trial; absent: none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Answers of models, those of subagents included.
    pub rounds: Option<u64>,
    /// Wall time of the agent, in ms.
    pub wall_ms: Option<u64>,
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// Price of what models answered, in US dollars.
    pub cost_usd: Option<f64>,
}

impl Limits {
    /// These, and `others` where there are none.
    pub fn or(self, others: Self) -> Self {
        Self {
            rounds: self.rounds.or(others.rounds),
            wall_ms: self.wall_ms.or(others.wall_ms),
            tokens: self.tokens.or(others.tokens),
            cost_usd: self.cost_usd.or(others.cost_usd),
        }
    }
}
