//! Runs one command and says what it used. A separate process, because Linux
//! counts the memory of whoever starts a command into the command's peak: a small
//! one does not show, a benchmark with its results would.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Program and arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What one process used, with the commands that it ran.
pub(crate) struct Used {
    /// CPU time of user and system.
    pub(crate) cpu_s: f64,
    /// Most memory that was resident at a time.
    pub(crate) peak_mb: f64,
}

impl Used {
    /// Reads what [`run`] prints.
    pub(crate) fn read(line: &str) -> Result<Self> {
        let numbers = line.trim().split_once(' ');
        let (cpu, peak) = numbers.with_context(|| format!("no measurement: {line:?}"))?;
        Ok(Self {
            cpu_s: cpu.parse()?,
            peak_mb: peak.parse()?,
        })
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (program, arguments) = options.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    let child = command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables; the child is ours and
    // nobody else waits for it.
    let waited = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
    ensure!(waited == pid, "cannot wait for {command:?}");
    ensure!(status == 0, "{command:?} failed with wait status {status}");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    // Linux counts in KiB, macOS in bytes.
    let unit = if cfg!(target_os = "macos") {
        1.0
    } else {
        1024.0
    };
    println!(
        "{} {}",
        seconds(usage.ru_utime) + seconds(usage.ru_stime),
        usage.ru_maxrss as f64 * unit / 1e6
    );
    Ok(())
}
