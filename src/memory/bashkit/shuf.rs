//! `shuf`, drawing from the seed of the environment.
//!
//! bashkit's seeds itself from the clock and an address: equal in every
//! instance that starts at the same time.
//!
//! Seen in bashkit 0.20.2; two runs of one seed, without this file.

use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait, normalize_path, vfs_join};

use super::number;
use crate::memory::clock;

/// Numbers that `-i` may range over.
const MAX_RANGE: u64 = 10_000_000;

/// `shuf [-n COUNT] [-r] [-z] [-o FILE] [-e ARG... | -i LO-HI | FILE]`
pub(super) struct Shuf;

#[derive(Default)]
struct Call {
    count: Option<usize>,
    range: Option<(u64, u64)>,
    output: Option<String>,
    arguments: bool,
    repeat: bool,
    zero: bool,
    operands: Vec<String>,
}

#[async_trait]
impl Builtin for Shuf {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        match shuffle(&ctx).await {
            Ok(out) => Ok(ExecResult::ok_bytes(out)),
            Err(message) => Ok(ExecResult::err(format!("shuf: {message}\n"), 1)),
        }
    }
}

async fn shuffle(ctx: &BuiltinContext<'_>) -> std::result::Result<Vec<u8>, String> {
    let call = parse(ctx.args)?;
    let end = if call.zero { 0 } else { b'\n' };
    let mut lines: Vec<Vec<u8>> = if let Some((low, high)) = call.range {
        (low..=high).map(|n| n.to_string().into_bytes()).collect()
    } else if call.arguments {
        call.operands
            .iter()
            .map(|a| a.clone().into_bytes())
            .collect()
    } else {
        let mut content = match call.operands.first().map(String::as_str) {
            None | Some("-") => ctx.stdin_bytes().unwrap_or_default().to_vec(),
            Some(file) => {
                let path = normalize_path(&vfs_join(ctx.cwd, file));
                let read = ctx.fs.read_file(&path).await;
                read.map_err(|error| format!("{file}: {}", super::reason(&error)))?
            }
        };
        if content.last() == Some(&end) {
            content.pop();
        } else if content.is_empty() {
            return Ok(Vec::new());
        }
        content
            .split(|byte| *byte == end)
            .map(<[u8]>::to_vec)
            .collect()
    };
    let mut out = Vec::new();
    let draw = |below: usize| {
        let random = clock::current().map_or(0, |timeline| timeline.random().next_u64());
        // Wide multiplication: every index is as likely, but for 2^-40 or so.
        ((u128::from(random) * below as u128) >> 64) as usize
    };
    if call.repeat {
        let Some(count) = call.count else {
            return Err("-r needs -n in the sandbox".to_owned());
        };
        if lines.is_empty() && count > 0 {
            return Err("no lines to repeat".to_owned());
        }
        for _ in 0..count.min(MAX_RANGE as usize) {
            out.extend_from_slice(&lines[draw(lines.len())]);
            out.push(end);
        }
    } else {
        let count = call.count.unwrap_or(usize::MAX).min(lines.len());
        for index in 0..count {
            let other = index + draw(lines.len() - index);
            lines.swap(index, other);
            out.extend_from_slice(&lines[index]);
            out.push(end);
        }
    }
    let Some(file) = &call.output else {
        return Ok(out);
    };
    let path = normalize_path(&vfs_join(ctx.cwd, file));
    let written = ctx.fs.write_file(&path, &out).await;
    written.map_err(|error| format!("{file}: {}", super::reason(&error)))?;
    Ok(Vec::new())
}

fn parse(args: &[String]) -> std::result::Result<Call, String> {
    let mut call = Call::default();
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            call.operands.extend(rest.cloned());
            break;
        }
        let (name, mut value) = match argument.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            },
            None => match argument.strip_prefix('-').filter(|short| !short.is_empty()) {
                Some(short) if short.is_ascii() => {
                    let (name, value) = short.split_at(1);
                    (
                        name,
                        Some(value.to_owned()).filter(|value| !value.is_empty()),
                    )
                }
                Some(_) => return Err(format!("invalid option '{argument}'")),
                None => {
                    call.operands.push(argument.clone());
                    continue;
                }
            },
        };
        let mut needed = || {
            value
                .take()
                .or_else(|| rest.next().cloned())
                .ok_or_else(|| format!("option '{argument}' requires an argument"))
        };
        match name {
            "n" | "head-count" => {
                let text = needed()?;
                let count = number::size(&text);
                call.count = Some(count.ok_or_else(|| format!("invalid line count: '{text}'"))?);
            }
            "i" | "input-range" => {
                let text = needed()?;
                let invalid = || format!("invalid input range: '{text}'");
                let (low, high) = text.split_once('-').ok_or_else(invalid)?;
                let (low, high): (u64, u64) = (
                    low.parse().map_err(|_| invalid())?,
                    high.parse().map_err(|_| invalid())?,
                );
                if high < low || high - low >= MAX_RANGE {
                    return Err(invalid());
                }
                call.range = Some((low, high));
            }
            "o" | "output" => call.output = Some(needed()?),
            "e" | "echo" if value.is_none() => call.arguments = true,
            "r" | "repeat" if value.is_none() => call.repeat = true,
            "z" | "zero-terminated" if value.is_none() => call.zero = true,
            _ => return Err(format!("invalid option '{argument}'")),
        }
    }
    Ok(call)
}
