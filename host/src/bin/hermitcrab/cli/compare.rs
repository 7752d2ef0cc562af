//! The options of `hermitcrab compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::settings::SettingsOptions;
use super::value::{dollars, limit, program};

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// The log, of a run with --env memory
    #[arg(value_name = "FILE")]
    pub(crate) log: PathBuf,
    /// A message to the model at that point
    #[arg(value_name = "PROMPT | -")]
    pub(crate) prompt: Option<OsString>,
    /// The round that all branches go on from: answers of the model that are kept, with what
    /// their tool calls did. 0 is before the first request
    #[arg(long, value_name = "ROUND")]
    pub(crate) at: u32,
    /// The models, with commas between them. PROVIDER:MODEL names the provider (anthropic, openai,
    /// gemini, chat, or a profile of --config). A model alone belongs to --provider, else to the
    /// provider that `hermitcrab models` lists for it, else to the run's [default: the run's model]
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// Branches of each model
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = limit::<u32>)]
    pub(crate) trials: u32,
    /// Script that decides whether a branch has passed: it runs as /tests/check.sh (or check.py) in
    /// a fresh sandbox with a copy of the branch's files, and passes with exit code 0, as
    /// docs/eval.md describes
    #[arg(long, value_name = "CHECK.sh")]
    pub(crate) check: Option<PathBuf>,
    /// How long the script may take, in ms
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = limit::<u64>)]
    pub(crate) check_timeout_ms: u64,
    /// The same as PROMPT
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt")]
    pub(crate) steer: Option<OsString>,
    /// Replace a file of the sandbox before the model goes on; may be given more than once
    #[arg(long, value_name = "PATH=FILE")]
    pub(crate) edit: Vec<String>,
    /// Branches at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = limit::<u32>)]
    pub(crate) jobs: u32,
    /// Directory for what the branches leave: of each its log, diff.patch, trajectory.json and
    /// branch.json
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print a JSON object for each branch, as it ends, and no table
    #[arg(long)]
    pub(crate) json: bool,
    /// Provider of the models that name none
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Base URL of the API, for all providers of the branches [default: as in ANTHROPIC_BASE_URL
    /// and so on, else the provider's own]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Lend Python to the sandboxes, as `run --python`
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) python: Option<PathBuf>,
    /// Lend a command compiled for wasm32-wasip1 to the sandboxes, under this name; may be given
    /// more than once
    #[arg(long = "program", value_name = "NAME=FILE.wasm", value_parser = program)]
    pub(crate) programs: Vec<(String, PathBuf)>,
    /// Answers of a branch at most, subagents included
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) max_rounds: Option<u64>,
    /// Tokens of a branch at most, read and written
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) max_tokens: Option<u64>,
    /// Price of a branch at most, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// Tokens that all branches together may use
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) budget_tokens: Option<u64>,
    /// Price that all branches together may have, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) budget_cost: Option<f64>,
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,
}
