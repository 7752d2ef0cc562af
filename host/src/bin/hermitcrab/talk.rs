//! `hermitcrab` without a command: begins a conversation on the terminal, and the next one
//! where the person goes on with another session.

use std::io::{self, IsTerminal as _};
use std::process::Command as Process;
use std::sync::Arc;

use crate::begin;
use crate::chat::after::{After, Chat};
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
    let chat = Arc::new(Chat::default());
    options.chat = Some(chat.clone());
    let mut kept = Vec::new();
    if let Some(url) = &options.base_url {
        kept.extend(["--base-url".to_owned(), url.clone()]);
    }
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
        Some(id) => other(&id, &kept, secrets),
        None => result,
    }
}

/// Becomes the conversation with another session. Its guardian has to be started before
/// any thread, so that takes another process.
fn other(id: &str, options: &[String], secrets: &Secrets) -> Result<Code, Failure> {
    let failed = |error: io::Error| {
        Failure::failed(format!(
            "cannot go on with the session {id}: {}",
            reason(&error)
        ))
    };
    let mut process = Process::new(std::env::current_exe().map_err(failed)?);
    process.args(["chat", "--resume", id]).args(options);
    process.envs(secrets.all());
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
