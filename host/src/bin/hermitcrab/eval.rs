//! `hermitcrab eval`: sets a run up, shows how it goes, and prints what came of it.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermitcrab::session::SessionConfig;
use hermitcrab_host::eval::suite::{Limits, LoadOptions};
use hermitcrab_host::eval::{
    self, Comparison, Estimate, Eval, EvalError, News, Outcome, Programs, Row, RunLimits, Summary,
};
use hermitcrab_host::{CancellationToken, CoreLimits, Host, Python, WasiCommand};
use sha2::{Digest as _, Sha256};

use crate::cli::{
    DiffOptions, EnvironmentKind, EvalCommand, EvalOptions, MachineOptions, MergeOptions,
    RegradeOptions,
};
use crate::connect;
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::programs;
use crate::provider::{self, Chosen};
use crate::secrets::Secrets;
use crate::settings;
use crate::signal::Stops;
use crate::workspace;

/// Runs a suite, or works on the results of runs.
///
/// # Errors
/// Wrong usage, a run that could not go on, trials without a verdict.
pub(crate) fn eval(options: EvalOptions, secrets: &Secrets) -> Result<Code, Failure> {
    match &options.command {
        None => suite(options, secrets),
        Some(EvalCommand::Regrade(options)) => regrade(options),
        Some(EvalCommand::Merge(options)) => merge(options),
        Some(EvalCommand::Diff(options)) => diff(options),
    }
}

/// Trials at the same time for each processor: an agent waits for models.
const JOBS: usize = 4;

pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn jobs(machine: &MachineOptions) -> usize {
    machine
        .jobs
        .map_or(JOBS * processors(), |jobs| jobs as usize)
}

fn suite(options: EvalOptions, secrets: &Secrets) -> Result<Code, Failure> {
    let (Some(suite), Some(out)) = (options.suite, options.out) else {
        return Err(Failure::usage("name a suite and --out"));
    };
    if !matches!(
        options.env,
        EnvironmentKind::Local | EnvironmentKind::Memory
    ) {
        return Err(Failure::usage(
            "an evaluation has --env memory or local: a local trial works in a copy anyway",
        ));
    }
    let local = options.env == EnvironmentKind::Local;
    if local && options.machine.python.is_some() {
        return Err(Failure::usage(
            "--python needs --env memory: commands of a local run have the Python of this machine",
        ));
    }
    if local && !options.machine.programs.is_empty() {
        return Err(Failure::usage(
            "--program needs --env memory: commands of a local run are those of this machine",
        ));
    }
    let provider_answers =
        options.provider.is_some() || options.model.is_some() || options.base_url.is_some();
    let settings = settings::read(options.config.as_deref())?;
    let named = Some(settings.provider.as_str()).filter(|name| !name.is_empty());
    let named = options.provider.as_deref().or(named);
    let chosen = provider::choose(named, options.base_url.as_deref(), |name| {
        secrets.variable(name)
    });
    let (providers, no_provider) = match chosen {
        Ok(chosen) => {
            let mut all = provider::others(&chosen, |name| secrets.variable(name));
            all.insert(0, chosen);
            (all, None)
        }
        Err(failure) if provider_answers => return Err(failure),
        // Scripts may play all of it.
        Err(failure) => {
            let why = format!("the task has no script, and {}", failure.message);
            (Vec::new(), Some(why))
        }
    };
    // SAFETY: nothing so far has started a thread.
    let guardian = local
        .then(|| unsafe { workspace::guardian() })
        .transpose()?;
    let jobs = jobs(&options.machine);
    let (programs, programs_hash) = lent(&options.machine, local, jobs)?;
    let config = SessionConfig {
        provider: match (named, providers.first()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(chosen)) => chosen.provider.to_owned(),
            (None, None) => SessionConfig::default().provider,
        },
        model: options.model.unwrap_or(settings.model),
        endpoints: providers
            .iter()
            .map(|provider| (provider.provider.to_owned(), provider.endpoint()))
            .collect(),
        ..settings
    };
    let host = host(&options.machine, &providers, jobs)?;
    let eval = Eval {
        host,
        programs,
        options: eval::EvalOptions {
            suite,
            out: out.clone(),
            jobs,
            trials: options.trials,
            filter: options.filter,
            seed: options.seed,
            shard: options.shard,
            load: LoadOptions {
                script: options.script,
                provider_answers,
            },
            limits: Limits {
                rounds: options.max_rounds,
                wall_ms: options.max_wall_ms,
                tokens: options.max_tokens,
                cost_usd: options.max_cost,
            },
            run_limits: RunLimits {
                tokens: options.budget_tokens,
                cost_usd: options.budget_cost,
            },
            config,
            no_provider,
            secrets: providers.into_iter().map(|chosen| chosen.key).collect(),
            local,
            guardian,
            log: !options.no_log,
            resume: options.resume,
            retries: options.retries,
            retry_delay: Duration::from_millis(options.retry_delay_ms),
            programs_hash,
        },
    };
    let progress = Arc::new(Progress::new());
    let watch = {
        let progress = progress.clone();
        Arc::new(move |news: News<'_>| progress.hear(&news))
    };
    let runtime = runtime()?;
    let began = Instant::now();
    let ended = runtime.block_on(until_stopped(|stop| eval.run(stop, watch)));
    runtime.shutdown_timeout(Duration::from_millis(500));
    progress.end();
    let summary = ended?.map_err(|error| match &error {
        EvalError::Usage(message) => Failure::usage(message),
        EvalError::Failed(message) => Failure::failed(message),
        EvalError::Interrupted => Failure {
            code: Code::INTERRUPTED,
            message: error.to_string(),
        },
    })?;
    let state = progress.state();
    let text = table(&summary, state.skipped, Some(began.elapsed()))
        + &list(&state.not_passed)
        + &format!("report: {}\n", out.join("report.html").display());
    print(&text)?;
    verdicts(&summary)
}

/// Whether every trial has one.
fn verdicts(summary: &Summary) -> Result<Code, Failure> {
    match summary.outcomes.get(&Outcome::InfraError) {
        None => Ok(Code::DONE),
        Some(1) => Err(Failure::failed(
            "1 trial has no verdict: run again with --resume",
        )),
        Some(count) => Err(Failure::failed(format!(
            "{count} trials have no verdict: run again with --resume"
        ))),
    }
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(processors())
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {}", reason(&error))))
}

/// Runs `work`; the first request to stop ends it in good order, a second one at
/// once.
pub(crate) async fn until_stopped<T, F: Future<Output = T>>(
    work: impl FnOnce(CancellationToken) -> F,
) -> Result<T, Failure> {
    let mut stops = Stops::listen()?;
    let stop = CancellationToken::new();
    let mut work = std::pin::pin!(work(stop.clone()));
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = stops.next() => {
                if stop.is_cancelled() {
                    return Err(Failure {
                        code: Code::INTERRUPTED,
                        message: "killed; what is recorded counts".to_owned(),
                    });
                }
                stop.cancel();
            }
        }
    }
}

/// A host whose pool has room for each trial's agent and checker.
fn host(machine: &MachineOptions, providers: &[Chosen], jobs: usize) -> Result<Host, Failure> {
    let mut builder = Host::builder();
    for chosen in providers {
        builder = builder.credential(chosen.provider, &chosen.key, &chosen.base_url);
    }
    let places = u32::try_from(2 * jobs).unwrap_or(u32::MAX);
    connect::chosen_core(builder)
        .limits(CoreLimits {
            memory_bytes: (machine.max_memory_mib as usize) << 20,
            step_timeout: Duration::from_millis(machine.max_stall_ms),
            ..CoreLimits::default()
        })
        .pool(places)
        .build()
        .map_err(connect::failed)
}

/// The programs for tasks, and a hash of what they were made of.
fn lent(machine: &MachineOptions, local: bool, jobs: usize) -> Result<(Programs, String), Failure> {
    let workers = jobs.min(2 * processors());
    let mut programs = std::collections::BTreeMap::new();
    let mut hasher = Sha256::new();
    for (name, file) in &machine.programs {
        let command = WasiCommand::load(file, workers)
            .map_err(|error| Failure::usage(format!("--program {name}: {error}")))?;
        programs.insert(name.clone(), command.program());
        hasher.update(name);
        hasher.update(std::fs::read(file).unwrap_or_default());
    }
    let found = match &machine.python {
        // Checked before anything runs: it was asked for.
        Some(path) => {
            programs::python(path)?;
            Some(path.clone())
        }
        None => Python::find(),
    };
    if let Some(path) = found.filter(|_| !local) {
        hasher.update(std::fs::read(&path).unwrap_or_default());
        let python = programs::python_when_called(path, workers);
        programs.insert("python3".to_owned(), python);
    }
    let hash = match programs.is_empty() {
        true => String::new(),
        false => {
            let digest = hasher.finalize();
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    };
    Ok((Programs::new(programs), hash))
}

fn regrade(options: &RegradeOptions) -> Result<Code, Failure> {
    let jobs = jobs(&options.machine);
    let (programs, _) = lent(&options.machine, false, jobs)?;
    let host = host(&options.machine, &[], jobs)?;
    let runtime = runtime()?;
    let began = Instant::now();
    let regraded = runtime.block_on(until_stopped(|stop| {
        eval::regrade(host, programs, &options.dir, jobs, stop)
    }));
    runtime.shutdown_timeout(Duration::from_millis(500));
    let regraded = regraded?.map_err(Failure::usage)?;
    let mut text = String::new();
    for (before, after) in &regraded.moved {
        text += &format!(
            "{}.{}: {} → {}{}\n",
            after.task,
            after.trial,
            before.outcome.as_str(),
            after.outcome.as_str(),
            why(after.reason.as_deref()),
        );
    }
    for (task, trial, why) in &regraded.left {
        text += &format!("{task}.{trial}: not checked: {why}\n");
    }
    text += &format!(
        "{} trials checked again, {} ended otherwise, {} not checked\n",
        regraded.checked,
        regraded.moved.len(),
        regraded.left.len(),
    );
    print(&(text + &table(&regraded.summary, 0, Some(began.elapsed()))))?;
    verdicts(&regraded.summary)
}

fn merge(options: &MergeOptions) -> Result<Code, Failure> {
    let merged = eval::merge(&options.shards, &options.out).map_err(Failure::usage)?;
    for what in &merged.missing {
        eprintln!("hermitcrab: {}", harmless(what));
    }
    let summary = merged.summary;
    let report = options.out.join("report.html");
    print(&(table(&summary, 0, None) + &format!("report: {}\n", report.display())))?;
    let code = verdicts(&summary)?;
    match merged.missing.is_empty() {
        true => Ok(code),
        false => Ok(Code::FAILED),
    }
}

fn diff(options: &DiffOptions) -> Result<Code, Failure> {
    let (before, after) = (&options.before, &options.after);
    let comparison = eval::compare(before, after).map_err(Failure::usage)?;
    print(&compared(&comparison, before, after))?;
    Ok(Code::DONE)
}

fn compared(comparison: &Comparison, before: &Path, after: &Path) -> String {
    let mut text = String::new();
    for moved in &comparison.moved {
        text += &format!(
            "{}.{}: {} → {}{}\n",
            moved.task,
            moved.trial,
            moved.from.as_str(),
            moved.to.as_str(),
            why(moved.reason.as_deref()),
        );
    }
    text += &format!(
        "{} trials ended otherwise, {} the same\n",
        comparison.moved.len(),
        comparison.same
    );
    for (count, dir) in [(comparison.alone.0, before), (comparison.alone.1, after)] {
        if count > 0 {
            text += &format!("{count} trials only in {}\n", dir.display());
        }
    }
    if let (Some(old), Some(new)) = comparison.pass_at_1 {
        text += &format!("pass@1   {} → {}", share(&old), share(&new));
        if let Some(p) = comparison.p_value {
            text += &format!("   (sign test: p = {p:.3})");
        }
        text.push('\n');
    }
    let ((old, new), (old_ms, new_ms)) = (comparison.rounds, comparison.wall_ms);
    text += &format!("rounds   {old} → {new}\n");
    text += &format!(
        "time     {} → {}\n",
        duration(Duration::from_millis(old_ms)),
        duration(Duration::from_millis(new_ms))
    );
    if let (Some(old), Some(new)) = comparison.cost_usd {
        text += &format!("cost     ${old:.4} → ${new:.4}\n");
    }
    text
}

fn why(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({})", one_line(reason)))
}

/// Text of models and checkers, fit for a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let line: String = text.chars().take(300).collect();
    harmless(&line).replace('\n', " ")
}

fn share(estimate: &Estimate) -> String {
    format!(
        "{:.1} % ({:.1} to {:.1})",
        100.0 * estimate.share,
        100.0 * estimate.low,
        100.0 * estimate.high
    )
}

pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// What a run came to, as a table.
fn table(summary: &Summary, skipped: usize, took: Option<Duration>) -> String {
    let mut rows = vec![
        ("tasks".to_owned(), summary.tasks.to_string()),
        ("trials".to_owned(), summary.trials.to_string()),
    ];
    for outcome in Outcome::ALL {
        if let Some(count) = summary.outcomes.get(&outcome) {
            rows.push((format!("  {}", outcome.as_str()), count.to_string()));
        }
    }
    if skipped > 0 {
        rows.push(("tasks skipped".to_owned(), skipped.to_string()));
    }
    for (name, estimates) in [("pass@", &summary.pass_at), ("pass^", &summary.pass_hat)] {
        // pass^1 is pass@1.
        let estimates = estimates.iter().filter(|it| name == "pass@" || it.k > 1);
        rows.extend(estimates.map(|it| (format!("{name}{}", it.k), share(it))));
    }
    let tokens = &summary.tokens;
    rows.push((
        "tokens".to_owned(),
        format!(
            "{} read ({} cached), {} written",
            tokens.input, tokens.cached, tokens.output
        ),
    ));
    if let Some(cost) = summary.cost_usd {
        rows.push(("cost".to_owned(), format!("${cost:.4}")));
    }
    if let Some(took) = took {
        rows.push(("time".to_owned(), duration(took)));
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter()
        .map(|(name, value)| format!("{name:width$}  {value}\n"))
        .collect()
}

pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::failed(format!("cannot write: {}", reason(&error))))
}

/// Trials that are listed after the table.
const LISTED: usize = 50;

fn list(not_passed: &[String]) -> String {
    let mut text = String::new();
    for line in not_passed.iter().take(LISTED) {
        text += line;
    }
    if not_passed.len() > LISTED {
        let more = not_passed.len() - LISTED;
        text += &format!("and {more} more; the report lists all\n");
    }
    text
}

/// How a run goes, on stderr: a line that changes where it is a terminal.
struct Progress {
    state: Mutex<State>,
    is_terminal: bool,
    began: Instant,
}

#[derive(Clone, Default)]
struct State {
    all: u64,
    kept: u64,
    done: u64,
    passed: u64,
    graded: u64,
    skipped: usize,
    cost_usd: f64,
    not_passed: Vec<String>,
    shown: Option<Instant>,
}

/// Time between two changes of the line.
const REFRESH: Duration = Duration::from_millis(100);

impl Progress {
    fn new() -> Self {
        Self {
            state: Mutex::default(),
            is_terminal: io::stderr().is_terminal(),
            began: Instant::now(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> State {
        let mut state = self.lock().clone();
        state.not_passed.sort();
        state
    }

    fn hear(&self, news: &News<'_>) {
        let mut state = self.lock();
        match news {
            News::Begins(all) => state.all = *all,
            News::Skipped(task, why) => {
                state.skipped += 1;
                self.say(&format!("skipped {task}: {}", one_line(why)));
            }
            News::Again(task, trial, why) => {
                self.say(&format!("again {task}.{trial}: {}", one_line(why)));
            }
            News::Retried(task, trial, why) => {
                self.say(&format!("retry {task}.{trial}: {}", one_line(why)));
            }
            News::Kept(row) => {
                state.kept += 1;
                state.count(row);
            }
            News::Finished(row) => {
                state.done += 1;
                state.count(row);
            }
        }
        if self.is_terminal && state.shown.is_none_or(|shown| shown.elapsed() > REFRESH) {
            state.shown = Some(Instant::now());
            let line = state.line(self.began.elapsed());
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r{line}\x1b[K").and_then(|()| err.flush());
        }
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        let clear = if self.is_terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(io::stderr(), "{clear}{line}");
    }

    fn end(&self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl State {
    fn count(&mut self, row: &Row) {
        self.graded += u64::from(row.passed.is_some());
        self.passed += u64::from(row.passed == Some(true));
        self.cost_usd += row.cost_usd.unwrap_or(0.0);
        if row.passed != Some(true) {
            self.not_passed.push(format!(
                "{}.{}: {}{}\n",
                row.task,
                row.trial,
                row.outcome.as_str(),
                why(row.reason.as_deref())
            ));
        }
    }

    fn line(&self, took: Duration) -> String {
        let come = self.kept + self.done;
        let mut line = format!("{come} of {} done, {} passed", self.all, self.passed);
        if self.graded > 0 {
            let percent = 100.0 * self.passed as f64 / self.graded as f64;
            line += &format!(" ({percent:.1} %)");
        }
        let left = self.all.saturating_sub(come);
        if self.done > 0 && left > 0 {
            let each = took.as_secs_f64() / self.done as f64;
            let left = Duration::try_from_secs_f64(each * left as f64).unwrap_or_default();
            line += &format!(", {} left", duration(left));
        }
        if self.cost_usd > 0.0 {
            line += &format!(", ${:.4}", self.cost_usd);
        }
        line
    }
}
