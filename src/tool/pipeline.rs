//! The pipeline of a tool call (spec 3.8): look up, parse, validate, approve,
//! execute, truncate, emit. Whatever a model can cause comes out as a result
//! that it can read; a call always has exactly one result.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::approval::ApprovalPolicy;
use super::gate::{Barred, Deed, Gate};
use super::registry::Registered;
use super::{
    BackgroundCommands, CallContext, FileLocks, Invocation, KnownFiles, OutputLimits, Registry,
    Timeouts, ToolError, ToolOutput,
};
use crate::effect::EffectPort;
use crate::environment::{CancelReason, Environment, ExecutionEnvironment, OutputStream, Scope};
use crate::event::Refusal;
use crate::llm::{Media, ToolCall, ToolDefinition, ToolResult};
use crate::text::Utf8Decoder;

/// What the pipeline tells the session while a call runs.
pub trait PipelineEvents {
    /// The call begins: TOOL_CALL_START.
    fn started(&self, call: &ToolCall);
    /// The host is about to be asked: APPROVAL_REQUESTED.
    fn approval_requested(&self, call: &ToolCall, arguments: &Value, reason: &str);
    /// Output arrived: TOOL_CALL_OUTPUT_DELTA. Characters are never split.
    fn output_delta(&self, call: &ToolCall, stream: Option<OutputStream>, text: &str);
    /// The call is over: TOOL_CALL_END, with the full output.
    fn ended(&self, call: &ToolCall, executed: &Executed);
}

/// Everything that calls of one round share.
#[derive(Clone)]
pub struct Pipeline {
    /// Tools that can be called.
    pub registry: Registry,
    /// Where they work.
    pub environment: Rc<dyn ExecutionEnvironment>,
    /// Way out for effects.
    pub port: EffectPort,
    /// Limits on what the model sees.
    pub limits: OutputLimits,
    /// Limits on commands.
    pub timeouts: Timeouts,
    /// Which calls the host must approve.
    pub approvals: Rc<ApprovalPolicy>,
    /// Bytes of output to keep in full, per call.
    pub max_captured_bytes: usize,
    /// Turns at files; share it between all who work in one environment.
    pub files: FileLocks,
    /// What the agent knows of files; one for each agent.
    pub known: KnownFiles,
    /// Commands that its session has left running.
    pub background: BackgroundCommands,
    /// Where its events go.
    pub events: Rc<dyn PipelineEvents>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// Id of the call.
    pub call_id: String,
    /// Tool that was called.
    pub tool_name: String,
    /// The full output, up to `max_captured_bytes`, for events.
    pub full: String,
    /// The output as the model gets it, truncated.
    pub model_text: String,
    /// Images and documents beside the text.
    pub media: Vec<Media>,
    /// The model sees a failure.
    pub is_error: bool,
    /// The tool did not end by itself: `full` is an error message
    /// (spec 2.5 `error`) and perhaps partial output.
    pub raised: bool,
    /// Why the tool was not allowed to run, if it was not.
    pub refusal: Option<Refusal>,
    /// Bytes of the whole output.
    pub output_bytes: u64,
    /// Whether `full` holds all of it.
    pub output_complete: bool,
    /// Exit code of a command.
    pub exit_code: Option<i32>,
    /// Time from look-up to end in ms, as the command's environment measured
    /// it where there is a command.
    pub duration_ms: u64,
    /// Whether a time limit ended the command.
    pub timed_out: bool,
}

impl Executed {
    /// The part of it that goes into history.
    pub fn into_result(self) -> ToolResult {
        ToolResult {
            tool_call_id: self.call_id,
            tool_name: self.tool_name,
            content: self.model_text,
            media: self.media,
            is_error: self.is_error,
        }
    }
}

/// How a call failed before or while it ran.
enum Failure {
    UnknownTool(String),
    Refused(Refusal, String),
    Tool(ToolError),
}

impl<T: Into<ToolError>> From<T> for Failure {
    fn from(error: T) -> Self {
        Self::Tool(error.into())
    }
}

impl Pipeline {
    /// Says that `call` begins. Calls that run side by side all begin before
    /// the first of them can end.
    pub fn start(&self, call: &ToolCall) {
        self.events.started(call);
    }

    /// Runs a started call to its one result. `scope.cancel` ends it early; the
    /// result then says so and holds what had arrived.
    pub async fn run(&self, scope: &Scope, call: &ToolCall) -> Executed {
        let started_ms = self.port.now_ms();
        let registered = self.registry.find(&call.name);
        let result = match registered {
            Some(registered) => self.attempt(scope, call, registered).await,
            None => Err(Failure::UnknownTool(self.unknown_tool(call))),
        };
        let raised = result.is_err();
        let refusal = match &result {
            Err(Failure::Refused(refusal, _)) => Some(*refusal),
            _ => None,
        };
        let named = |message: String| format!("Tool error ({}): {message}", call.name);
        let output = match result {
            Ok(output) => output,
            Err(Failure::UnknownTool(message)) => failed(message, None),
            Err(Failure::Refused(_, message)) => failed(named(message), None),
            Err(Failure::Tool(error)) => {
                let message = match error.stopped {
                    true => {
                        let reason = scope.cancel.reason().unwrap_or(CancelReason::Interrupted);
                        format!("{reason} {}", error.message)
                    }
                    false => error.message,
                };
                failed(named(message), error.partial)
            }
        };
        let kind = registered.map_or(call.name.as_str(), |registered| registered.tool.kind());
        let asked = output.max_chars.unwrap_or(usize::MAX);
        let model_text = self.limits.truncate(&output.text, &call.name, kind, asked);
        let executed = Executed {
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            model_text: model_text.into_owned(),
            full: output.text,
            media: output.media,
            is_error: output.is_error || raised,
            raised,
            refusal,
            output_bytes: output.output_bytes,
            output_complete: output.output_complete,
            exit_code: output.exit_code,
            duration_ms: output
                .duration_ms
                .unwrap_or_else(|| self.port.now_ms().saturating_sub(started_ms)),
            timed_out: output.timed_out,
        };
        self.events.ended(call, &executed);
        executed
    }

    async fn attempt(
        &self,
        scope: &Scope,
        call: &ToolCall,
        registered: &Registered,
    ) -> Result<ToolOutput, Failure> {
        let definition = registered.tool.definition();
        let arguments = arguments_of(call, registered)?;
        if !definition.unchecked
            && let Err(violations) = registered.schema.validate(&arguments, "arguments")
        {
            let message = format!("invalid arguments: {}", violations.join("; "));
            return Err(ToolError::new(message).into());
        }
        let call = Rc::new(call.clone());
        let gate = self.gate(scope, call.clone());
        let invocation = registered.tool.read(arguments)?;
        let environment = self.approve(&gate, registered, &*invocation).await?;
        if scope.cancel.is_cancelled() {
            return Err(ToolError::stopped("before it started").into());
        }
        let deltas = Rc::new(Deltas {
            events: self.events.clone(),
            call: call.clone(),
            decoders: RefCell::default(),
        });
        let progress = deltas.clone();
        let context = CallContext {
            environment: Environment::new(environment, scope.clone()),
            call_id: call.id.as_str().into(),
            scope: scope.clone(),
            port: self.port.clone(),
            timeouts: self.timeouts,
            max_captured_bytes: self.max_captured_bytes,
            files: self.files.clone(),
            known: self.known.clone(),
            background: self.background.clone(),
            gate: Some(gate),
            progress: Rc::new(move |stream, bytes| progress.push(stream, bytes)),
        };
        let result = invocation.execute(&context).await;
        deltas.finish();
        Ok(result?)
    }

    /// The gate of `call`.
    pub fn gate(&self, scope: &Scope, call: Rc<ToolCall>) -> Gate {
        Gate {
            approvals: self.approvals.clone(),
            environment: self.environment.clone(),
            port: self.port.clone(),
            events: self.events.clone(),
            call,
            scope: scope.clone(),
        }
    }

    /// Where a call may run that passes its gate.
    async fn approve(
        &self,
        gate: &Gate,
        registered: &Registered,
        invocation: &dyn Invocation,
    ) -> Result<Rc<dyn ExecutionEnvironment>, Failure> {
        let (writes, command) = (invocation.writes(), invocation.command());
        let deed = Deed {
            tool_name: &gate.call.name,
            kind: registered.tool.kind(),
            writes: &writes,
            command: command.as_ref(),
        };
        // They were read before, so they can be read again where somebody is asked.
        let shown = || {
            let arguments = arguments_of(&gate.call, registered).unwrap_or_default();
            registered.tool.shown(arguments)
        };
        let passed = gate.pass(&gate.scope, &deed, &shown).await;
        passed.map_err(|barred| match barred {
            Barred::Refused(refusal, message) => Failure::Refused(refusal, message),
            Barred::Stopped => ToolError::stopped("before it started").into(),
        })
    }

    fn unknown_tool(&self, call: &ToolCall) -> String {
        let names: Vec<_> = self.registry.names().collect();
        let known = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        format!("Unknown tool: {}\nAvailable tools: {known}", call.name)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("registry", &self.registry)
            .field("limits", &self.limits)
            .field("timeouts", &self.timeouts)
            .field("approvals", &self.approvals)
            .finish_non_exhaustive()
    }
}

/// The arguments of a call without those that are null for want of a value.
fn arguments_of(call: &ToolCall, registered: &Registered) -> Result<Value, ToolError> {
    let mut arguments = parse_arguments(call, registered.tool.definition())?;
    arguments.retain(|name, value| {
        !value.is_null() || registered.schema.requires(name) || registered.schema.takes_null(name)
    });
    Ok(Value::Object(arguments))
}

/// Arguments as an object. No text at all means no arguments; freeform text
/// becomes the one required string of the schema, so that a tool sees the same
/// shape from every provider.
fn parse_arguments(
    call: &ToolCall,
    definition: &ToolDefinition,
) -> Result<Map<String, Value>, ToolError> {
    if call.custom {
        let mut arguments = Map::new();
        let name = definition.parameters["required"][0].as_str();
        let text = Value::String(call.arguments.clone());
        arguments.insert(name.unwrap_or("input").to_owned(), text);
        return Ok(arguments);
    }
    if call.arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(ToolError::new(
            "invalid arguments: expected a JSON object such as {\"name\": \"value\"}",
        )),
        Err(error) if error.is_eof() => Err(ToolError::new(format!(
            "invalid arguments: cut off, so not valid JSON: {error}"
        ))),
        Err(error) => Err(ToolError::new(format!(
            "invalid arguments: not valid JSON: {error}"
        ))),
    }
}

/// An error message, with what had arrived after it.
fn failed(message: String, partial: Option<Box<ToolOutput>>) -> ToolOutput {
    match partial {
        Some(partial) if !partial.text.is_empty() => ToolOutput {
            text: format!("{message}\nPartial output:\n{}", partial.text),
            ..*partial
        },
        Some(partial) => ToolOutput {
            text: message,
            ..*partial
        },
        None => ToolOutput::text(message),
    }
}

/// Turns chunks of bytes into deltas of text, per pipe.
struct Deltas {
    events: Rc<dyn PipelineEvents>,
    call: Rc<ToolCall>,
    decoders: RefCell<[Utf8Decoder; 3]>,
}

const STREAMS: [Option<OutputStream>; 3] =
    [None, Some(OutputStream::Stdout), Some(OutputStream::Stderr)];

impl Deltas {
    fn push(&self, stream: Option<OutputStream>, bytes: &[u8]) {
        let index = match stream {
            None => 0,
            Some(OutputStream::Stdout) => 1,
            Some(OutputStream::Stderr) => 2,
        };
        let text = self.decoders.borrow_mut()[index].push(bytes);
        self.emit(stream, &text);
    }

    fn finish(&self) {
        for (index, stream) in STREAMS.into_iter().enumerate() {
            let rest = self.decoders.borrow_mut()[index].finish();
            self.emit(stream, &rest);
        }
    }

    fn emit(&self, stream: Option<OutputStream>, text: &str) {
        if !text.is_empty() {
            self.events.output_delta(&self.call, stream, text);
        }
    }
}

#[cfg(test)]
mod tests;
