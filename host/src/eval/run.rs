//! A run: trials side by side, each recorded before it counts.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hermitcrab::event::rfc3339;
use hermitcrab::session::SessionConfig;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::artifacts;
use super::budget::{RunBudget, RunLimits};
use super::follow::Class;
use super::lock::{self, Parts};
use super::programs::Programs;
use super::queue::{Next, Queue, Trial};
use super::results::{self, Directory, Outcome, Row, Tokens, Writer};
use super::settings::{self, SETTINGS, Settings};
use super::statistics::{Summary, Sums};
use super::suite::{Limits, LoadOptions, Suite, Task};
use super::throttle::Throttled;
use super::trial::{Attempt, Conditions};
use crate::cache::hex;
use crate::host::Host;
use crate::local::Guardian;

/// What a run is asked to do.
#[derive(Debug)]
pub struct EvalOptions {
    /// The suite.
    pub suite: PathBuf,
    /// Directory of the results.
    pub out: PathBuf,
    /// Trials at the same time.
    pub jobs: usize,
    /// Trials of each task.
    pub trials: u32,
    /// Only tasks whose name holds this text.
    pub filter: Option<String>,
    /// What the seeds of all trials follow from; absent: of an earlier run, else the
    /// entropy of the system.
    pub seed: Option<[u8; 32]>,
    /// Number of this shard, from 1, and of all.
    pub shard: Option<(u32, u32)>,
    /// How tasks are read.
    pub load: LoadOptions,
    /// Limits of a trial where its task sets none.
    pub limits: Limits,
    /// Limits of all trials together.
    pub run_limits: RunLimits,
    /// Settings of the sessions.
    pub config: SessionConfig,
    /// Why no provider can be asked, if none can: what tasks without a script end
    /// with.
    pub no_provider: Option<String>,
    /// Values that no command of a local trial may see.
    pub secrets: Vec<String>,
    /// Tools act on this machine, in a copy.
    pub local: bool,
    /// Ends the commands of local trials if this process cannot.
    pub guardian: Option<Guardian>,
    /// Whether each trial writes the log of its instance.
    pub log: bool,
    /// Goes on with the results that are there.
    pub resume: bool,
    /// Attempts after one that provider or machine made fail.
    pub retries: u32,
    /// Wait before the first of them; it doubles.
    pub retry_delay: Duration,
    /// What the programs were made of, for the locks.
    pub programs_hash: String,
}

/// A run that can be started.
#[derive(Debug)]
pub struct Eval {
    /// Runs the instances; best with a [pool](crate::HostBuilder::pool) of twice as
    /// many places as there are jobs.
    pub host: Host,
    /// Programs for the tasks that ask for them.
    pub programs: Programs,
    /// The rest.
    pub options: EvalOptions,
}

/// What happens in a run, for those who watch.
#[derive(Debug)]
pub enum News<'a> {
    /// The trials that there may be.
    Begins(u64),
    /// A task cannot run here: name and reason.
    Skipped(&'a str, &'a str),
    /// A recorded trial is run again: task, number and reason.
    Again(&'a str, u32, &'a str),
    /// A recorded trial counts as it is.
    Kept(&'a Row),
    /// A trial is recorded.
    Finished(&'a Row),
    /// A trial failed for no fault of the agent, and is tried again: task, number,
    /// reason.
    Retried(&'a str, u32, &'a str),
}

/// Why a run ended before its last trial.
#[derive(Debug)]
pub enum EvalError {
    /// What was asked for cannot be done; nothing has run.
    Usage(String),
    /// The run could not go on; what is recorded counts.
    Failed(String),
    /// It was asked to stop.
    Interrupted,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted; go on with --resume"),
        }
    }
}

impl std::error::Error for EvalError {}

/// Who hears of a run.
pub type Watch = Arc<dyn Fn(News<'_>) + Send + Sync>;

/// What the tasks of a run share.
struct Shared {
    conditions: Conditions,
    queue: Mutex<Queue>,
    writer: Writer,
    directory: Directory,
    options: EvalOptions,
    seed: [u8; 32],
    watch: Watch,
    sums: Mutex<Sums>,
    /// Stops trials, for `fatal` or because it was asked to.
    stop: CancellationToken,
    fatal: OnceLock<String>,
}

impl Eval {
    /// Runs the trials; `stop` ends them early.
    ///
    /// # Errors
    /// [`EvalError::Usage`] before the first trial, [`EvalError::Failed`] if the run could
    /// not go on, [`EvalError::Interrupted`] if `stop` fired.
    pub async fn run(self, stop: CancellationToken, watch: Watch) -> Result<Summary, EvalError> {
        let (shared, jobs) = self.prepare(stop, watch)?;
        let shared = Arc::new(shared);
        let mut workers = JoinSet::new();
        for _ in 0..jobs {
            workers.spawn(work(shared.clone()));
        }
        while let Some(ended) = workers.join_next().await {
            // A panic of ours: the other trials go on.
            if let Err(error) = ended {
                let _ = shared.fatal.set(format!("a trial broke the run: {error}"));
            }
        }
        if let Some(why) = shared.fatal.get() {
            return Err(EvalError::Failed(why.clone()));
        }
        if shared.stop.is_cancelled() {
            return Err(EvalError::Interrupted);
        }
        let directory = &shared.directory;
        if shared.options.resume {
            // A trial that was run again has two lines until now.
            results::read(&directory.path)
                .and_then(|rows| directory.rewrite(&rows))
                .map_err(EvalError::Failed)?;
        }
        let mut settings = settings::read(&directory.path).map_err(EvalError::Failed)?;
        let summary = lock(&shared.sums).summary();
        settings.ended = Some(true);
        settings.results = Some(summary.trials);
        settings::write(&directory.path, &settings).map_err(EvalError::Failed)?;
        super::report::write(&directory.path)
            .map_err(|error| EvalError::Failed(results::cannot_write(&directory.path, &error)))?;
        Ok(summary)
    }

    fn prepare(self, stop: CancellationToken, watch: Watch) -> Result<(Shared, usize), EvalError> {
        let Self {
            host,
            programs,
            mut options,
        } = self;
        let suite = Arc::new(
            Suite::open(&options.suite).map_err(|error| EvalError::Usage(error.to_string()))?,
        );
        let directory = Directory::take(&options.out).map_err(EvalError::Usage)?;
        let mut recorded = HashMap::new();
        let mut earlier = None;
        if directory.has_results() {
            if !options.resume {
                return Err(EvalError::Usage(format!(
                    "{} holds the results of a run: add --resume to go on with it, or choose \
                     another --out",
                    options.out.display()
                )));
            }
            earlier = Some(settings::read(&directory.path).map_err(EvalError::Usage)?);
            let rows = results::read(&directory.path).map_err(EvalError::Usage)?;
            directory.rewrite(&rows).map_err(EvalError::Failed)?;
            recorded = rows
                .into_iter()
                .map(|row| ((row.task.clone(), row.trial), row))
                .collect();
        }
        let seed = match (options.seed, &earlier) {
            (Some(seed), _) => seed,
            (None, Some(earlier)) => unhex(&earlier.seed).ok_or_else(|| {
                let shown = options.out.display();
                EvalError::Usage(format!("{SETTINGS} of {shown} has no seed"))
            })?,
            (None, None) => {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(|error| {
                    EvalError::Failed(format!("the system gives no random numbers: {error}"))
                })?;
                seed
            }
        };
        let settings = Settings {
            hermitcrab: env!("CARGO_PKG_VERSION").to_owned(),
            suite: suite.path.clone(),
            title: suite.name.clone(),
            created_at: now(),
            seed: hex(&seed),
            trials: options.trials,
            jobs: options.jobs,
            provider: options.config.provider.clone(),
            model: options.config.model.clone(),
            script: options.load.script.clone(),
            provider_answers: options.load.provider_answers,
            filter: options.filter.clone(),
            shard: options.shard.map(|(shard, of)| format!("{shard}/{of}")),
            env: if options.local { "local" } else { "memory" }.to_owned(),
            core: host.core_id().hash,
            ended: Some(false),
            results: None,
        };
        settings::write(&directory.path, &settings).map_err(EvalError::Failed)?;
        let writer = directory.writer().map_err(EvalError::Failed)?;
        let parts = common_parts(&host, &options, &seed);
        let queue = Queue {
            directory: directory.path.clone(),
            suite,
            load: options.load.clone(),
            trials: options.trials,
            filter: options.filter.clone(),
            shard: options
                .shard
                .map_or((0, 1), |(shard, of)| (u64::from(shard) - 1, u64::from(of))),
            parts: Box::new(parts),
            recorded,
            index: 0,
            current: None,
            counted: 0,
            waiting: Vec::new(),
        };
        watch(News::Begins(queue.size()));
        let jobs = options.jobs.max(1);
        let conditions = Conditions {
            provider: match options.no_provider.take() {
                None => Ok(Arc::new(Throttled::new(host.http(), jobs))),
                Some(why) => Err(why),
            },
            host,
            config: options.config.clone(),
            programs,
            limits: options.limits,
            budget: RunBudget::new(options.run_limits),
            local: options.local,
            guardian: options.guardian.take(),
            secrets: options.secrets.clone(),
            log: options.log,
        };
        let shared = Shared {
            conditions,
            queue: Mutex::new(queue),
            writer,
            directory,
            options,
            seed,
            watch,
            sums: Mutex::default(),
            stop,
            fatal: OnceLock::new(),
        };
        Ok((shared, jobs))
    }
}

/// The lock of a task under the settings of a run.
fn common_parts(
    host: &Host,
    options: &EvalOptions,
    seed: &[u8; 32],
) -> impl Fn(&Task) -> Parts + Send + use<> {
    let core = host.core_id().hash;
    let config = options.config.clone();
    let limits = options.limits;
    let settings = lock::short(
        json!([
            SessionConfig {
                provider: String::new(),
                model: String::new(),
                base_url: None,
                endpoints: Default::default(),
                ..config.clone()
            },
            [limits.rounds, limits.wall_ms, limits.tokens],
            limits.cost_usd,
            hex(seed),
            options.local,
            options.programs_hash,
        ])
        .to_string()
        .as_bytes(),
    );
    move |task| {
        let provider = task.provider.as_ref().unwrap_or(&config.provider);
        let reached = config
            .endpoints
            .get(provider)
            .and_then(|it| it.base_url.clone());
        let model = json!([
            provider,
            task.model.as_ref().unwrap_or(&config.model),
            reached.filter(|_| task.script.is_none()),
        ]);
        Parts {
            core: core.get(..16).unwrap_or(&core).to_owned(),
            model: lock::short(model.to_string().as_bytes()),
            settings: settings.clone(),
            ..Parts::of_task(task)
        }
    }
}

/// Takes trials until there is none.
async fn work(shared: Arc<Shared>) {
    // A trial is recorded while the next one runs already.
    let (recording, mut recorded) = mpsc::channel::<Row>(4);
    let record = {
        let shared = shared.clone();
        async move {
            while let Some(row) = recorded.recv().await {
                shared.record(row).await;
            }
        }
    };
    let run = async {
        while !shared.stop.is_cancelled() {
            let next = lock(&shared.queue).next();
            let trial = match next {
                None => break,
                Some(Next::Trial(trial)) => trial,
                Some(Next::Kept(row)) => {
                    lock(&shared.sums).add(&row);
                    (shared.watch)(News::Kept(&row));
                    continue;
                }
                Some(Next::Skipped(name, reason)) => {
                    (shared.watch)(News::Skipped(&name, &reason));
                    continue;
                }
                Some(Next::Again(name, number, why)) => {
                    (shared.watch)(News::Again(&name, number, &why));
                    continue;
                }
            };
            let row = tokio::select! {
                biased;
                row = shared.trial(*trial) => row,
                () = shared.stop.cancelled() => None,
            };
            let Some(row) = row else { break };
            if recording.send(row).await.is_err() {
                break;
            }
        }
        drop(recording);
    };
    tokio::join!(record, run);
}

impl Shared {
    /// Runs a trial to its record; none if the run has to end.
    async fn trial(&self, trial: Trial) -> Option<Row> {
        let seed = lock::seed(&self.seed, &trial.name, trial.number);
        let dir = format!("trials/{}.{}", file_name(&trial.name), trial.number);
        let path = self.directory.path.join(&dir);
        let mut row = Row {
            task: trial.name.clone(),
            trial: trial.number,
            seed: hex(&seed),
            outcome: Outcome::InfraError,
            passed: None,
            rewards: None,
            reason: None,
            provider: self.options.config.provider.clone(),
            model: self.options.config.model.clone(),
            rounds: 0,
            tokens: Tokens::default(),
            cost_usd: None,
            started_at: now(),
            wall_ms: 0,
            model_ms: 0,
            tool_ms: 0,
            check_ms: 0,
            attempts: 1,
            lock: trial.parts.lock(),
            parts: trial.parts.clone(),
            dir,
        };
        let task = match &trial.task {
            Ok(task) => task,
            Err(error) => {
                row.reason = Some(error.to_string());
                return Some(row);
            }
        };
        if let Some(provider) = &task.provider {
            row.provider = provider.clone();
        }
        loop {
            row.started_at = now();
            if let Err(error) = artifacts::fresh(&path) {
                return self.fail(&super::reason(&error));
            }
            let log = path.join(artifacts::LOG);
            let attempt = self.conditions.attempt(task, seed, log).await;
            fill(&mut row, &attempt);
            if attempt.class == Class::Disk {
                return self.fail(row.reason.as_deref().unwrap_or_default());
            }
            if row.outcome == Outcome::InfraError && !self.stop.is_cancelled() {
                let (retries, factor) = attempt.class.retries(self.options.retries);
                if attempt.class == Class::Budget {
                    let why = row.reason.clone().unwrap_or_default();
                    let _ = self
                        .fatal
                        .set(format!("{why}: go on with --resume and a larger one"));
                    self.stop.cancel();
                    return None;
                }
                if row.attempts <= retries {
                    let why = row.reason.as_deref().unwrap_or_default();
                    (self.watch)(News::Retried(&row.task, row.trial, why));
                    let doubled = 1_u32 << (row.attempts - 1).min(6);
                    let delay = self.options.retry_delay.saturating_mul(doubled * factor);
                    tokio::time::sleep(delay.min(LONGEST_DELAY)).await;
                    row.attempts += 1;
                    continue;
                }
            }
            if let Err(error) = artifacts::write(&path, task, &row, &attempt) {
                return self.fail(&super::reason(&error));
            }
            return Some(row);
        }
    }

    /// Makes a row durable; then it counts.
    async fn record(&self, row: Row) {
        match self.writer.add(&row).await {
            Ok(()) => {
                lock(&self.sums).add(&row);
                (self.watch)(News::Finished(&row));
            }
            Err(why) => {
                let _ = self.fatal.set(why);
                self.stop.cancel();
            }
        }
    }

    /// The disk fails: the run ends.
    fn fail(&self, why: &str) -> Option<Row> {
        let why = results::disk_failed(&self.directory.path, why);
        let _ = self.fatal.set(why);
        self.stop.cancel();
        None
    }
}

/// Longest wait before another attempt.
const LONGEST_DELAY: Duration = Duration::from_secs(120);

fn fill(row: &mut Row, attempt: &Attempt) {
    row.outcome = attempt.outcome;
    row.passed = attempt.outcome.passed();
    row.reason = attempt.reason.clone();
    row.wall_ms = attempt.wall_ms;
    row.check_ms = 0;
    row.rewards = None;
    if let Some(checked) = &attempt.checked {
        row.check_ms = checked.ms;
        row.rewards = checked.rewards.clone();
    }
    if !attempt.session_model.is_empty() {
        row.model = attempt.session_model.clone();
    }
    if let Some(trajectory) = &attempt.trajectory {
        row.rounds = trajectory.rounds;
        row.tokens = Tokens {
            input: trajectory.prompt_tokens,
            output: trajectory.output_tokens,
            cached: trajectory.cached_tokens,
            reasoning: trajectory.reasoning_tokens,
        };
        row.cost_usd = trajectory.cost_usd;
        row.model_ms = trajectory.model_ms;
        row.tool_ms = trajectory.tool_ms;
    }
}

/// A task's name as a file's: letters, digits and a few marks stay.
pub(super) fn file_name(name: &str) -> String {
    let stays = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name
        .chars()
        .map(|c| if stays(c) { c } else { '_' })
        .take(100)
        .collect();
    match plain == name && !name.starts_with('.') {
        true => plain,
        false => format!("_{plain}-{}", lock::short(name.as_bytes())),
    }
}

pub(super) fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    rfc3339(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// 32 bytes in hexadecimal digits.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
