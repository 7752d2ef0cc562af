//! `cargo xtask fuzz`: the targets of `host/tests/fuzz.rs` for a time that you choose.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Args;

use crate::native;
use crate::workspace::{NATIVE, cargo, shell};

/// What to try.
#[derive(Args)]
pub(crate) struct Options {
    /// Only targets whose name holds this text
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// What the inputs follow from [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let seed = options.seed.unwrap_or(since.as_secs());
    cargo(&shell()?)
        .arg("test")
        .args(NATIVE)
        .args(["--test", "fuzz", "--"])
        .args(&options.target)
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_FUZZ_SECONDS", options.seconds.to_string())
        .env("HERMITCRAB_FUZZ_SEED", seed.to_string())
        .run()
        .context("a target does not stand an input, which is in its corpus now (tests/fuzz)")
}
