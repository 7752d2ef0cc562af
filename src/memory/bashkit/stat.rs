//! `stat` with a format, as GNU's. bashkit's knows a few letters and prints the
//! others as they stand, with exit code 0; ours refuses what it does not know.
//! Without a format bashkit's runs, by its stub in `/usr/bin`.
//!
//! Seen in bashkit 0.20.2; gone when `stat` of `tests/it/bashkit.rs` fails.

use std::fmt::Write as _;
use std::path::Path;

use bashkit::time::{SystemTime, UNIX_EPOCH};
use bashkit::{
    Builtin, BuiltinContext, ExecResult, ExecutionPlan, FileType, Metadata, async_trait, vfs_join,
};
use chrono::DateTime;

use super::ls::permissions;
use super::{checked, reason};

/// The one user and group.
const OWNER: (&str, &str) = ("1000", "user");
/// Bytes of a block that `%b` counts, and of the page that a file fills.
const BLOCK: u64 = 512;
const PAGE: u64 = 4096;

/// `stat [-L] (-c FORMAT | --printf FORMAT) FILE...`
pub(super) struct Stat;

#[derive(Debug, Default, PartialEq)]
struct Call {
    format: Option<String>,
    /// `--printf`: escapes count, and no line ends by itself.
    escapes: bool,
    dereference: bool,
    files: Vec<String>,
}

#[async_trait]
impl Builtin for Stat {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        if let Some(option) = unknown(ctx.args) {
            let sentence = format!(
                "hermitcrab: stat: {option} is not supported in the sandbox; use -c FORMAT\n"
            );
            return Ok(ExecResult::err(sentence, 1));
        }
        let call = parse(ctx.args).unwrap_or_default();
        let format = call.format.as_deref().unwrap_or_default();
        if call.files.is_empty() {
            return Ok(ExecResult::err("stat: missing operand\n", 1));
        }
        let (mut out, mut err) = (String::new(), String::new());
        for name in &call.files {
            let path = vfs_join(ctx.cwd, name);
            let metadata = match call.dereference {
                true => ctx.fs.stat(&path).await,
                false => ctx.fs.lstat(&path).await,
            };
            let metadata = match metadata {
                Ok(metadata) => metadata,
                Err(error) => {
                    let _ = writeln!(err, "stat: cannot statx '{name}': {}", reason(&error));
                    continue;
                }
            };
            let file = File {
                name,
                links: links(&ctx, &path, &metadata).await,
                target: match metadata.file_type {
                    FileType::Symlink => ctx.fs.read_link(&path).await.ok(),
                    _ => None,
                }
                .map(|target| target.to_string_lossy().into_owned()),
                metadata,
            };
            match shown(&file, format, call.escapes) {
                Ok(text) => out += &text,
                Err(message) => return Ok(ExecResult::err(message, 1)),
            }
            if !call.escapes {
                out.push('\n');
            }
        }
        let exit_code = i32::from(!err.is_empty());
        Ok(ExecResult {
            stderr: err.into(),
            exit_code,
            ..ExecResult::ok(out)
        })
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        let has_format = parse(ctx.args).is_some_and(|call| call.format.is_some());
        if has_format || unknown(ctx.args).is_some() {
            return Ok(None);
        }
        Ok(Some(ExecutionPlan::Batch {
            commands: vec![checked::inner("stat", ctx)],
        }))
    }
}

/// An option that bashkit's takes and ignores.
fn unknown(args: &[String]) -> Option<&String> {
    let ignored = ["-t", "--terse", "-f", "--file-system"];
    let options = args.iter().take_while(|argument| *argument != "--");
    options
        .into_iter()
        .find(|it| ignored.contains(&it.as_str()))
}

/// A call with options that are known here.
fn parse(args: &[String]) -> Option<Call> {
    let mut call = Call::default();
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        let (escapes, format) = match argument.as_str() {
            "--" => {
                call.files.extend(rest.by_ref().cloned());
                continue;
            }
            "-L" | "--dereference" => {
                call.dereference = true;
                continue;
            }
            "-c" | "--format" => (false, rest.next()?.clone()),
            "-Lc" => {
                call.dereference = true;
                (false, rest.next()?.clone())
            }
            "--printf" => (true, rest.next()?.clone()),
            option => match option.split_once('=') {
                Some(("--format", format)) => (false, format.to_owned()),
                Some(("--printf", format)) => (true, format.to_owned()),
                _ if option.starts_with("-c") => (false, option[2..].to_owned()),
                _ if option.len() > 1 && option.starts_with('-') => return None,
                _ => {
                    call.files.push(option.to_owned());
                    continue;
                }
            },
        };
        (call.escapes, call.format) = (escapes, Some(format));
    }
    Some(call)
}

struct File<'a> {
    name: &'a str,
    metadata: Metadata,
    links: usize,
    /// Where a symbolic link leads.
    target: Option<String>,
}

/// A directory is named by its parent, itself and its subdirectories.
async fn links(ctx: &BuiltinContext<'_>, path: &Path, metadata: &Metadata) -> usize {
    if !metadata.file_type.is_dir() {
        return 1;
    }
    let entries = ctx.fs.read_dir(path).await.unwrap_or_default();
    let is_dir = |entry: &&bashkit::DirEntry| entry.metadata.file_type.is_dir();
    2 + entries.iter().filter(is_dir).count()
}

/// `format` for `file`, or the sentence that it cannot be shown.
fn shown(file: &File<'_>, format: &str, escapes: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if escapes => escape(&mut rest, &mut out),
            '%' => {
                let mut flags = String::new();
                while let Some(flag) = rest.next_if(|c| "-0+ #'".contains(*c)) {
                    flags.push(flag);
                }
                let mut width = 0_usize;
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    let digit = digit.to_digit(10).unwrap_or_default() as usize;
                    width = (width * 10 + digit).min(PAGE as usize);
                }
                let Some(letter) = rest.next() else {
                    out.push('%');
                    break;
                };
                if letter == '%' {
                    out.push('%');
                    continue;
                }
                let value = value(file, letter).ok_or_else(|| {
                    format!(
                        "hermitcrab: stat: %{letter} is not supported in the sandbox; it has %a %A %b %B %f %F %g %G %h %n %N %o %s %u %U %w %W %x %X %y %Y %z %Z\n"
                    )
                })?;
                if flags.contains('-') {
                    let _ = write!(out, "{value:<width$}");
                } else if flags.contains('0') && value.bytes().all(|byte| byte.is_ascii_digit()) {
                    let _ = write!(out, "{value:0>width$}");
                } else {
                    let _ = write!(out, "{value:>width$}");
                }
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

fn escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let escaped = match rest.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('a') => '\u{7}',
        Some('b') => '\u{8}',
        Some('e') => '\u{1B}',
        Some('f') => '\u{C}',
        Some('v') => '\u{B}',
        Some(c @ ('\\' | '"')) => c,
        Some(digit @ '0'..='7') => {
            let mut number = digit.to_digit(8).unwrap_or_default();
            for _ in 0..2 {
                let Some(digit) = rest.next_if(|c| c.is_digit(8)) else {
                    break;
                };
                number = number * 8 + digit.to_digit(8).unwrap_or_default();
            }
            char::from_u32(number & 0x7F).unwrap_or_default()
        }
        Some(other) => {
            out.push('\\');
            other
        }
        None => '\\',
    };
    out.push(escaped);
}

fn value(file: &File<'_>, letter: char) -> Option<String> {
    let metadata = &file.metadata;
    let type_bits = match metadata.file_type {
        FileType::Directory => 0o040_000,
        FileType::Symlink => 0o120_000,
        FileType::Fifo => 0o010_000,
        FileType::File => 0o100_000,
    };
    Some(match letter {
        'n' => file.name.to_owned(),
        'N' => match &file.target {
            Some(target) => format!("{} -> {}", quoted(file.name), quoted(target)),
            None => quoted(file.name),
        },
        's' => metadata.size.to_string(),
        'b' => (metadata.size.div_ceil(PAGE) * (PAGE / BLOCK)).to_string(),
        'B' => BLOCK.to_string(),
        'o' => PAGE.to_string(),
        'a' => format!("{:o}", metadata.mode & 0o7777),
        'A' => permissions(metadata),
        'f' => format!("{:x}", type_bits | metadata.mode & 0o7777),
        'F' => match metadata.file_type {
            FileType::File if metadata.size == 0 => "regular empty file",
            FileType::File => "regular file",
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            FileType::Fifo => "fifo",
        }
        .to_owned(),
        'h' => file.links.to_string(),
        'u' | 'g' => OWNER.0.to_owned(),
        'U' | 'G' => OWNER.1.to_owned(),
        'x' | 'y' | 'z' => full(metadata.modified),
        'w' => full(metadata.created),
        'X' | 'Y' | 'Z' => nanoseconds(metadata.modified)
            .div_euclid(SECOND)
            .to_string(),
        'W' => nanoseconds(metadata.created).div_euclid(SECOND).to_string(),
        _ => return None,
    })
}

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// `2026-11-24 10:00:00.000000000 +0000`
fn full(time: SystemTime) -> String {
    let time = DateTime::from_timestamp_nanos(nanoseconds(time));
    time.format("%Y-%m-%d %H:%M:%S%.9f +0000").to_string()
}

/// A name as `%N` quotes it.
fn quoted(name: &str) -> String {
    if !name.contains('\'') {
        return format!("'{name}'");
    }
    if !name.contains(['"', '$', '`', '\\']) {
        return format!("\"{name}\"");
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}
