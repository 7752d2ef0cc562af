//! `hermitcrab completions` and `hermitcrab man`: made from the command line's own
//! declaration.

use std::io::{self, Write as _};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::{Code, Failure, reason};

/// Prints the completions of a shell.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn completions(shell: Shell) -> Result<Code, Failure> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    print(&text)
}

/// Prints the manual page, each command with its options.
///
/// # Errors
/// Stdout cannot be written.
pub(crate) fn man() -> Result<Code, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut text = Vec::new();
    page(&command, &mut text).map_err(failed)?;
    print(&text)
}

/// The page of the program, and behind it the options of each command.
fn page(command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    clap_mangen::Man::new(command.clone()).render(text)?;
    let commands = command.get_subcommands();
    for each in commands.filter(|each| !each.is_hide_set() && each.get_name() != "help") {
        writeln!(text, ".SH \"hermitcrab {}\"", each.get_name())?;
        let man = clap_mangen::Man::new(each.clone());
        man.render_description_section(text)?;
        man.render_options_section(text)?;
    }
    Ok(())
}

fn print(text: &[u8]) -> Result<Code, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text)
        .and_then(|()| out.flush())
        .map_err(failed)?;
    Ok(Code::DONE)
}

fn failed(error: io::Error) -> Failure {
    Failure::failed(format!("cannot write: {}", reason(&error)))
}
