//! The command line, as data.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A sealed coding agent: the core decides, this program does.
#[derive(Debug, Parser)]
#[command(name = "hermitcrab", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunOptions>),
    /// Run again what `run --record` has written, without network, files or processes, and
    /// compare every event and effect
    #[command(after_help = REPLAY_EXIT_CODES)]
    Replay(ReplayOptions),
    /// Go on live from a round of a recorded run, with the same history and, if it ran with
    /// --env memory, the same files
    #[command(after_help = EXIT_CODES)]
    Fork(Box<ForkOptions>),
    /// Show a whole run on a small broken repository, without a key
    Demo,
    /// List the models that are known; others work, too
    Models(ModelsOptions),
    /// Serve a scripted model over loopback HTTP, in every provider's wire format
    ServeModel(ServeOptions),
    /// Put the tables that the core reads at its start into the component
    #[command(hide = true)]
    PrepareCore(CoreOptions),
    /// Compile the core component ahead of time
    #[command(hide = true)]
    CompileCore(CoreOptions),
}

const REPLAY_EXIT_CODES: &str = "\
Exit codes: 0 the core gave the same, 1 it gave something else, which is shown, or the log is
damaged, 2 wrong usage.";

const EXIT_CODES: &str = "\
Exit codes: 0 the task came to its natural end, 1 the session failed or the model refused
or answered nothing, 2 wrong usage, 3 a limit was reached (also when the last answer was
cut off at the model's token limit), 130 interrupted. Ctrl-C ends the run in good order, a
second Ctrl-C at once.

Stdout has the model's text, one line per tool call and the diff; notices and errors are
on stderr. The API key is taken out of this process's environment; commands that the model
runs do not inherit it.";

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// The log, or more than one, or a directory with logs (*.gz)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) logs: Vec<PathBuf>,
    /// Print the events, one per line, as `run --json` did
    #[arg(long)]
    pub(crate) events: bool,
    /// Stop when the session has so many answers of the model and what they asked for is done;
    /// print its state, its history and the sizes of its files, as JSON
    #[arg(long, value_name = "ROUND")]
    pub(crate) until: Option<u32>,
    /// With --until, of a run with --env memory: write the tree there
    #[arg(long, value_name = "FILE.tar", requires = "until")]
    pub(crate) out: Option<PathBuf>,
    /// Run this core instead of the one that is built in, to see where it departs
    #[arg(long, value_name = "CORE.wasm")]
    pub(crate) against: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ForkOptions {
    /// The log
    #[arg(value_name = "FILE")]
    pub(crate) log: PathBuf,
    /// The round to go on from: answers of the model that are kept, with what their tool calls
    /// did. 0 is before the first request
    #[arg(long, value_name = "ROUND")]
    pub(crate) at: u32,
    /// What the model is told there; the same as PROMPT
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt")]
    pub(crate) steer: Option<OsString>,
    /// Replace a file of the sandbox before it goes on; may be given more than once
    #[arg(long, value_name = "PATH=FILE")]
    pub(crate) edit: Vec<String>,
    /// Everything else is as for a run; --env and --dir are those of the log
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The task; - reads it from stdin. Text that is piped into stdin beside a task is added to it
    #[arg(value_name = "PROMPT | -")]
    pub(crate) prompt: Option<OsString>,
    /// File that the model gets with the task: an image (PNG, JPEG, GIF, WebP), a PDF document or
    /// UTF-8 text; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Provider of the model: anthropic, openai, gemini, or chat for servers that speak the Chat
    /// Completions API [default: the first whose key is set]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Model id; `hermitcrab models` lists some [default: the provider's]
    #[arg(long, value_name = "ID")]
    pub(crate) model: Option<String>,
    /// Base URL of the provider's API [default: as in ANTHROPIC_BASE_URL, OPENAI_BASE_URL,
    /// GEMINI_BASE_URL or CHAT_BASE_URL, else the provider's own]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Working directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Where tools act: on this machine, or in a sandbox that DIR is loaded into
    #[arg(long, value_enum, default_value_t = Place::Local)]
    pub(crate) env: Place,
    /// With --env memory: write the resulting tree here, instead of printing the diff. A run
    /// that was cut short writes what there is; one that failed only if it changed anything
    #[arg(long, value_name = "FILE.tar")]
    pub(crate) out: Option<PathBuf>,
    /// With --env memory: lend Python to the sandbox, as `python3` and `python`. FILE is the
    /// archive that `cargo xtask python` makes; docs/programs.md says what Python there has
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) python: Option<PathBuf>,
    /// Write the log of the run here, a new file: what `hermitcrab replay` runs again
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print one event per line, as JSON, and nothing else on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out the header, the output of failed commands, the diffs of edits and the totals
    #[arg(short, long)]
    pub(crate) quiet: bool,
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
    /// File with your own instructions, appended to the system prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) instructions: Option<PathBuf>,
    /// Names that the model is told for its tools: those of the specification, or those of the
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
    /// Let commands see this variable, though it looks like a secret; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Which calls need your approval on the terminal. ask: commands that are not known to be
    /// harmless, and writes outside of DIR. Without a terminal what needs approval is refused
    #[arg(long, value_enum, default_value_t = Approve::Never)]
    pub(crate) approve: Approve,
}

/// A number that something may reach.
fn limit<N: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, &'static str> {
    let number = text.parse().ok().filter(|number| *number >= N::from(1));
    number.ok_or("give a whole number from 1 on")
}

/// Names of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolNames {
    /// Those of the specification.
    Spec,
    /// Those of the provider's own agent.
    Native,
}

/// Which calls need approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// None.
    Never,
    /// What is not known to be harmless.
    Ask,
    /// Every call.
    Always,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsOptions {
    /// Only those of this provider
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// As a JSON list with all that is known
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where tools act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// On this machine.
    Local,
    /// In the sandbox.
    Memory,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// The script; its format is documented at `hermitcrab::script`
    pub(crate) script: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Start the script over when it ends
    #[arg(long = "loop")]
    pub(crate) looping: bool,
    /// Keep this many requests for GET /_script/requests
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) keep: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CoreOptions {
    /// The component
    pub(crate) input: PathBuf,
    /// Where to write what is made of it
    pub(crate) output: PathBuf,
}
