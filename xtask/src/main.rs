//! `cargo xtask`: builds, tests, demonstrates and measures Hermitcrab. One
//! file per command; each does what it needs and says what it cannot do.

mod build;
mod component;
mod demo;
mod workspace;

use clap::Parser;

/// Builds, tests, demonstrates and measures Hermitcrab.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Write the core as a WebAssembly component without imports.
    Component(component::Options),
    /// Build target/release/hermitcrab with the compiled core inside it.
    Build(build::Options),
    /// Play the demo: a broken repository, a scripted model, real commands.
    Demo,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Component(options) => component::run(&options),
        Command::Build(options) => build::run(&options),
        Command::Demo => demo::run(),
    }
}
