//! `cargo xtask bench eval`: trials of one command and one checker on the scripted
//! model, in process, and sessions that start and wait, as a curve. Measures and
//! prints; never judges.
//!
//! Besides wall times there are CPU times of the process, which other work on the
//! machine does not change much.

mod live;
mod logs;
mod model;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermitcrab::environment::ExecRequest;
use hermitcrab_host::eval::suite::{Limits, LoadOptions};
use hermitcrab_host::eval::{Eval, EvalOptions, Programs, RunLimits};
use hermitcrab_host::{
    CancellationToken, EnvironmentChoice, Host, InstanceOptions, MemoryOptions, SessionConfig,
    SessionOptions,
};
use serde_json::json;

const TRIALS: usize = 1_000;
const CYCLES: usize = 3;
const LIVE: [u32; 4] = [10, 100, 300, 1_000];

type Failure = Box<dyn std::error::Error>;

fn main() {
    if let Err(error) = run() {
        eprintln!("cannot measure evaluations: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).filter(|it| !it.starts_with("--"));
    if arguments.next().as_deref() == Some(model::ARGUMENT) {
        let rounds = arguments.next().ok_or("how many rounds?")?.parse()?;
        return runtime()?.block_on(model::serve(rounds));
    }
    let place = tempfile::tempdir()?;
    rates(place.path())?;
    logs::forks(place.path())?;
    logs::replays(place.path())?;
    live::table(1_000, place.path())
}

/// Trials a second, and sessions alive.
fn rates(place: &Path) -> Result<(), Failure> {
    let suite = place.join("tasks.jsonl");
    let mut lines = String::new();
    for number in 0..TRIALS {
        let call = json!({"name": "shell", "arguments": {"command": "echo hi > a.txt"}});
        let task = json!({"name": format!("t{number}"), "instruction": "write a.txt",
            "check": "grep -q hi a.txt",
            "script": {"steps": [{"tool_calls": [call]}, {"text": "done"}]}});
        lines += &format!("{task}\n");
    }
    std::fs::write(&suite, lines)?;
    println!("{TRIALS} trials of one command and one checker, scripted model in process;");
    println!("best of {CYCLES} cycles, in turns\n");
    println!(
        "| pool | logs | jobs | trials a second | CPU of a trial, ms |\n|---|---|---|---|---|"
    );
    let mut kinds = Vec::new();
    for (pool, log) in [(true, true), (true, false), (false, true), (false, false)] {
        for jobs in [2, 8, 32] {
            if jobs == 8 || (pool && !log) {
                kinds.push((pool, log, jobs));
            }
        }
    }
    let mut best = vec![(0.0_f64, f64::MAX); kinds.len()];
    for cycle in 0..CYCLES {
        for (number, (kind, best)) in kinds.iter().zip(&mut best).enumerate() {
            // Each stays until the end: ext4 is slow at making files just after many
            // were removed.
            let out = place.join(format!("out{cycle}.{number}"));
            let (rate, cpu) = trials(&suite, &out, *kind)?;
            *best = (best.0.max(rate), best.1.min(cpu));
        }
    }
    for ((pool, log, jobs), (rate, cpu)) in kinds.iter().zip(&best) {
        let yes = |it: &bool| if *it { "yes" } else { "no" };
        println!(
            "| {} | {} | {jobs} | {rate:.0} | {cpu:.2} |",
            yes(pool),
            yes(log)
        );
    }
    println!("\nsessions alive, each with one command run\n");
    println!(
        "| sessions | pool | wall time of a start, ms | CPU of a start, ms | memory of one, MB |"
    );
    println!("|---|---|---|---|---|");
    for live in LIVE {
        for pool in [true, false] {
            alive(live, pool)?;
        }
    }
    Ok(())
}

/// Trials a second, and CPU of one in ms.
fn trials(
    suite: &Path,
    out: &Path,
    (pool, log, jobs): (bool, bool, usize),
) -> Result<(f64, f64), Failure> {
    let mut host = Host::builder();
    if pool {
        host = host.pool(2 * u32::try_from(jobs)?);
    }
    let eval = Eval {
        host: host.build()?,
        programs: Programs::default(),
        options: EvalOptions {
            suite: suite.to_owned(),
            out: out.to_owned(),
            jobs,
            trials: 1,
            filter: None,
            seed: Some([7; 32]),
            shard: None,
            load: LoadOptions::default(),
            limits: Limits::default(),
            run_limits: RunLimits::default(),
            config: SessionConfig::default(),
            no_provider: None,
            secrets: Vec::new(),
            local: false,
            guardian: None,
            log,
            resume: false,
            retries: 0,
            retry_delay: Duration::ZERO,
            programs_hash: String::new(),
        },
    };
    let runtime = runtime()?;
    let (began, cpu) = (Instant::now(), cpu());
    let summary = runtime.block_on(eval.run(CancellationToken::new(), Arc::new(|_| {})))?;
    let (took, cpu) = (began.elapsed(), self::cpu() - cpu);
    let passed = summary
        .outcomes
        .get(&hermitcrab_host::eval::Outcome::Passed);
    if passed != Some(&TRIALS) {
        return Err(format!("not all passed: {:?}", summary.outcomes).into());
    }
    let count = TRIALS as f64;
    Ok((
        count / took.as_secs_f64(),
        cpu.as_secs_f64() * 1_000.0 / count,
    ))
}

fn alive(live: u32, pool: bool) -> Result<(), Failure> {
    let mut host = Host::builder();
    if pool {
        host = host.pool(live);
    }
    let host = host.build()?;
    let runtime = runtime()?;
    let before = resident_mb("self");
    let (began, cpu) = (Instant::now(), cpu());
    let sessions = runtime.block_on(async {
        let mut sessions = Vec::new();
        for _ in 0..live {
            let instance = host.start_instance(InstanceOptions::default()).await?;
            let environment = EnvironmentChoice::Memory(MemoryOptions::default());
            let options = SessionOptions::new(SessionConfig::default(), environment);
            let session = instance.open_session(options).await?;
            let request = ExecRequest {
                command: "echo hi".to_owned(),
                timeout_ms: 10_000,
                ..ExecRequest::default()
            };
            let ran = session.environment().exec(request).await?;
            if ran.stdout != b"hi\n" {
                return Err("the command has not run".into());
            }
            sessions.push(session);
        }
        Ok::<_, Failure>(sessions)
    })?;
    let (took, cpu) = (began.elapsed(), self::cpu() - cpu);
    let each = |time: Duration| time.as_secs_f64() * 1_000.0 / f64::from(live);
    let memory = before.zip(resident_mb("self"));
    let memory = memory.map_or_else(
        || "–".to_owned(),
        |(before, after)| format!("{:.2}", (after - before) / f64::from(live)),
    );
    let yes = if pool { "yes" } else { "no" };
    println!(
        "| {live} | {yes} | {:.3} | {:.3} | {memory} |",
        each(took),
        each(cpu)
    );
    runtime.block_on(async { drop(sessions) });
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

/// CPU time that this process has had.
fn cpu() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Memory of a process, what it shares with others in part, on Linux.
fn resident_mb(process: &str) -> Option<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = rollup.lines().find(|line| line.starts_with("Pss:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
