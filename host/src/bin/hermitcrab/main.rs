//! The `hermitcrab` binary: reads the command line, chooses, and turns the
//! result into an exit code. The work is in the host library and the modules
//! beside this file.

/// As the one of the standard library, which panics where nobody reads any more.
macro_rules! eprintln {
    ($($message:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($message)*)),
        );
    }};
}

/// As [`eprintln`], to stdout.
macro_rules! println {
    () => { println!("") };
    ($($message:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("{}\n", format_args!($($message)*)),
        );
    }};
}

/// As [`eprintln`], to stdout and without the end of the line.
macro_rules! print {
    ($($message:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stdout(), format_args!($($message)*));
    }};
}

mod cli;
mod failure;
mod harmless;
mod prompt;
mod provider;
mod secrets;

mod archive;
mod attach;
mod edits;
mod output;
#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos")),
    path = "overlay_unsupported.rs"
)]
mod overlay;
mod preview;
mod programs;
mod render;
mod signal;
mod surroundings;

mod approve;
mod defaults;
mod journal;
mod plan;
mod save;
mod session;
mod settings;
mod workspace;

mod connect;
mod task;
#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos")),
    path = "undo_unsupported.rs"
)]
mod undo;

mod begin;
mod chat;
mod compare;
mod demo;
mod eval;
mod foreign;
mod fork;
mod manual;
mod models;
mod replay;
mod restore;
mod resume;
mod run;
mod serve;
mod sessions;
mod talk;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use harmless::{calm, harmless};
use secrets::Secrets;

/// The command line. One that names no command is that of a conversation.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let first = arguments.get(1).map(|first| first.as_encoded_bytes());
    let is_chat = match first {
        None => std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        Some(b"-h" | b"--help" | b"-V" | b"--version") => false,
        Some(first) => first.starts_with(b"-"),
    };
    match (is_chat, first.is_some()) {
        (true, _) => arguments.insert(1, "chat".into()),
        // Somebody wants to know what there is.
        (false, false) => arguments.push("--help".into()),
        (false, true) => {}
    }
    arguments
}

fn main() -> ExitCode {
    // SAFETY: the first thing that happens; no other thread runs yet.
    let secrets = unsafe { Secrets::take(&provider::keys()) };
    signal::ignore_file_size_limit();
    // A wrong command line ends here: clap explains it and exits with 2.
    let result = match Cli::parse_from(arguments()).command {
        Command::Chat(options) => talk::talk(*options, &secrets),
        Command::Run(options) => begin::run(*options, &secrets),
        Command::Fork(options) => fork::fork(*options, &secrets),
        Command::Compare(options) => compare::compare(*options, &secrets),
        Command::Replay(options) => replay::replay(&options),
        Command::Eval(options) => eval::eval(*options, &secrets),
        Command::Sessions(options) => sessions::sessions(&options),
        Command::Undo(options) => undo::undo(&options),
        Command::Overlay(options) => overlay::overlay(&options),
        Command::Demo => demo::demo(),
        Command::Models(options) => models::models(&options),
        Command::ServeModel(options) => serve::serve(&options),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man => manual::man(),
    };
    match result {
        Ok(code) => ExitCode::from(code.0),
        Err(failure) => {
            let message = calm(&harmless(&failure.message));
            eprintln!("hermitcrab: {message}");
            ExitCode::from(failure.code.0)
        }
    }
}
