//! A thousand sandboxed sessions alive at once, each with a request a round over
//! loopback HTTP, beside the same work by native processes, two at a time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::Failure;
use crate::model::Model;

const ROUNDS: usize = 20;
const PROCESSES: usize = 20;
/// How often memory is looked at, in ms: of a thousand instances that takes a while.
const LOOK_MS: u64 = 200;
const LOOK_AT_ONE_MS: u64 = 10;

/// The binary, whose `eval` and `run` do the work.
fn binary() -> Result<std::path::PathBuf, Failure> {
    let bench = std::env::current_exe()?;
    // target/release/deps/eval-… → target/release/hermitcrab
    let release = bench.parent().and_then(Path::parent);
    let binary = release.ok_or("no target folder")?.join("hermitcrab");
    match binary.exists() {
        true => Ok(binary),
        false => Err(format!("{} is missing; run cargo xtask build", binary.display()).into()),
    }
}

pub(crate) fn table(sessions: usize, place: &Path) -> Result<(), Failure> {
    let model = Model::start(ROUNDS)?;
    let suite = place.join("live.jsonl");
    let task = |number: usize| {
        json!({"name": format!("t{number}"), "instruction": "work", "provider": "anthropic",
            "check": "test -s a.txt"})
    };
    let lines: String = (0..sessions).map(|n| format!("{}\n", task(n))).collect();
    std::fs::write(&suite, lines)?;
    let out = place.join("live");
    let mut eval = Command::new(binary()?);
    eval.arg("eval")
        .arg(&suite)
        .args(["--out".as_ref(), out.as_os_str()])
        .args(["--jobs", &sessions.to_string(), "--no-log"])
        .args(["--provider", "anthropic", "--base-url", &model.url])
        .env("ANTHROPIC_API_KEY", "bench")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (used, took) = measured(vec![eval], LOOK_MS)?;
    let rounds = (sessions * (ROUNDS + 1)) as f64;
    println!("\n{sessions} sessions alive at once, {ROUNDS} rounds each over loopback HTTP;");
    println!("beside them {PROCESSES} `hermitcrab run`, two at a time\n");
    println!("| | rounds a second | CPU of a round, ms | peak memory, MB |\n|---|---|---|---|");
    println!(
        "| {sessions} sessions, one process | {:.0} | {:.2} | {:.0} |",
        rounds / took,
        used.cpu_s * 1_000.0 / rounds,
        used.peak_mb
    );
    let (mut cpu, mut peak) = (0.0, 0.0_f64);
    let began = Instant::now();
    for pair in 0..PROCESSES / 2 {
        let mut both = Vec::new();
        for number in [2 * pair, 2 * pair + 1] {
            let directory = place.join(format!("native{number}"));
            std::fs::create_dir(&directory)?;
            let mut run = Command::new(binary()?);
            run.args(["run", "--quiet", "--provider", "anthropic"])
                .args(["--base-url", &model.url, "work"])
                .env("ANTHROPIC_API_KEY", "bench")
                .current_dir(directory)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            both.push(run);
        }
        let (used, _) = measured(both, LOOK_AT_ONE_MS)?;
        cpu += used.cpu_s;
        peak = peak.max(used.peak_mb);
    }
    let rounds = (PROCESSES * (ROUNDS + 1)) as f64;
    println!(
        "| {PROCESSES} native processes, two at a time | {:.0} | {:.2} | {peak:.0} each |",
        rounds / began.elapsed().as_secs_f64(),
        cpu * 1_000.0 / rounds,
    );
    Ok(())
}

struct Used {
    cpu_s: f64,
    peak_mb: f64,
}

/// What the commands use, side by side: CPU together, memory of the largest.
fn measured(commands: Vec<Command>, look_ms: u64) -> Result<(Used, f64), Failure> {
    let began = Instant::now();
    let before = children();
    let mut all = Vec::new();
    for mut command in commands {
        all.push(command.spawn()?);
    }
    let peaks = all.iter().map(|child| child.id()).collect::<Vec<_>>();
    let mut peak_mb = 0.0_f64;
    let mut failed = false;
    // Pages that all instances share count once, so it is the proportional share that is
    // read, now and then: the system walks all mappings for it.
    while !all.is_empty() {
        for id in &peaks {
            peak_mb = peak_mb.max(resident_mb(*id).unwrap_or(0.0));
        }
        let mut left = Vec::new();
        for mut child in all {
            match child.try_wait()? {
                Some(status) => failed |= !status.success(),
                None => left.push(child),
            }
        }
        all = left;
        std::thread::sleep(std::time::Duration::from_millis(look_ms));
    }
    if failed {
        return Err("a process failed".into());
    }
    let cpu_s = children() - before;
    Ok((Used { cpu_s, peak_mb }, began.elapsed().as_secs_f64()))
}

fn resident_mb(id: u32) -> Option<f64> {
    crate::resident_mb(&id.to_string())
}

/// CPU time of children that have ended, in s.
fn children() -> f64 {
    // SAFETY: all zeros is a valid value of this type.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the result.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
