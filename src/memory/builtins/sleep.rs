//! `sleep` and `timeout` in virtual time.
//!
//! bashkit's `sleep` reads the clock until the time has come, which burns
//! 13 ms of the core per virtual second and blocks everything else, and stops
//! at 60 s; its `timeout` stops at 300 s. Ours skip time and take any duration.

use std::pin::Pin;
use std::time::Duration;

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait};

use crate::memory::clock;
use crate::memory::local::Local;

/// Longest duration, about 30,000 years: `infinity` for every purpose.
const FOREVER_US: u64 = 1_000_000_000_000_000_000;

/// `sleep NUMBER[smhd]...`
pub(super) struct Sleep;

#[async_trait]
impl Builtin for Sleep {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mut total = 0u64;
        let mut operands = 0;
        for argument in ctx.args.iter().filter(|argument| *argument != "--") {
            if argument.len() > 1 && argument.starts_with('-') {
                return Ok(ExecResult::err(
                    format!(
                        "sleep: invalid option -- '{}'\nTry 'sleep --help' for more information.\n",
                        &argument[1..]
                    ),
                    1,
                ));
            }
            let Some(duration) = duration_us(argument) else {
                return Ok(ExecResult::err(
                    format!(
                        "sleep: invalid time interval '{argument}'\nTry 'sleep --help' for more information.\n"
                    ),
                    1,
                ));
            };
            operands += 1;
            total = total.saturating_add(duration).min(FOREVER_US);
        }
        if operands == 0 {
            return Ok(ExecResult::err(
                "sleep: missing operand\nTry 'sleep --help' for more information.\n",
                1,
            ));
        }
        let slept = clock::current()
            .map(|timeline| Local::new(Box::pin(timeline.sleep(total)) as Pin<Box<clock::Sleep>>));
        if let Some(slept) = slept {
            slept.await;
        }
        Ok(ExecResult::ok(String::new()))
    }
}

/// `timeout [OPTION] DURATION COMMAND [ARG]...`
pub(super) struct Timeout;

struct TimeoutCall {
    us: u64,
    preserve_status: bool,
    command: String,
    args: Vec<String>,
}

#[async_trait]
impl Builtin for Timeout {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        match parse_timeout(ctx.args) {
            Ok(_) => Ok(ExecResult::ok(String::new())),
            Err(message) => Ok(ExecResult::err(
                format!("timeout: {message}\nTry 'timeout --help' for more information.\n"),
                125,
            )),
        }
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        let Ok(call) = parse_timeout(ctx.args) else {
            return Ok(None);
        };
        // A duration of 0 means no limit.
        let us = if call.us == 0 { FOREVER_US } else { call.us };
        if let Some(timeline) = clock::current() {
            timeline.set_timeout(&call.command, us, call.preserve_status);
        }
        Ok(Some(ExecutionPlan::Timeout {
            duration: Duration::from_micros(us),
            preserve_status: call.preserve_status,
            command: SubCommand {
                name: call.command,
                args: call.args,
                stdin: ctx.stdin.cloned(),
                assignments: Vec::new(),
            },
        }))
    }
}

fn parse_timeout(args: &[String]) -> Result<TimeoutCall, String> {
    let mut preserve_status = false;
    let mut rest = args.iter();
    let mut operands: Vec<String> = Vec::new();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--" => break,
            "-p" | "--preserve-status" => preserve_status = true,
            "-f" | "--foreground" | "-v" | "--verbose" => {}
            "-k" | "--kill-after" | "-s" | "--signal" => {
                rest.next()
                    .ok_or_else(|| format!("option {argument} needs a value"))?;
            }
            option if option.starts_with("-k") || option.starts_with("-s") => {}
            option if option.starts_with("--kill-after=") || option.starts_with("--signal=") => {}
            option if option.len() > 1 && option.starts_with('-') => {
                return Err(format!("invalid option '{option}'"));
            }
            _ => {
                operands.push(argument.clone());
                break;
            }
        }
    }
    operands.extend(rest.cloned());
    let mut operands = operands.into_iter();
    let duration = operands.next().ok_or("missing operand")?;
    let us = duration_us(&duration).ok_or_else(|| format!("invalid time interval '{duration}'"))?;
    let command = operands.next().ok_or("missing operand")?;
    Ok(TimeoutCall {
        us,
        preserve_status,
        command,
        args: operands.collect(),
    })
}

/// `1`, `0.5s`, `2m`, `1h`, `1d`, `infinity` in µs.
fn duration_us(text: &str) -> Option<u64> {
    let (number, factor) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1.0),
        b'm' => (&text[..text.len() - 1], 60.0),
        b'h' => (&text[..text.len() - 1], 3_600.0),
        b'd' => (&text[..text.len() - 1], 86_400.0),
        _ => (text, 1.0),
    };
    let seconds: f64 = number.trim_start().parse().ok()?;
    if seconds.is_nan() || seconds.is_sign_negative() && seconds != 0.0 {
        return None;
    }
    Some((seconds * factor * 1e6).min(FOREVER_US as f64).ceil() as u64)
}
