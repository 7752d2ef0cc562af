//! `hermitcrab replay`: runs a log again and compares.

use std::io::{self, Write};

use hermitcrab_host::log::{LogError, LogReader};
use hermitcrab_host::{CoreEvent, Host};

use crate::cli::ReplayOptions;
use crate::connect;
use crate::failure::{Code, Failure, reason};

/// Replays a log; prints what was compared, or the events.
///
/// # Errors
/// The log cannot be used, the core gave something else, or stdout cannot be written.
pub(crate) fn replay(options: &ReplayOptions) -> Result<Code, Failure> {
    let mut log = LogReader::open(&options.log).map_err(|error| match error {
        LogError::Damaged(..) => Failure::failed(error.to_string()),
        _ => Failure::usage(error.to_string()),
    })?;
    let recorded = log.header().core.clone();
    let host = match recorded.hash.as_str() {
        "native" => Host::builder().native_core(),
        _ => connect::chosen_core(Host::builder()),
    };
    let host = host.build().map_err(connect::failed)?;
    let mut out = io::stdout().lock();
    let mut broken = None;
    let mut event = |event: &CoreEvent| {
        if options.events && broken.is_none() {
            let line = out.write_all(&event.json).and_then(|()| writeln!(out));
            broken = line.err();
        }
    };
    let replayed = host.replay(&mut log, &mut event).map_err(|error| {
        let own = host.core_id();
        let other = match own == recorded {
            true => String::new(),
            false => format!(
                "\n(the log is of core {}, version {}; this is {}, version {})",
                short(&recorded.hash),
                recorded.version,
                short(&own.hash),
                own.version,
            ),
        };
        Failure::failed(format!("{error}{other}"))
    })?;
    let written = match (broken, options.events) {
        (Some(error), _) => Err(error),
        (None, true) => Ok(()),
        (None, false) => writeln!(
            out,
            "{} steps, {} requests to models: every event and effect is the same{}",
            replayed.steps,
            replayed.rounds,
            match replayed.closed {
                true => "",
                false => "; the log ends in the middle, because who wrote it was killed",
            }
        ),
    };
    written.map_err(|error| Failure::failed(format!("cannot write: {}", reason(&error))))?;
    Ok(Code::DONE)
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
