//! The session's task and the agentic loop (spec 2.5), in the order in which
//! things happen.

use std::rc::Rc;

use super::compaction;
use super::context;
use super::control::{Command, Injected, Work};
use super::model::{self, Ask, ModelEnd};
use super::orientation::look_around;
use super::output::{self, Final};
use super::prompt;
use super::round;
use super::state::Shared;
use crate::effect::EffectPort;
use crate::environment::{Cancel, EnvironmentError, Scope};
use crate::event::{
    Attachment, CloseReason, EndReason, EventKind, LimitKind, SessionState, SteeringSource,
};
use crate::llm::{Content, FinishKind, LlmError, LlmErrorKind, Response};
use crate::session::config::AwaitingInput;

/// `SESSION_START`. At open, not when the task first runs: a host may call the
/// session before its first step, and this event comes first all the same.
pub(super) fn announce(session: &Shared) {
    let info = session.workspace.info();
    session.emit(EventKind::SessionStart {
        provider: session.profile.id.clone(),
        model: session.model_name(),
        working_directory: info.working_directory.clone(),
        platform: info.platform.clone(),
    });
}

/// The life of a session after `SESSION_START`, to `SESSION_END`.
pub(super) async fn run(session: Rc<Shared>) {
    let life = session.scope(session.control.life.clone());
    if let Err(error) = set_up(&session, &life).await {
        session.emit(EventKind::Error {
            code: "environment".to_owned(),
            message: format!("the environment could not be initialized: {error}"),
            status: None,
            retryable: false,
        });
        session.control.begin_closing(CloseReason::Error);
    }
    let reason = loop {
        match session.control.next_command().await {
            Command::Process(work) => process(&session, work).await,
            Command::Close(reason) => break reason,
        }
    };
    shut_down(&session, reason).await;
}

/// Initializes the environment, once for all its sessions, and builds the
/// system prompt from what there is.
async fn set_up(session: &Shared, life: &Scope) -> Result<(), EnvironmentError> {
    let environment = session.environment_in(life);
    session.workspace.environment.enter(&environment).await?;
    if !prompt::is_known(session) {
        let orientation = look_around(session, life).await;
        prompt::start(session, orientation);
    }
    Ok(())
}

/// Processes an input and the follow-ups queued behind it: a loop, so that ten
/// thousand follow-ups need no stack.
async fn process(session: &Rc<Shared>, work: Work) {
    let mut next = Some(work);
    let mut state = SessionState::Idle;
    while let Some(work) = next.take() {
        if let Work::Compact(before) = work {
            compaction::alone(session).await;
            state = before;
            next = next_follow_up(session, session.control.stopped().is_none());
            continue;
        }
        let (reason, rounds) = process_input(session, work).await;
        let output = session.transcript.output();
        session.emit(EventKind::ProcessingEnd {
            reason,
            rounds,
            turns: session.transcript.history.borrow().assistant_turns(),
            totals: session.meter.totals(),
            output,
        });
        state = match reason {
            EndReason::AwaitingInput => SessionState::AwaitingInput,
            _ => SessionState::Idle,
        };
        let goes_on = match reason {
            EndReason::Completed
            | EndReason::AwaitingInput
            | EndReason::RoundLimit
            | EndReason::TurnLimit
            | EndReason::CostLimit
            | EndReason::TimeLimit => true,
            // What stopped this input would surprise the user by starting another.
            EndReason::Interrupted | EndReason::Aborted | EndReason::Error => false,
        };
        next = next_follow_up(session, goes_on);
    }
    if session.control.closing().is_none() {
        session.set_state(state);
    }
}

/// The next follow-up, which begins, where the session goes on.
fn next_follow_up(session: &Shared, goes_on: bool) -> Option<Work> {
    if !goes_on || session.control.closing().is_some() {
        return None;
    }
    let next = session.control.mailbox.next_follow_up()?;
    session.begin_input();
    Some(Work::Input(next))
}

/// One input: model, tools, model, tools, … until an answer without calls, a
/// limit, a stop or an error. Returns why it ended and how many rounds it took.
async fn process_input(session: &Rc<Shared>, work: Work) -> (EndReason, u32) {
    let cancel = session.control.input_cancel();
    let _aborts = session.control.life.on_cancel({
        let cancel = cancel.clone();
        move |reason| cancel.cancel_for(reason)
    });
    let _clock = WallClock::start(session);
    let scope = session.scope(cancel);

    if let Work::Input(input) = work {
        let input = session.transcript.history.borrow().fitting(input);
        session.emit(EventKind::UserInput {
            content: input.text(),
            attachments: Attachment::all(&input),
        });
        let now = session.port.now_ms();
        session
            .transcript
            .history
            .borrow_mut()
            .push_user(input, now);
    }
    drain_injected(session);

    let mut rounds = 0;
    // Answers in a row that a limit cut off in a call.
    let mut cut_off = 0;
    // Final answers of another form than the one that was asked for.
    let mut corrections = 0;
    let reason = loop {
        if session.paused(&scope).await && session.control.stopped().is_none() {
            drain_injected(session);
        }
        if let Some(reason) = session.control.stopped() {
            break reason;
        }
        if let Some(reason) = limit_reached(session, rounds) {
            break reason;
        }
        if compaction::between_rounds(session, &scope).await {
            if let Some(reason) = session.control.stopped() {
                break reason;
            }
            // The summary may have cost what was left.
            if let Some(reason) = limit_reached(session, rounds) {
                break reason;
            }
            drain_injected(session);
        }
        watch_context(session);
        let response = match model::call(session, &scope, Ask::Answer).await {
            Ok(response) => response,
            Err(ModelEnd::Stopped(partial)) => {
                if let Some(partial) = partial {
                    model::keep_partial(session, *partial);
                }
                break session.control.stopped().unwrap_or(EndReason::Aborted);
            }
            Err(ModelEnd::Paused) => continue,
            Err(ModelEnd::Failed(error))
                if error.kind == LlmErrorKind::ContextLength
                    && compaction::after_overflow(session, &scope).await =>
            {
                drain_injected(session);
                continue;
            }
            Err(ModelEnd::Failed(error)) => {
                if let Some(reason) = session.control.stopped() {
                    break reason;
                }
                fail(session, &error);
                break EndReason::Error;
            }
        };
        let calls: Vec<_> = response.tool_calls().cloned().collect();
        let paused = matches!(
            response.finish_reason.raw.as_str(),
            "pause_turn" | "CONTINUATION"
        );
        cut_off = match response.finish_reason.reason {
            FinishKind::Length if response.lacks_a_call() => cut_off + 1,
            _ => 0,
        };
        let end = natural_end(session, &response);
        let last = calls.is_empty() && !paused && cut_off == 0 && end == EndReason::Completed;
        let last = last.then(|| output::judge(session, &response, corrections));
        warn_of_odd_end(session, &response);
        let now = session.port.now_ms();
        session
            .transcript
            .history
            .borrow_mut()
            .push_response(response, now);
        if calls.is_empty() {
            // A paused answer is sent back as it is, and the model goes on.
            if paused {
                rounds += 1;
                continue;
            }
            match last {
                Some(Final::Again(message)) => {
                    corrections += 1;
                    rounds += 1;
                    inject_steering(session, None, SteeringSource::OutputSchema, message);
                    continue;
                }
                Some(Final::Failed(error)) => {
                    fail(session, &error);
                    break EndReason::Error;
                }
                Some(Final::Done(value)) => {
                    session.transcript.outcome.borrow_mut().output = value;
                    break end;
                }
                None if cut_off == 0 => break end,
                None => {}
            }
        }
        rounds += 1;
        if !calls.is_empty() {
            let results = round::execute(session, &scope, &calls).await;
            let now = session.port.now_ms();
            session
                .transcript
                .history
                .borrow_mut()
                .push_results(results, now);
            session.transcript.finished.take();
        }
        if cut_off > session.config.borrow().max_stream_retries {
            fail(session, &too_long_a_call(session, cut_off));
            break EndReason::Error;
        }
        if cut_off > 0 {
            inject_steering(
                session,
                None,
                SteeringSource::CallCutOff,
                CALL_CUT_OFF.into(),
            );
        }
        // No model call follows a stop: what is queued then is not delivered.
        if session.control.stopped().is_none() {
            drain_injected(session);
        }
        detect_repetition(session, &calls);
    };
    compaction::at_the_end(session, &scope).await;
    if session.control.stopped().is_some() {
        // Every effect has had its final outcome before the input ends.
        session.port.settled(&scope).await;
        session.agents.at_rest().await;
    }
    if reason == EndReason::TimeLimit {
        let value = session.config.borrow().max_wall_ms;
        emit_turn_limit(session, LimitKind::WallTime, value, rounds);
    }
    (reason, rounds)
}

/// What the model reads when its token limit cut off a call: otherwise an
/// answer without calls would end the task as if it were done.
const CALL_CUT_OFF: &str = "Your last tool call was cut off at the limit of output tokens and was \
                            not run. Make it again in smaller parts.";

fn too_long_a_call(session: &Shared, times: u32) -> LlmError {
    let message = format!(
        "the limit of output tokens cut off the model's tool call {times} times in a row; \
         raise `max_tokens`"
    );
    LlmError {
        retryable: false,
        ..LlmError::new(LlmErrorKind::Stream, &session.profile.id, message)
    }
}

/// Round and turn limits (spec 2.8), told to the host when reached.
fn limit_reached(session: &Shared, rounds: u32) -> Option<EndReason> {
    let config = session.config.borrow();
    let turns = session.transcript.history.borrow().assistant_turns();
    if let Some(most) = config.max_cost_usd {
        match session.meter.whole_cost_usd() {
            Some(cost) if cost < most => {}
            Some(_) => {
                emit_turn_limit(session, LimitKind::Cost, micro_usd(most), rounds);
                return Some(EndReason::CostLimit);
            }
            None => {
                session.emit(cost_unknown(session));
                return Some(EndReason::Error);
            }
        }
    }
    let (limit, value, reason) = if rounds >= config.max_tool_rounds_per_input {
        let value = config.max_tool_rounds_per_input;
        (LimitKind::ToolRounds, value, EndReason::RoundLimit)
    } else if config.max_turns > 0 && turns >= config.max_turns {
        (LimitKind::Turns, config.max_turns, EndReason::TurnLimit)
    } else {
        return None;
    };
    emit_turn_limit(session, limit, u64::from(value), rounds);
    Some(reason)
}

/// Millionths of a US dollar: what an event has of a limit in US dollars.
fn micro_usd(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

/// A limit that cannot be kept is worse than none.
fn cost_unknown(session: &Shared) -> EventKind {
    EventKind::Error {
        code: "cost_unknown".to_owned(),
        message: format!(
            "what the session has cost is not known, so `max_cost_usd` cannot be kept; give the \
             price of {} in `prices`, or leave the limit out",
            session.model_name()
        ),
        status: None,
        retryable: false,
    }
}

fn emit_turn_limit(session: &Shared, limit: LimitKind, value: u64, round: u32) {
    session.emit(EventKind::TurnLimit {
        limit,
        value,
        round,
        total_turns: session.transcript.history.borrow().assistant_turns(),
    });
}

/// How an answer without tool calls ends the input.
fn natural_end(session: &Shared, response: &Response) -> EndReason {
    let asks = match session.config.borrow().awaiting_input {
        AwaitingInput::Always => true,
        AwaitingInput::Never => false,
        AwaitingInput::Heuristic => response
            .text()
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .is_some_and(|line| line.trim_end().ends_with(['?', '？'])),
    };
    if asks {
        EndReason::AwaitingInput
    } else {
        EndReason::Completed
    }
}

/// Says what a host would not see from the text: that the answer is not whole.
fn warn_of_odd_end(session: &Shared, response: &Response) {
    let nothing = response.text().trim().is_empty() && response.tool_calls().next().is_none();
    let found = match response.finish_reason.reason {
        // The model is asked to make the call again.
        FinishKind::Length if response.lacks_a_call() => None,
        FinishKind::Length => Some((
            "answer_truncated",
            "the model's answer was cut at its token limit: raise `max_tokens`, or ask it to go on",
        )),
        FinishKind::ContentFilter => Some((
            "answer_refused",
            "the model refused to answer, or its answer was filtered",
        )),
        FinishKind::Stop if nothing => Some(("answer_empty", "the model's answer is empty")),
        _ => None,
    };
    session.transcript.outcome.borrow_mut().doubt = found.map(|(_, message)| message);
    if let Some((code, message)) = found {
        session.emit(EventKind::Warning {
            code: code.to_owned(),
            message: message.to_owned(),
        });
    }
}

/// Moves queued steering and system messages into the history (spec 2.6).
fn drain_injected(session: &Shared) {
    while let Some(injected) = session.control.mailbox.next_injected() {
        match injected {
            Injected::Steering { id, content } => {
                inject_steering(session, Some(id), SteeringSource::Host, content);
            }
            Injected::System { content } => {
                let now = session.port.now_ms();
                session
                    .transcript
                    .history
                    .borrow_mut()
                    .push_system(content, now);
            }
        }
    }
}

/// Adds a steering turn to the history and says so.
fn inject_steering(session: &Shared, id: Option<u64>, source: SteeringSource, content: Content) {
    let now = session.port.now_ms();
    let mut history = session.transcript.history.borrow_mut();
    let content = history.fitting(content);
    session.emit(EventKind::SteeringInjected {
        id,
        source,
        content: content.text(),
        attachments: Attachment::all(&content),
    });
    history.push_steering(content, now);
}

/// Tells the model when its calls go in circles (spec 2.10).
fn detect_repetition(session: &Shared, calls: &[crate::llm::ToolCall]) {
    let config = session.config.borrow();
    if !config.enable_loop_detection {
        return;
    }
    let window = usize::try_from(config.loop_detection_window).unwrap_or(usize::MAX);
    let mut repetition = session.transcript.repetition.borrow_mut();
    let mut pattern = None;
    for call in calls {
        repetition.record(&call.name, &call.arguments, window);
        pattern = repetition.detect(window).or(pattern);
    }
    if let Some(pattern_length) = pattern {
        let message = format!(
            "Loop detected: the last {window} tool calls follow a repeating pattern. \
             Try a different approach."
        );
        let content = message.as_str().into();
        inject_steering(session, None, SteeringSource::Repetition, content);
        session.emit(EventKind::LoopDetection {
            message,
            pattern_length,
        });
    }
}

/// Warns when the history passes 80 % of the context window (spec 5.5).
fn watch_context(session: &Shared) {
    let window = context::window(session);
    let chars = session
        .transcript
        .history
        .borrow()
        .conversation()
        .approx_chars()
        + prompt::current(session).len() as u64;
    let mut watch = session.transcript.context.get();
    if let Some(mut message) = watch.check(chars, window.tokens) {
        if window.is_guess {
            message += &format!(
                " of {} tokens, which is a guess: set `context_window` to what fits {}",
                window.tokens,
                session.model_name()
            );
        }
        session.emit(EventKind::Warning {
            code: "context_usage".to_owned(),
            message,
        });
    }
    session.transcript.context.set(watch);
}

/// Reports a model error. Those that another try cannot mend close the session.
fn fail(session: &Shared, error: &LlmError) {
    if error.kind == LlmErrorKind::ContextLength {
        session.emit(EventKind::Warning {
            code: "context_length".to_owned(),
            message: "the conversation no longer fits the model's context window".to_owned(),
        });
    }
    session.emit(EventKind::Error {
        code: error.kind.as_str().to_owned(),
        message: error.to_string(),
        status: error.status,
        retryable: error.retryable,
    });
    let fatal = matches!(
        error.kind,
        LlmErrorKind::Authentication
            | LlmErrorKind::AccessDenied
            | LlmErrorKind::QuotaExceeded
            | LlmErrorKind::InvalidRequest
            | LlmErrorKind::ContextLength
    );
    if fatal {
        session.control.begin_closing(CloseReason::Error);
    }
}

/// The order of spec appendix B. Streams and commands have been cancelled by
/// whoever began the closing, and hosts end process groups with SIGTERM, 2 s,
/// SIGKILL; here their final outcomes are awaited before the last event.
async fn shut_down(session: &Shared, reason: CloseReason) {
    session.control.life.cancel();
    session.agents.close().await;
    session.background.ended().await;
    // Not the session's scope: that one may be cancelled already.
    let scope = session.scope(Cancel::new());
    session.port.settled(&scope).await;
    while let Some(injected) = session.control.mailbox.next_injected() {
        if let Injected::Steering { id, content } = injected {
            session.emit(EventKind::SteeringDropped {
                id,
                content: content.text(),
                attachments: Attachment::all(&content),
            });
        }
    }
    while let Some(content) = session.control.mailbox.next_follow_up() {
        session.emit(EventKind::FollowUpDropped {
            content: content.text(),
            attachments: Attachment::all(&content),
        });
    }
    let environment = session.environment_in(&scope);
    if let Err(error) = session.workspace.environment.leave(&environment).await {
        session.emit(EventKind::Warning {
            code: "environment".to_owned(),
            message: format!("the environment could not be cleaned up: {error}"),
        });
    }
    session.set_state(SessionState::Closed);
    let output = session.transcript.output();
    session.emit(EventKind::SessionEnd {
        state: SessionState::Closed,
        reason,
        totals: Some(session.meter.totals()),
        output,
    });
}

/// Ends an input after `max_wall_ms`. Dropping it stops the clock.
struct WallClock(Option<Cancel>);

impl WallClock {
    fn start(session: &Rc<Shared>) -> Self {
        let limit_ms = session.config.borrow().max_wall_ms;
        if limit_ms == 0 {
            return Self(None);
        }
        let cancel = Cancel::new();
        let scope = session.scope(cancel.clone());
        let port: EffectPort = session.port.clone();
        let weak = Rc::downgrade(session);
        session.spawner.spawn(async move {
            if port.sleep(&scope, limit_ms).await
                && let Some(session) = weak.upgrade()
            {
                session.stop_input(EndReason::TimeLimit);
            }
        });
        Self(Some(cancel))
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}
