//! `seq` without a cap, and its options.
//!
//! bashkit's stops after 100,000 lines, with exit code 0. Ours does not write as it
//! goes, because a streaming command takes the standard input of what runs it, and
//! `seq` is what loops and process substitutions call.
//!
//! Seen in bashkit 0.20.2; gone when `seq` of `tests/it/bashkit.rs` fails.

use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};

use super::number::{self, Format};
use crate::memory::clock;

/// Bytes of numbers after which they are counted as work.
const CHUNK: usize = 4 << 10;
/// Bytes of numbers that are worth one unit of work.
const BYTES_PER_WORK: usize = 100;
/// `-0`, which integers do not know.
const NEGATIVE_ZERO: u64 = (-0.0f64).to_bits();
/// Bytes that it prints at most.
const MAX_BYTES: usize = 64 << 20;
/// Exit code of a command that was stopped: 128 + SIGTERM.
const TERMINATED: i32 = 143;

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
impl Builtin for Seq {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let failed = |message: String| {
            ExecResult::err(
                format!("seq: {message}\nTry 'seq --help' for more information.\n"),
                1,
            )
        };
        let call = match parse_seq(ctx.args) {
            Ok(call) => call,
            Err(message) => return Ok(failed(message)),
        };
        let mut out = String::new();
        let mut counted = 0;
        for (index, text) in call.numbers().enumerate() {
            if index > 0 {
                out.push_str(&call.separator);
            }
            out.push_str(&text);
            if out.len() - counted >= CHUNK {
                clock::spend(((out.len() - counted) / BYTES_PER_WORK) as u64);
                counted = out.len();
                if clock::current().is_some_and(|timeline| timeline.stopped().is_some()) {
                    return Ok(ExecResult::with_code(out, TERMINATED));
                }
            }
            if out.len() > MAX_BYTES {
                return Ok(failed(format!(
                    "more than {MAX_BYTES} bytes of numbers are not supported in the sandbox"
                )));
            }
        }
        clock::spend(((out.len() - counted) / BYTES_PER_WORK) as u64);
        if !out.is_empty() {
            out.push('\n');
        }
        Ok(ExecResult::ok(out))
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
                // An integer is ten times faster to write, and exact up to here.
                None if digits == 0
                    && value.abs() < (1u64 << 53) as f64
                    && value.to_bits() != NEGATIVE_ZERO =>
                {
                    format!("{:0width$}", value as i64)
                }
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
