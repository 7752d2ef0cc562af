//! A test harness for tests that are data: every trial has its own name, runs
//! on one of as many threads as there are cores, and the summary is that of
//! libtest. Understands a name filter, `--exact`, `--skip`, `--list` and
//! `--test-threads`; other flags of libtest are taken and ignored.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// One test.
pub struct Trial {
    pub name: String,
    pub run: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Trial {
    pub fn new(
        name: impl Into<String>,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }
}

#[derive(Default)]
struct Arguments {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    threads: Option<usize>,
}

impl Arguments {
    fn parse() -> Self {
        let mut parsed = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => parsed.exact = true,
                "--list" => parsed.list = true,
                "--skip" => parsed.skip.extend(arguments.next()),
                "--test-threads" => parsed.threads = arguments.next().and_then(|n| n.parse().ok()),
                "--color" | "--format" | "--logfile" | "--shuffle-seed" => {
                    arguments.next();
                }
                flag if flag.starts_with('-') => {
                    if let Some(n) = flag.strip_prefix("--test-threads=") {
                        parsed.threads = n.parse().ok();
                    }
                }
                _ => parsed.filters.push(argument),
            }
        }
        parsed
    }

    fn takes(&self, name: &str) -> bool {
        let matches = |filter: &String| match self.exact {
            true => name == filter,
            false => name.contains(filter.as_str()),
        };
        (self.filters.is_empty() || self.filters.iter().any(matches))
            && !self.skip.iter().any(matches)
    }
}

/// Runs the trials that the command line asks for.
pub fn main(trials: Vec<Trial>) -> ExitCode {
    let arguments = Arguments::parse();
    let total = trials.len();
    let trials: Vec<Trial> = trials
        .into_iter()
        .filter(|trial| arguments.takes(&trial.name))
        .collect();
    if arguments.list {
        for trial in &trials {
            println!("{}: test", trial.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", trials.len());
    let start = Instant::now();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = catch_unwind(AssertUnwindSafe(|| (trial.run)()))
                        .unwrap_or_else(|_| Err("panicked; see above".to_owned()));
                    match result {
                        Ok(()) => println!("test {} ... ok", trial.name),
                        Err(why) => {
                            println!("test {} ... FAILED", trial.name);
                            let mut failed = failed.lock().unwrap_or_else(|e| e.into_inner());
                            failed.push((trial.name.clone(), why));
                        }
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    failed.sort();
    if !failed.is_empty() {
        println!("\nfailures:\n");
        for (name, why) in &failed {
            println!("---- {name} ----\n{why}\n");
        }
        println!("failures:");
        for (name, _) in &failed {
            println!("    {name}");
        }
    }
    println!(
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        trials.len() - failed.len(),
        failed.len(),
        total - trials.len(),
        start.elapsed().as_secs_f64(),
    );
    match failed.is_empty() {
        true => ExitCode::SUCCESS,
        // The exit code of libtest.
        false => ExitCode::from(101),
    }
}
