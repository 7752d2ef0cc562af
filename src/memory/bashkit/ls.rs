//! `ls` as GNU prints it when its output is not a terminal.
//!
//! bashkit's leaves out `.` and `..`, owners and totals, keeps operands in the
//! order given, and knows few options. An option that is unknown here fails.
//!
//! Seen in bashkit 0.20.2; gone when `ls` of `tests/it/bashkit.rs` fails.

use std::path::{Path, PathBuf};

use bashkit::time::UNIX_EPOCH;
use bashkit::{
    Builtin, BuiltinContext, DirEntry, ExecResult, FileSystem, FileType, Metadata, async_trait,
    normalize_path, vfs_join,
};
use chrono::DateTime;

use crate::memory::clock;

/// A time older than this is printed with its year (half a mean year).
const RECENT_SECONDS: i64 = 15_778_476;

/// `ls [OPTION]... [FILE]...`
pub(super) struct Ls;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Name,
    None,
    Time,
    Size,
    Extension,
    Version,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Hidden {
    #[default]
    Skip,
    Almost,
    All,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    None,
    Directories,
    Classify,
}

#[derive(Default)]
struct Options {
    hidden: Hidden,
    sort: Sort,
    mark: Mark,
    flags: Vec<char>,
    time_style: Option<String>,
}

impl Options {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(&flag)
    }
}

struct Entry {
    name: String,
    path: PathBuf,
    metadata: Metadata,
}

#[async_trait]
impl Builtin for Ls {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let (options, mut operands) = match parse(ctx.args) {
            Ok(parsed) => parsed,
            Err(message) => {
                return Ok(ExecResult::err(
                    format!("ls: {message}\nTry 'ls --help' for more information.\n"),
                    2,
                ));
            }
        };
        if operands.is_empty() {
            operands.push(".".to_owned());
        }
        let mut listing = Listing {
            fs: ctx.fs.as_ref(),
            options,
            out: String::new(),
            err: String::new(),
            code: 0,
        };
        listing.run(ctx.cwd, operands).await;
        let mut result = ExecResult::with_code(listing.out, listing.code);
        result.stderr = listing.err.into();
        Ok(result)
    }
}

struct Listing<'a> {
    fs: &'a dyn FileSystem,
    options: Options,
    out: String,
    err: String,
    code: i32,
}

impl Listing<'_> {
    async fn run(&mut self, cwd: &Path, operands: Vec<String>) {
        let several = operands.len() > 1;
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for name in operands {
            let path = normalize_path(&vfs_join(cwd, &name));
            let link_itself = self.options.has('d') || self.options.has('l');
            let found = if link_itself && !name.ends_with('/') && !self.options.has('L') {
                self.fs.lstat(&path).await
            } else {
                match self.fs.stat(&path).await {
                    Ok(metadata) => Ok(metadata),
                    Err(_) => self.fs.lstat(&path).await,
                }
            };
            match found {
                Ok(metadata) => {
                    let is_directory = metadata.file_type.is_dir() && !self.options.has('d');
                    let entry = Entry {
                        name,
                        path,
                        metadata,
                    };
                    if is_directory {
                        directories.push(entry);
                    } else {
                        files.push(entry);
                    }
                }
                Err(error) => {
                    let reason = super::reason(&error);
                    self.err += &format!("ls: cannot access '{name}': {reason}\n");
                    self.code = 2;
                }
            }
        }
        self.sort(&mut files);
        self.sort(&mut directories);
        self.print(&files).await;
        let mut first = files.is_empty();
        let mut pending: Vec<Entry> = directories;
        pending.reverse();
        let headers = several || self.options.has('R');
        while let Some(directory) = pending.pop() {
            let entries = match self.fs.read_dir(&directory.path).await {
                Ok(entries) => entries,
                Err(error) => {
                    let reason = super::reason(&error);
                    self.err +=
                        &format!("ls: cannot open directory '{}': {reason}\n", directory.name);
                    self.code = 2;
                    continue;
                }
            };
            if headers {
                if !std::mem::take(&mut first) {
                    self.out.push('\n');
                }
                self.out += &format!("{}:\n", directory.name);
            }
            let entries = self.collect(&directory, entries).await;
            if self.options.has('l') || self.options.has('s') {
                let total: u64 = entries.iter().map(|entry| blocks(&entry.metadata)).sum();
                let total = if self.options.has('h') {
                    human(total * 1024)
                } else {
                    total.to_string()
                };
                self.out += &format!("total {total}\n");
            }
            self.print(&entries).await;
            if self.options.has('R') {
                let below: Vec<Entry> = entries
                    .into_iter()
                    .filter(|entry| {
                        entry.metadata.file_type.is_dir() && entry.name != "." && entry.name != ".."
                    })
                    .map(|entry| Entry {
                        name: format!("{}/{}", directory.name.trim_end_matches('/'), entry.name),
                        ..entry
                    })
                    .collect();
                pending.extend(below.into_iter().rev());
            }
        }
    }

    async fn collect(&self, directory: &Entry, found: Vec<DirEntry>) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(found.len() + 2);
        if self.options.hidden == Hidden::All {
            for name in [".", ".."] {
                let path = normalize_path(&vfs_join(&directory.path, name));
                if let Ok(metadata) = self.fs.stat(&path).await {
                    entries.push(Entry {
                        name: name.to_owned(),
                        path,
                        metadata,
                    });
                }
            }
        }
        for entry in found {
            if self.options.hidden == Hidden::Skip && entry.name.starts_with('.') {
                continue;
            }
            let path = vfs_join(&directory.path, &entry.name);
            let metadata = if self.options.has('L') {
                self.fs.stat(&path).await.unwrap_or(entry.metadata)
            } else {
                entry.metadata
            };
            entries.push(Entry {
                name: entry.name,
                path,
                metadata,
            });
        }
        self.sort(&mut entries);
        entries
    }

    fn sort(&self, entries: &mut [Entry]) {
        match self.options.sort {
            Sort::None => return,
            Sort::Name => entries.sort_by(|a, b| a.name.cmp(&b.name)),
            Sort::Time => entries.sort_by(|a, b| {
                let (a_time, b_time) = (micros(&a.metadata), micros(&b.metadata));
                b_time.cmp(&a_time).then_with(|| a.name.cmp(&b.name))
            }),
            Sort::Size => entries.sort_by(|a, b| {
                let order = b.metadata.size.cmp(&a.metadata.size);
                order.then_with(|| a.name.cmp(&b.name))
            }),
            Sort::Extension => entries.sort_by(|a, b| {
                let extension = |name: &str| {
                    name.rfind('.')
                        .map_or(String::new(), |at| name[at..].to_owned())
                };
                let order = extension(&a.name).cmp(&extension(&b.name));
                order.then_with(|| a.name.cmp(&b.name))
            }),
            Sort::Version => entries.sort_by(|a, b| version_order(&a.name, &b.name)),
        }
        if self.options.has('r') {
            entries.reverse();
        }
        if self.options.has('D') {
            entries.sort_by_key(|entry| !entry.metadata.file_type.is_dir());
        }
    }

    async fn print(&mut self, entries: &[Entry]) {
        if self.options.has('m') && !entries.is_empty() {
            let names: Vec<String> = entries.iter().map(|e| self.marked(e)).collect();
            self.out += &names.join(", ");
            self.out.push('\n');
            return;
        }
        let width = |text: fn(&Listing<'_>, &Entry) -> String, listing: &Self| {
            entries
                .iter()
                .map(|entry| text(listing, entry).len())
                .max()
                .unwrap_or(0)
        };
        let sizes = width(|listing, entry| listing.size(entry), self);
        let block_width = width(|_, entry| blocks(&entry.metadata).to_string(), self);
        let mut links = Vec::new();
        if self.options.has('l') {
            for entry in entries {
                links.push(self.links(entry).await.to_string());
            }
        }
        let link_width = links.iter().map(String::len).max().unwrap_or(0);
        for (index, entry) in entries.iter().enumerate() {
            if self.options.has('s') {
                self.out += &format!("{:>block_width$} ", blocks(&entry.metadata));
            }
            if self.options.has('l') {
                let owner = match (self.options.has('n'), self.options.has('g')) {
                    (_, true) => "",
                    (true, false) => "1000 ",
                    (false, false) => "user ",
                };
                let group = match (self.options.has('n'), self.options.has('o')) {
                    (_, true) => "",
                    (true, false) => "1000 ",
                    (false, false) => "user ",
                };
                self.out += &format!(
                    "{} {:>link_width$} {owner}{group}{:>sizes$} {} ",
                    permissions(&entry.metadata),
                    links[index],
                    self.size(entry),
                    self.time(&entry.metadata),
                );
            }
            self.out += &self.marked(entry);
            if self.options.has('l')
                && entry.metadata.file_type.is_symlink()
                && let Ok(target) = self.fs.read_link(&entry.path).await
            {
                self.out += &format!(" -> {}", target.display());
            }
            self.out.push('\n');
        }
    }

    fn marked(&self, entry: &Entry) -> String {
        let mark = match (self.options.mark, entry.metadata.file_type) {
            (Mark::Directories | Mark::Classify, FileType::Directory) => "/",
            (Mark::Classify, FileType::Symlink) if !self.options.has('l') => "@",
            (Mark::Classify, FileType::Fifo) => "|",
            (Mark::Classify, FileType::File) if entry.metadata.mode & 0o111 != 0 => "*",
            _ => "",
        };
        if self.options.has('Q') {
            format!("\"{}\"{mark}", entry.name)
        } else {
            format!("{}{mark}", entry.name)
        }
    }

    fn size(&self, entry: &Entry) -> String {
        let size = match entry.metadata.file_type {
            FileType::Directory => 4096,
            _ => entry.metadata.size,
        };
        if self.options.has('h') {
            human(size)
        } else {
            size.to_string()
        }
    }

    async fn links(&self, entry: &Entry) -> usize {
        if !entry.metadata.file_type.is_dir() {
            return 1;
        }
        let entries = self.fs.read_dir(&entry.path).await.unwrap_or_default();
        let below = entries
            .iter()
            .filter(|entry| entry.metadata.file_type.is_dir());
        2 + below.count()
    }

    fn time(&self, metadata: &Metadata) -> String {
        let micros = micros(metadata);
        let seconds = micros / 1_000_000;
        let Some(time) = DateTime::from_timestamp(seconds, (micros % 1_000_000) as u32 * 1_000)
        else {
            return "?".to_owned();
        };
        let now = clock::current().map_or(0, |timeline| timeline.now_us() as i64 / 1_000_000);
        let format = match self.options.time_style.as_deref() {
            Some("full-iso") => "%Y-%m-%d %H:%M:%S%.9f +0000",
            Some("long-iso") => "%Y-%m-%d %H:%M",
            Some("iso") if now - seconds < RECENT_SECONDS => "%m-%d %H:%M",
            Some("iso") => "%Y-%m-%d ",
            Some(custom) => custom.strip_prefix('+').unwrap_or("%b %e %H:%M"),
            None if (0..RECENT_SECONDS).contains(&(now - seconds)) => "%b %e %H:%M",
            None => "%b %e  %Y",
        };
        let mut text = String::new();
        // A format of the caller's may be wrong; formatting then fails.
        if std::fmt::Write::write_fmt(&mut text, format_args!("{}", time.format(format))).is_err() {
            return format.to_owned();
        }
        text
    }
}

fn parse(args: &[String]) -> Result<(Options, Vec<String>), String> {
    let mut options = Options::default();
    let mut operands = Vec::new();
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            operands.extend(rest.cloned());
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            long_option(&mut options, long)?;
        } else if let Some(short) = argument.strip_prefix('-').filter(|s| !s.is_empty()) {
            for letter in short.chars() {
                short_option(&mut options, letter)?;
            }
        } else {
            operands.push(argument.clone());
        }
    }
    Ok((options, operands))
}

fn short_option(options: &mut Options, letter: char) -> Result<(), String> {
    match letter {
        'a' => options.hidden = Hidden::All,
        'A' => options.hidden = Hidden::Almost,
        'f' => {
            options.hidden = Hidden::All;
            options.sort = Sort::None;
        }
        't' => options.sort = Sort::Time,
        'S' => options.sort = Sort::Size,
        'U' => options.sort = Sort::None,
        'X' => options.sort = Sort::Extension,
        'v' => options.sort = Sort::Version,
        'p' => options.mark = Mark::Directories,
        'F' => options.mark = Mark::Classify,
        'n' | 'g' | 'o' => options.flags.extend(['l', letter]),
        'l' | 'R' | 'd' | 'r' | 'h' | 's' | 'L' | 'm' | 'Q' => options.flags.push(letter),
        // One name a line is what a pipe gets anyway; there is one time only.
        '1' | 'C' | 'x' | 'G' | 'N' | 'k' | 'c' | 'u' | 'H' | 'q' => {}
        _ => return Err(format!("invalid option -- '{letter}'")),
    }
    Ok(())
}

fn long_option(options: &mut Options, long: &str) -> Result<(), String> {
    let (name, value) = long.split_once('=').unwrap_or((long, ""));
    let letter = match (name, value) {
        ("all", _) => 'a',
        ("almost-all", _) => 'A',
        ("reverse", _) => 'r',
        ("recursive", _) => 'R',
        ("directory", _) => 'd',
        ("human-readable", _) => 'h',
        ("size", _) => 's',
        ("classify", _) => 'F',
        ("dereference", _) => 'L',
        ("numeric-uid-gid", _) => 'n',
        ("no-group", _) => 'o',
        ("quote-name", _) => 'Q',
        ("indicator-style", "slash") => 'p',
        ("indicator-style", "classify") => 'F',
        ("sort", "time") => 't',
        ("sort", "size") => 'S',
        ("sort", "none") => 'U',
        ("sort", "extension") => 'X',
        ("sort", "version") => 'v',
        ("format", "long") => 'l',
        ("color" | "colour", "always") => {
            return Err("colours are not supported in the sandbox".to_owned());
        }
        ("color" | "colour" | "indicator-style" | "format" | "width" | "hyperlink", _) => '1',
        ("group-directories-first", _) => {
            options.flags.push('D');
            return Ok(());
        }
        ("full-time", _) => {
            options.flags.push('l');
            options.time_style = Some("full-iso".to_owned());
            return Ok(());
        }
        ("time-style", style) => {
            options.time_style = Some(style.to_owned());
            return Ok(());
        }
        _ => return Err(format!("unrecognized option '--{long}'")),
    };
    short_option(options, letter)
}

fn micros(metadata: &Metadata) -> i64 {
    metadata
        .modified
        .duration_since(UNIX_EPOCH)
        .map_or(0, |duration| duration.as_micros() as i64)
}

/// Blocks of 1 KiB, in whole pages of 4 KiB as on most file systems.
fn blocks(metadata: &Metadata) -> u64 {
    match metadata.file_type {
        FileType::Directory => 4,
        FileType::File => metadata.size.div_ceil(4096) * 4,
        FileType::Symlink | FileType::Fifo => 0,
    }
}

pub(super) fn permissions(metadata: &Metadata) -> String {
    let kind = match metadata.file_type {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::File => '-',
    };
    let mut text = String::from(kind);
    for shift in [6, 3, 0] {
        for (bit, letter) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            text.push(if metadata.mode >> shift & bit != 0 {
                letter
            } else {
                '-'
            });
        }
    }
    if metadata.mode & 0o1000 != 0 {
        text.pop();
        text.push(if metadata.mode & 1 != 0 { 't' } else { 'T' });
    }
    text
}

/// `1.5K`, `12M`: rounded up, as GNU does.
fn human(size: u64) -> String {
    if size < 1024 {
        return size.to_string();
    }
    let mut value = size as f64;
    for unit in ["K", "M", "G", "T", "P"] {
        value /= 1024.0;
        if value < 10.0 {
            return format!("{:.1}{unit}", (value * 10.0).ceil() / 10.0);
        }
        if value.ceil() < 1024.0 {
            return format!("{:.0}{unit}", value.ceil());
        }
    }
    format!("{value:.0}P")
}

/// Runs of digits compare as numbers.
fn version_order(a: &str, b: &str) -> std::cmp::Ordering {
    let key = |name: &str| {
        let mut parts: Vec<(String, u64)> = Vec::new();
        let mut rest = name;
        while !rest.is_empty() {
            let text_end = rest
                .find(|c: char| c.is_ascii_digit())
                .unwrap_or(rest.len());
            let (text, numbers) = rest.split_at(text_end);
            let end = numbers
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(numbers.len());
            parts.push((text.to_owned(), numbers[..end].parse().unwrap_or(u64::MAX)));
            rest = &numbers[end..];
        }
        parts
    };
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}
