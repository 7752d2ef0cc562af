//! `results.jsonl`: one line a trial. A line counts when the disk has it: lines that
//! come together share one flush. A directory belongs to one run at a time.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Component, Path, PathBuf};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::lock::Parts;

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The checker passed.
    Passed,
    /// It did not.
    Failed,
    /// A limit ended the agent.
    Limit,
    /// The agent failed, or its model refused.
    AgentError,
    /// Provider, machine or task failed: no verdict about the agent.
    InfraError,
}

impl Outcome {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Passed,
        Self::Failed,
        Self::Limit,
        Self::AgentError,
        Self::InfraError,
    ];

    /// Its name, as in `results.jsonl`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::AgentError => "agent_error",
            Self::InfraError => "infra_error",
        }
    }

    /// Whether it passed; none where there is no verdict.
    pub fn passed(self) -> Option<bool> {
        match self {
            Self::Passed => Some(true),
            Self::InfraError => None,
            _ => Some(false),
        }
    }
}

/// Tokens of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read, cached ones included.
    pub input: u64,
    /// Written, reasoning included.
    pub output: u64,
    /// Part of the input that came from a cache.
    pub cached: u64,
    /// Part of the output that was reasoning.
    pub reasoning: u64,
}

/// A trial's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Task.
    pub task: String,
    /// Number of the trial, from 1.
    pub trial: u32,
    /// What its random numbers follow from, in hexadecimal digits.
    pub seed: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it passed; null where there is no verdict.
    pub passed: Option<bool>,
    /// Numbers that the checker wrote.
    pub rewards: Option<BTreeMap<String, f64>>,
    /// One sentence where it has not passed.
    pub reason: Option<String>,
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Answers of models.
    pub rounds: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// Price in US dollars; null where it is not known.
    pub cost_usd: Option<f64>,
    /// When its last attempt began, RFC 3339 in UTC.
    pub started_at: String,
    /// Wall time of the agent in the last attempt, in ms.
    pub wall_ms: u64,
    /// Part of it that models took.
    pub model_ms: u64,
    /// Part of it that tools took.
    pub tool_ms: u64,
    /// Time of the checker, in ms.
    pub check_ms: u64,
    /// Attempts.
    pub attempts: u32,
    /// Hash of all that the trial depends on.
    pub lock: String,
    /// The parts of `lock`.
    #[serde(default)]
    pub parts: Parts,
    /// Its directory, from that of the run.
    pub dir: String,
}

/// A directory of results, for this process alone.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    _lock: File,
}

const RESULTS: &str = "results.jsonl";

impl Directory {
    /// Makes the directory, or takes one that is there.
    ///
    /// # Errors
    /// A sentence: another run uses it, or it cannot be written.
    pub(super) fn take(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let cannot = |error: io::Error| format!("cannot use {shown}: {}", super::reason(&error));
        std::fs::create_dir_all(path.join(TRIALS)).map_err(cannot)?;
        let file = path.join(".lock");
        let mut options = OpenOptions::new();
        let lock = options.read(true).write(true).create(true).truncate(false);
        let mut lock = lock.open(&file).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                let owner = io::read_to_string(&lock).unwrap_or_default();
                let owner = match owner.trim() {
                    "" => String::new(),
                    owner => format!(" (process {owner})"),
                };
                return Err(format!(
                    "{shown} is in use by another run{owner}: wait for it, or choose another --out"
                ));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(cannot(error)),
        }
        // Only for that sentence: where it cannot be written the lock still holds.
        let _ = lock.set_len(0);
        let _ = writeln!(lock, "{}", std::process::id());
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Whether it holds results already.
    pub(super) fn has_results(&self) -> bool {
        self.path.join(RESULTS).exists()
    }

    /// Replaces the results by `rows`, all or nothing.
    pub(super) fn rewrite<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a Row>,
    ) -> Result<(), String> {
        let aside = self.path.join(".results.jsonl.new");
        let write = || {
            let mut file = io::BufWriter::new(File::create(&aside)?);
            for row in rows {
                serde_json::to_writer(&mut file, row)?;
                file.write_all(b"\n")?;
            }
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            std::fs::rename(&aside, self.path.join(RESULTS))?;
            sync_directory(&self.path)
        };
        write().map_err(|error| cannot_write(&self.path, &error))
    }

    /// Begins to add rows.
    pub(super) fn writer(&self) -> Result<Writer, String> {
        Writer::start(&self.path).map_err(|error| cannot_write(&self.path, &error))
    }
}

/// What a full disk or another failure of it means to a run.
pub(super) fn cannot_write(directory: &Path, error: &io::Error) -> String {
    disk_failed(directory, &super::reason(error))
}

/// The same, where only the reason is known.
pub(super) fn disk_failed(directory: &Path, why: &str) -> String {
    format!(
        "cannot write to {}: {why}; the trials recorded so far are whole: make room and go on with \
         --resume",
        directory.display(),
    )
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Folder of the trials.
const TRIALS: &str = "trials";

/// Whether a path leads to a folder below that of the trials.
fn is_within(dir: &str) -> bool {
    let mut parts = Path::new(dir).components();
    let first = parts.next() == Some(Component::Normal(TRIALS.as_ref()));
    let rest: Vec<_> = parts.collect();
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
    first && !rest.is_empty() && rest.iter().all(is_name)
}

/// The rows of a directory, the last of each trial. A torn last line is none.
pub(super) fn read(directory: &Path) -> Result<Vec<Row>, String> {
    let path = directory.join(RESULTS);
    let shown = path.display();
    let file = File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{} holds no results: name the --out of a run",
            directory.display()
        ),
        _ => format!("cannot read {shown}: {}", super::reason(&error)),
    })?;
    let mut rows: BTreeMap<(String, u32), Row> = BTreeMap::new();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("cannot read {shown}: {}", super::reason(&error)))?;
        if length == 0 || line.last() != Some(&b'\n') {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row: Row = serde_json::from_slice(&line)
            .map_err(|error| format!("{shown} line {number} is damaged: {error}"))?;
        // What lies there is removed, linked and written: never outside of the run.
        if !is_within(&row.dir) {
            return Err(format!(
                "{shown} line {number} is damaged: `dir` is {:?}, which is no folder of a trial",
                row.dir
            ));
        }
        rows.insert((row.task.clone(), row.trial), row);
    }
    Ok(rows.into_values().collect())
}

/// A line, and who waits until the disk has it.
type Line = (Vec<u8>, oneshot::Sender<Result<(), String>>);

/// Adds rows, on a separate thread.
#[derive(Debug)]
pub(super) struct Writer {
    lines: Option<mpsc::Sender<Line>>,
    thread: Option<JoinHandle<()>>,
}

/// Rows that may wait; then who adds one waits.
const WAITING: usize = 1024;

impl Writer {
    fn start(directory: &Path) -> io::Result<Self> {
        let path = directory.join(RESULTS);
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        sync_directory(directory)?;
        let mut whole = file.metadata()?.len();
        let (lines, mut arrived) = mpsc::channel::<Line>(WAITING);
        let directory = directory.to_owned();
        let work = move || {
            let mut batch = Vec::new();
            while let Some((text, waiting)) = arrived.blocking_recv() {
                batch.clear();
                let mut all = text;
                batch.push(waiting);
                while let Ok((text, waiting)) = arrived.try_recv() {
                    all.extend_from_slice(&text);
                    batch.push(waiting);
                }
                let written = file.write_all(&all).and_then(|()| file.sync_data());
                let result = match written {
                    Ok(()) => {
                        whole += all.len() as u64;
                        Ok(())
                    }
                    Err(error) => {
                        // What is there of these lines is not told as recorded.
                        let _ = file.set_len(whole);
                        Err(cannot_write(&directory, &error))
                    }
                };
                for waiting in batch.drain(..) {
                    let _ = waiting.send(result.clone());
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("eval-results".to_owned())
            .spawn(work)?;
        Ok(Self {
            lines: Some(lines),
            thread: Some(thread),
        })
    }

    /// Adds a row; answers when the disk has it.
    pub(super) async fn add(&self, row: &Row) -> Result<(), String> {
        let mut line = serde_json::to_vec(row).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let (done, result) = oneshot::channel();
        let gone = || "the writer of the results has ended".to_owned();
        let lines = self.lines.as_ref().ok_or_else(gone)?;
        lines.send((line, done)).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_trials_lie_below_the_run() {
        for dir in ["trials/a.1", "trials/a b.12", "trials/a/b.1"] {
            assert!(is_within(dir), "{dir}");
        }
        for dir in [
            "",
            "trials",
            "trials/..",
            "trials/../../etc",
            "../trials/a.1",
            "/etc",
            "/trials/a.1",
            "other/a.1",
        ] {
            assert!(!is_within(dir), "{dir}");
        }
        let place = tempfile::tempdir().expect("a directory");
        let mut bad = row("a", 1, Outcome::Passed);
        bad.dir = "../elsewhere".to_owned();
        let line = format!("{}\n", serde_json::to_string(&bad).expect("JSON"));
        std::fs::write(place.path().join(RESULTS), line).expect("written");
        let error = read(place.path()).expect_err("damaged");
        assert!(error.ends_with("which is no folder of a trial"), "{error}");
    }

    fn row(task: &str, trial: u32, outcome: Outcome) -> Row {
        Row {
            task: task.to_owned(),
            trial,
            seed: String::new(),
            outcome,
            passed: outcome.passed(),
            rewards: None,
            reason: None,
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
            rounds: 1,
            tokens: Tokens::default(),
            cost_usd: None,
            started_at: String::new(),
            wall_ms: 1,
            model_ms: 1,
            tool_ms: 0,
            check_ms: 0,
            attempts: 1,
            lock: "l".to_owned(),
            parts: Parts::default(),
            dir: format!("trials/{task}.{trial}"),
        }
    }

    #[tokio::test]
    async fn what_is_added_is_read_and_a_torn_line_is_not() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::take(place.path()).expect("taken");
        let writer = directory.writer().expect("a writer");
        for (task, outcome) in [
            ("a", Outcome::Failed),
            ("b", Outcome::Passed),
            ("a", Outcome::Passed),
        ] {
            writer.add(&row(task, 1, outcome)).await.expect("added");
        }
        drop(writer);
        let path = place.path().join(RESULTS);
        let mut file = OpenOptions::new().append(true).open(&path).expect("a file");
        file.write_all(b"{\"task\":\"c\"").expect("written");
        let expected = [row("a", 1, Outcome::Passed), row("b", 1, Outcome::Passed)];
        assert_eq!(read(place.path()).expect("rows"), expected);
        directory.rewrite(&expected[1..]).expect("rewritten");
        assert_eq!(read(place.path()).expect("rows"), expected[1..]);
    }

    #[test]
    fn a_directory_has_one_run_at_a_time() {
        let place = tempfile::tempdir().expect("a directory");
        let first = Directory::take(place.path()).expect("taken");
        let refused = Directory::take(place.path()).expect_err("in use");
        let expected = format!(
            "{} is in use by another run (process {}): wait for it, or choose another --out",
            place.path().display(),
            std::process::id()
        );
        assert_eq!(refused, expected);
        drop(first);
        Directory::take(place.path()).expect("free again");
    }
}
