//! `seq`, `yes` and `head`, writing as they go.
//!
//! bashkit's stop at 100,000 lines, 10,000 lines and 1 MiB of a device.

use bashkit::{Command, CommandContext, CommandStatus, Error, Result, async_trait, vfs_join};

use super::number::{self, Format};

/// Bytes written at once.
const CHUNK: usize = 4 << 10;
/// Exit code of a command that SIGPIPE ended.
const BROKEN_PIPE: i32 = 141;

/// Writes `bytes`; whether somebody still reads.
async fn write(ctx: &CommandContext<'_>, bytes: &[u8]) -> Result<bool> {
    match ctx.stdout.write_all(bytes).await {
        Ok(()) => Ok(true),
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

async fn fail(ctx: &CommandContext<'_>, message: &str, code: i32) -> Result<CommandStatus> {
    ctx.stderr.write_all(message.as_bytes()).await?;
    Ok(CommandStatus::with_code(code))
}

/// `yes [STRING]...`
pub(super) struct Yes;

#[async_trait]
impl Command for Yes {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let words = match ctx.args {
            [first, rest @ ..] if first == "--" => rest,
            all => all,
        };
        let line = if words.is_empty() {
            "y\n".to_owned()
        } else {
            words.join(" ") + "\n"
        };
        let chunk = line.repeat((CHUNK / line.len()).max(1));
        while write(&ctx, chunk.as_bytes()).await? {}
        Ok(CommandStatus::with_code(BROKEN_PIPE))
    }
}

/// `seq [-w] [-s STRING] [-f FORMAT] [FIRST [INCREMENT]] LAST`
pub(super) struct Seq;

struct SeqCall {
    first: number::Operand,
    step: number::Operand,
    last: number::Operand,
    separator: String,
    equal_width: bool,
    format: Option<Format>,
}

#[async_trait]
impl Command for Seq {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let call = match parse_seq(ctx.args) {
            Ok(call) => call,
            Err(message) => {
                let message = format!("seq: {message}\nTry 'seq --help' for more information.\n");
                return fail(&ctx, &message, 1).await;
            }
        };
        let mut numbers = call.numbers();
        let mut chunk = String::with_capacity(CHUNK + 64);
        let mut any = false;
        while let Some(text) = numbers.next() {
            if any {
                chunk.push_str(&call.separator);
            }
            any = true;
            chunk.push_str(&text);
            if chunk.len() >= CHUNK {
                if !write(&ctx, chunk.as_bytes()).await? {
                    return Ok(CommandStatus::with_code(BROKEN_PIPE));
                }
                chunk.clear();
            }
        }
        if any {
            chunk.push('\n');
        }
        if !chunk.is_empty() && !write(&ctx, chunk.as_bytes()).await? {
            return Ok(CommandStatus::with_code(BROKEN_PIPE));
        }
        Ok(CommandStatus::success())
    }
}

impl SeqCall {
    fn numbers(&self) -> impl Iterator<Item = String> + Send + '_ {
        let (first, step, last) = (self.first.value, self.step.value, self.last.value);
        let digits = self.first.fraction.max(self.step.fraction);
        let width = if self.equal_width {
            let text = |value: f64| format!("{value:.digits$}").len();
            text(first).max(text(last))
        } else {
            0
        };
        let mut index = 0u64;
        std::iter::from_fn(move || {
            let value = first + index as f64 * step;
            // Rounding must not lose the last number of `seq 0 0.1 1`.
            let slack = step.abs() * 1e-9;
            if (step > 0.0 && value > last + slack) || (step < 0.0 && value < last - slack) {
                return None;
            }
            index += 1;
            Some(match &self.format {
                Some(format) => format.apply(value),
                None => format!("{value:0width$.digits$}"),
            })
        })
    }
}

fn parse_seq(args: &[String]) -> std::result::Result<SeqCall, String> {
    let mut separator = "\n".to_owned();
    let mut equal_width = false;
    let mut format = None;
    let mut rest = args.iter();
    let mut numbers: Vec<&String> = Vec::new();
    while let Some(argument) = rest.next() {
        let mut value = |name: &str| {
            rest.next()
                .cloned()
                .ok_or_else(|| format!("option requires an argument -- '{name}'"))
        };
        match argument.as_str() {
            "--" => {
                numbers.extend(rest);
                break;
            }
            "-w" | "--equal-width" => equal_width = true,
            "-s" | "--separator" => separator = value("s")?,
            "-f" | "--format" => format = Some(value("f")?),
            option if number::Operand::parse(option).is_some() || !option.starts_with('-') => {
                numbers.push(argument);
            }
            option => {
                if let Some(text) = option.strip_prefix("--separator=") {
                    separator = text.to_owned();
                } else if let Some(text) = option.strip_prefix("--format=") {
                    format = Some(text.to_owned());
                } else if let Some(text) = option.strip_prefix("-s") {
                    separator = text.to_owned();
                } else if let Some(text) = option.strip_prefix("-f") {
                    format = Some(text.to_owned());
                } else {
                    return Err(format!("invalid option -- '{}'", &option[1..]));
                }
            }
        }
    }
    let operand = |text: &String| {
        number::Operand::parse(text)
            .ok_or_else(|| format!("invalid floating point argument: '{text}'"))
    };
    let one = || number::Operand {
        value: 1.0,
        fraction: 0,
    };
    let (first, step, last) = match numbers[..] {
        [] => return Err("missing operand".to_owned()),
        [last] => (one(), one(), operand(last)?),
        [first, last] => (operand(first)?, one(), operand(last)?),
        [first, step, last] => (operand(first)?, operand(step)?, operand(last)?),
        [_, _, _, extra, ..] => return Err(format!("extra operand '{extra}'")),
    };
    if step.value == 0.0 {
        return Err("invalid Zero increment value: '0'".to_owned());
    }
    let format = format
        .map(|text| Format::parse(&text).ok_or_else(|| format!("format '{text}' is not supported")))
        .transpose()?;
    Ok(SeqCall {
        first,
        step,
        last,
        separator,
        equal_width,
        format,
    })
}

/// `head [-n [-]N] [-c [-]N] [-qvz] [FILE]...`
pub(super) struct Head;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Lines,
    Bytes,
}

struct HeadCall {
    unit: Unit,
    count: usize,
    all_but: bool,
    headers: Option<bool>,
    terminator: u8,
    files: Vec<String>,
}

#[async_trait]
impl Command for Head {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut call = match parse_head(ctx.args) {
            Ok(call) => call,
            Err(message) => {
                let message = format!("head: {message}\nTry 'head --help' for more information.\n");
                return fail(&ctx, &message, 1).await;
            }
        };
        if call.files.is_empty() {
            call.files.push("-".to_owned());
        }
        let headers = call.headers.unwrap_or(call.files.len() > 1);
        let mut code = 0;
        for (index, file) in call.files.iter().enumerate() {
            let content = if file == "-" {
                None
            } else {
                match call.content(&ctx, file).await {
                    Ok(content) => Some(content),
                    Err(reason) => {
                        let message = format!("head: cannot open '{file}' for reading: {reason}\n");
                        ctx.stderr.write_all(message.as_bytes()).await?;
                        code = 1;
                        continue;
                    }
                }
            };
            if headers {
                let blank = if index > 0 { "\n" } else { "" };
                let name = if file == "-" { "standard input" } else { file };
                let line = format!("{blank}==> {name} <==\n");
                if !write(&ctx, line.as_bytes()).await? {
                    return Ok(CommandStatus::with_code(BROKEN_PIPE));
                }
            }
            let goes_on = match content {
                Some(content) => write(&ctx, call.cut(&content)).await?,
                None => call.cut_stdin(&ctx).await?,
            };
            if !goes_on {
                return Ok(CommandStatus::with_code(BROKEN_PIPE));
            }
        }
        Ok(CommandStatus::with_code(code))
    }
}

impl HeadCall {
    async fn content(
        &self,
        ctx: &CommandContext<'_>,
        file: &str,
    ) -> std::result::Result<Vec<u8>, String> {
        let path = bashkit::normalize_path(&vfs_join(ctx.cwd, file));
        let endless = self.unit == Unit::Bytes && !self.all_but;
        let limit = self.count.min(256 << 20);
        match path.to_str() {
            Some("/dev/zero") if endless => return Ok(vec![0; limit]),
            Some("/dev/urandom" | "/dev/random") if endless => {
                let mut bytes = vec![0; limit];
                if let Some(timeline) = crate::memory::clock::current() {
                    timeline.random().fill(&mut bytes);
                }
                return Ok(bytes);
            }
            _ => {}
        }
        ctx.fs
            .read_file(&path)
            .await
            .map_err(|error| super::reason(&error))
    }

    fn cut<'a>(&self, content: &'a [u8]) -> &'a [u8] {
        let end = match (self.unit, self.all_but) {
            (Unit::Bytes, false) => self.count.min(content.len()),
            (Unit::Bytes, true) => content.len().saturating_sub(self.count),
            (Unit::Lines, false) => self.line_end(content, self.count),
            (Unit::Lines, true) => {
                let lines = content
                    .split_inclusive(|&byte| byte == self.terminator)
                    .count();
                self.line_end(content, lines.saturating_sub(self.count))
            }
        };
        &content[..end]
    }

    fn line_end(&self, content: &[u8], lines: usize) -> usize {
        content
            .split_inclusive(|&byte| byte == self.terminator)
            .take(lines)
            .map(<[u8]>::len)
            .sum()
    }

    async fn cut_stdin(&self, ctx: &CommandContext<'_>) -> Result<bool> {
        if self.all_but {
            let mut content = Vec::new();
            while let Some(chunk) = ctx.stdin.read_chunk().await? {
                content.extend_from_slice(&chunk);
            }
            return write(ctx, self.cut(&content)).await;
        }
        let mut left = self.count;
        while left > 0 {
            let Some(chunk) = ctx.stdin.read_chunk().await? else {
                break;
            };
            let end = match self.unit {
                Unit::Bytes => left.min(chunk.len()),
                Unit::Lines => self.line_end(&chunk, left),
            };
            left -= match self.unit {
                Unit::Bytes => end,
                Unit::Lines => chunk[..end]
                    .iter()
                    .filter(|&&byte| byte == self.terminator)
                    .count(),
            };
            if !write(ctx, &chunk[..end]).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn parse_head(args: &[String]) -> std::result::Result<HeadCall, String> {
    let mut call = HeadCall {
        unit: Unit::Lines,
        count: 10,
        all_but: false,
        headers: None,
        terminator: b'\n',
        files: Vec::new(),
    };
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            call.files.extend(rest.cloned());
            break;
        }
        let long = argument.strip_prefix("--");
        if let Some(long) = long {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            match name {
                "lines" | "bytes" => {
                    let unit = if name == "lines" {
                        Unit::Lines
                    } else {
                        Unit::Bytes
                    };
                    let value = value
                        .or_else(|| rest.next().cloned())
                        .ok_or_else(|| format!("option '--{name}' requires an argument"))?;
                    call.set(unit, &value)?;
                }
                "quiet" | "silent" => call.headers = Some(false),
                "verbose" => call.headers = Some(true),
                "zero-terminated" => call.terminator = 0,
                _ => return Err(format!("unrecognized option '{argument}'")),
            }
            continue;
        }
        let Some(short) = argument.strip_prefix('-').filter(|short| !short.is_empty()) else {
            call.files.push(argument.clone());
            continue;
        };
        if short.starts_with(|c: char| c.is_ascii_digit()) {
            call.set(Unit::Lines, short)?;
            continue;
        }
        let mut letters = short.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                'n' | 'c' => {
                    let unit = if letter == 'n' {
                        Unit::Lines
                    } else {
                        Unit::Bytes
                    };
                    let value = match &short[at + 1..] {
                        "" => rest
                            .next()
                            .cloned()
                            .ok_or_else(|| format!("option requires an argument -- '{letter}'"))?,
                        value => value.to_owned(),
                    };
                    call.set(unit, &value)?;
                    break;
                }
                'q' => call.headers = Some(false),
                'v' => call.headers = Some(true),
                'z' => call.terminator = 0,
                _ => return Err(format!("invalid option -- '{letter}'")),
            }
        }
    }
    Ok(call)
}

impl HeadCall {
    fn set(&mut self, unit: Unit, text: &str) -> std::result::Result<(), String> {
        let what = if unit == Unit::Lines {
            "lines"
        } else {
            "bytes"
        };
        let invalid = || format!("invalid number of {what}: '{text}'");
        let (digits, all_but) = match text.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        };
        self.count = number::size(digits).ok_or_else(invalid)?;
        self.unit = unit;
        self.all_but = all_but;
        Ok(())
    }
}
