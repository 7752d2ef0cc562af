//! Where checkpoints are: a directory for each session with a log of changes, and one
//! file with the contents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::state::State;
use crate::keys::Keys;
use crate::store::lock::{Lock, private, private_dir};
use crate::store::{is_id, ms_of, new_id};

const ABOUT: &str = "about.json";
const CHANGES: &str = "changes.jsonl";
const CONTENTS: &str = "contents";
/// What undoing took away: a directory for each time, beside those of the sessions.
const UNDONE: &str = "undone";
const LOCK: &str = "lock";
/// How long a lock is waited for.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// What checkpoints may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of contents of one session.
    pub session_bytes: u64,
    /// Bytes of all sessions; the oldest go first.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files of a tree in which commands are watched.
    pub files: usize,
    /// Time for a look through the tree, and as much again for keeping its contents.
    pub scan: Duration,
}

impl Default for Limits {
    /// 256 MiB, 1 GiB, 10 MiB, 20,000 files, 2 s.
    fn default() -> Self {
        Self {
            session_bytes: 256 << 20,
            total_bytes: 1 << 30,
            file_bytes: 10 << 20,
            files: 20_000,
            scan: Duration::from_secs(2),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct About {
    directory: String,
}

/// A line of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// A content is kept, at this place.
    Content { hash: String, at: u64, length: u64 },
    /// A round begins.
    Round { round: u64 },
    /// A path changed.
    Change(Change),
    /// A command begins.
    Began { round: u64, command: String },
    /// It has ended.
    Ended { command: String },
    /// Changes of this round are not noted, and why.
    Uncovered { round: u64, why: String },
    /// Everything from this round on was undone.
    Undone { from: u64 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) round: u64,
    pub(super) path: String,
    pub(super) before: State,
    pub(super) after: State,
    /// What changed it.
    pub(super) by: String,
}

/// The checkpoints of all sessions.
#[derive(Clone, Debug)]
pub struct CheckpointStore {
    dir: PathBuf,
    limits: Limits,
}

/// The checkpoints of one session, held by this process.
pub struct Checkpoints {
    pub(super) dir: PathBuf,
    pub(super) limits: Limits,
    log: File,
    contents: File,
    kept: HashMap<String, (u64, u64)>,
    end: u64,
    pub(super) round: u64,
    pub(super) changes: Vec<Change>,
    pub(super) uncovered: Vec<(u64, String)>,
    /// Commands that run, with their rounds.
    commands: Vec<(u64, String)>,
    /// What does not get into the log.
    keys: Keys,
    failed: Option<String>,
    _lock: Lock,
}

/// A round in which something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundChanges {
    /// Its number: answers of the model count, from 1.
    pub round: u64,
    /// What changed, absolute.
    pub paths: BTreeSet<String>,
    /// What changed it: a tool or a command line, in the order in which they did.
    pub by: Vec<String>,
    /// Why not all of it can be undone.
    pub uncovered: Vec<String>,
}

impl CheckpointStore {
    /// Checkpoints in `dir`, which becomes private to the user.
    pub fn new(dir: impl Into<PathBuf>, limits: Limits) -> Self {
        Self {
            dir: dir.into(),
            limits,
        }
    }

    /// Begins, or goes on with, the checkpoints of the session `id` in `directory`; without
    /// an id those of one that nobody goes on with. Those
    /// of the oldest other sessions go where there are too many.
    ///
    /// # Errors
    /// There is no place for them, or another process has them.
    pub fn begin(&self, id: Option<&str>, directory: &Path) -> io::Result<Checkpoints> {
        let id = match id {
            Some(id) if is_id(id) => id.to_owned(),
            Some(_) => return Err(io::ErrorKind::InvalidInput.into()),
            None => new_id(ms_of(SystemTime::now())).map_err(io::Error::other)?,
        };
        let id = id.as_str();
        self.evict(id);
        let path = self.dir.join(id);
        private_dir(&path)?;
        let lock = lock(&path)?;
        let directory = directory.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let about = About {
            directory: directory.to_owned(),
        };
        let mut file = private().truncate(true).open(path.join(ABOUT))?;
        file.write_all(&serde_json::to_vec(&about)?)?;
        Checkpoints::open(path, self.limits, lock)
    }

    /// The checkpoints of the session that changed something in `directory` last, or of
    /// the session `id`. None: there are none.
    ///
    /// # Errors
    /// Another process has them, or they cannot be read.
    pub fn newest(&self, directory: &Path, id: Option<&str>) -> io::Result<Option<Checkpoints>> {
        let of_id = |path: &PathBuf| match id {
            Some(id) => path.file_name().and_then(|name| name.to_str()) == Some(id),
            None => about(path).is_some_and(|about| Path::new(&about.directory) == directory),
        };
        let found = self.sessions().into_iter().find(|(path, ..)| of_id(path));
        let Some((path, ..)) = found else {
            return Ok(None);
        };
        let lock = lock(&path)?;
        Checkpoints::open(path, self.limits, lock).map(Some)
    }

    /// Directories of sessions with when they changed last and their bytes, newest first.
    fn sessions(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut sessions: Vec<_> = entries
            .filter_map(|entry| {
                let path = entry.path();
                let metadata = |name| fs::metadata(path.join(name)).ok();
                let changes = metadata(CHANGES)?;
                let bytes = changes.len() + metadata(CONTENTS).map_or(0, |file| file.len());
                let when = changes.modified().ok()?;
                Some((path, when, bytes))
            })
            .collect();
        sessions.sort_by_key(|(_, when, _)| std::cmp::Reverse(*when));
        sessions
    }

    /// What undoing took away: directories with when that was and their bytes.
    fn undone(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let entries = fs::read_dir(self.dir.join(UNDONE));
        let entries = entries.into_iter().flatten().flatten();
        let undone = entries.filter_map(|entry| {
            let when = entry.metadata().ok()?.modified().ok()?;
            Some((entry.path(), when, bytes_below(&entry.path())))
        });
        undone.collect()
    }

    /// Removes what is kept of the session `id`, and what undoing it took away.
    ///
    /// # Errors
    /// Another process has it, or it cannot be removed.
    pub fn delete(&self, id: &str) -> io::Result<()> {
        let path = self.dir.join(id);
        if !is_id(id) || !path.exists() {
            return self.delete_undone(id);
        }
        let _lock = lock(&path)?;
        fs::remove_dir_all(&path)?;
        self.delete_undone(id)
    }

    fn delete_undone(&self, id: &str) -> io::Result<()> {
        let of_id = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.rsplit_once('-'))
                .is_some_and(|(of, _)| of == id)
        };
        let undone = self.undone().into_iter().map(|(path, ..)| path);
        undone.filter(of_id).try_for_each(fs::remove_dir_all)
    }

    /// Removes the oldest sessions but `id`, so that another one of full size has room.
    fn evict(&self, id: &str) {
        let room = self
            .limits
            .total_bytes
            .saturating_sub(self.limits.session_bytes);
        let mut all = self.sessions();
        let undone = self.undone();
        all.extend(undone.iter().cloned());
        all.sort_by_key(|(_, when, _)| std::cmp::Reverse(*when));
        let mut bytes = 0;
        for (path, _, size) in all {
            bytes += size;
            if bytes > room && undone.iter().any(|(undone, ..)| *undone == path) {
                let _ = fs::remove_dir_all(&path);
                continue;
            }
            let is_own = path.file_name().is_some_and(|name| name == id);
            if bytes > room
                && !is_own
                && let Ok(Some(_lock)) = Lock::take(&path.join(LOCK))
            {
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

/// Takes the lock of a session. Who just held it may have started a command that has its
/// files for a moment, too, so it is waited for a little.
fn lock(path: &Path) -> io::Result<Lock> {
    let until = Instant::now() + LOCK_WAIT;
    loop {
        if let Some(lock) = Lock::take(&path.join(LOCK))? {
            return Ok(lock);
        }
        if Instant::now() > until {
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "a session is working there: wait for its end, or end it",
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes of the files below `dir`.
fn bytes_below(dir: &Path) -> u64 {
    let walk = ignore::WalkBuilder::new(dir)
        .standard_filters(false)
        .build();
    let files = walk.flatten().filter_map(|entry| entry.metadata().ok());
    files
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

fn about(path: &Path) -> Option<About> {
    serde_json::from_slice(&fs::read(path.join(ABOUT)).ok()?).ok()
}

impl Checkpoints {
    fn open(dir: PathBuf, limits: Limits, lock: Lock) -> io::Result<Self> {
        let mut log = private()
            .read(true)
            .truncate(false)
            .open(dir.join(CHANGES))?;
        let contents = private()
            .read(true)
            .truncate(false)
            .open(dir.join(CONTENTS))?;
        let mut all = Self {
            limits,
            contents,
            kept: HashMap::new(),
            end: 0,
            round: 0,
            changes: Vec::new(),
            uncovered: Vec::new(),
            commands: Vec::new(),
            keys: Keys::default(),
            failed: None,
            _lock: lock,
            log: log.try_clone()?,
            dir,
        };
        let mut whole = 0;
        let mut lines = BufReader::new(&mut log);
        let mut text = Vec::new();
        let mut number = 0;
        while lines.read_until(b'\n', &mut text)? > 0 && text.ends_with(b"\n") {
            number += 1;
            let Ok(line) = serde_json::from_slice(&text) else {
                let name = all.dir.join(CHANGES);
                // Nothing of it is thrown away.
                all.failed = Some("it is damaged".to_owned());
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("line {number} of {} is damaged", name.display()),
                ));
            };
            all.take(line);
            whole += text.len() as u64;
            text.clear();
        }
        // A process that was killed may have left a half line.
        log.set_len(whole)?;
        all.log.seek(SeekFrom::End(0))?;
        let killed: Vec<Line> = all
            .commands
            .iter()
            .map(|(round, command)| Line::Uncovered {
                round: *round,
                why: format!(
                    "what {command} changed is not noted: the session was killed while it ran"
                ),
            })
            .collect();
        if !killed.is_empty() {
            all.add(killed);
            all.end_commands();
        }
        Ok(all)
    }

    /// What a line says.
    fn take(&mut self, line: Line) {
        match line {
            Line::Content { hash, at, length } => {
                self.end = self.end.max(at + length);
                self.kept.insert(hash, (at, length));
            }
            Line::Round { round } => self.round = round,
            Line::Change(change) => self.changes.push(change),
            Line::Began { round, command } => self.commands.push((round, command)),
            Line::Ended { command } => {
                let at = self
                    .commands
                    .iter()
                    .position(|(_, other)| *other == command);
                at.map(|at| self.commands.remove(at));
            }
            Line::Uncovered { round, why } => self.uncovered.push((round, why)),
            Line::Undone { from } => {
                self.changes.retain(|change| change.round < from);
                self.uncovered.retain(|(round, _)| *round < from);
            }
        }
    }

    /// Keeps `secrets` out of the command lines in the log.
    #[must_use]
    pub fn without<'a>(mut self, secrets: impl IntoIterator<Item = &'a str>) -> Self {
        self.keys = Keys::new(secrets.into_iter());
        self
    }

    /// Writes lines to the log, and takes them.
    pub(super) fn add(&mut self, mut lines: Vec<Line>) {
        if self.failed.is_some() {
            return;
        }
        for line in &mut lines {
            if let Line::Began { command: text, .. }
            | Line::Ended { command: text }
            | Line::Change(Change { by: text, .. }) = line
            {
                *text = self.keys.without(text);
            }
        }
        let mut text = Vec::new();
        for line in &lines {
            if serde_json::to_writer(&mut text, line).is_ok() {
                text.push(b'\n');
            }
        }
        if let Err(error) = self.log.write_all(&text) {
            self.failed = Some(error.to_string());
        }
        lines.into_iter().for_each(|line| self.take(line));
    }

    /// No command runs.
    pub(super) fn end_commands(&mut self) {
        let commands = std::mem::take(&mut self.commands);
        let ended = commands
            .into_iter()
            .map(|(_, command)| Line::Ended { command });
        let ended: Vec<Line> = ended.collect();
        if !ended.is_empty() {
            self.add(ended);
        }
    }

    /// A new directory for what is about to be taken away.
    pub(super) fn place_for_undone(&self) -> PathBuf {
        let id = self.dir.file_name().unwrap_or_default().to_string_lossy();
        let places = self.dir.with_file_name(UNDONE);
        let mut number = 1_u64;
        loop {
            let place = places.join(format!("{id}-{number}"));
            if !place.exists() {
                return place;
            }
            number += 1;
        }
    }

    /// Keeps a content. An error says why it is not kept.
    pub(super) fn keep(&mut self, hash: &str, content: &[u8]) -> Result<(), String> {
        if self.kept.contains_key(hash) {
            return Ok(());
        }
        let length = content.len() as u64;
        if self.end + length > self.limits.session_bytes {
            let mib = self.limits.session_bytes >> 20;
            return Err(format!("checkpoints of a session take {mib} MiB at most"));
        }
        let at = self.end;
        self.contents
            .write_all_at(content, at)
            .map_err(|error| error.to_string())?;
        self.add(vec![Line::Content {
            hash: hash.to_owned(),
            at,
            length,
        }]);
        Ok(())
    }

    /// A content that is kept, as it was.
    pub(super) fn content(&self, hash: &str) -> Option<Vec<u8>> {
        let (at, length) = self.kept.get(hash)?;
        let mut content = vec![0; usize::try_from(*length).ok()?];
        self.contents.read_exact_at(&mut content, *at).ok()?;
        (super::state::hash(&content) == hash).then_some(content)
    }

    /// Whether a content is kept.
    pub(super) fn has(&self, hash: &str) -> bool {
        self.kept.contains_key(hash)
    }

    /// Why nothing is noted any more, if that is so.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The rounds in which something changed, in their order.
    pub fn steps(&self) -> Vec<RoundChanges> {
        let mut steps: BTreeMap<u64, RoundChanges> = BTreeMap::new();
        let empty = |round| RoundChanges {
            round,
            paths: BTreeSet::new(),
            by: Vec::new(),
            uncovered: Vec::new(),
        };
        for change in &self.changes {
            let step = steps
                .entry(change.round)
                .or_insert_with(|| empty(change.round));
            step.paths.insert(change.path.clone());
            if step.by.last() != Some(&change.by) {
                step.by.push(change.by.clone());
            }
        }
        for (round, why) in &self.uncovered {
            let step = steps.entry(*round).or_insert_with(|| empty(*round));
            if !step.uncovered.contains(why) {
                step.uncovered.push(why.clone());
            }
        }
        steps.into_values().collect()
    }
}

impl Drop for Checkpoints {
    /// Nothing to undo is nothing to keep.
    fn drop(&mut self) {
        if self.changes.is_empty() && self.failed.is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
