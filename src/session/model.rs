//! Calling the model: one answer for one request, through retries.
//!
//! Two kinds of failure, two budgets: what fails before content
//! arrives follows the retry policy; a stream that breaks after content is the
//! session's affair, and the partial answer is void.

use std::rc::Rc;

use super::prompt;
use super::state::Shared;
use super::transport::EffectTransport;
use crate::environment::Scope;
use crate::event::{EventKind, UsagePurpose};
use crate::llm::{
    Client, Cost, FinishKind, LlmError, LlmErrorKind, Message, Prices, Request, Response,
    RetryDecision, Role, StreamEvent, model_info, retry_delay_ms,
};

/// Why there is no answer.
pub(super) enum ModelEnd {
    /// The input was stopped; `Shared::stopped` says why. What had arrived of
    /// the answer comes along.
    Stopped(Option<Box<Response>>),
    /// It is to be asked for again after a pause, which is due.
    Paused,
    /// The model call failed, and retries did not help.
    Failed(LlmError),
}

/// What the model is asked for.
#[derive(Clone, Copy)]
pub(super) enum Ask<'a> {
    /// The next answer of the conversation.
    Answer,
    /// A summary, which hosts are not shown as an answer.
    Summary(&'a Request),
}

/// How one attempt failed.
struct Broken {
    error: LlmError,
    /// The host has seen part of the answer.
    content: bool,
    partial: Option<Box<Response>>,
}

impl Ask<'_> {
    /// Whether hosts see the answer as it comes.
    fn is_shown(self) -> bool {
        matches!(self, Self::Answer)
    }

    fn request(self, session: &Shared) -> Request {
        match self {
            Self::Answer => request(session),
            Self::Summary(request) => request.clone(),
        }
    }
}

/// Calls the model with the history so far and returns its complete answer.
pub(super) async fn call(
    session: &Rc<Shared>,
    scope: &Scope,
    ask: Ask<'_>,
) -> Result<Response, ModelEnd> {
    let mut retries = 0;
    let mut stream_retries = 0;
    loop {
        let attempt = retries + stream_retries + 1;
        let broken = match attempt_once(session, scope, ask, attempt).await {
            Ok(response) => return Ok(response),
            Err(broken) => broken,
        };
        if session.control.stopped().is_some() {
            return Err(ModelEnd::Stopped(broken.partial));
        }
        if session.is_pause_due() {
            return Err(ModelEnd::Paused);
        }
        // A stream that broke is asked for again as patiently as a request that
        // failed, but counted apart.
        let mut policy = session.config.borrow().retry.clone();
        let tries = if broken.content {
            policy.max_retries = session.config.borrow().max_stream_retries;
            &mut stream_retries
        } else {
            &mut retries
        };
        let random = session.random.unit();
        let now = session.port.now_ms();
        let delay_ms = match retry_delay_ms(&policy, *tries, &broken.error, random, now) {
            RetryDecision::Retry { delay_ms } => delay_ms,
            RetryDecision::TooLong { retry_after_ms } => {
                return Err(ModelEnd::Failed(too_long(broken.error, retry_after_ms)));
            }
            RetryDecision::NotRetryable | RetryDecision::Exhausted => {
                return Err(ModelEnd::Failed(broken.error));
            }
        };
        *tries += 1;
        session.emit(EventKind::Retry {
            attempt: attempt + 1,
            delay_ms,
            message: broken.error.to_string(),
            discard_partial: broken.content && ask.is_shown(),
        });
        if delay_ms > 0 && !session.port.sleep(scope, delay_ms).await {
            return Err(ModelEnd::Stopped(None));
        }
        if session.is_pause_due() {
            return Err(ModelEnd::Paused);
        }
    }
}

/// Says how long the provider wants to be left alone.
fn too_long(mut error: LlmError, retry_after_ms: u64) -> LlmError {
    let seconds = retry_after_ms.div_ceil(1_000);
    error.message += &format!("; it asks to wait {seconds} s");
    error
}

/// One request and its stream, with everything shown as it arrives.
async fn attempt_once(
    session: &Rc<Shared>,
    scope: &Scope,
    ask: Ask<'_>,
    attempt: u32,
) -> Result<Response, Broken> {
    let started_ms = session.port.now_ms();
    let before_content = |error| Broken {
        error,
        content: false,
        partial: None,
    };
    let client = client(session, scope).map_err(before_content)?;
    let mut stream = client
        .stream(ask.request(session))
        .await
        .map_err(before_content)?;
    let mut content = false;
    while let Some(event) = stream.next_event().await {
        content |= event.is_content();
        match event {
            StreamEvent::Start { .. }
            | StreamEvent::TextDelta { .. }
            | StreamEvent::ReasoningDelta { .. }
                if !ask.is_shown() => {}
            StreamEvent::Start { .. } => session.emit(EventKind::AssistantTextStart {}),
            StreamEvent::TextDelta { text, .. } => {
                session.emit(EventKind::AssistantTextDelta { text });
            }
            StreamEvent::ReasoningDelta { text, .. } => {
                session.emit(EventKind::ReasoningDelta { text });
            }
            StreamEvent::Finish { response } if failed(&response) => {
                let error = ended_badly(session, &response);
                let partial = Some(response);
                return Err(Broken {
                    error,
                    content: true,
                    partial,
                });
            }
            StreamEvent::Finish { response } => {
                finish(session, &response, ask, attempt, started_ms);
                return Ok(*response);
            }
            StreamEvent::Error { error, partial } => {
                let partial = Some(partial);
                return Err(Broken {
                    error,
                    content,
                    partial,
                });
            }
            _ => {}
        }
    }
    // The decoder always ends with `Finish` or `Error`.
    let error = LlmError::new(
        LlmErrorKind::Stream,
        &session.profile.id,
        "the model's stream ended without a final event",
    );
    let partial = None;
    Err(Broken {
        error,
        content,
        partial,
    })
}

/// Whether the provider itself says that the answer went wrong, such as
/// Gemini's `MALFORMED_FUNCTION_CALL`: that is a stream that broke, in which a
/// call may be lost, and never the model's last word.
fn failed(response: &Response) -> bool {
    response.finish_reason.reason == FinishKind::Error
}

fn ended_badly(session: &Shared, response: &Response) -> LlmError {
    let provider = session.profile.id.as_str();
    let raw = &response.finish_reason.raw;
    let said = match response.warnings.last() {
        Some(warning) => format!(" ({})", warning.message),
        None => String::new(),
    };
    LlmError::new(
        LlmErrorKind::Stream,
        provider,
        format!("the answer of {provider} ended with `{raw}`{said}; try again"),
    )
}

/// Keeps the text of an answer that was stopped, so that the model knows what
/// it has already said. Reasoning without its signature and calls without
/// results could not be sent back; they are dropped.
pub(super) fn keep_partial(session: &Shared, partial: Response) {
    let text = partial.text();
    if text.is_empty() {
        return;
    }
    session.emit(EventKind::AssistantTextEnd {
        text: text.clone(),
        reasoning: partial.reasoning().filter(|text| !text.is_empty()),
        response_id: Some(partial.id.clone()).filter(|id| !id.is_empty()),
        finish_reason: "interrupted".to_owned(),
    });
    let response = Response {
        message: Message::text(Role::Assistant, text),
        ..partial
    };
    let now = session.port.now_ms();
    session
        .transcript
        .history
        .borrow_mut()
        .push_response(response, now);
}

fn client(session: &Shared, scope: &Scope) -> Result<Client, LlmError> {
    let config = session.config.borrow();
    let transport = EffectTransport {
        port: session.port.clone(),
        spawner: session.spawner.clone(),
        scope: scope.clone(),
        life: session.control.life.clone(),
        idle_ms: config.stream_idle_timeout_ms,
    };
    let profile = &session.profile;
    Client::for_adapter(Rc::new(transport), profile.wire, config.endpoint(profile))
}

/// The request of spec 2.5 step 2. Tools and conversation are shared, not copied.
pub(super) fn request(session: &Shared) -> Request {
    let config = session.config.borrow();
    let conversation = session.transcript.history.borrow().conversation().clone();
    let model = session.model_name();
    let parallel = session.profile.capabilities(&model).parallel_tool_calls;
    Request {
        system: vec![prompt::current(session).to_string()],
        tools: session.registry.borrow().definitions(),
        max_tokens: config.max_tokens,
        reasoning_effort: config.reasoning_effort.clone(),
        parallel_tool_calls: (!parallel).then_some(false),
        provider_options: session.profile.provider_options(&config.provider_options),
        cache_key: Some(cache_key(session)),
        auto_cache: config.auto_cache,
        ..Request::new(model, conversation)
    }
}

/// Requests with the same key may share a cached prefix.
fn cache_key(session: &Shared) -> String {
    match &session.identity.agent {
        Some(agent) => format!("{}-{agent}", session.identity.cache_key),
        None => session.identity.cache_key.to_string(),
    }
}

/// Tells the host about a complete answer.
fn finish(session: &Shared, response: &Response, ask: Ask<'_>, attempt: u32, started_ms: u64) {
    for warning in &response.warnings {
        session.emit(EventKind::Warning {
            code: warning.code.clone(),
            message: warning.message.clone(),
        });
    }
    if ask.is_shown() {
        session.emit(EventKind::AssistantTextEnd {
            text: response.text(),
            reasoning: response.reasoning().filter(|text| !text.is_empty()),
            response_id: Some(response.id.clone()).filter(|id| !id.is_empty()),
            finish_reason: finish_name(response.finish_reason.reason).to_owned(),
        });
    }
    let (model, prices) = prices(session);
    let cost = prices.map(|prices| prices.cost(&response.usage));
    session.meter.add(&response.usage, cost);
    session.emit(EventKind::Usage {
        purpose: (!ask.is_shown()).then_some(UsagePurpose::Compaction),
        model,
        prompt_tokens: response.usage.prompt_tokens_total(),
        input_tokens: response.usage.input_tokens,
        output_tokens: response.usage.output_tokens,
        reasoning_tokens: response.usage.reasoning_tokens,
        cache_read_tokens: response.usage.cache_read_tokens,
        cache_write_tokens: response.usage.cache_write_tokens,
        cost_usd: cost.map(Cost::usd),
        model_ms: session.port.now_ms().saturating_sub(started_ms),
        attempt,
        sampled: response.sampled.clone(),
    });
}

/// The model in use and its prices: the configured ones, else those of the
/// catalogue if it is this provider's model.
fn prices(session: &Shared) -> (String, Option<Prices>) {
    let model = session.model_name();
    let known = model_info(&model);
    let config = session.config.borrow();
    let own = config.prices.get(&model);
    let own = own.or_else(|| config.prices.get(&known?.id)).cloned();
    let listed = || Prices::of(known.filter(|known| known.provider == session.profile.id)?);
    let prices = own.or_else(listed);
    drop(config);
    (model, prices)
}

fn finish_name(kind: FinishKind) -> &'static str {
    match kind {
        FinishKind::Stop => "stop",
        FinishKind::Length => "length",
        FinishKind::ToolCalls => "tool_calls",
        FinishKind::ContentFilter => "content_filter",
        FinishKind::Error => "error",
        FinishKind::Other => "other",
    }
}
