//! `cargo xtask`: builds, tests, demonstrates and measures Hermitcrab. One
//! file per command; each does what it needs and says what it cannot do.

mod bench;
mod bench_web;
mod browser;
mod build;
mod component;
mod count;
mod demo;
mod elsewhere;
#[cfg(test)]
mod events;
mod floor;
mod fuzz;
mod load;
mod matrix;
mod native;
mod npm;
mod order;
mod packages;
mod python;
mod soak;
mod test;
mod usage;
mod web;
mod workspace;
mod www;

use clap::Parser;

/// Builds, tests, demonstrates and measures Hermitcrab.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Try whatever reads bytes of others on damaged ones.
    Fuzz(fuzz::Options),
    /// Run session after session, and look for what they leave behind.
    Soak(soak::Options),
    /// Run suites again and again on a busy machine.
    Load(load::Options),
    /// Build everything and let the agent fix a small broken repository.
    Demo,
    /// Run the tests.
    Test(test::Options),
    /// Build target/release/hermitcrab with the compiled core inside it.
    Build(build::Options),
    /// Write the core as a WebAssembly component without imports.
    Component(component::Options),
    /// Build the core for JavaScript hosts into js/wasm.
    Web(web::Options),
    /// Fetch CPython and pack it for the sandbox into js/python.
    Python(python::Options),
    /// Pack the npm package.
    Npm(npm::Options),
    /// Build the playground and serve it.
    Www(www::Options),
    /// Measure and print.
    Bench(bench::Options),
    /// The bare loop that `bench` compares with.
    #[command(hide = true)]
    Floor(floor::Options),
    /// Runs a command and prints what it used, for `bench`.
    #[command(hide = true)]
    Usage(usage::Options),
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Load(options) => load::run(&options),
        Command::Demo => demo::run(),
        Command::Test(options) => test::run(&options),
        Command::Build(options) => build::run(&options),
        Command::Component(options) => component::run(&options),
        Command::Web(options) => web::run(&options),
        Command::Python(options) => python::run(&options),
        Command::Npm(options) => npm::run(&options),
        Command::Www(options) => www::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Floor(options) => floor::run(&options),
        Command::Usage(options) => usage::run(&options),
    }
}
