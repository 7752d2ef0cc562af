//! `cargo xtask bench sandbox`: the in-memory environment through wasmtime, in
//! process. Measures and prints; never judges. docs/measurements.md, *The
//! sandbox*, has the results.
//!
//! The first argument is the module of `bench/shell`, the floor. With paths of
//! cores after it each gets a column; they take turns at every repetition, so that
//! they can be compared though the machine's speed drifts.
//! Times are CPU times: everything here runs on one thread and waits for nothing,
//! so they are what an idle machine takes, whatever else this one is doing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{
    EnvironmentChoice, EnvironmentHandle, Host, HostError, MemoryOptions, Session, SessionConfig,
    SessionOptions,
};

const PARKED: usize = 500;
const REPEATS: usize = 21;
/// Repetitions of what takes less than a millisecond.
const SHORT_REPEATS: usize = 201;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if let Err(error) = runtime.block_on(run()) {
        eprintln!("cannot measure the sandbox: {error}");
        std::process::exit(1);
    }
}

async fn run() -> Result<(), HostError> {
    // Cargo passes `--bench` to benchmarks.
    let mut paths = std::env::args_os()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .map(PathBuf::from);
    let bare = paths.next();
    let cores: Vec<PathBuf> = paths.collect();
    println!(
        "the sandbox in the component, through wasmtime, in process; CPU time, medians of {REPEATS} to {SHORT_REPEATS}\n"
    );
    let mut hosts = vec![];
    let mut names = vec![];
    let mut started = vec![];
    for core in &cores {
        names.push(core.file_stem().unwrap_or_default().display().to_string());
        let clock = Cpu::now();
        hosts.push(Host::builder().core(core).build()?);
        started.push(clock.elapsed());
    }
    if cores.is_empty() {
        names.push("value".to_owned());
        let clock = Cpu::now();
        hosts.push(Host::builder().build()?);
        started.push(clock.elapsed());
    }
    println!("| measure | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    row("host with the core, first in the process", &started);

    let times = in_turns(&hosts, SHORT_REPEATS, async |host| {
        let environment = sandbox(host).await?;
        echo(&environment).await
    });
    row("instance, environment and its first `echo`", &times.await?);
    let times = in_turns(&hosts, SHORT_REPEATS, async |host| {
        let session = session(host).await?;
        echo(session.environment()).await
    });
    let name = "cold start of a sandboxed session incl. its first command";
    row(name, &times.await?);

    let mut warm = vec![];
    for host in &hosts {
        let environment = sandbox(host).await?;
        echo(&environment).await?;
        warm.push(environment);
    }
    let times = in_turns(&warm, SHORT_REPEATS, echo).await?;
    row("`echo`, warm, with the way there and back", &times);
    if let Some(bare) = bare {
        // One floor for all columns.
        for (function, name) in [
            ("echo", "`echo` in a bare bashkit, again and again"),
            ("seeded", "there, `RANDOM` and `SECONDS` assigned before"),
            ("pristine", "there, from pristine state, too"),
        ] {
            let time = bare_echo(&bare, function).expect("the module of bench/shell");
            row(name, &[time]);
        }
    }
    for command in [
        "for i in $(seq 1 20000); do :; done",
        "seq 100000 | sort -n | uniq | wc -l",
    ] {
        commands(&warm, command, "").await?;
    }
    files(&hosts).await?;
    parked(&hosts).await
}

/// Median time of the same command in bashkit alone, in an engine that is set
/// up like the host's.
fn bare_echo(module: &Path, function: &str) -> wasmtime::Result<Duration> {
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true);
    let engine = wasmtime::Engine::new(&config)?;
    let module = wasmtime::Module::from_file(&engine, module)?;
    let mut store = wasmtime::Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX / 2);
    let instance = wasmtime::Instance::new(&mut store, &module, &[])?;
    let echo = instance.get_typed_func::<(), u32>(&mut store, function)?;
    let mut times = vec![];
    for _ in 0..SHORT_REPEATS {
        let started = Cpu::now();
        let printed = echo.call(&mut store, ())?;
        times.push(started.elapsed());
        assert_eq!(printed, 1, "the command must have run");
    }
    Ok(medians(vec![times])[0])
}

/// 1,000 files of together 5 MB, and a tree of many directories.
async fn files(hosts: &[Host]) -> Result<(), HostError> {
    let text = "the quick brown fox jumps over the lazy dog 0123456789\n".repeat(95);
    let files: Vec<(String, Bytes)> = (0..1_000)
        .map(|n| {
            let path = format!("dir{:02}/file{n:04}.txt", n % 50);
            (path, Bytes::from(format!("{text}needle{n}\n")))
        })
        .collect();
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    let mut times = vec![vec![]; hosts.len()];
    let mut loaded = vec![];
    for _ in 0..REPEATS {
        loaded.clear();
        for (host, times) in hosts.iter().zip(&mut times) {
            let environment = sandbox(host).await?;
            let files = files.clone();
            let started = Cpu::now();
            environment.import_files(files).await?;
            times.push(started.elapsed());
            loaded.push(environment);
        }
    }
    let name = format!("import of 1,000 files, {:.1} MB", bytes as f64 / 1e6);
    row(&name, &medians(times));
    for command in [
        "grep -rn needle999 .",
        "grep -rin 'NEEDLE99[0-9]' .",
        "grep -rn 'q[a-z]*k br' . | wc -l",
        "rg needle999",
        "rg -n 'needle99\\d'",
        "find . -name '*7.txt' | wc -l",
    ] {
        commands(&loaded, command, " over them").await?;
    }
    snapshots(&loaded, "snapshot, with the way there and back").await?;

    let many: Vec<(String, Bytes)> = (0..10_000)
        .map(|n| (format!("d{:03}/f{n}", n % 1_000), Bytes::from_static(b"x")))
        .collect();
    let mut loaded = vec![];
    for host in hosts {
        let environment = sandbox(host).await?;
        environment.import_files(many.clone()).await?;
        loaded.push(environment);
    }
    let over = " over 10,000 files in 1,000 directories";
    for command in ["find . | wc -l", "ls -R | wc -l"] {
        commands(&loaded, command, over).await?;
    }
    snapshots(&loaded, "snapshot of that tree").await
}

/// Memory and time of sessions that wait.
async fn parked(hosts: &[Host]) -> Result<(), HostError> {
    let mut opening = vec![];
    let mut memory = vec![];
    for host in hosts {
        let before = resident_mb();
        let started = Cpu::now();
        let mut sessions = vec![];
        for _ in 0..PARKED {
            let session = session(host).await?;
            echo(session.environment()).await?;
            sessions.push(session);
        }
        opening.push(started.elapsed() / u32::try_from(PARKED).unwrap_or(1));
        if let (Some(before), Some(after)) = (before, resident_mb()) {
            memory.push(format!("{:.2} MB", (after - before) / PARKED as f64));
        }
    }
    let name = format!("each of {PARKED} sessions, opened and parked");
    row(&name, &opening);
    // A second core lives in what the first one's sessions have given back.
    if let [memory] = &memory[..] {
        println!("| memory per parked session, one command run | {memory} |");
    }
    Ok(())
}

async fn sandbox(host: &Host) -> Result<EnvironmentHandle, HostError> {
    host.instance()?.add_memory(MemoryOptions::default()).await
}

async fn session(host: &Host) -> Result<Session, HostError> {
    let environment = EnvironmentChoice::Memory(MemoryOptions::default());
    host.open_session(SessionOptions::new(SessionConfig::default(), environment))
        .await
}

async fn echo(environment: &EnvironmentHandle) -> Result<(), HostError> {
    let output = environment.exec(request("echo hi")).await?;
    assert_eq!(output.stdout, b"hi\n", "the command must have run");
    Ok(())
}

async fn commands(
    environments: &[EnvironmentHandle],
    command: &str,
    over: &str,
) -> Result<(), HostError> {
    let times = in_turns(environments, REPEATS, async |environment| {
        let output = environment.exec(request(command)).await?;
        assert_eq!(output.status.exit_code, 0, "{command}");
        Ok(())
    });
    let name = command.replace('|', "\\|");
    row(&format!("`{name}`{over}"), &times.await?);
    Ok(())
}

async fn snapshots(environments: &[EnvironmentHandle], name: &str) -> Result<(), HostError> {
    let times = in_turns(environments, REPEATS, async |environment| {
        environment.snapshot().await.map(drop)
    });
    row(name, &times.await?);
    Ok(())
}

fn request(command: &str) -> ExecRequest {
    ExecRequest {
        command: command.to_owned(),
        timeout_ms: 60_000,
        ..ExecRequest::default()
    }
}

/// Median time of `work` with each of `subjects`, which take turns.
async fn in_turns<T>(
    subjects: &[T],
    repeats: usize,
    work: impl AsyncFn(&T) -> Result<(), HostError>,
) -> Result<Vec<Duration>, HostError> {
    let mut times = vec![vec![]; subjects.len()];
    for _ in 0..repeats {
        for (subject, times) in subjects.iter().zip(&mut times) {
            let started = Cpu::now();
            work(subject).await?;
            times.push(started.elapsed());
        }
    }
    Ok(medians(times))
}

/// CPU time that the calling thread has had.
struct Cpu(Duration);

impl Cpu {
    fn now() -> Self {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid place for the result.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Self(Duration::new(
            seconds,
            u32::try_from(time.tv_nsec).unwrap_or_default(),
        ))
    }

    fn elapsed(&self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

fn medians(times: Vec<Vec<Duration>>) -> Vec<Duration> {
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    times.into_iter().map(median).collect()
}

fn row(name: &str, times: &[Duration]) {
    let ms = |time: &Duration| format!("{:.3} ms", time.as_secs_f64() * 1_000.0);
    let times: Vec<String> = times.iter().map(ms).collect();
    println!("| {name} | {} |", times.join(" | "));
}

/// Memory that this process has to itself, on Linux: pages that instances share
/// count once.
fn resident_mb() -> Option<f64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = rollup.lines().find(|line| line.starts_with("Pss:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
