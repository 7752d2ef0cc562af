//! `hermitcrab` without a command: begins a conversation on the terminal, and the next one
//! where the person goes on with another session.

use std::io::{self, IsTerminal as _};
use std::process::Command as Process;
use std::sync::Arc;

use crate::begin;
use crate::chat::after::{After, Chat, Resume};
use crate::cli::RunOptions;
use crate::failure::{Code, Failure, reason};
use crate::journal;
use crate::secrets::Secrets;

/// Converses.
///
/// # Errors
/// There is no terminal, or the session cannot begin or go on.
pub(crate) fn talk(mut options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
    if options.json {
        return Err(Failure::usage("--json is for `hermitcrab run`"));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a conversation needs a terminal: give the task to `hermitcrab run`",
        ));
    }
    let chat = Arc::new(Chat::new(draft()));
    options.chat = Some(chat.clone());
    let kept = kept(&options);
    let result = begin::run(options, secrets);
    let After { unused, resume, .. } = chat.after().clone();
    if let Some(id) = unused
        && let Ok(store) = journal::sessions()
    {
        use hermitcrab_host::store::SessionStore as _;
        // Another process may have taken it; then it is used.
        let _ = store.remove(&id);
    }
    match resume {
        Some(resume) => other(&resume, &kept, secrets),
        None => result,
    }
}

/// What was being written when an error closed the session, for the process that goes on
/// with it.
const DRAFT: &str = "HERMITCRAB_DRAFT";

/// A longer text does not fit the environment of a process, in bytes.
const MAX_DRAFT: usize = 64 << 10;

/// Takes the draft out of the environment, so that commands do not get it.
fn draft() -> Option<String> {
    let draft = std::env::var(DRAFT).ok()?;
    // SAFETY: nothing so far has started a thread.
    unsafe { std::env::remove_var(DRAFT) };
    Some(draft)
}

/// The options that a session does not hold, for another one, too.
fn kept(options: &RunOptions) -> Vec<String> {
    let mut kept = Vec::new();
    let mut keep = |name: &str, value: Option<String>| {
        kept.push(name.to_owned());
        kept.extend(value);
    };
    if let Some(url) = &options.base_url {
        keep("--base-url", Some(url.clone()));
    }
    for name in &options.pass_env {
        keep("--pass-env", Some(name.clone()));
    }
    if let Some(quota) = options.journal.journal_quota {
        keep("--journal-quota", Some(quota.to_string()));
    }
    for (name, is_given) in [
        ("--tty", options.tty),
        ("--quiet", options.quiet),
        ("--no-checkpoints", options.journal.no_checkpoints),
    ] {
        if is_given {
            keep(name, None);
        }
    }
    kept
}

/// Becomes the conversation with another session, or with the same one anew. Its guardian has to be started before
/// any thread, so that takes another process.
fn other(resume: &Resume, options: &[String], secrets: &Secrets) -> Result<Code, Failure> {
    let Resume {
        id,
        draft,
        options: chosen,
    } = resume;
    let failed = |error: io::Error| {
        Failure::failed(format!(
            "cannot go on with the session {id}: {}",
            reason(&error)
        ))
    };
    let mut process = Process::new(std::env::current_exe().map_err(failed)?);
    process.args(["chat", "--resume", id]).args(options);
    process.args(chosen);
    process.envs(secrets.all());
    if let Some(draft) = draft {
        process.env(DRAFT, &draft[..draft.floor_char_boundary(MAX_DRAFT)]);
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        Err(failed(process.exec()))
    }
    #[cfg(not(unix))]
    {
        let status = process.status().map_err(failed)?;
        match status.success() {
            true => Ok(Code::DONE),
            false => Err(Failure::failed("the other session ended with an error")),
        }
    }
}
