//! `cargo xtask bench python`: Python lent to a sandbox, in process. Measures
//! and prints; never judges. The first argument is the archive.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{EnvironmentHandle, Host, HostError, MemoryOptions, Python};

const REPEATS: usize = 21;

fn main() {
    // Cargo passes `--bench` to benchmarks, and runs them without an archive
    // when it runs all of them.
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(archive) = arguments.find(|argument| argument.extension().is_some()) else {
        println!("no archive named: `cargo xtask bench python` does");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if let Err(error) = runtime.block_on(run(&archive)) {
        eprintln!("cannot measure Python: {error}");
        std::process::exit(1);
    }
}

async fn run(archive: &Path) -> Result<(), HostError> {
    println!("Python lent to the sandbox, in process; wall time, medians of {REPEATS}\n");
    println!("| ms | value |\n|---|---|");
    let clock = Instant::now();
    Python::builder(archive).no_cache().load()?;
    row("unpacking and compiling, once per machine", clock.elapsed());

    let cache = std::env::temp_dir().join(format!("hermitcrab-bench-{}", std::process::id()));
    let load = || Python::builder(archive).cache_dir(&cache).load();
    let loaded = load();
    let times = (0..REPEATS).map(|_| {
        let clock = Instant::now();
        load().map(|_| clock.elapsed())
    });
    let times = times.collect::<Result<Vec<_>, _>>();
    let _ = std::fs::remove_dir_all(&cache);
    let python = loaded?;
    row("loading what was compiled", median(times?));

    let hello = "python3 -c 'print(\"hi\")'";
    let sandbox = sandbox(&python, Vec::new()).await?;
    let clock = Instant::now();
    exec(&sandbox, hello).await?;
    row("first call", clock.elapsed());
    row("a call", repeated(&sandbox, hello).await?);

    let test = "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n";
    sandbox.write("test_it.py", test).await?;
    let command = "python3 -m unittest";
    row(
        "`python3 -m unittest`, one test",
        repeated(&sandbox, command).await?,
    );
    let command = "python3 -c '
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(24)'";
    row("`fib(24)`", repeated(&sandbox, command).await?);

    let files: Vec<(String, Bytes)> = (0..1000)
        .map(|number| {
            let path = format!("src/d{}/f{number}.txt", number % 40);
            (path, format!("{number}\n").repeat(1250).into())
        })
        .collect();
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    let walk = "python3 -c '
import os
for path, _, names in os.walk(\"src\"):
    for name in names: open(os.path.join(path, name)).read()'";
    let mut told = Vec::new();
    for _ in 0..REPEATS {
        let sandbox = self::sandbox(&python, files.clone()).await?;
        let clock = Instant::now();
        exec(&sandbox, walk).await?;
        told.push(clock.elapsed());
    }
    let megabytes = bytes as f64 / 1e6;
    row(
        &format!("1,000 files / {megabytes:.1} MB sent, walked and read"),
        median(told),
    );
    let sandbox = self::sandbox(&python, files.clone()).await?;
    exec(&sandbox, walk).await?;
    row(
        "the same once they are there",
        repeated(&sandbox, walk).await?,
    );
    let in_place = in_a_directory(&files);
    let (written, scanned) = in_place.map_err(|error| HostError::Setup(error.to_string()))?;
    row("these files written to a temporary directory", written);
    row("looked through there for what has changed", scanned);
    Ok(())
}

/// What a WASI of directories would do beside: write what it gets, and look for changes
/// after each call.
fn in_a_directory(files: &[(String, Bytes)]) -> std::io::Result<(Duration, Duration)> {
    let place = std::env::temp_dir().join(format!("hermitcrab-files-{}", std::process::id()));
    let (mut written, mut scanned) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let clock = Instant::now();
        for (path, content) in files {
            let path = place.join(path);
            std::fs::create_dir_all(path.parent().expect("a directory"))?;
            std::fs::write(path, content)?;
        }
        written.push(clock.elapsed());
        let clock = Instant::now();
        let mut directories = vec![place.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory)? {
                let entry = entry?;
                let about = entry.metadata()?;
                std::hint::black_box((about.len(), about.modified()?));
                if about.is_dir() {
                    directories.push(entry.path());
                }
            }
        }
        scanned.push(clock.elapsed());
        std::fs::remove_dir_all(&place)?;
    }
    Ok((median(written), median(scanned)))
}

async fn sandbox(
    python: &Python,
    files: Vec<(String, Bytes)>,
) -> Result<EnvironmentHandle, HostError> {
    let mut options = MemoryOptions {
        files,
        ..MemoryOptions::default()
    };
    let programs = &mut options.programs;
    programs.insert("python3".to_owned(), python.program());
    Host::builder()
        .build()?
        .instance()?
        .add_memory(options)
        .await
}

async fn exec(sandbox: &EnvironmentHandle, command: &str) -> Result<(), HostError> {
    let request = ExecRequest {
        command: command.to_owned(),
        timeout_ms: 600_000,
        ..ExecRequest::default()
    };
    let output = sandbox.exec(request).await?;
    match output.status.exit_code {
        0 => Ok(()),
        _ => Err(HostError::Setup(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

async fn repeated(sandbox: &EnvironmentHandle, command: &str) -> Result<Duration, HostError> {
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let clock = Instant::now();
        exec(sandbox, command).await?;
        times.push(clock.elapsed());
    }
    Ok(median(times))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(name: &str, time: Duration) {
    println!("| {name} | {:.1} |", time.as_secs_f64() * 1e3);
}
