//! What a tool is: its trait, what a call is given and what it gives back.

use std::fmt;
use std::rc::Rc;

use async_trait::async_trait;
use serde_json::Value;

use super::{BackgroundCommands, FileLocks, Gate, KnownFiles};
use crate::effect::EffectPort;
use crate::environment::{
    Environment, EnvironmentError, EnvironmentErrorKind, OutputStream, Scope,
};
use crate::llm::{Media, ToolDefinition};
use crate::text::CapturedOutput;

/// Something that a model may call (spec 3.8 `RegisteredTool`).
///
/// Contract: [`Invocation::execute`] returns also after `call.scope.cancel` fires, with what
/// had arrived; what the model can cause is a result or a [`ToolError`], never
/// a panic. Calls of one tool may run at the same time.
pub trait Tool {
    /// The declaration in requests. Must not change while the tool is registered.
    fn definition(&self) -> &Rc<ToolDefinition>;

    /// Name of the executor, such as `shell` for a tool that a profile calls
    /// `run_shell_command`: limits and policies know the tool by it too.
    fn kind(&self) -> &str {
        &self.definition().name
    }

    /// Whether a subagent gets this tool as it is.
    fn is_inherited(&self) -> bool {
        true
    }

    /// What somebody who is asked to approve a call sees of its arguments: the same names
    /// for every provider.
    fn shown(&self, arguments: Value) -> Value {
        arguments
    }

    /// Reads the arguments of a call: an object that satisfies
    /// `definition().parameters`.
    ///
    /// # Errors
    /// They mean nothing to the tool; the model reads why.
    fn read(&self, arguments: Value) -> Result<Box<dyn Invocation + '_>, ToolError>;
}

/// A call of a tool whose arguments have been read.
#[async_trait(?Send)]
pub trait Invocation {
    /// Paths that the call would change, as the approval policy judges them;
    /// relative ones start from the working directory.
    fn writes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The shell command that the call would run, for the same purpose.
    fn command(&self) -> Option<CommandLine> {
        None
    }

    /// Runs the call.
    async fn execute(self: Box<Self>, call: &CallContext) -> Result<ToolOutput, ToolError>;
}

/// A shell command, as the approval policy judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// What the shell reads.
    pub text: String,
    /// Where it runs; absent: in the working directory.
    pub working_dir: Option<String>,
}

/// Receives output as it arrives: the pipe, if there is one, and bytes cut anywhere.
pub(crate) type Progress = Rc<dyn Fn(Option<OutputStream>, &[u8])>;

/// What one call may use.
#[derive(Clone)]
pub struct CallContext {
    /// Where the tool works, bound to `scope`.
    pub environment: Environment,
    /// Id of the model's call.
    pub call_id: Rc<str>,
    /// On whose behalf the call runs, and what ends it early.
    pub scope: Scope,
    /// Way out for effects of the tool's own.
    pub port: EffectPort,
    /// Limits on commands.
    pub timeouts: Timeouts,
    /// Bytes of output to keep in full.
    pub max_captured_bytes: usize,
    /// Turns at files, for tools that change them.
    pub files: FileLocks,
    /// What the agent knows of files.
    pub known: KnownFiles,
    /// Commands that the session has left running.
    pub background: BackgroundCommands,
    /// Judges what the host does on behalf of the call; without it the host has
    /// no environment.
    pub gate: Option<Gate>,
    /// Takes output as it arrives.
    pub progress: Progress,
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("call_id", &self.call_id)
            .field("scope", &self.scope)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Time limits of commands, in ms (spec 5.4). A value that the host set wins over
/// that of the profile, because the spec names both 120 s and 10 s as the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// `default_command_timeout_ms`, when the host set it.
    pub default_ms: Option<u64>,
    /// Default of the provider profile, if it has one.
    pub profile_ms: Option<u64>,
    /// `max_command_timeout_ms`: caps every other value.
    pub max_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            default_ms: None,
            profile_ms: None,
            max_ms: 600_000,
        }
    }
}

impl Timeouts {
    /// Limit of a call that asks for `call_ms`: the call's value, else the
    /// host's, else the profile's, else 10 s; never more than `max_ms`.
    pub fn resolve(&self, call_ms: Option<u64>) -> u64 {
        call_ms
            .or(self.default_ms)
            .or(self.profile_ms)
            .unwrap_or(10_000)
            .min(self.max_ms)
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// The full text, up to `max_captured_bytes`.
    pub text: String,
    /// Images and documents beside the text.
    pub media: Vec<Media>,
    /// The tool ran, but the model should see a failure, as with a non-zero
    /// exit code.
    pub is_error: bool,
    /// Bytes of the whole output, also of what was not kept.
    pub output_bytes: u64,
    /// Whether `text` holds all of it.
    pub output_complete: bool,
    /// Exit code of a command.
    pub exit_code: Option<i32>,
    /// Time that a command took, in ms.
    pub duration_ms: Option<u64>,
    /// Whether a time limit ended the command.
    pub timed_out: bool,
    /// Characters that the model asked for at most; the limits of the session
    /// hold all the same.
    pub max_chars: Option<usize>,
}

impl ToolOutput {
    /// A successful result of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            output_bytes: text.len() as u64,
            text,
            media: Vec::new(),
            is_error: false,
            output_complete: true,
            exit_code: None,
            duration_ms: None,
            timed_out: false,
            max_chars: None,
        }
    }

    /// A successful result of text alone, kept up to `max_bytes`.
    pub fn bounded(text: String, max_bytes: usize) -> Self {
        if text.len() <= max_bytes {
            return Self::text(text);
        }
        let mut output = CapturedOutput::new(max_bytes);
        output.push(text.as_bytes());
        Self::captured(output)
    }

    /// A successful result of captured text.
    pub fn captured(output: CapturedOutput) -> Self {
        let captured = output.finish();
        Self {
            output_bytes: captured.output_bytes,
            output_complete: captured.output_complete,
            ..Self::text(captured.text)
        }
    }
}

/// Why a call failed; the model reads it and can react.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// One sentence that names the path, pattern or argument, and the way out
    /// if there is one; lower case, no full stop.
    pub message: String,
    /// What had arrived before the failure; the model sees it after the message.
    pub partial: Option<Box<ToolOutput>>,
    /// The call was cancelled: the model reads why, then the message.
    pub stopped: bool,
}

impl ToolError {
    /// A failure without output.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            partial: None,
            stopped: false,
        }
    }

    /// A call that was cancelled; `when` follows the reason: `before it ended`.
    pub fn stopped(when: impl Into<String>) -> Self {
        Self {
            stopped: true,
            ..Self::new(when)
        }
    }

    /// The same failure after some output.
    pub fn after(self, partial: ToolOutput) -> Self {
        Self {
            partial: Some(Box::new(partial)),
            ..self
        }
    }
}

impl From<EnvironmentError> for ToolError {
    fn from(error: EnvironmentError) -> Self {
        match error.kind {
            EnvironmentErrorKind::Cancelled => Self::stopped("before it ended"),
            _ => Self::new(error.message),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stopped {
            true => write!(f, "stopped {}", self.message),
            false => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ToolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_precedence() {
        let all = Timeouts {
            default_ms: Some(2),
            profile_ms: Some(3),
            max_ms: 60_000,
        };
        assert_eq!(all.resolve(Some(1)), 1);
        assert_eq!(all.resolve(None), 2);
        let profile = Timeouts {
            default_ms: None,
            ..all
        };
        assert_eq!(profile.resolve(None), 3);
        assert_eq!(Timeouts::default().resolve(None), 10_000);
        assert_eq!(Timeouts::default().resolve(Some(u64::MAX)), 600_000);
    }
}
