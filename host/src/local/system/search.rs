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

use std::borrow::Cow;
use std::cmp::Ordering as Order;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
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
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, SFlag, fstatat};

use super::Stop;
use super::files::open_found;
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
        filter.as_ref().is_none_or(|filter| {
            let working_directory = path.strip_prefix(scope.working_directory).ok();
            let relative = [Some(scope.below_root(path)), working_directory];
            filter.matches_any(relative.into_iter().flatten(), path)
        })
    })?;
    files.sort_unstable_by(|a, b| a.shown_bytes().cmp(b.shown_bytes()));
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
        pattern.matches_any([scope.below_root(path)], path)
    })?;
    let limit = match request.max_results {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let truncated = !complete || files.len() > limit;
    // What is left out need not be put in order.
    if files.len() > limit {
        files.select_nth_unstable_by(limit, Found::newest_first);
        files.truncate(limit);
    }
    files.sort_unstable_by(Found::newest_first);
    let entries = files
        .into_iter()
        .map(|file| DirEntry {
            path: file.shown().into_owned(),
            is_dir: false,
            size: Some(file.size),
            modified_ms: file.modified_ms,
        })
        .collect();
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

/// A file to search.
struct Found {
    path: PathBuf,
    /// Where in `path` begins what results show of it.
    shown_from: usize,
    size: u64,
    modified_ms: Option<u64>,
}

impl Found {
    fn new(path: PathBuf, shown_from: usize, stat: Option<&FileStat>) -> Self {
        Self {
            path,
            shown_from,
            size: stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)),
            modified_ms: stat.and_then(modified_ms),
        }
    }

    fn shown_bytes(&self) -> &[u8] {
        &self.path.as_os_str().as_bytes()[self.shown_from..]
    }

    /// The path as results show it.
    fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.shown_bytes())
    }

    fn newest_first(&self, other: &Self) -> Order {
        let newest = other.modified_ms.cmp(&self.modified_ms);
        newest.then_with(|| self.shown_bytes().cmp(other.shown_bytes()))
    }
}

/// Unix time in milliseconds; none before 1970.
fn modified_ms(stat: &FileStat) -> Option<u64> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    let below = u64::try_from(stat.st_mtime_nsec).ok()? / 1_000_000;
    seconds.checked_mul(1_000)?.checked_add(below)
}

/// What one thread of a walk has found, for all of them when it ends.
struct Part<'a> {
    found: Vec<Found>,
    all: &'a Mutex<Vec<Found>>,
    /// The directory of the last file that was asked for its facts.
    directory: Option<(Vec<u8>, File)>,
}

impl Part<'_> {
    /// The facts of the file that `path` leads to; none if it is none. A walk goes
    /// through a directory file by file, so each is named from there, which spares the
    /// system the way down to it.
    fn stat(&mut self, path: &Path) -> Option<FileStat> {
        let path = path.as_os_str().as_bytes();
        let (directory, name) = path.split_at(path.iter().rposition(|byte| *byte == b'/')? + 1);
        let is_same = |(last, _): &(Vec<u8>, File)| last == directory;
        if !self.directory.as_ref().is_some_and(is_same) {
            let open = File::open(OsStr::from_bytes(directory)).ok()?;
            self.directory = Some((directory.to_owned(), open));
        }
        let (_, open) = self.directory.as_ref()?;
        let stat = fstatat(open, OsStr::from_bytes(name), AtFlags::empty()).ok()?;
        is_file(&stat).then_some(stat)
    }
}

fn is_file(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
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
    /// As the system is asked for it: what a walk finds begins with it.
    root: PathBuf,
    /// Whether the root is the working directory or below it.
    is_below: bool,
}

impl<'a> Scope<'a> {
    fn new(working_directory: &'a Path, path: &str) -> Self {
        let root = normalised(&working_directory.join(path));
        let letters = working_directory.as_os_str().as_bytes();
        let is_below =
            root.starts_with(working_directory) && root.as_os_str().as_bytes().starts_with(letters);
        Self {
            working_directory,
            root,
            is_below,
        }
    }

    /// A path that the walk has found, relative to the root.
    fn below_root<'p>(&self, path: &'p Path) -> &'p Path {
        below(path, &self.root)
    }

    /// Where in `path` begins what is shown: relative to the working directory when
    /// below it, else absolute.
    fn shown_from(&self, path: &Path) -> usize {
        let shown = match self.is_below {
            true => below(path, self.working_directory),
            false => path.strip_prefix(self.working_directory).unwrap_or(path),
        };
        path.as_os_str().len() - shown.as_os_str().len()
    }

    fn shown_root(&self) -> Cow<'_, str> {
        let root = self.root.as_os_str().as_bytes();
        match &root[self.shown_from(&self.root)..] {
            [] => Cow::Borrowed("."),
            shown => String::from_utf8_lossy(shown),
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
        if !std::fs::metadata(&self.root).map_err(fail)?.is_dir() {
            let shown_from = self.shown_from(&self.root);
            return Ok((vec![Found::new(self.root.clone(), shown_from, None)], true));
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
            .filter_entry(|entry| {
                let path = entry.path().as_os_str().as_bytes();
                entry.depth() == 0 || !path.ends_with(b"/.git")
            })
            .threads(thread_count())
            .build_parallel();
        walk.run(|| {
            let mut part = Part {
                found: Vec::new(),
                all: &files,
                directory: None,
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
                    let stat = match facts == Facts::None && kind.is_file() {
                        true => None,
                        false => match part.stat(entry.path()) {
                            None => return WalkState::Continue,
                            stat => stat,
                        },
                    };
                    let shown_from = scope.shown_from(entry.path());
                    let found = Found::new(entry.into_path(), shown_from, stat.as_ref());
                    part.found.push(found);
                }
                WalkState::Continue
            })
        });
        let files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((files, !stop.reached()))
    }
}

/// The rest of `path`, which begins with `directory` letter by letter. A walk asks for
/// this once or twice a file: taking paths apart takes as long as asking for a time.
fn below<'p>(path: &'p Path, directory: &Path) -> &'p Path {
    let path = path.as_os_str().as_bytes();
    let rest = &path[directory.as_os_str().len().min(path.len())..];
    Path::new(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest)))
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
        let shown = file.shown();
        let mut lines = Lines {
            search: self,
            path: &shown,
            matches: Vec::new(),
        };
        let Ok((mut open, size)) = open_found(&file.path, &shown) else {
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
