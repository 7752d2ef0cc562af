//! The command line, as data.

mod compare;
mod journal;
mod settings;
mod value;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hermitcrab_host::Remote;
use serde::{Deserialize, Serialize};

pub(crate) use compare::CompareOptions;
pub(crate) use journal::{JournalOptions, SessionsCommand, SessionsOptions, UndoOptions};
pub(crate) use settings::{SettingsOptions, ToolNames};
use value::{dollars, limit, program, seed, shard};

/// A sealed coding agent: the core decides, this program does.
#[derive(Debug, Parser)]
#[command(name = "hermitcrab", version, after_help = ALONE)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk with the model on the terminal; `hermitcrab` alone does so, too
    #[command(after_help = CHAT)]
    Chat(Box<RunOptions>),
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
    /// Fork a recorded run onto several models side by side, check what each makes of it, and
    /// print a table
    #[command(after_help = COMPARE_EXIT_CODES)]
    Compare(Box<CompareOptions>),
    /// Run a suite of tasks, each trial in its own sandbox, and check what came of it
    #[command(after_help = EVAL_EXIT_CODES)]
    Eval(Box<EvalOptions>),
    /// List the sessions that local runs have left, show, export and delete them
    Sessions(SessionsOptions),
    /// Give files back what was in them before a local run changed them
    #[command(after_help = UNDO_EXIT_CODES)]
    Undo(UndoOptions),
    /// Show, commit or discard what runs with --env overlay have changed
    Overlay(OverlayOptions),
    /// Show a whole run on a small broken repository, without a key
    Demo,
    /// List the models that are known; others work, too
    Models(ModelsOptions),
    /// Serve a scripted model over loopback HTTP, in every provider's wire format
    ServeModel(ServeOptions),
    /// Print the completions of a shell: bash, zsh, fish, elvish or powershell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

const ALONE: &str = "\
Without a command it is `hermitcrab chat`: hermitcrab [OPTIONS of chat].";

const CHAT: &str = "\
/help there has the keys and commands. What is not known to be harmless is asked about unless
--approve, hermitcrab.toml or a session that goes on says otherwise. Where TERM is dumb the
conversation goes line by line. docs/chat.md has more.

Exit codes: 0 you left, 1 the session failed, 2 wrong usage, 130 it was killed.";

const REPLAY_EXIT_CODES: &str = "\
Exit codes: 0 the core gave the same, 1 it gave something else, which is shown, or the log is
damaged, 2 wrong usage.";

const UNDO_EXIT_CODES: &str = "\
Exit codes: 0 everything is as it was, 1 nothing was undone because of the paths that are named, or
with --partly not those, or something else changed that is not noted, 2 wrong usage or nothing to
undo.

Stdout has the paths that were restored. What was in them until then is kept; stderr says where.
docs/undo.md says what is noted and what is not.";

const COMPARE_EXIT_CODES: &str = "\
Exit codes: 0 every branch has a result, 1 a provider, a budget or this machine ended some before,
or the log is damaged, 2 wrong usage, 130 interrupted.

Stdout has the table, with the medians over the branches of a model; everything is counted from
the fork on. Progress is on stderr. Calls that need approval are refused: nobody is asked.";

const EVAL_EXIT_CODES: &str = "\
Exit codes: 0 every trial has a verdict, 1 some have none (run again with --resume) or the run
could not go on, 2 wrong usage, 130 interrupted.

Without --provider, --model, --base-url and --script the script that a task names plays the
model; tasks that name none are given to the provider whose key is set. docs/eval.md describes
suites and results.";

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
    /// The log, or more than one, or a directory with logs (*log.gz)
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
#[command(override_usage = "\
    hermitcrab fork FILE --at ROUND [PROMPT] [OPTIONS]\n       \
    hermitcrab fork --from TRAJECTORY.json --at ROUND [PROMPT] [OPTIONS]")]
pub(crate) struct ForkOptions {
    /// The log; with --from there is none, and PROMPT comes first
    #[arg(value_name = "FILE", required_unless_present = "from")]
    pub(crate) log: Option<PathBuf>,
    /// Go on from a trajectory in ATIF, of any harness, instead of a log: with its conversation
    /// alone. The files are those of --dir, the system prompt and the tools are Hermitcrab's
    #[arg(long, value_name = "TRAJECTORY.json")]
    pub(crate) from: Option<PathBuf>,
    /// The round to go on from: answers of the model that are kept, with what their tool calls
    /// did. 0 is before the first request
    #[arg(long, value_name = "ROUND")]
    pub(crate) at: u32,
    /// A message to the model at that point; the same as PROMPT
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt")]
    pub(crate) steer: Option<OsString>,
    /// Replace a file of the sandbox before it goes on; may be given more than once
    #[arg(long, value_name = "PATH=FILE")]
    pub(crate) edit: Vec<String>,
    /// Everything else is as for a run; --env and --dir come from the log, if there is one
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
    /// Where tools act: on this machine, there in a copy of DIR, or in a sandbox that DIR is loaded
    /// into [default: local]
    #[arg(long, value_enum)]
    pub(crate) env: Option<EnvironmentKind>,
    #[command(flatten)]
    pub(crate) elsewhere: ElsewhereOptions,
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
    /// Write the session here when the task is done, a new file: --restore goes on with it, on any
    /// machine, and the package in Node and in a page. With --env memory all files are in it
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Write the model's last answer here when the run is over; an older file is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) output_last_message: Option<PathBuf>,
    /// Go on with a saved session: its conversation, settings, totals and, if it had one, its
    /// sandbox; --env and --dir come from it then. Options that are given win over its settings
    #[arg(long, value_name = "FILE")]
    pub(crate) restore: Option<PathBuf>,
    /// Print one event per line, as JSON, and nothing else on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out the header, the output of failed commands, the diffs of edits and the totals
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) settings: SettingsOptions,
    /// Let commands see this variable, though it looks like a secret; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Let the commands of a local run write to a terminal of 80 columns, as some programs want it
    #[arg(long, conflicts_with_all = ["ssh", "container"])]
    pub(crate) tty: bool,
    /// Which calls need your approval on the terminal. ask: commands that are not known to be
    /// harmless, and writes outside of DIR. Without a terminal what needs approval is refused
    /// [default: never, or what hermitcrab.toml, --config or a session that goes on says]
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    #[command(flatten)]
    pub(crate) fence: FenceOptions,
    #[command(flatten)]
    pub(crate) journal: JournalOptions,
    /// The conversation that it is part of
    #[arg(skip)]
    pub(crate) chat: Option<std::sync::Arc<crate::chat::after::Chat>>,
}

/// Another place than this machine and the sandbox.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ElsewhereOptions {
    /// Tools act on another machine, in its directory DIR: a destination that `ssh` reaches
    /// without a question, such as user@host (docs/elsewhere.md)
    #[arg(long, value_name = "DESTINATION", conflicts_with_all = ELSEWHERE_WITHOUT)]
    pub(crate) ssh: Option<String>,
    /// Tools act in a container that runs, in its directory DIR
    #[arg(long, value_name = "NAME", conflicts_with = "ssh", conflicts_with_all = ELSEWHERE_WITHOUT)]
    pub(crate) container: Option<String>,
    /// With --container: the command of the engine, such as podman
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "docker",
        requires = "container"
    )]
    pub(crate) engine: String,
}

/// Options that are of this machine or of the sandbox.
const ELSEWHERE_WITHOUT: [&str; 12] = [
    "env",
    "out",
    "python",
    "pass_env",
    "sandbox",
    "net",
    "allow_write",
    "save",
    "restore",
    "resume",
    "continue",
    "no_checkpoints",
];

impl ElsewhereOptions {
    /// Where it is, if there is another place.
    pub(crate) fn remote(&self) -> Option<Remote> {
        match (&self.ssh, &self.container) {
            (Some(destination), _) => Some(Remote::ssh(destination)),
            (None, Some(name)) => Some(Remote::container(&self.engine, name)),
            (None, None) => None,
        }
    }

    /// How people call it, if there is another place.
    pub(crate) fn name(&self) -> Option<String> {
        match (&self.ssh, &self.container) {
            (Some(destination), _) => Some(destination.clone()),
            (None, Some(name)) => Some(format!("container {name}")),
            (None, None) => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OverlayOptions {
    #[command(subcommand)]
    pub(crate) command: OverlayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OverlayCommand {
    /// List the overlays, the newest first
    List,
    /// Print what a commit would change, as a patch
    Diff(OneOverlay),
    /// Bring the changes to the directory, unless it has changed there, too
    Commit(OneOverlay),
    /// Drop an overlay with its changes
    Discard(OneOverlay),
}

#[derive(Debug, Args)]
pub(crate) struct OneOverlay {
    /// The overlay [default: the newest of this directory]
    pub(crate) id: Option<String>,
}

/// What local tools may do.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FenceOptions {
    /// What commands and file tools may change on this machine, and whether commands have the
    /// network (Linux): off: all that you may; workspace-write: DIR and the temporary directories,
    /// no network; read-only: nothing, no network. docs/sandboxing.md says what this keeps out
    /// [default: off, or what hermitcrab.toml says]
    #[arg(long, value_enum)]
    pub(crate) sandbox: Option<SandboxMode>,
    /// In a sandbox: let commands and file tools change this, too; may be given more than once
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<PathBuf>,
    /// In a sandbox: give commands the network
    #[arg(long)]
    pub(crate) net: bool,
    /// The temporary directories that commands may change, in place of the system's.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) temporary: Option<Vec<PathBuf>>,
}

/// `--sandbox`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SandboxMode {
    Off,
    ReadOnly,
    WorkspaceWrite,
}

impl FenceOptions {
    /// With what `kept` says; what was given here counts, too.
    pub(crate) fn fill(&mut self, kept: Self) {
        self.sandbox = kept.sandbox;
        self.net |= kept.net;
        self.allow_write.extend(kept.allow_write);
    }

    /// Whether there is one.
    pub(crate) fn is_on(&self) -> bool {
        self.sandbox.is_some_and(|mode| mode != SandboxMode::Off)
    }
}

impl EnvironmentKind {
    /// Whether tools act on this machine.
    pub(crate) fn is_here(self) -> bool {
        matches!(self, Self::Local | Self::Overlay)
    }
}

impl RunOptions {
    /// Where tools act.
    pub(crate) fn environment_kind(&self) -> EnvironmentKind {
        match self.elsewhere.remote() {
            Some(_) => EnvironmentKind::Elsewhere,
            None => self.env.unwrap_or(EnvironmentKind::Local),
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct EvalOptions {
    #[command(subcommand)]
    pub(crate) command: Option<EvalCommand>,
    /// A folder of task folders, or a file of JSON lines
    #[arg(required = true)]
    pub(crate) suite: Option<PathBuf>,
    /// Directory of the results; it is made
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Trials of each task
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = limit::<u32>)]
    pub(crate) trials: u32,
    /// Only tasks whose name holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// What the random numbers of all trials follow from, 64 hexadecimal digits [default: another
    /// one each time]
    #[arg(long, value_name = "HEX", value_parser = seed)]
    pub(crate) seed: Option<[u8; 32]>,
    /// Only every n-th trial, beginning with the i-th: of 1/2 and 2/2 each has one half
    #[arg(long, value_name = "i/n", value_parser = shard)]
    pub(crate) shard: Option<(u32, u32)>,
    /// Go on with the results in DIR: run what is missing, has no verdict, or has changed since
    #[arg(long)]
    pub(crate) resume: bool,
    /// Provider of the model; scripts of tasks do not play then [default: the first whose key is
    /// set]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Model id [default: the provider's]
    #[arg(long, value_name = "ID")]
    pub(crate) model: Option<String>,
    /// Base URL of the provider's API
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Script that plays the model, from the folder of each task, else a path
    #[arg(long, value_name = "FILE", conflicts_with_all = ["provider", "model", "base_url"])]
    pub(crate) script: Option<String>,
    /// File with settings of the sessions, as of `run --config`
    #[arg(long, value_name = "FILE.json")]
    pub(crate) config: Option<PathBuf>,
    /// Where tools act: in a sandbox, or on this machine in a copy of the task's files. Commands of
    /// a local trial can do what you can
    #[arg(long, value_enum, default_value_t = EnvironmentKind::Memory)]
    pub(crate) env: EnvironmentKind,
    /// Model answers at most, subagents included, of a trial whose task sets no limit
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) max_rounds: Option<u64>,
    /// Wall time at most, in ms, as above
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) max_wall_ms: Option<u64>,
    /// Tokens at most, read and written, as above
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) max_tokens: Option<u64>,
    /// Price at most, in US dollars, as above
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// Tokens that all trials together may use; the run ends there
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) budget_tokens: Option<u64>,
    /// Price that all trials together may have, in US dollars; the run ends there
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) budget_cost: Option<f64>,
    /// Attempts after one that the provider or this machine made fail
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) retries: u32,
    /// Wait before the first of them, in ms; it doubles
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) retry_delay_ms: u64,
    /// Write no logs: trials cannot be replayed then
    #[arg(long)]
    pub(crate) no_log: bool,
}

/// What trials run on.
#[derive(Debug, Args)]
pub(crate) struct MachineOptions {
    /// Trials at the same time [default: four for each processor]. A provider gets as many calls at
    /// the same time as it takes, and no more than this
    #[arg(long, value_name = "N", value_parser = limit::<u32>)]
    pub(crate) jobs: Option<u32>,
    /// Memory of a sandbox at most, in MiB
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=4095))]
    pub(crate) max_memory_mib: u32,
    /// How long a sandbox may compute without a pause, in ms
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = limit::<u64>)]
    pub(crate) max_stall_ms: u64,
    /// Python for the tasks that ask for it: the archive that `cargo xtask python` makes [default:
    /// python.tar.gz beside this program, else in its cache directory]
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) python: Option<PathBuf>,
    /// Lend a command compiled for wasm32-wasip1 to the sandboxes, under this name; may be given
    /// more than once. A task asks for it under [programs]
    #[arg(long = "program", value_name = "NAME=FILE.wasm", value_parser = program)]
    pub(crate) programs: Vec<(String, PathBuf)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Run the checkers again over the trees that a run has recorded
    Regrade(RegradeOptions),
    /// Join the shards of a run
    Merge(MergeOptions),
    /// Compare two runs, trial by trial
    Diff(DiffOptions),
}

#[derive(Debug, Args)]
pub(crate) struct RegradeOptions {
    /// Results of a run
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
}

#[derive(Debug, Args)]
pub(crate) struct MergeOptions {
    /// Results of the shards
    #[arg(required = true, value_name = "DIR")]
    pub(crate) shards: Vec<PathBuf>,
    /// Directory of the results; it is made
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// Results of the run before
    pub(crate) before: PathBuf,
    /// Results of the run after
    pub(crate) after: PathBuf,
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
pub(crate) enum EnvironmentKind {
    /// On this machine.
    Local,
    /// In the sandbox.
    Memory,
    /// On this machine, in a copy of DIR whose changes you take or leave (docs/overlay.md).
    Overlay,
    /// Where [`ElsewhereOptions`] say.
    #[value(skip)]
    Elsewhere,
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
