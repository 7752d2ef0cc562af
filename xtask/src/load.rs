//! `cargo xtask load`: the suites for Rust, Node and Chromium again and again on a
//! busy machine, which finds tests that hold only on an idle one.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::workspace::shell;
use crate::{browser, build, test, web};

/// Processes that take what the tests leave of the processors.
const LOOPS: usize = 4;

/// How often.
#[derive(Args)]
pub(crate) struct Options {
    /// Runs of each suite
    #[arg(long, value_name = "N", default_value_t = 10)]
    times: u32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let shell = shell()?;
    let binary = build::binary()?;
    let web = web::build()?;
    let _loops = (0..LOOPS)
        .map(|_| Loop::start())
        .collect::<Result<Vec<_>>>()?;
    let suites: [(&str, &dyn Fn() -> Result<()>); 3] = [
        ("node", &|| test::node(&shell, &binary, &web)),
        ("browser", &|| browser::cases(&shell, &binary)),
        ("rust", &|| test::rust(&shell, &binary)),
    ];
    let mut failures = 0;
    for turn in 1..=options.times {
        for (suite, play) in suites {
            let begun = Instant::now();
            let result = play();
            let seconds = begun.elapsed().as_secs();
            match result {
                Ok(()) => println!("xtask load: {turn}: {suite} passed in {seconds} s"),
                Err(error) => {
                    failures += 1;
                    println!("xtask load: {turn}: {suite} failed after {seconds} s: {error:#}");
                }
            }
        }
    }
    ensure!(failures == 0, "{failures} suites failed under load");
    Ok(())
}

/// A process that is busy until this is dropped, or until this program has ended.
struct Loop(Child);

impl Loop {
    fn start() -> Result<Self> {
        let parent = std::process::id();
        let busy = format!(
            "while kill -0 {parent}; do n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done; done"
        );
        Command::new("nice")
            .args(["-n", "19", "sh", "-c", &busy])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .context("cannot start a busy loop; `nice` and `sh` are needed")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
