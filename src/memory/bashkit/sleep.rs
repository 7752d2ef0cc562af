//! `sleep` in virtual time.
//!
//! bashkit's reads the clock until the time has come, which burns 13 ms of the core
//! per virtual second and blocks everything else, and stops at 60 s. Ours skips time
//! and takes any duration.
//!
//! Seen in bashkit 0.20.2; gone when `sleep` of `tests/it/bashkit.rs` fails.

use std::pin::Pin;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};

use crate::memory::clock;
use crate::memory::local::Local;

/// Longest duration, about 30,000 years: `infinity` for every purpose.
pub(super) const FOREVER_US: u64 = 1_000_000_000_000_000_000;

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

/// `1`, `0.5s`, `2m`, `1h`, `1d`, `infinity` in µs.
pub(super) fn duration_us(text: &str) -> Option<u64> {
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
