//! Verifies a whole patch in memory: every file is read and every hunk applied
//! before the first write. Files that the patch changed earlier are seen as
//! they then are.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::future::join_all;

use super::apply::apply_within;
use super::patch::{Action, FilePatch, Hunk, Patch};
use super::seek::Work;
use crate::environment::{Environment, EnvironmentError, EnvironmentErrorKind, is_within};
use crate::text::{Encoding, decode_file};
use crate::tool::read_file::read_existing;
use crate::tool::{CallContext, Declared, MAX_FILE_BYTES, ToolError};

/// Longest path; the limit of Linux.
const MAX_PATH_BYTES: usize = 4096;

/// What the files that a patch names hold, before and after.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// By absolute path, in the order in which the patch names them.
    pub(super) files: Vec<(String, FileState)>,
    /// Where in `files` a path is.
    index: BTreeMap<String, usize>,
    /// Directories that are not there and come into being.
    pub(super) new_dirs: BTreeSet<String>,
    /// Directories that are there.
    known_dirs: BTreeSet<String>,
    /// Paths that lead to another place than they say.
    links: BTreeSet<String>,
    changed: BTreeMap<Change, Vec<String>>,
    work: Work,
}

/// One file before and after the patch.
#[derive(Debug)]
pub(super) struct FileState {
    /// Its content; none where there is no file.
    pub(super) before: Option<Bytes>,
    /// What it shall be.
    pub(super) after: Option<Bytes>,
    /// The file on disk that it was or was moved from; none for a new one.
    pub(super) origin: Option<String>,
}

/// Kinds of change in the order of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
        }
    }
}

/// Absolute paths of all files that `patch` names, sorted. Paths outside of the
/// working directory are refused.
pub(super) fn paths(
    environment: &Environment,
    patch: &Patch,
) -> Result<BTreeSet<String>, ToolError> {
    names(patch)
        .map(|(line, path)| resolve(environment, line, path))
        .collect()
}

/// Every path that `patch` names, with its line.
fn names(patch: &Patch) -> impl Iterator<Item = (usize, &str)> {
    patch
        .files
        .iter()
        .flat_map(|file| {
            let target = match &file.action {
                Action::Update { move_to, .. } => move_to.as_deref(),
                Action::Add { .. } | Action::Delete => None,
            };
            let target = target.map(|target| (file.line + 1, target));
            [Some((file.line, file.path.as_str())), target]
        })
        .flatten()
}

/// Absolute paths among those of `patch` that lead to another place than they
/// say. Refused are those that lead out of the working directory, and two names
/// of one file: each would be changed without what the other one says.
pub(super) async fn links(
    environment: &Environment,
    patch: &Patch,
) -> Result<BTreeSet<String>, ToolError> {
    let mut asked = BTreeMap::new();
    for (line, path) in names(patch) {
        let absolute = resolve(environment, line, path)?;
        asked.entry(absolute).or_insert((line, path));
    }
    let working_directory = environment.absolute("");
    let paths = asked.keys().chain([&working_directory]);
    let mut real = join_all(paths.map(|path| environment.real_path(path))).await;
    let root = match real.pop() {
        Some(Ok(root)) => root,
        Some(Err(error)) => return Err(failed(1, &working_directory, error)),
        None => working_directory.clone(),
    };
    let mut links = BTreeSet::new();
    let mut owners = BTreeMap::new();
    for ((absolute, (line, path)), real) in asked.into_iter().zip(real) {
        let real = real.map_err(|error| failed(line, path, error))?;
        if real == root || !is_within(&real, &root) {
            return Err(at(
                line,
                format!("{path} leads out of the working directory {root}, to {real}"),
            ));
        }
        let rest = |path: &str, root: &str| path[root.trim_end_matches('/').len()..].to_owned();
        if rest(&real, &root) != rest(&absolute, &working_directory) {
            links.insert(absolute);
        }
        if let Some(other) = owners.insert(real, path) {
            let message = format!("{path} is the same file as {other}; use one name for it");
            return Err(at(line, message));
        }
    }
    Ok(links)
}

fn resolve(environment: &Environment, line: usize, path: &str) -> Result<String, ToolError> {
    if path.len() > MAX_PATH_BYTES {
        let message = format!(
            "a path has at most {MAX_PATH_BYTES} bytes, this one {}",
            path.len()
        );
        return Err(at(line, message));
    }
    let absolute = environment.absolute(path);
    let root = root(environment);
    match absolute.strip_prefix(&root) {
        Some(inside) if inside.starts_with('/') => Ok(absolute),
        Some("") => Err(at(
            line,
            format!("{path} is the working directory, not a file"),
        )),
        _ => Err(at(
            line,
            format!(
                "{path} is outside of the working directory {}",
                environment.info().working_directory
            ),
        )),
    }
}

/// The working directory without a final `/`: empty for the root itself.
fn root(environment: &Environment) -> String {
    let root = environment.absolute("");
    root.trim_end_matches('/').to_owned()
}

fn at(line: usize, message: String) -> ToolError {
    ToolError::new(format!("patch line {line}: {message}"))
}

/// `error` as one about `path`, which line `line` of the patch names.
fn failed(line: usize, path: &str, error: EnvironmentError) -> ToolError {
    match error.kind {
        EnvironmentErrorKind::Cancelled => error.into(),
        _ => at(line, format!("cannot look at {path}: {}", error.message)),
    }
}

/// Applies `patch` to what the files hold now; `links` as [`links`] tells.
pub(super) async fn plan(
    environment: &Environment,
    declared: &Declared,
    patch: &Patch,
    links: BTreeSet<String>,
) -> Result<Plan, ToolError> {
    let mut plan = Plan {
        links,
        ..Plan::default()
    };
    for file in &patch.files {
        let (line, path) = (file.line, file.path.as_str());
        match &file.action {
            Action::Add { content } => {
                let index = plan.create(environment, line, path).await?;
                let state = &mut plan.files[index].1;
                state.after = Some(Bytes::copy_from_slice(content.as_bytes()));
                state.origin = None;
                plan.note(Change::Added, path);
            }
            Action::Delete => {
                let index = plan.existing(environment, declared, line, path).await?;
                let state = &mut plan.files[index].1;
                state.after = None;
                state.origin = None;
                plan.note(Change::Deleted, path);
            }
            Action::Update { move_to, hunks } => {
                plan.update(environment, declared, file, move_to.as_deref(), hunks)
                    .await?;
            }
        }
    }
    Ok(plan)
}

impl Plan {
    /// What the model reads: the letters and the order that codex uses.
    pub(super) fn summary(&self) -> String {
        let mut summary = "Patch applied. Changed files:".to_owned();
        for (change, paths) in &self.changed {
            for path in paths {
                summary.push('\n');
                summary.push(change.letter());
                summary.push(' ');
                summary.push_str(path);
            }
        }
        summary
    }

    /// Refuses to delete or write over what the agent does not know.
    pub(super) fn refuse_unseen(&self, call: &CallContext, patch: &Patch) -> Result<(), ToolError> {
        for file in &patch.files {
            if matches!(file.action, Action::Update { .. }) {
                continue;
            }
            let absolute = call.environment.absolute(&file.path);
            let before = self.get(&absolute).and_then(|state| state.before.as_ref());
            if let Some(change) = before.and_then(|before| call.known.change(&absolute, before)) {
                let message = format!("{} stays as it is: {change}", file.path);
                return Err(at(file.line, message));
            }
        }
        Ok(())
    }

    /// What the files hold that there are then, by absolute path.
    pub(super) fn after(&self) -> impl Iterator<Item = (String, Bytes)> {
        self.files
            .iter()
            .filter_map(|(path, state)| Some((path.clone(), state.after.clone()?)))
    }

    /// The state of the file at `absolute`, where the patch touched it.
    pub(super) fn get(&self, absolute: &str) -> Option<&FileState> {
        let index = self.index.get(absolute)?;
        self.files.get(*index).map(|(_, state)| state)
    }

    /// Whether the file at `absolute` can take another name. A link cannot: it
    /// would lead elsewhere from there.
    pub(super) fn can_move(&self, absolute: &str) -> bool {
        !self.links.contains(absolute)
    }

    /// Whether the patch leaves a file below `absolute`.
    pub(super) fn has_below(&self, absolute: &str) -> bool {
        let below = format!("{absolute}/");
        self.index
            .range(below.clone()..)
            .take_while(|(path, _)| path.starts_with(&below))
            .any(|(_, index)| self.files[*index].1.after.is_some())
    }

    fn note(&mut self, change: Change, path: &str) {
        self.changed
            .entry(change)
            .or_default()
            .push(path.to_owned());
    }

    async fn update(
        &mut self,
        environment: &Environment,
        declared: &Declared,
        file: &FilePatch,
        move_to: Option<&str>,
        hunks: &[Hunk],
    ) -> Result<(), ToolError> {
        let (line, path) = (file.line, file.path.as_str());
        let source = self.existing(environment, declared, line, path).await?;
        let old = self.files[source].1.after.clone().unwrap_or_default();
        let wrong = |reason: String| at(line, format!("cannot change {path}: {reason}"));
        // A NUL byte in UTF-8 is no obstacle to a patch.
        let (text, encoding) = match std::str::from_utf8(&old) {
            Ok(text) => (Cow::Borrowed(text), Encoding::Utf8),
            Err(_) => decode_file(&old).map_err(|reason| wrong(reason.to_string()))?,
        };
        let new = apply_within(path, &text, hunks, &mut self.work)?;
        let new = encoding.encode(new);
        let new = Bytes::from(new.map_err(|reason| wrong(reason.to_string()))?);
        let Some(target) = move_to else {
            self.files[source].1.after = Some(new);
            self.note(Change::Modified, path);
            return Ok(());
        };
        let target_index = self.create(environment, line + 1, target).await?;
        if target_index != source {
            let source = &mut self.files[source].1;
            source.after = None;
            self.files[target_index].1.origin = source.origin.take();
        }
        self.files[target_index].1.after = Some(new);
        self.note(Change::Modified, target);
        Ok(())
    }

    /// Index of the file at `path`, which must be there.
    async fn existing(
        &mut self,
        environment: &Environment,
        declared: &Declared,
        line: usize,
        path: &str,
    ) -> Result<usize, ToolError> {
        let index = self.load(environment, line, path).await?;
        let state = &self.files[index].1;
        if state.after.is_some() {
            return Ok(index);
        }
        if state.before.is_some() {
            let message = format!("file not found: {path}; the patch removed it further up");
            return Err(at(line, message));
        }
        match read_existing(environment, declared, path).await {
            Err(error) => Err(at(line, error.message)),
            Ok(_) => Err(at(
                line,
                format!("{path} came into being just now; try again"),
            )),
        }
    }

    /// Index of the file at `path`, which may be new but must be possible.
    async fn create(
        &mut self,
        environment: &Environment,
        line: usize,
        path: &str,
    ) -> Result<usize, ToolError> {
        let index = self.load(environment, line, path).await?;
        let (absolute, state) = &self.files[index];
        let absolute = absolute.clone();
        if state.after.is_none() {
            if self.has_below(&absolute) {
                let message = format!("{path} is a directory of files further up in the patch");
                return Err(at(line, message));
            }
            self.check_parents(environment, line, &absolute).await?;
        }
        Ok(index)
    }

    /// That everything above `absolute` is a directory or can become one.
    async fn check_parents(
        &mut self,
        environment: &Environment,
        line: usize,
        absolute: &str,
    ) -> Result<(), ToolError> {
        let root = root(environment);
        let mut path = absolute;
        while let Some((parent, _)) = path.rsplit_once('/') {
            if parent.len() <= root.len() || self.known_dirs.contains(parent) {
                break;
            }
            let is_dir = match self.get(parent).map(|state| state.after.is_some()) {
                Some(true) => Some(false),
                Some(false) => None,
                None => match environment.stat(parent).await {
                    Ok(metadata) => Some(metadata.is_dir),
                    Err(error) if is_missing(&error) => None,
                    Err(error) => return Err(failed(line, parent, error)),
                },
            };
            match is_dir {
                Some(true) => {
                    self.known_dirs.insert(parent.to_owned());
                    break;
                }
                Some(false) => {
                    let message = format!("{parent} is a file, it cannot hold {absolute}");
                    return Err(at(line, message));
                }
                None => self.new_dirs.insert(parent.to_owned()),
            };
            path = parent;
        }
        Ok(())
    }

    /// Index of the file at `path`, read if it is not yet known.
    async fn load(
        &mut self,
        environment: &Environment,
        line: usize,
        path: &str,
    ) -> Result<usize, ToolError> {
        let absolute = resolve(environment, line, path)?;
        if let Some(index) = self.index.get(&absolute) {
            return Ok(*index);
        }
        let before = match environment.read(&absolute, MAX_FILE_BYTES).await {
            Ok(content) => Some(content),
            Err(error) if is_missing(&error) => None,
            Err(error) if error.kind == EnvironmentErrorKind::IsDirectory => {
                return Err(at(line, format!("{path} is a directory, not a file")));
            }
            Err(error) if error.kind == EnvironmentErrorKind::TooLarge => {
                let limit = MAX_FILE_BYTES;
                return Err(at(
                    line,
                    format!("{path} is larger than {limit} bytes; use shell"),
                ));
            }
            Err(error) => return Err(failed(line, path, error)),
        };
        let state = FileState {
            after: before.clone(),
            origin: before.is_some().then(|| absolute.clone()),
            before,
        };
        let index = self.files.len();
        self.index.insert(absolute.clone(), index);
        self.files.push((absolute, state));
        Ok(index)
    }
}

/// Whether nothing is there. Below a file nothing can be.
fn is_missing(error: &EnvironmentError) -> bool {
    matches!(
        error.kind,
        EnvironmentErrorKind::NotFound | EnvironmentErrorKind::NotDirectory
    )
}
