//! Compaction: the model writes a summary of the conversation, which replaces its
//! older part in later requests.
//!
//! Off by default: the specification leaves it to the host (spec 5.5, 12). Nothing is
//! lost by it: the turns that went stay in the history, records and events. It happens
//! only between rounds, so no call is parted from its result. A summary that fails
//! changes nothing, and after two in a row nobody asks for one at the threshold.

pub(super) mod attempts;
pub(super) mod cut;
pub(super) mod settings;
pub(super) mod summary;

use std::rc::Rc;

use super::context;
use super::model::{self, Ask, ModelEnd};
use super::state::Shared;
use crate::environment::{CancelReason, Scope};
use crate::event::{CompactionReason, EventKind};
use crate::llm::{FinishKind, Message, Request, Response, Role, ToolChoice, model_info};
use attempts::MAX_FAILURES;

use settings::Compaction;

/// What asks for the summary: a handover to somebody who has read nothing.
const PROMPT: &str = include_str!("prompt.md");

/// Why there is no summary.
enum NoSummary {
    /// The work was stopped.
    Stopped,
    /// The model gave none.
    Failed(String),
}

/// Between rounds: compacts if the host has called or the threshold is reached. Says
/// whether a summary was asked for.
pub(super) async fn between_rounds(session: &Rc<Shared>, scope: &Scope) -> bool {
    // An answer in which the provider paused goes back as it is.
    if !session.transcript.history.borrow().is_open() {
        return false;
    }
    if session.transcript.compaction.take_call() {
        return compact(session, scope, CompactionReason::Call).await;
    }
    is_due(session) && compact(session, scope, CompactionReason::Threshold).await
}

/// The provider found a request too long. Compacts where the setting is on; says whether
/// the conversation has become shorter, so that it can be sent again.
pub(super) async fn after_overflow(session: &Rc<Shared>, scope: &Scope) -> bool {
    let may = session.transcript.compaction.may_go_on();
    if session.config.borrow().compaction.is_none() || !may {
        return false;
    }
    let sent = || {
        let history = session.transcript.history.borrow();
        history.conversation().approx_chars()
    };
    let before = sent();
    compact(session, scope, CompactionReason::ContextLength).await
        && session.control.stopped().is_none()
        && sent() < before
}

/// At the end of an input: compacts if the host has called.
pub(super) async fn at_the_end(session: &Rc<Shared>, scope: &Scope) {
    if session.control.stopped().is_none() && session.transcript.compaction.take_call() {
        compact(session, scope, CompactionReason::Call).await;
    }
}

/// Where no input is processed: compacts because the host has called.
pub(super) async fn alone(session: &Rc<Shared>) {
    let cancel = session.control.input_cancel();
    let _aborts = session.control.life.on_cancel({
        let cancel = cancel.clone();
        move |reason: CancelReason| cancel.cancel_for(reason)
    });
    let scope = session.scope(cancel);
    session.paused(&scope).await;
    if session.control.stopped().is_none() {
        compact(session, &scope, CompactionReason::Call).await;
    }
    // A call that came meanwhile has what it wanted.
    session.transcript.compaction.take_call();
    if session.control.stopped().is_some() {
        session.port.settled(&scope).await;
    }
}

/// Whether the threshold is reached, and compacting would help.
fn is_due(session: &Shared) -> bool {
    let Some(settings) = session.config.borrow().compaction.clone() else {
        return false;
    };
    let may = session.transcript.compaction.may_go_on();
    let limit = settings.limit(context::window(session).tokens);
    may && limit.is_some_and(|limit| context::tokens(session) > limit)
        && kept(session, &settings).is_some()
}

/// How many turns stay; none: there is nothing to gain.
fn kept(session: &Shared, settings: &Compaction) -> Option<usize> {
    let room = settings.room(context::window(session).tokens);
    let history = session.transcript.history.borrow();
    cut::kept(history.turns(), settings.keep_rounds, room)
}

/// Compacts; says whether a summary was asked for.
async fn compact(session: &Rc<Shared>, scope: &Scope, reason: CompactionReason) -> bool {
    let settings = session.config.borrow().compaction.clone();
    let settings = settings.unwrap_or_default();
    let before_tokens = context::tokens(session);
    let end = |kept_turns, after_tokens, summary, error| EventKind::CompactionEnd {
        before_tokens,
        after_tokens,
        kept_turns,
        summary,
        error,
    };
    session.emit(EventKind::CompactionStart {
        reason,
        before_tokens,
        context_window: context::window(session).tokens,
    });
    let all = session.transcript.history.borrow().turns().len() as u64;
    let Some(kept) = kept(session, &settings) else {
        let nothing = "there is nothing to compact: all rounds are among those that stay, or in \
                       a summary already";
        session.emit(end(all, before_tokens, None, Some(nothing.to_owned())));
        return false;
    };
    match summarise(session, scope, &settings).await {
        Ok(summary) => {
            let now = session.port.now_ms();
            let mut history = session.transcript.history.borrow_mut();
            history.compact(summary.clone(), kept, now);
            drop(history);
            let after_tokens = context::tokens(session);
            session.emit(end(kept as u64, after_tokens, Some(summary), None));
            let limit = settings.limit(context::window(session).tokens);
            if limit.is_some_and(|limit| after_tokens > limit) {
                // It would be asked for in each round, and never help.
                count_failure(session);
            } else {
                session.transcript.compaction.succeed();
            }
        }
        Err(NoSummary::Stopped) => {
            let stopped = "stopped before the summary was there".to_owned();
            session.emit(end(all, before_tokens, None, Some(stopped)));
        }
        Err(NoSummary::Failed(problem)) => {
            session.emit(end(all, before_tokens, None, Some(problem)));
            count_failure(session);
        }
    }
    true
}

/// Counts a summary that did not help, and says when the threshold counts no more.
fn count_failure(session: &Shared) {
    let is_last = session.transcript.compaction.fail();
    if is_last && session.config.borrow().compaction.is_some() {
        session.emit(EventKind::Warning {
            code: "compaction_off".to_owned(),
            message: format!(
                "{MAX_FAILURES} compactions in a row failed or did not help; the conversation \
                 grows from here on until you call `compact`"
            ),
        });
    }
}

/// The model's summary of the conversation.
async fn summarise(
    session: &Rc<Shared>,
    scope: &Scope,
    settings: &Compaction,
) -> Result<String, NoSummary> {
    while session.control.stopped().is_none() {
        let request = request(session, settings);
        match model::call(session, scope, Ask::Summary(&request)).await {
            Ok(response) => return summary_of(&response).map_err(NoSummary::Failed),
            Err(ModelEnd::Stopped(_)) => break,
            Err(ModelEnd::Failed(error)) => return Err(NoSummary::Failed(error.to_string())),
            Err(ModelEnd::Paused) => drop(session.paused(scope).await),
        }
    }
    Err(NoSummary::Stopped)
}

/// The next request with the prompt in place of what would come: what providers have
/// cached of the conversation is used, and reasoning stands where it stood.
fn request(session: &Shared, settings: &Compaction) -> Request {
    let mut request = model::request(session);
    // Its copy of the conversation grows, not the session's.
    request
        .conversation
        .push(Message::text(Role::User, PROMPT.trim_end()));
    if !request.tools.is_empty() {
        request.tool_choice = ToolChoice::None;
    }
    if let Some(reserved) = settings.summary_tokens(context::window(session).tokens) {
        let most = model_info(&request.model).and_then(|known| known.max_output);
        let limits = [request.max_tokens, Some(reserved), most];
        request.max_tokens = limits.into_iter().flatten().min();
    }
    request
}

fn summary_of(response: &Response) -> Result<String, String> {
    let text = response.text();
    let text = text.trim();
    if response.tool_calls().next().is_some() {
        return Err("the model called a tool instead of writing the summary".to_owned());
    }
    match response.finish_reason.reason {
        FinishKind::Length => Err("the summary was cut off at its token limit; raise \
                                   `compaction.reserve`"
            .to_owned()),
        FinishKind::ContentFilter => Err("the model refused to write the summary".to_owned()),
        _ if text.is_empty() => Err("the model's summary is empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}
