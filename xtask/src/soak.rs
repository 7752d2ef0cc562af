//! `cargo xtask soak`: the sessions of `host/tests/soak.rs` for a time that you choose.

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace::{NATIVE, cargo, shell};
use crate::{build, native};

/// For how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Minutes
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    minutes: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    build::binary()?;
    cargo(&shell()?)
        .arg("test")
        .args(NATIVE)
        .args(["--test", "soak"])
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_SOAK_MINUTES", options.minutes.to_string())
        .run()
        .context("sessions leave something behind")
}
