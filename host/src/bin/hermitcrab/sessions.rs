//! `hermitcrab sessions`: the sessions that local runs have left.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use hermitcrab::session::{SavedSession, Turn};
use hermitcrab_host::log::ReplayError;
use hermitcrab_host::store::{Kept, SessionStore as _};
use serde_json::{Value, json};

use crate::cli::{SessionsCommand, SessionsOptions};
use crate::connect;
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::journal;
use crate::replay;
use crate::undo;
use crate::workspace;

/// Lists sessions, or does with one what the options say.
///
/// # Errors
/// There is no such session, or it cannot be read or written.
pub(crate) fn sessions(options: &SessionsOptions) -> Result<Code, Failure> {
    match &options.command {
        None => list(options.dir.as_deref(), options.json)?,
        Some(SessionsCommand::Show(show)) => {
            let turns = turns(&show.id)?;
            match show.json {
                true => print(&format!("{}\n", json!(turns)))?,
                false => print(&told(&turns))?,
            }
        }
        Some(SessionsCommand::Export(to)) => export(&to.id, &to.file)?,
        Some(SessionsCommand::Delete(these)) => {
            let store = journal::sessions()?;
            for id in &these.ids {
                store.remove(id).map_err(journal::failed)?;
                undo::forget(id)?;
            }
        }
    }
    Ok(Code::DONE)
}

fn list(directory: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let directory = directory.map(workspace::directory).transpose()?;
    let here = directory.as_deref().and_then(Path::to_str);
    let mut kept = journal::sessions()?.list().map_err(journal::failed)?;
    kept.retain(|one| here.is_none_or(|here| one.about.directory == here));
    if as_json {
        return print(&format!(
            "{}\n",
            json!(kept.iter().map(row).collect::<Vec<_>>())
        ));
    }
    if kept.is_empty() {
        eprintln!("hermitcrab: no sessions are kept");
        return Ok(());
    }
    let lines = kept.iter().map(|one| {
        let about = &one.about;
        let size = one.bytes.div_ceil(1024);
        let line = format!("{}  {size:>6} KiB  {}", about.id, about.directory);
        format!("{}\n    {}\n", harmless(&line), harmless(&about.task))
    });
    print(&lines.collect::<String>())
}

fn row(kept: &Kept) -> Value {
    let mut row = json!(kept.about);
    row["updated_ms"] = kept.updated_ms.into();
    row["bytes"] = kept.bytes.into();
    row
}

/// The conversation of a session: as its log has it, else, where another core wrote
/// that, as it was saved last.
fn turns(id: &str) -> Result<Vec<Turn>, Failure> {
    let store = journal::sessions()?;
    let host = connect::chosen_core(hermitcrab_host::Host::builder());
    let host = host.build().map_err(connect::failed)?;
    let source = store.log(id).map_err(journal::failed)?;
    let name = PathBuf::from(format!("session {id}"));
    let replayed = host.replay_of(&name, source).and_then(|mut replay| {
        let stop = replay.to_end()?;
        let history = replay.history(&stop.session);
        history.map_err(|error| ReplayError::Core(0, error))
    });
    match replayed {
        Ok(history) => serde_json::from_slice(&history)
            .map_err(|error| Failure::failed(format!("session {id}: {error}"))),
        Err(error @ (ReplayError::Differs(_) | ReplayError::Core(..))) => {
            let saved = store.open(id).and_then(|session| session.saved());
            match saved.map_err(journal::failed)? {
                Some(saved) => {
                    let saved = SavedSession::read(&saved);
                    let saved = saved.map_err(|error| Failure::failed(error.message))?;
                    Ok(saved.record.turns)
                }
                None => Err(replay::failed(error)),
            }
        }
        Err(error) => Err(replay::failed(error)),
    }
}

/// A conversation for people.
fn told(turns: &[Turn]) -> String {
    let mut text = String::new();
    for turn in turns {
        let lines = match turn {
            Turn::User { content, .. } | Turn::Steering { content, .. } => {
                format!("> {}\n", content.text().replace('\n', "\n> "))
            }
            Turn::System { content, .. } => format!("[{content}]\n"),
            Turn::Compaction { summary, .. } => {
                format!(
                    "[from here on the model reads a summary]\n{}\n",
                    summary.trim()
                )
            }
            Turn::ToolResults { .. } => continue,
            Turn::Assistant {
                content,
                tool_calls,
                ..
            } => {
                let calls = tool_calls.iter();
                let calls = calls.map(|call| format!("* {} {}\n", call.name, call.arguments));
                match content.trim() {
                    "" => calls.collect(),
                    answer => format!("{answer}\n{}", calls.collect::<String>()),
                }
            }
        };
        text.push_str(&harmless(&lines));
        text.push('\n');
    }
    text
}

fn export(id: &str, path: &Path) -> Result<(), Failure> {
    let mut log = journal::sessions()?.log(id).map_err(journal::failed)?;
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(path)
        .and_then(|mut file| io::copy(&mut log, &mut file));
    match written {
        Ok(_) => Ok(()),
        Err(error) => {
            let way_out = match error.kind() {
                ErrorKind::AlreadyExists => "; name another file, or remove it",
                _ => "",
            };
            let path = path.display();
            Err(Failure::usage(format!(
                "{path}: {}{way_out}",
                reason(&error)
            )))
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::failed(format!("cannot write: {}", reason(&error))))
}
