//! Profiles: provider-aligned behaviour as data (spec 3.1, 3.2).
//!
//! A profile is a folder with `system.md` (base instructions, our own words)
//! and `tools.json` (tool declarations), plus one line in the table below. It
//! never talks to a provider; adapters do.

mod prompt;

pub use prompt::{EnvironmentFacts, environment_block, git_branch, system_prompt};

/// What the loop needs to know about a provider's models and habits.
#[derive(Debug)]
pub struct Profile {
    /// Provider id: `anthropic`.
    pub id: &'static str,
    /// Model used when the configuration names none.
    pub default_model: &'static str,
    /// Time limit of a command whose call names none, in ms.
    pub default_command_timeout_ms: u64,
    /// Whether several tool calls of one answer may run at the same time.
    pub supports_parallel_tool_calls: bool,
    system: &'static str,
    tools: &'static str,
}

static PROFILES: [Profile; 1] = [Profile {
    id: "anthropic",
    default_model: "claude-sonnet-5-5",
    // The convention of the provider's own agent (spec 3.5).
    default_command_timeout_ms: 120_000,
    supports_parallel_tool_calls: true,
    system: include_str!("anthropic/system.md"),
    tools: include_str!("anthropic/tools.spec.json"),
}];

impl Profile {
    /// The profile of `provider`, if there is one.
    pub fn of(provider: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.id == provider)
    }

    /// Ids of all profiles, in order.
    pub fn names() -> Vec<&'static str> {
        PROFILES.iter().map(|profile| profile.id).collect()
    }

    /// Base instructions: layer 1 of the system prompt (spec 6.2).
    pub fn base_instructions(&self) -> &'static str {
        self.system
    }

    /// Tool declarations: a JSON array of `{"name", "description", "parameters"}`.
    pub fn tools(&self) -> &'static str {
        self.tools
    }
}
