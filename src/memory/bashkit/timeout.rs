//! `timeout` of any duration.
//!
//! bashkit's stops at 300 s. It also ends a lent program before its output has come:
//! see `last_words`.
//!
//! Seen in bashkit 0.20.2; gone when `timeout` of `tests/it/bashkit.rs` fails.

use std::time::Duration;

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait};

use super::sleep::{FOREVER_US, duration_us};
use crate::memory::clock;

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
