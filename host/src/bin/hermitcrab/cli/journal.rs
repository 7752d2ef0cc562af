//! Options about kept sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::value::limit;

/// How a run is kept, and which kept one it goes on with.
#[derive(Debug, Default, Args)]
pub(crate) struct JournalOptions {
    /// Go on with this session, see `hermitcrab sessions`; without a PROMPT with what it was doing
    /// when its process ended. Options that are given win over its settings
    #[arg(long, value_name = "ID", conflicts_with_all = ["restore", "continue", "no_journal"])]
    pub(crate) resume: Option<String>,
    /// Go on with the newest session of DIR
    #[arg(long, conflicts_with_all = ["restore", "no_journal"])]
    pub(crate) r#continue: bool,
    /// Keep nothing of this run. A local run is kept in the state directory of the user, or in
    /// HERMITCRAB_STATE_DIR, so that --continue can go on with it
    #[arg(long)]
    pub(crate) no_journal: bool,
    /// Note nothing of what this run changes in files, so that `hermitcrab undo` cannot undo it
    #[arg(long)]
    pub(crate) no_checkpoints: bool,
    /// What all kept sessions together may take, in MiB; those that were written to longest ago
    /// are removed [default: 1024]
    #[arg(long, value_name = "N", value_parser = limit::<u64>)]
    pub(crate) journal_quota: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
    /// Only those of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// As a JSON list
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Print the conversation of a session
    Show(SessionOptions),
    /// Write the log of a session to a file: what `replay`, `fork` and the playground read
    Export(ExportOptions),
    /// Delete sessions
    Delete(DeleteOptions),
}

#[derive(Debug, Args)]
pub(crate) struct SessionOptions {
    /// The session
    pub(crate) id: String,
    /// As JSON: its turns
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The session
    pub(crate) id: String,
    /// A new file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteOptions {
    /// The sessions
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UndoOptions {
    /// Undo this round and all after it [default: the last one that changed something]
    #[arg(long, value_name = "ROUND", conflicts_with = "list")]
    pub(crate) to: Option<u64>,
    /// Directory in which the session worked
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// The session [default: the one that changed something there last]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Print what changed in which round, and undo nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Leave what cannot be undone, such as files that were changed since, and undo the rest
    #[arg(long, conflicts_with = "list")]
    pub(crate) partly: bool,
}
