//! One tool round: every call of an answer, together where the profile allows,
//! with results in call order (spec 2.5 `execute_tool_calls`).

use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use serde_json::Value;

use super::state::Shared;
use crate::environment::{OutputStream, Scope};
use crate::event::{Attachment, EventKind};
use crate::llm::{ToolCall, ToolResult};
use crate::tool::approval::ApprovalPolicy;
use crate::tool::{Executed, OutputLimits, Pipeline, PipelineEvents, Timeouts};

/// Runs `calls` and returns one result per call, in call order. When
/// `scope.cancel` fires, calls that run end early and later ones never start;
/// each still has its result.
pub(super) async fn execute(
    session: &Rc<Shared>,
    scope: &Scope,
    calls: &[ToolCall],
) -> Vec<ToolResult> {
    let pipeline = pipeline(session);
    let model = session.model_name();
    let run = async |call| {
        let result = pipeline.run(scope, call).await.into_result();
        // A record that is taken in the middle of a round holds it already.
        session
            .transcript
            .finished
            .borrow_mut()
            .push(result.clone());
        result
    };
    if session.profile.capabilities(&model).parallel_tool_calls {
        calls.iter().for_each(|call| pipeline.start(call));
        // Polls only those that can go on: a command in the sandbox notices each poll.
        let all: FuturesOrdered<_> = calls.iter().map(run).collect();
        all.collect().await
    } else {
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            pipeline.start(call);
            results.push(run(call).await);
        }
        results
    }
}

/// The pipeline with the settings in force now; a `configure` in mid-round
/// counts from the next round on.
fn pipeline(session: &Rc<Shared>) -> Pipeline {
    let config = session.config.borrow();
    let profile = &session.profile;
    Pipeline {
        registry: session.registry.borrow().clone(),
        environment: session.workspace.inner(),
        files: session.workspace.files(),
        known: session.known.clone(),
        background: session.background.clone(),
        port: session.port.clone(),
        limits: OutputLimits {
            chars: limits(
                &profile.tool_output_limits,
                &config.tool_output_limits,
                |n| Some(*n),
            ),
            lines: limits(&profile.tool_line_limits, &config.tool_line_limits, |n| *n),
        },
        timeouts: Timeouts {
            default_ms: config.default_command_timeout_ms,
            profile_ms: Some(profile.default_command_timeout_ms(config.toolset)),
            max_ms: config.max_command_timeout_ms,
        },
        // `SessionConfig` has checked them; in doubt every call asks.
        approvals: ApprovalPolicy::new(&config.approval)
            .unwrap_or_else(|_| ApprovalPolicy::ask_always())
            .into(),
        max_captured_bytes: usize::try_from(config.max_captured_bytes).unwrap_or(usize::MAX),
        events: Rc::new(Events(session.clone())),
    }
}

/// The limits of the profile and, over them, of the session; `None` means no
/// limit.
fn limits<T>(
    profile: &BTreeMap<String, T>,
    configured: &BTreeMap<String, T>,
    limit: impl Fn(&T) -> Option<u64>,
) -> BTreeMap<String, usize> {
    profile
        .iter()
        .chain(configured)
        .map(|(tool, value)| {
            let limit = limit(value).map_or(usize::MAX, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            });
            (tool.clone(), limit)
        })
        .collect()
}

/// Turns what happens in the pipeline into events of the session.
struct Events(Rc<Shared>);

impl PipelineEvents for Events {
    fn started(&self, call: &ToolCall) {
        let arguments = serde_json::from_str(&call.arguments)
            .unwrap_or_else(|_| Value::String(call.arguments.clone()));
        self.0.emit(EventKind::ToolCallStart {
            tool_name: call.name.clone(),
            call_id: call.id.clone(),
            arguments,
        });
    }

    fn approval_requested(&self, call: &ToolCall, arguments: &Value, reason: &str) {
        self.0.emit(EventKind::ApprovalRequested {
            tool_name: call.name.clone(),
            call_id: call.id.clone(),
            arguments: arguments.clone(),
            reason: reason.to_owned(),
        });
    }

    fn output_delta(&self, call: &ToolCall, stream: Option<OutputStream>, text: &str) {
        let stream = stream.map(|stream| match stream {
            OutputStream::Stdout => "stdout".to_owned(),
            OutputStream::Stderr => "stderr".to_owned(),
        });
        self.0.emit(EventKind::ToolCallOutputDelta {
            call_id: call.id.clone(),
            stream,
            text: text.to_owned(),
        });
    }

    fn ended(&self, call: &ToolCall, executed: &Executed) {
        let text = Some(executed.full.clone());
        let (output, error) = if executed.raised {
            (None, text)
        } else {
            (text, None)
        };
        self.0.emit(EventKind::ToolCallEnd {
            tool_name: call.name.clone(),
            call_id: call.id.clone(),
            output,
            error,
            attachments: executed.media.iter().map(Attachment::from).collect(),
            is_error: executed.is_error,
            refusal: executed.refusal,
            output_bytes: executed.output_bytes,
            output_complete: executed.output_complete,
            exit_code: executed.exit_code,
            timed_out: executed.exit_code.map(|_| executed.timed_out),
            duration_ms: executed.duration_ms,
        });
    }
}
