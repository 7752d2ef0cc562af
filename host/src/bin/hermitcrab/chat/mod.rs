//! `hermitcrab` on a terminal: a conversation. What was said and done scrolls away
//! above; below it stands what happens now, with the line that is written on.

pub(crate) mod after;
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

use hermitcrab::llm::Content;
use hermitcrab_host::Continuation;

use crate::approve::Questions;
use crate::cli::RunOptions;
use crate::connect::HostSession;
use crate::failure::{Code, Failure, reason};
use crate::journal;
use crate::session::Ended;
use crate::signal::Stops;

use after::Chat;
use conversation::Conversation;
use terminal::Raw;

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
        let ended = plain::converse(session, prompt, options, stops, questions).await;
        chat.after().said = true;
        if is_closed_by_an_error(&ended) {
            terminal::forget_typed();
        }
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
    let mut conversation = Conversation::new(session, options, chat.draft.as_deref()).await;
    if !prompt.is_empty() {
        conversation.send(prompt);
    }
    let ended = conversation.run(stops, questions).await;
    let said = conversation.said;
    let mut resume = conversation.resume.take();
    if is_closed_by_an_error(&ended) {
        resume = conversation.again();
        if resume.is_none() {
            // What was typed for the model is no command of the shell.
            terminal::forget_typed();
        }
    }
    drop(raw);
    let mut after = chat.after();
    after.unused = id.filter(|_| begins_empty && is_new && !said);
    after.said = (said || chat.draft.is_some()) && resume.is_none();
    after.resume = resume;
    ended
}

fn is_closed_by_an_error(ended: &Ended) -> bool {
    matches!(&ended.result, Err(failure) if failure.code == Code::FAILED)
}
