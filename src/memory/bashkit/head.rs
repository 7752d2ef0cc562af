//! `head`, reading its pipe piece by piece.
//!
//! bashkit collects the lines that its own `head` wants one by one and counts
//! them all again after each: time that grows with the square of the lines, in
//! one go. A command that reads piece by piece takes the whole pipe from the
//! shell, though, so ours does that only where nothing else reads the same pipe
//! (`while read f; do head -1 "$f"; done` does). Elsewhere bashkit collects.
//!
//! Seen in bashkit 0.20.2; a matter of time: `cargo xtask bench sandbox`.

use std::path::Path;
use std::sync::Arc;

use bashkit::{
    Builtin, BuiltinContext, BuiltinRegistry, Command, CommandContext, CommandInput, CommandOutput,
    CommandStatus, Error, ExecResult, FileSystem, Result, async_trait, normalize_path, vfs_join,
};

use super::number;
use crate::memory::clock;

/// Lines printed when no number is given.
const LINES: usize = 10;
/// Bytes scanned that are worth one unit of work.
const BYTES_PER_WORK: usize = 1_000;
/// Exit code of a command that SIGPIPE ended.
const BROKEN_PIPE: i32 = 141;

/// Puts `head` in `registry`.
pub(super) fn register(registry: &BuiltinRegistry) {
    registry.insert_command("head", Streaming);
    if let Some(streaming) = registry.lookup("head") {
        registry.insert_trusted("head", Arc::new(Head { streaming }));
    }
}

/// `head [-n [-]NUM | -c [-]NUM | -NUM] [-qv] [FILE]...`
struct Head {
    streaming: Arc<dyn Builtin>,
}

#[async_trait]
impl Builtin for Head {
    fn streams_io(&self) -> bool {
        clock::current().is_some_and(|timeline| !timeline.hooks.pipes_are_shared())
    }

    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        if self.streams_io() {
            return self.streaming.execute(ctx).await;
        }
        let input = Input::Bytes(ctx.stdin_bytes().unwrap_or_default().to_vec());
        let mut output = Output::Buffer(Vec::new());
        let (errors, exit_code) = run(ctx.args, ctx.cwd, &ctx.fs, input, &mut output).await?;
        let Output::Buffer(bytes) = output else {
            return Ok(ExecResult::default());
        };
        let mut result = ExecResult::ok_bytes(bytes);
        result.stderr = errors.into();
        result.exit_code = exit_code;
        Ok(result)
    }
}

struct Streaming;

#[async_trait]
impl Command for Streaming {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut output = Output::Pipe(ctx.stdout.clone());
        let input = Input::Pipe(ctx.stdin.clone());
        let ran = run(ctx.args, ctx.cwd, &ctx.fs, input, &mut output).await;
        match ran {
            Ok((errors, exit_code)) => {
                ctx.stderr.write_all(errors.as_bytes()).await?;
                Ok(CommandStatus::with_code(exit_code))
            }
            Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                Ok(CommandStatus::with_code(BROKEN_PIPE))
            }
            Err(error) => Err(error),
        }
    }
}

/// Where `-` reads from. Each piece is given out once.
enum Input {
    Bytes(Vec<u8>),
    Pipe(CommandInput),
}

impl Input {
    /// The next piece; empty at the end.
    async fn next(&mut self) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(std::mem::take(bytes)),
            Self::Pipe(pipe) => Ok(pipe.read_chunk().await?.unwrap_or_default()),
        }
    }
}

enum Output {
    Buffer(Vec<u8>),
    Pipe(CommandOutput),
}

impl Output {
    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Buffer(buffer) => buffer.extend_from_slice(bytes),
            Self::Pipe(pipe) if !bytes.is_empty() => pipe.write_all(bytes).await?,
            Self::Pipe(_) => {}
        }
        Ok(())
    }
}

/// What to print of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    count: usize,
    bytes: bool,
    /// All but the last `count`.
    from_end: bool,
}

impl Wanted {
    /// How much of `piece` belongs to it; counts down what is still wanted.
    fn take(&mut self, piece: &[u8]) -> usize {
        clock::spend((piece.len() / BYTES_PER_WORK) as u64);
        if self.bytes {
            let taken = self.count.min(piece.len());
            self.count -= taken;
            return taken;
        }
        if self.count == 0 {
            return 0;
        }
        let mut ends = piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        match ends.nth(self.count - 1) {
            Some((at, _)) => {
                self.count = 0;
                at + 1
            }
            None => {
                self.count -= piece.iter().filter(|byte| **byte == b'\n').count();
                piece.len()
            }
        }
    }

    /// How much of `all` there is before its last `count`.
    fn before_end(&self, all: &[u8]) -> usize {
        clock::spend((all.len() / BYTES_PER_WORK) as u64);
        if self.bytes {
            return all.len().saturating_sub(self.count);
        }
        if self.count == 0 {
            return all.len();
        }
        // The end of the last line is no start of another.
        let inner = all.strip_suffix(b"\n").unwrap_or(all);
        let mut ends = inner.iter().enumerate().rev();
        let mut ends = ends.by_ref().filter(|(_, byte)| **byte == b'\n');
        ends.nth(self.count - 1).map_or(0, |(at, _)| at + 1)
    }
}

#[derive(Debug)]
struct Call<'a> {
    wanted: Wanted,
    /// Whether names are printed; when left out, if there are several.
    names: Option<bool>,
    files: Vec<&'a str>,
}

/// Messages and exit code.
async fn run(
    args: &[String],
    cwd: &Path,
    fs: &Arc<dyn FileSystem>,
    mut input: Input,
    output: &mut Output,
) -> Result<(String, i32)> {
    let call = match parse(args) {
        Ok(call) => call,
        Err(message) => {
            let hint = "Try 'head --help' for more information.";
            return Ok((format!("head: {message}\n{hint}\n"), 1));
        }
    };
    let names = call.names.unwrap_or(call.files.len() > 1);
    let mut errors = String::new();
    let mut is_first = true;
    for file in call.files {
        let mut read;
        let source = if file == "-" {
            &mut input
        } else {
            let path = normalize_path(&vfs_join(cwd, file));
            match fs.read_file(&path).await {
                Ok(content) => read = Input::Bytes(content),
                Err(error) => {
                    let reason = super::reason(&error);
                    errors += &format!("head: cannot open '{file}' for reading: {reason}\n");
                    continue;
                }
            }
            &mut read
        };
        if names {
            let gap = if is_first { "" } else { "\n" };
            let name = if file == "-" { "standard input" } else { file };
            let title = format!("{gap}==> {name} <==\n");
            output.write(title.as_bytes()).await?;
        }
        is_first = false;
        print(call.wanted, source, output).await?;
    }
    let exit_code = i32::from(!errors.is_empty());
    Ok((errors, exit_code))
}

async fn print(mut wanted: Wanted, source: &mut Input, output: &mut Output) -> Result<()> {
    if wanted.from_end {
        let mut all = Vec::new();
        loop {
            let piece = source.next().await?;
            if piece.is_empty() {
                break;
            }
            all.extend_from_slice(&piece);
        }
        return output.write(&all[..wanted.before_end(&all)]).await;
    }
    while wanted.count > 0 {
        let piece = source.next().await?;
        if piece.is_empty() {
            break;
        }
        let taken = wanted.take(&piece);
        output.write(&piece[..taken]).await?;
    }
    Ok(())
}

fn parse(args: &[String]) -> std::result::Result<Call<'_>, String> {
    let mut call = Call {
        wanted: Wanted {
            count: LINES,
            bytes: false,
            from_end: false,
        },
        names: None,
        files: Vec::new(),
    };
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if argument == "--" {
            call.files.extend(rest);
            break;
        }
        let Some(options) = argument.strip_prefix('-').filter(|text| !text.is_empty()) else {
            call.files.push(argument);
            continue;
        };
        if let Some(long) = options.strip_prefix('-') {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            match name {
                "lines" | "bytes" => {
                    let value = value.or_else(|| rest.next());
                    let value =
                        value.ok_or_else(|| format!("option '--{name}' requires an argument"))?;
                    call.wanted = parse_count(value, name == "bytes")?;
                }
                "quiet" | "silent" => call.names = Some(false),
                "verbose" => call.names = Some(true),
                _ => return Err(format!("unrecognized option '{argument}'")),
            }
            continue;
        }
        if options.starts_with(|c: char| c.is_ascii_digit()) {
            call.wanted = parse_count(options, false)?;
            continue;
        }
        for (at, letter) in options.char_indices() {
            match letter {
                'q' => call.names = Some(false),
                'v' => call.names = Some(true),
                'n' | 'c' => {
                    let attached = Some(&options[at + 1..]).filter(|text| !text.is_empty());
                    let value = attached.or_else(|| rest.next());
                    let value = value
                        .ok_or_else(|| format!("option requires an argument -- '{letter}'"))?;
                    call.wanted = parse_count(value, letter == 'c')?;
                    break;
                }
                _ => return Err(format!("invalid option -- '{letter}'")),
            }
        }
    }
    if call.files.is_empty() {
        call.files.push("-");
    }
    Ok(call)
}

fn parse_count(text: &str, bytes: bool) -> std::result::Result<Wanted, String> {
    let from_end = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let what = if bytes { "bytes" } else { "lines" };
    let count =
        number::size(digits).ok_or_else(|| format!("invalid number of {what}: '{text}'"))?;
    Ok(Wanted {
        count,
        bytes,
        from_end,
    })
}
