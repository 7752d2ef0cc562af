//! `cargo xtask demo`: builds the binary and runs `hermitcrab demo`.

use anyhow::Result;
use xshell::cmd;

use crate::build;
use crate::workspace::shell;

pub(crate) fn run() -> Result<()> {
    println!("building hermitcrab; the first time takes some minutes");
    let binary = build::binary()?;
    let shell = shell()?;
    cmd!(shell, "{binary} demo").quiet().run()?;
    Ok(())
}
