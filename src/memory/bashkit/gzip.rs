//! `gzip`, `gunzip` and `zcat`. bashkit's unpack nothing that is more than a hundred times
//! as large as the archive, though its `gzip` makes such archives and removes the file;
//! it has no `zcat`.
//!
//! Seen in bashkit 0.20.2; gone when `gzip` of `tests/it/bashkit.rs` fails.

use std::fmt::Write as _;
use std::io::{Read, Write};

use bashkit::{
    Builtin, BuiltinContext, ExecResult, FileSystem, async_trait, normalize_path, vfs_join,
};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::reason;

/// How a file that is packed begins.
const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// `content`, packed.
pub(super) fn pack(content: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    let written = encoder.write_all(content);
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Whether `content` is packed.
pub(super) fn is_packed(content: &[u8]) -> bool {
    content.starts_with(&MAGIC)
}

/// What `packed` holds, if that is no more than `most` bytes.
pub(super) fn unpack(packed: &[u8], most: u64) -> Result<Vec<u8>, String> {
    if !is_packed(packed) {
        return Err(match packed.len() {
            0 | 1 => "unexpected end of file",
            _ => "not in gzip format",
        }
        .to_owned());
    }
    let mut content = Vec::new();
    let read = MultiGzDecoder::new(packed)
        .take(most.saturating_add(1))
        .read_to_end(&mut content);
    match read {
        _ if content.len() as u64 > most => {
            Err(format!("holds more than the {most} bytes of one file"))
        }
        Ok(_) => Ok(content),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err("unexpected end of file".to_owned())
        }
        Err(error) => Err(format!("invalid compressed data ({error})")),
    }
}

/// Exit codes: of what failed, and of what was left as it is.
const FAILED: i32 = 1;
const LEFT: i32 = 2;

/// What is said of a file, and the exit code.
type Problem = (String, i32);

/// `gzip`, or `gunzip` or `zcat`, which unpack.
pub(super) struct Gzip {
    pub(super) name: &'static str,
}

#[derive(Debug, Default, PartialEq)]
struct Call<'a> {
    unpacks: bool,
    to_output: bool,
    keeps: bool,
    forces: bool,
    tests: bool,
    level: Option<u32>,
    files: Vec<&'a str>,
}

impl Gzip {
    fn parse<'a>(&self, args: &'a [String]) -> Result<Call<'a>, String> {
        let mut call = Call {
            unpacks: self.name != "gzip",
            to_output: self.name == "zcat",
            ..Call::default()
        };
        let mut rest = args.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            let letters = match argument {
                "--" => {
                    call.files.extend(rest.by_ref());
                    break;
                }
                "--stdout" | "--to-stdout" => "c",
                "--decompress" | "--uncompress" => "d",
                "--keep" => "k",
                "--force" => "f",
                "--test" => "t",
                "--fast" => "1",
                "--best" => "9",
                "--quiet" | "--no-name" | "--name" => "q",
                long if long.starts_with("--") => {
                    return Err(format!("unrecognized option '{long}'"));
                }
                short if short.starts_with('-') && short.len() > 1 => &short[1..],
                file => {
                    call.files.push(file);
                    continue;
                }
            };
            for letter in letters.chars() {
                match letter {
                    'c' => call.to_output = true,
                    'd' => call.unpacks = true,
                    'k' => call.keeps = true,
                    'f' => call.forces = true,
                    't' => (call.tests, call.unpacks) = (true, true),
                    'n' | 'N' | 'q' => {}
                    '1'..='9' => call.level = letter.to_digit(10),
                    _ => return Err(format!("invalid option -- '{letter}'")),
                }
            }
        }
        if call.files.is_empty() {
            call.files.push("-");
        }
        Ok(call)
    }

    /// Works on one file, or on standard input; `output` gets what goes there.
    async fn work(
        &self,
        call: &Call<'_>,
        file: &str,
        ctx: &BuiltinContext<'_>,
        output: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let failed = |what: &str, problem: String| (format!("{what}: {problem}"), FAILED);
        let left = |problem: String| (problem, LEFT);
        let most = ctx.fs.limits().max_file_size;
        let change = |content: &[u8]| match call.unpacks {
            true => unpack(content, most),
            false => Ok(pack(content, call.level.unwrap_or(6))),
        };
        if file == "-" {
            let changed = change(ctx.stdin_bytes().unwrap_or_default());
            let changed = changed.map_err(|problem| failed("stdin", problem))?;
            if !call.tests {
                output.extend(changed);
            }
            return Ok(());
        }
        let path = normalize_path(&vfs_join(ctx.cwd, file));
        let metadata = ctx.fs.lstat(&path).await;
        let metadata = metadata.map_err(|error| failed(file, reason(&error)))?;
        if metadata.file_type.is_dir() {
            return Err(left(format!("{file} is a directory -- ignored")));
        }
        let content = ctx.fs.read_file(&path).await;
        let content = content.map_err(|error| failed(file, reason(&error)))?;
        let stays = call.to_output || call.tests;
        let target = match file.strip_suffix(".gz").map(str::to_owned) {
            _ if stays => String::new(),
            Some(_) if !call.unpacks => {
                return Err(left(format!("{file} already has .gz suffix -- unchanged")));
            }
            Some(name) => name,
            None if !call.unpacks => format!("{file}.gz"),
            None => match file.strip_suffix(".tgz") {
                Some(name) => format!("{name}.tar"),
                None => return Err(left(format!("{file}: unknown suffix -- ignored"))),
            },
        };
        if !stays && !metadata.file_type.is_file() && !call.forces {
            return Err(failed(file, "Too many levels of symbolic links".to_owned()));
        }
        let changed = change(&content).map_err(|problem| failed(file, problem))?;
        if stays {
            if !call.tests {
                output.extend(changed);
            }
            return Ok(());
        }
        let place = normalize_path(&vfs_join(ctx.cwd, &target));
        if ctx.fs.exists(&place).await.unwrap_or(true) && !call.forces {
            return Err(left(format!("{target} already exists; not overwritten")));
        }
        put(&*ctx.fs, &place, &changed, &metadata)
            .await
            .map_err(|error| failed(&target, reason(&error)))?;
        if !call.keeps {
            let removed = ctx.fs.remove(&path, false).await;
            removed.map_err(|error| failed(file, reason(&error)))?;
        }
        Ok(())
    }
}

/// Writes `content` with the mode and the time of another file.
async fn put(
    files: &dyn FileSystem,
    path: &std::path::Path,
    content: &[u8],
    metadata: &bashkit::Metadata,
) -> bashkit::Result<()> {
    files.write_file(path, content).await?;
    files.chmod(path, metadata.mode).await?;
    files.set_modified_time(path, metadata.modified).await
}

#[async_trait]
impl Builtin for Gzip {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let call = match self.parse(ctx.args) {
            Ok(call) => call,
            Err(message) => return Ok(ExecResult::err(format!("gzip: {message}\n"), 1)),
        };
        let mut output = Vec::new();
        let mut errors = String::new();
        let mut exit_code = 0;
        for file in &call.files {
            if let Err((problem, code)) = self.work(&call, file, &ctx, &mut output).await {
                let _ = writeln!(errors, "gzip: {problem}");
                exit_code = if exit_code == FAILED { FAILED } else { code };
            }
        }
        let mut result = ExecResult::ok_bytes(output);
        result.exit_code = exit_code;
        result.stderr = errors.into();
        Ok(result)
    }
}
