//! The `hermitcrab` binary: reads the command line, chooses, and turns the
//! result into an exit code. The work is in the host library and the modules
//! beside this file.

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
mod preview;
mod programs;
mod render;
mod signal;
mod surroundings;

mod approve;
mod ground;
mod plan;
mod save;
mod session;
mod settings;

mod connect;
mod task;

mod compare;
mod compile;
mod demo;
mod eval;
mod foreign;
mod fork;
mod models;
mod replay;
mod restore;
mod run;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use harmless::{calm, harmless};
use secrets::Secrets;

fn main() -> ExitCode {
    // SAFETY: the first thing that happens; no other thread runs yet.
    let secrets = unsafe { Secrets::take(&provider::keys()) };
    signal::ignore_file_size_limit();
    // A wrong command line ends here: clap explains it and exits with 2.
    let result = match Cli::parse().command {
        Command::Run(options) => run::run(*options, &secrets),
        Command::Fork(options) => fork::fork(*options, &secrets),
        Command::Compare(options) => compare::compare(*options, &secrets),
        Command::Replay(options) => replay::replay(&options),
        Command::Eval(options) => eval::eval(*options, &secrets),
        Command::Demo => demo::demo(),
        Command::Models(options) => models::models(&options),
        Command::ServeModel(options) => serve::serve(&options),
        Command::PrepareCore(options) => compile::prepare(&options),
        Command::CompileCore(options) => compile::compile(&options),
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
