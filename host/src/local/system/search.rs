//! Searching a real tree with ripgrep's own crates, in process.
//!
//! The rules are those of the core's own search (`hermitcrab::environment`), so
//! that every environment finds the same: `.gitignore` and `.ignore` files at
//! and below the searched directory count, also outside a repository; those
//! above it and the user's global ones do not. Hidden files are left out unless
//! a glob names them, `.git` always. A file with a NUL byte in its first 8 KiB is
//! binary and left out, a larger one than 50 MiB too. A symbolic link to a file
//! is a file; one to a directory is not entered. A file that is named itself is
//! searched whatever the ignore files say.
//! Source: spec 3.3 and 4.2.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkMatch};
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentError, EnvironmentErrorKind as Kind, GlobRequest, GrepRequest,
    Match, Matches, PathGlob,
};
use ignore::{WalkBuilder, WalkState};

use super::Stop;
use super::files::{modified_ms, open_found};
use crate::local::failure::failure;

/// Text of matching lines kept in one search, bytes; more is cut off.
const MAX_TEXT: u64 = 16 * 1024 * 1024;
/// Larger files are not searched, bytes.
const MAX_FILE_BYTES: u64 = 50 * 1024 * 1024;
/// Up to this size, in bytes, a file is read whole and then searched.
const SMALL_FILE_BYTES: usize = 256 * 1024;
/// Where a NUL byte makes a file binary: in its first bytes.
const BINARY_WINDOW: u64 = 8 * 1024;
/// Bytes of a line that a match carries; what is beyond is cut off.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// Directories nested deeper than this are left out.
const MAX_DEPTH: usize = 256;
/// Threads of one search; more only fight over the disk.
const MAX_THREADS: usize = 8;

/// Whether `path` (absolute) matches, seen from one of `roots`.
fn matches(glob: &PathGlob, path: &Path, roots: &[&Path]) -> bool {
    let relative = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
    glob.matches_any(relative, path)
}

/// Searches contents; matches come by path (as a string), then line.
pub(super) fn grep(
    working_directory: &Path,
    request: &GrepRequest,
    stop: &Stop,
) -> Result<Matches, EnvironmentError> {
    let matcher = line_matcher(request)?;
    let scope = Scope::new(working_directory, &request.path);
    let filter = request.glob_filter.as_deref().map(PathGlob::new);
    let filter = filter.transpose()?;
    let (mut files, complete) = scope.files(stop, Hidden::Skip, Facts::None, |path| {
        filter
            .as_ref()
            .is_none_or(|filter| matches(filter, path, &[&scope.root, scope.working_directory]))
    })?;
    files.sort_unstable_by(|a, b| a.shown.cmp(&b.shown));
    let search = Search {
        files: &files,
        matcher: &matcher,
        stop,
        limit: match request.max_results {
            0 => u64::MAX,
            limit => limit,
        },
        next: AtomicUsize::new(0),
        lines: AtomicU64::new(0),
        text: AtomicU64::new(0),
        found: Mutex::default(),
    };
    std::thread::scope(|threads| {
        for _ in 1..thread_count().min(files.len()) {
            threads.spawn(|| search.run());
        }
        search.run();
    });
    let cut = search.text.load(Ordering::Relaxed) > MAX_TEXT;
    let mut found = search
        .found
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(index, _)| *index);
    let mut matches: Vec<Match> = found.into_iter().flat_map(|(_, lines)| lines).collect();
    let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
    let truncated = !complete || cut || stop.reached() || matches.len() > limit;
    matches.truncate(limit);
    Ok(Matches { matches, truncated })
}

/// Finds files by name, newest first, ties by path.
pub(super) fn glob(
    working_directory: &Path,
    request: &GlobRequest,
    stop: &Stop,
) -> Result<Entries, EnvironmentError> {
    let pattern = PathGlob::new(&request.pattern)?;
    let scope = Scope::new(working_directory, &request.path);
    if std::fs::metadata(&scope.root).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(EnvironmentError::new(
            Kind::NotDirectory,
            format!("not a directory: {}", request.path),
        ));
    }
    let hidden = match pattern.names_hidden() {
        true => Hidden::Show,
        false => Hidden::Skip,
    };
    let (mut files, complete) = scope.files(stop, hidden, Facts::All, |path| {
        matches(&pattern, path, &[&scope.root])
    })?;
    files.sort_unstable_by(|a, b| {
        let newest = b.modified_ms.cmp(&a.modified_ms);
        newest.then_with(|| a.shown.cmp(&b.shown))
    });
    let mut entries: Vec<DirEntry> = files
        .into_iter()
        .map(|file| DirEntry {
            path: file.shown,
            is_dir: false,
            size: Some(file.size),
            modified_ms: file.modified_ms,
        })
        .collect();
    let limit = match request.max_results {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let truncated = !complete || entries.len() > limit;
    entries.truncate(limit);
    Ok(Entries { entries, truncated })
}

fn line_matcher(request: &GrepRequest) -> Result<RegexMatcher, EnvironmentError> {
    let pattern = &request.pattern;
    RegexMatcherBuilder::new()
        .case_insensitive(request.case_insensitive)
        .multi_line(true)
        // Sets the line terminator too; `$` then stands before `\r\n`.
        .crlf(true)
        .build(pattern)
        .map_err(|error| {
            let reason = match error.kind() {
                ErrorKind::NotAllowed(_) => {
                    "it is matched line by line and cannot contain a line break".to_owned()
                }
                _ => last_line(&error.to_string()),
            };
            EnvironmentError::new(
                Kind::InvalidInput,
                format!("invalid regular expression {pattern:?}: {reason}"),
            )
        })
}

/// The regex crate draws the pattern over several lines; the last one says what
/// is wrong.
fn last_line(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// What a walk does with names that begin with a dot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// Leaves them out unless an ignore file lists them as wanted.
    Skip,
    /// Treats them like any other.
    Show,
}

/// What is asked of a file that the walk finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Facts {
    /// Nothing: whoever opens it sees.
    None,
    /// Its size and time, which takes a call of the system.
    All,
}

/// A file to search, with its path as results show it.
struct Found {
    path: PathBuf,
    shown: String,
    size: u64,
    modified_ms: Option<u64>,
}

/// What one thread of a walk has found, for all of them when it ends.
struct Part<'a> {
    found: Vec<Found>,
    all: &'a Mutex<Vec<Found>>,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut self.found);
    }
}

/// Where to search and how to show what is found there.
struct Scope<'a> {
    working_directory: &'a Path,
    root: PathBuf,
}

impl<'a> Scope<'a> {
    fn new(working_directory: &'a Path, path: &str) -> Self {
        Self {
            working_directory,
            root: normalised(&working_directory.join(path)),
        }
    }

    /// Relative to the working directory when below it, else absolute.
    fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(self.working_directory).unwrap_or(path);
        below.to_string_lossy().into_owned()
    }

    fn shown_root(&self) -> String {
        match self.shown(&self.root) {
            empty if empty.is_empty() => ".".to_owned(),
            shown => shown,
        }
    }

    /// The wanted files, in no order, and whether the walk was complete.
    fn files(
        &self,
        stop: &Stop,
        hidden: Hidden,
        facts: Facts,
        wanted: impl Fn(&Path) -> bool + Sync,
    ) -> Result<(Vec<Found>, bool), EnvironmentError> {
        let fail = |error: io::Error| failure("search", &self.shown_root(), &error);
        let metadata = std::fs::metadata(&self.root).map_err(fail)?;
        if !metadata.is_dir() {
            return Ok((vec![self.found(self.root.clone(), Some(&metadata))], true));
        }
        std::fs::read_dir(&self.root).map_err(fail)?;
        let files = Mutex::new(Vec::new());
        let walk = WalkBuilder::new(&self.root)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .require_git(false)
            .hidden(hidden == Hidden::Skip)
            .max_depth(Some(MAX_DEPTH))
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .threads(thread_count())
            .build_parallel();
        walk.run(|| {
            let mut part = Part {
                found: Vec::new(),
                all: &files,
            };
            let (wanted, scope) = (&wanted, self);
            Box::new(move |entry| {
                if stop.reached() {
                    return WalkState::Quit;
                }
                if let Ok(entry) = entry
                    && let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir())
                    && wanted(entry.path())
                {
                    // Where a link leads is not known yet.
                    let metadata = match facts == Facts::None && kind.is_file() {
                        true => None,
                        false => match std::fs::metadata(entry.path()) {
                            Ok(metadata) if metadata.is_file() => Some(metadata),
                            _ => return WalkState::Continue,
                        },
                    };
                    part.found
                        .push(scope.found(entry.into_path(), metadata.as_ref()));
                }
                WalkState::Continue
            })
        });
        let files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((files, !stop.reached()))
    }

    fn found(&self, path: PathBuf, metadata: Option<&std::fs::Metadata>) -> Found {
        Found {
            shown: self.shown(&path),
            path,
            size: metadata.map_or(0, std::fs::Metadata::len),
            modified_ms: metadata.and_then(modified_ms),
        }
    }
}

/// Removes `.` and `..` by name, as the core does.
fn normalised(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

fn thread_count() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS)
}

/// One search over a sorted list of files, shared by its threads. Files are
/// handed out in order, so that once enough lines are found every earlier file
/// has been searched too.
struct Search<'a> {
    files: &'a [Found],
    matcher: &'a RegexMatcher,
    stop: &'a Stop,
    limit: u64,
    next: AtomicUsize,
    lines: AtomicU64,
    text: AtomicU64,
    found: Mutex<Vec<(usize, Vec<Match>)>>,
}

impl Search<'_> {
    fn run(&self) {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .bom_sniffing(false)
            .build();
        let mut whole = Vec::with_capacity(SMALL_FILE_BYTES + 1);
        while !self.full() && !self.stop.reached() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = self.files.get(index) else {
                return;
            };
            let lines = self.search_file(&mut searcher, &mut whole, file);
            if !lines.is_empty() {
                self.lines.fetch_add(lines.len() as u64, Ordering::Relaxed);
                self.found
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((index, lines));
            }
        }
    }

    fn full(&self) -> bool {
        self.lines.load(Ordering::Relaxed) > self.limit
            || self.text.load(Ordering::Relaxed) > MAX_TEXT
    }

    /// A file that cannot be read, is binary or too large has no matches.
    /// `whole` is used again for each small one.
    fn search_file(
        &self,
        searcher: &mut Searcher,
        whole: &mut Vec<u8>,
        file: &Found,
    ) -> Vec<Match> {
        let mut lines = Lines {
            search: self,
            path: &file.shown,
            matches: Vec::new(),
        };
        let Ok((mut open, size)) = open_found(&file.path, &file.shown) else {
            return lines.matches;
        };
        if size <= SMALL_FILE_BYTES as u64 {
            whole.clear();
            let most = SMALL_FILE_BYTES as u64 + 1;
            let read = Read::take(&mut open, most).read_to_end(whole);
            // One that has grown meanwhile is searched as it was.
            if read.is_ok()
                && let Some(text) = text_of(whole)
            {
                let _ = searcher.search_slice(self.matcher, text, &mut lines);
            }
        } else if size <= MAX_FILE_BYTES
            && let Ok(Some(start)) = text_start(&mut open)
        {
            let rest = Stoppable {
                file: open,
                stop: self.stop,
            };
            // An error half way leaves what was found before it.
            let _ = searcher.search_reader(self.matcher, start.chain(rest), &mut lines);
        }
        lines.matches
    }
}

/// The text of a file without a byte order mark; none if it is binary.
fn text_of(whole: &[u8]) -> Option<&[u8]> {
    let window = usize::try_from(BINARY_WINDOW).unwrap_or(usize::MAX);
    let is_binary = whole[..whole.len().min(window)].contains(&0);
    let text = whole.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(whole);
    (!is_binary).then_some(text)
}

/// The first bytes of a file without a byte order mark; none if it is binary.
fn text_start(file: &mut File) -> io::Result<Option<io::Cursor<Vec<u8>>>> {
    let mut start = Vec::new();
    file.take(BINARY_WINDOW).read_to_end(&mut start)?;
    if start.contains(&0) {
        return Ok(None);
    }
    let mark = start.starts_with(b"\xEF\xBB\xBF");
    let mut start = io::Cursor::new(start);
    start.set_position(if mark { 3 } else { 0 });
    Ok(Some(start))
}

/// Collects the matching lines of one file.
struct Lines<'a> {
    search: &'a Search<'a>,
    path: &'a str,
    matches: Vec<Match>,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = found.bytes();
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = &line[..line.len().min(MAX_LINE_BYTES)];
        let text = &self.search.text;
        let kept = text.fetch_add(line.len() as u64, Ordering::Relaxed);
        self.matches.push(Match {
            path: self.path.to_owned(),
            line: found.line_number().unwrap_or(0),
            text: String::from_utf8_lossy(line).into_owned(),
        });
        // One more than asked for tells that something was left out.
        let full = kept > MAX_TEXT || self.matches.len() as u64 > self.search.limit;
        Ok(!full && !self.search.stop.reached())
    }
}

/// Ends a large file early, even if nothing matches.
struct Stoppable<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.reached() {
            true => Ok(0),
            false => self.file.read(buffer),
        }
    }
}
