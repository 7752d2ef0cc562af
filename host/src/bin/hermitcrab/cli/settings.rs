//! The options that are settings of a session.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::value::{dollars, limit};

/// Settings of a session.
#[derive(Debug, Args)]
pub(crate) struct SettingsOptions {
    /// How much the model reasons: low, medium, high or what else the provider has
    #[arg(long, value_name = "E")]
    pub(crate) reasoning_effort: Option<String>,
    /// Tool rounds at most [default: 200]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit::<u32>)]
    pub(crate) max_tool_rounds: Option<u32>,
    /// Model answers at most [default: no limit]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit::<u32>)]
    pub(crate) max_turns: Option<u32>,
    /// Wall time at most, in ms [default: no limit]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit::<u64>)]
    pub(crate) max_wall_ms: Option<u64>,
    /// What the run may cost at most with its subagents, in US dollars [default: no limit]
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// Replace the older part of the conversation by a summary of the model's where it fills 80 %
    /// of the context window; `compaction` of --config says when and what stays
    #[arg(long)]
    pub(crate) compact: bool,
    /// File with your own instructions, appended to the system prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) instructions: Option<PathBuf>,
    /// File with a JSON Schema that the final answer must follow. The model is asked again twice
    /// where it does not; then the run fails
    #[arg(long, value_name = "FILE.json")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Names of the tools in requests: those of the specification, or those of the
    /// provider's own agent [default: spec]
    #[arg(long, value_enum)]
    pub(crate) toolset: Option<ToolNames>,
    /// File with any of the session's settings as a JSON object, such as provider_options,
    /// web_fetch_hosts, freeform_tools or approval; docs/settings.md lists them. Options win
    #[arg(long, value_name = "FILE.json")]
    pub(crate) config: Option<PathBuf>,
    /// File with tool declarations in place of the provider's, as docs/toolsets.md describes
    #[arg(long, value_name = "FILE.json")]
    pub(crate) tools_file: Option<PathBuf>,
    /// File with base instructions in place of the provider's
    #[arg(long, value_name = "FILE")]
    pub(crate) system_file: Option<PathBuf>,
}

/// Names of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolNames {
    /// Those of the specification.
    Spec,
    /// Those of the provider's own agent.
    Native,
}
