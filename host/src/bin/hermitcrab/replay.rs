//! `hermitcrab replay`: runs logs again and compares.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use hermitcrab_host::log::{CoreId, LogError, ReplayError, Replayed};
use hermitcrab_host::{CoreEvent, Host};
use serde_json::{Value, json};

use crate::archive;
use crate::cli::ReplayOptions;
use crate::connect;
use crate::failure::{Code, Failure, reason};
use crate::output;

/// Replays one log or many; prints what was compared, the events, or where a round
/// left off.
///
/// # Errors
/// A log cannot be used, the core output something else, or stdout cannot be written.
pub(crate) fn replay(options: &ReplayOptions) -> Result<Code, Failure> {
    let mut logs = Vec::new();
    for path in &options.logs {
        find(path, &mut logs)?;
    }
    let is_one = matches!(&options.logs[..], [path] if !path.is_dir());
    let host = |native: bool| {
        let builder = Host::builder();
        let builder = match &options.against {
            Some(core) => builder.core(core),
            None if native => builder.native_core(),
            None => connect::chosen_core(builder),
        };
        builder.build().map_err(connect::failed)
    };
    match (&logs[..], options.until) {
        ([log], Some(round)) if is_one => {
            output::distinct(&[("the log", Some(log)), ("--out", options.out.as_deref())])?;
            until(&host, log, round, options)
        }
        ([log], None) if is_one => one(&host, log, options),
        (_, Some(_)) => Err(Failure::usage("--until needs one log: name its file")),
        (_, None) if options.events => Err(Failure::usage("--events needs one log: name its file")),
        ([], None) => Err(Failure::usage(
            "there is no log there: `hermitcrab run --record FILE.gz` writes one",
        )),
        (logs, None) => many(&host(false)?, logs),
    }
}

/// The logs at `path`: a file, or all files `*log.gz` below a directory, where the
/// trials of an evaluation have other archives, too.
fn find(path: &Path, logs: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        logs.push(path.to_owned());
        return Ok(());
    }
    let unreadable = |error: io::Error| {
        Failure::usage(format!(
            "cannot read {}: {}",
            path.display(),
            reason(&error)
        ))
    };
    let mut entries = fs::read_dir(path)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            find(&path, logs)?;
        } else if path.to_string_lossy().ends_with("log.gz") {
            logs.push(path);
        }
    }
    Ok(())
}

/// A host for the kind of core that a log is of.
type Hosts<'a> = &'a dyn Fn(bool) -> Result<Host, Failure>;

fn begin(host: Hosts<'_>, log: &Path) -> Result<(Host, hermitcrab_host::log::Replay), Failure> {
    let of_component = host(false)?;
    let replay = of_component.replay(log).map_err(failed)?;
    if replay.header().core.hash != "native" {
        return Ok((of_component, replay));
    }
    let native = host(true)?;
    let replay = native.replay(log).map_err(failed)?;
    Ok((native, replay))
}

fn one(host: Hosts<'_>, log: &Path, options: &ReplayOptions) -> Result<Code, Failure> {
    let (host, replay) = begin(host, log)?;
    let recorded = replay.header().core.clone();
    let mut out = io::stdout().lock();
    let mut broken = None;
    let replayed = replay.run(|event: &CoreEvent| {
        if options.events && broken.is_none() {
            let line = out.write_all(&event.json).and_then(|()| writeln!(out));
            broken = line.err();
        }
    });
    let replayed = replayed.map_err(|error| departed(error, &recorded, &host.core_id()))?;
    let written = match (broken, options.events) {
        (Some(error), _) => Err(error),
        (None, true) => Ok(()),
        (None, false) => writeln!(out, "{}", told(&replayed)),
    };
    written.map_err(unwritable)?;
    Ok(Code::DONE)
}

fn told(replayed: &Replayed) -> String {
    format!(
        "{} steps, {} answers of models: every event and effect is the same{}",
        replayed.steps,
        replayed.rounds,
        match replayed.closed {
            true => "",
            false => "; the log ends in the middle, because its writer was killed",
        }
    )
}

/// Replays up to a round; prints state, history and files as one JSON object.
fn until(
    host: Hosts<'_>,
    log: &Path,
    round: u32,
    options: &ReplayOptions,
) -> Result<Code, Failure> {
    let (host, mut replay) = begin(host, log)?;
    let recorded = replay.header().core.clone();
    let mut out = io::stdout().lock();
    let mut broken = None;
    let stop = replay.until(round, |event| {
        if options.events && broken.is_none() {
            let line = out.write_all(&event.json).and_then(|()| writeln!(out));
            broken = line.err();
        }
    });
    let stop = stop.map_err(|error| departed(error, &recorded, &host.core_id()))?;
    let tar = replay.export_tar(stop.environment).ok();
    match (&options.out, &tar) {
        (Some(path), Some(tar)) => fs::write(path, tar).map_err(|error| {
            Failure::failed(format!(
                "cannot write {}: {}",
                path.display(),
                reason(&error)
            ))
        })?,
        (Some(_), None) => {
            return Err(Failure::usage(
                "--out needs a run with --env memory: the files of a local run are not in its log",
            ));
        }
        (None, _) => {}
    }
    if let Some(error) = broken {
        return Err(unwritable(error));
    }
    if options.events {
        return Ok(Code::DONE);
    }
    let of_core = |error: hermitcrab_host::CoreError| Failure::failed(error.to_string());
    let state = replay.state(&stop.session).map_err(of_core)?;
    let history = replay.history(&stop.session).map_err(of_core)?;
    let history: Value = serde_json::from_slice(&history).unwrap_or_default();
    let files = tar.map(|tar| archive::from_tar(&tar)).transpose()?;
    let files = files.as_ref().map(archive::sizes);
    let told = json!({
        "session": &stop.session,
        "round": stop.round,
        "state": state,
        "paused": stop.is_paused,
        "history": history,
        "files": files,
    });
    serde_json::to_writer_pretty(&mut out, &told)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out))
        .map_err(unwritable)?;
    Ok(Code::DONE)
}

/// What became of one of many logs.
enum Verdict {
    Same,
    Departs(String),
    Unusable(String),
}

/// Replays many logs side by side; says which depart, and where.
fn many(host: &Host, logs: &[PathBuf]) -> Result<Code, Failure> {
    let next = AtomicUsize::new(0);
    let judge = || {
        let mut verdicts = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(log) = logs.get(index) else {
                return verdicts;
            };
            verdicts.push((index, verdict(host, log)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut verdicts: Vec<(usize, Verdict)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(judge)).collect();
        // One that panicked has judged nothing; that is seen by its missing verdicts.
        let judged = workers.into_iter().filter_map(|worker| worker.join().ok());
        judged.flatten().collect()
    });
    verdicts.sort_by_key(|(index, _)| *index);
    let mut out = io::stdout().lock();
    let (mut departed, mut unusable) = (0, logs.len() - verdicts.len());
    for (index, verdict) in &verdicts {
        let path = logs[*index].display();
        let line = match verdict {
            Verdict::Same => continue,
            Verdict::Departs(why) => {
                departed += 1;
                format!("{path}: {why}")
            }
            Verdict::Unusable(why) => {
                unusable += 1;
                why.clone()
            }
        };
        writeln!(out, "{line}").map_err(unwritable)?;
    }
    let count = logs.len();
    writeln!(out, "{departed} of {count} logs depart").map_err(unwritable)?;
    match (departed, unusable) {
        (0, 0) => Ok(Code::DONE),
        (_, 0) => Err(Failure::failed(format!(
            "{departed} of {count} logs depart"
        ))),
        (_, unusable) => Err(Failure::failed(format!(
            "{unusable} of {count} logs cannot be used"
        ))),
    }
}

fn verdict(host: &Host, log: &Path) -> Verdict {
    match host.replay(log).and_then(|replay| replay.run(|_| {})) {
        Ok(_) => Verdict::Same,
        Err(error @ ReplayError::Log(_)) => Verdict::Unusable(error.to_string()),
        Err(error) => Verdict::Departs(error.to_string()),
    }
}

/// The end of a replay that did not come to the log's end.
fn departed(error: ReplayError, recorded: &CoreId, own: &CoreId) -> Failure {
    let is_difference = matches!(error, ReplayError::Differs(_) | ReplayError::Core(..));
    let mut failure = failed(error);
    if is_difference && own != recorded {
        failure.message += &format!(
            "\n(the log is of core {}, version {}; this is {}, version {})",
            short(&recorded.hash),
            recorded.version,
            short(&own.hash),
            own.version,
        );
    }
    failure
}

pub(crate) fn failed(error: ReplayError) -> Failure {
    match &error {
        ReplayError::Log(log) if !matches!(log.error, LogError::Damaged(_)) => {
            Failure::usage(error.to_string())
        }
        ReplayError::NoSuchRound(_) => Failure::usage(error.to_string()),
        _ => Failure::failed(error.to_string()),
    }
}

fn unwritable(error: io::Error) -> Failure {
    Failure::failed(format!("cannot write: {}", reason(&error)))
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
