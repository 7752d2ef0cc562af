//! `cargo xtask bench sandbox`: the in-memory environment through wasmtime, in
//! process. Measures and prints; never judges. Shapes of the work are those of
//! DESIGN §8.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{
    EnvironmentChoice, EnvironmentHandle, Host, HostError, MemoryOptions, SessionConfig,
    SessionOptions,
};

const PARKED: usize = 500;
const REPEATS: usize = 21;

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
    println!("the sandbox in the component, through wasmtime, in process; medians of {REPEATS}\n");
    println!("| measure | value |");
    println!("|---|---|");
    let started = Instant::now();
    let host = Host::builder().build()?;
    row(
        "host with the embedded core, first in the process",
        started.elapsed(),
    );

    let mut cold = vec![];
    for _ in 0..REPEATS {
        let started = Instant::now();
        let environment = sandbox(&host).await?;
        echo(&environment).await?;
        cold.push(started.elapsed());
    }
    row(
        "instance, environment and its first `echo`",
        median(&mut cold),
    );

    let mut cold = vec![];
    for _ in 0..REPEATS {
        let started = Instant::now();
        let session = host
            .open_session(SessionOptions::new(
                SessionConfig::default(),
                EnvironmentChoice::Memory(MemoryOptions::default()),
            ))
            .await?;
        echo(session.environment()).await?;
        cold.push(started.elapsed());
    }
    row(
        "cold start of a sandboxed session incl. its first command",
        median(&mut cold),
    );

    let environment = sandbox(&host).await?;
    echo(&environment).await?;
    let mut warm = vec![];
    for _ in 0..200 {
        let started = Instant::now();
        echo(&environment).await?;
        warm.push(started.elapsed());
    }
    row(
        "`echo`, warm, with the way there and back",
        median(&mut warm),
    );
    let looped = timed(&environment, "for i in $(seq 1 20000); do :; done").await?;
    row("a loop of 20,000 turns", looped);

    files(&host).await?;
    parked(&host).await?;
    Ok(())
}

/// 1,000 files of together 5 MB, and a tree of many directories.
async fn files(host: &Host) -> Result<(), HostError> {
    let text = "the quick brown fox jumps over the lazy dog 0123456789\n".repeat(95);
    let files: Vec<(String, Bytes)> = (0..1_000)
        .map(|n| {
            let path = format!("dir{:02}/file{n:04}.txt", n % 50);
            (path, Bytes::from(format!("{text}needle{n}\n")))
        })
        .collect();
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    let mut load = vec![];
    let mut environment = sandbox(host).await?;
    for _ in 0..REPEATS {
        environment = sandbox(host).await?;
        let files = files.clone();
        let started = Instant::now();
        environment.import_files(files).await?;
        load.push(started.elapsed());
    }
    let name = format!("import of 1,000 files, {:.1} MB", bytes as f64 / 1e6);
    row(&name, median(&mut load));
    for command in [
        "grep -rn needle999 .",
        "rg needle999",
        "find . -name '*7.txt' | wc -l",
    ] {
        row(
            &format!("`{command}` over them"),
            timed(&environment, command).await?,
        );
    }
    let mut snapshot = vec![];
    for _ in 0..REPEATS {
        let started = Instant::now();
        let taken = environment.snapshot().await?;
        snapshot.push(started.elapsed());
        drop(taken);
    }
    row(
        "snapshot, with the way there and back",
        median(&mut snapshot),
    );

    let many: Vec<(String, Bytes)> = (0..10_000)
        .map(|n| (format!("d{:03}/f{n}", n % 1_000), Bytes::from_static(b"x")))
        .collect();
    let environment = sandbox(host).await?;
    environment.import_files(many).await?;
    row(
        "`find . | wc -l` over 10,000 files in 1,000 directories",
        timed(&environment, "find . | wc -l").await?,
    );
    let mut snapshot = vec![];
    for _ in 0..REPEATS {
        let started = Instant::now();
        let taken = environment.snapshot().await?;
        snapshot.push(started.elapsed());
        drop(taken);
    }
    row("snapshot of that tree", median(&mut snapshot));
    Ok(())
}

/// Memory and time of sessions that wait.
async fn parked(host: &Host) -> Result<(), HostError> {
    let before = resident_mb();
    let started = Instant::now();
    let mut sessions = vec![];
    for _ in 0..PARKED {
        let session = host
            .open_session(SessionOptions::new(
                SessionConfig::default(),
                EnvironmentChoice::Memory(MemoryOptions::default()),
            ))
            .await?;
        echo(session.environment()).await?;
        sessions.push(session);
    }
    let each = started.elapsed() / u32::try_from(PARKED).unwrap_or(1);
    row(
        &format!("each of {PARKED} sessions, opened and parked"),
        each,
    );
    if let (Some(before), Some(after)) = (before, resident_mb()) {
        let each = (after - before) / PARKED as f64;
        println!("| memory per parked session, one command run | {each:.2} MB |");
    }
    Ok(())
}

async fn sandbox(host: &Host) -> Result<EnvironmentHandle, HostError> {
    host.instance()?.add_memory(MemoryOptions::default()).await
}

async fn echo(environment: &EnvironmentHandle) -> Result<(), HostError> {
    let output = environment.exec(request("echo hi")).await?;
    assert_eq!(output.stdout, b"hi\n", "the command must have run");
    Ok(())
}

async fn timed(environment: &EnvironmentHandle, command: &str) -> Result<Duration, HostError> {
    let mut times = vec![];
    for _ in 0..REPEATS {
        let started = Instant::now();
        let output = environment.exec(request(command)).await?;
        times.push(started.elapsed());
        assert_eq!(output.status.exit_code, 0, "{command}");
    }
    Ok(median(&mut times))
}

fn request(command: &str) -> ExecRequest {
    ExecRequest {
        command: command.to_owned(),
        timeout_ms: 60_000,
        ..ExecRequest::default()
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(name: &str, time: Duration) {
    let ms = time.as_secs_f64() * 1_000.0;
    println!("| {name} | {ms:.3} ms |");
}

/// Resident memory of this process, on Linux.
fn resident_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
