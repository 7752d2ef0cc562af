//! `cargo xtask bench search`: `glob` and `grep` on the local disk beside ripgrep, on a
//! generated tree. Measures and prints; never judges.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermitcrab::environment::{GlobRequest, GrepRequest};
use hermitcrab_host::{HostEnvironment as _, LocalEnvironment};

/// Directories, files in each, and bytes of a file: 200,000 files, 1 GB.
const DIRECTORIES: usize = 2_000;
const FILES: usize = 100;
const BYTES: usize = 5_000;
/// Turns of all subjects.
const TURNS: usize = 7;

fn main() {
    // Cargo runs all benchmarks with `--bench` alone.
    if !std::env::args().any(|argument| argument == "measure") {
        println!("`cargo xtask bench search` measures");
        return;
    }
    if let Err(error) = run() {
        eprintln!("cannot measure the search: {error}");
        std::process::exit(1);
    }
}

/// Files of lines that differ; every hundredth directory has the needle in each file.
fn make(root: &Path) -> io::Result<()> {
    for directory in 0..DIRECTORIES {
        let path = root.join(format!("{:02}/{directory:04}", directory % 50));
        fs::create_dir_all(&path)?;
        for file in 0..FILES {
            let extension = ["rs", "txt", "md", "json"][file % 4];
            let mut text = String::with_capacity(BYTES + 80);
            let mut line = 0;
            while text.len() < BYTES {
                text += &format!("line {line} of file {file} in {directory}: quick brown foxes\n");
                line += 1;
            }
            if directory % 100 == 0 {
                text += "here is the needle999\n";
            }
            fs::write(path.join(format!("{file:03}.{extension}")), text)?;
        }
    }
    fs::write(root.join(".gitignore"), "*.json\n")
}

fn ripgrep(root: &Path, arguments: &[&str]) -> io::Result<Duration> {
    let clock = Instant::now();
    let mut command = Command::new("rg");
    // As our search: ignore files of the tree, and no others.
    command.args(["--no-config", "--no-require-git", "--no-ignore-parent"]);
    command.args(["--no-ignore-global", "--no-ignore-exclude"]);
    let output = command.args(arguments).arg(".").current_dir(root);
    let output = output.stdin(Stdio::null()).output()?;
    let took = clock.elapsed();
    match output.status.code() {
        Some(0 | 1) => Ok(took),
        _ => Err(io::Error::other(String::from_utf8_lossy(&output.stderr))),
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    make(root)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let environment = LocalEnvironment::builder(root).build()?;
    let glob = |pattern: &str, max_results: u64| {
        let request = GlobRequest {
            pattern: pattern.to_owned(),
            max_results,
            ..GlobRequest::default()
        };
        let clock = Instant::now();
        let found = runtime.block_on(environment.glob(request));
        found.map(|found| (found.entries.len(), clock.elapsed()))
    };
    let grep = |pattern: &str| {
        let request = GrepRequest {
            pattern: pattern.to_owned(),
            ..GrepRequest::default()
        };
        let clock = Instant::now();
        let found = runtime.block_on(environment.grep(request));
        found.map(|found| (found.matches.len(), clock.elapsed()))
    };
    println!(
        "Search on the local disk, {DIRECTORIES} directories of {FILES} files of {BYTES} bytes; wall time in ms, medians of {TURNS} turns\n"
    );
    println!("| | found | here | ripgrep | ratio |\n|---|---|---|---|---|");
    let row = |name: &str, found: usize, ours: Vec<Duration>, theirs: Vec<Duration>| {
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours / theirs;
        println!("| {name} | {found} | {ours:.0} | {theirs:.0} | {ratio:.2} |");
    };
    // The tool asks for the newest 10,000; none is all.
    let globs = [("**/*.rs", 10_000), ("**/*", 10_000), ("**/*", 0)];
    for (pattern, max_results) in globs {
        let (mut ours, mut theirs, mut found) = (Vec::new(), Vec::new(), 0);
        for _ in 0..TURNS {
            theirs.push(ripgrep(root, &["--files", "--glob", pattern])?);
            let (count, took) = glob(pattern, max_results)?;
            ours.push(took);
            found = count;
        }
        row(&format!("glob `{pattern}`"), found, ours, theirs);
    }
    for pattern in ["needle999", "Needle[0-9]{3}|fo+x999"] {
        let (mut ours, mut theirs, mut found) = (Vec::new(), Vec::new(), 0);
        for _ in 0..TURNS {
            theirs.push(ripgrep(root, &["--line-number", pattern])?);
            let (count, took) = grep(pattern)?;
            ours.push(took);
            found = count;
        }
        row(
            &format!("grep `{}`", pattern.replace('|', "\\|")),
            found,
            ours,
            theirs,
        );
    }
    Ok(())
}

/// In ms.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
