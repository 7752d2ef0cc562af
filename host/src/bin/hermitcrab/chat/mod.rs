//! `hermitcrab` on a terminal: a conversation. What was said and done scrolls away
//! above; below it stands what happens now, with the line that is written on.

mod commands;
mod complete;
mod conversation;
mod dialog;
mod editor;
mod highlight;
mod history;
mod markdown;
mod plain;
mod screen;
mod status;
mod terminal;
mod transcript;
mod wrap;

use std::io::{self, IsTerminal as _};
use std::process::Command as Process;
use std::sync::{Arc, Mutex, PoisonError};

use hermitcrab::llm::Content;
use hermitcrab_host::Continuation;

use crate::approve::Questions;
use crate::cli::RunOptions;
use crate::connect::HostSession;
use crate::failure::{Code, Failure, reason};
use crate::journal;
use crate::run;
use crate::secrets::Secrets;
use crate::session::Ended;
use crate::signal::Stops;

use conversation::Conversation;
use terminal::Raw;

/// What a conversation leaves to who began it.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    after: Mutex<After>,
}

#[derive(Clone, Debug, Default)]
struct After {
    /// A session in which nothing was said.
    unused: Option<String>,
    /// Whether something was said.
    said: bool,
    /// A session to go on with.
    resume: Option<String>,
}

impl Chat {
    /// Whether the person wants to know how to go on with it.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.after().said
    }

    fn after(&self) -> std::sync::MutexGuard<'_, After> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converses.
///
/// # Errors
/// There is no terminal, or the session cannot begin or go on.
pub(crate) fn chat(mut options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
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
    let result = run::run(options, secrets);
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

/// Talks until the person leaves.
pub(crate) async fn converse(
    session: &mut HostSession,
    prompt: Content,
    options: &RunOptions,
    chat: &Chat,
    stops: &mut Stops,
    questions: &mut Questions,
) -> Ended {
    let id = session.held.as_ref().map(journal::Held::id);
    let begins_empty = prompt.is_empty() && session.continuation == Continuation::Input;
    let is_new = options.journal.resume.is_none() && !options.journal.r#continue;
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    if dumb {
        let ended = plain::converse(session, prompt, options.quiet, stops, questions).await;
        chat.after().said = true;
        return ended;
    }
    let raw = match Raw::enter() {
        Ok(raw) => raw,
        Err(error) => {
            return Ended::failed(Failure::failed(format!(
                "cannot use the terminal: {}",
                reason(&error)
            )));
        }
    };
    let mut conversation = Conversation::new(session, options).await;
    if !prompt.is_empty() {
        conversation.send(prompt);
    }
    let ended = conversation.run(stops, questions).await;
    let Conversation { said, resume, .. } = &conversation;
    let (said, resume) = (*said, resume.clone());
    drop(raw);
    let mut after = chat.after();
    after.unused = id.filter(|_| begins_empty && is_new && !said);
    after.said = said && resume.is_none();
    after.resume = resume;
    ended
}
