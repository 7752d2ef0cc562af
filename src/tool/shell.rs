//! `shell` (spec 3.3, 5.4): runs a command line.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{CallContext, Tool, ToolError, ToolOutput, parse};
use crate::environment::{EnvironmentErrorKind, ExecRequest, ExecStatus, OutputStream};
use crate::llm::ToolDefinition;
use crate::text::CapturedOutput;

/// Runs commands.
#[derive(Clone, Debug)]
pub struct Shell {
    definition: ToolDefinition,
}

impl Shell {
    /// Presents itself as `definition` says.
    pub fn new(definition: ToolDefinition) -> Self {
        Self { definition }
    }
}

/// A `description` is for people; the event of the call shows it.
#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout_ms: Option<u64>,
}

#[async_trait(?Send)]
impl Tool for Shell {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn kind(&self) -> &str {
        "shell"
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let timeout_ms = call.timeouts.resolve(arguments.timeout_ms);
        let request = ExecRequest {
            command: arguments.command,
            timeout_ms,
            working_dir: None,
            env: BTreeMap::new(),
        };
        let mut output = Combined::new(call.max_captured_bytes);
        let result = call
            .environment
            .exec(request, &mut |stream, bytes| {
                output.push(stream, bytes);
                (call.progress)(Some(stream), bytes);
            })
            .await;
        match result {
            Ok(status) if status.cancelled => Err(interrupted(output)),
            Ok(status) => Ok(report(output, &status, timeout_ms)),
            Err(error) if error.kind == EnvironmentErrorKind::Cancelled => Err(interrupted(output)),
            Err(error) => Err(error.into()),
        }
    }
}

fn interrupted(output: Combined) -> ToolError {
    ToolError::with_partial("interrupted before it ended", output.finish())
}

/// The output, then what else the model must know.
fn report(output: Combined, status: &ExecStatus, timeout_ms: u64) -> ToolOutput {
    let mut result = output.finish();
    result.exit_code = Some(status.exit_code);
    result.duration_ms = Some(status.duration_ms);
    result.timed_out = status.timed_out;
    result.is_error = status.timed_out || status.exit_code != 0;
    if result.text.is_empty() {
        result.text.push_str("(no output)");
    }
    let mut add = |line: String| {
        if !result.text.ends_with('\n') {
            result.text.push('\n');
        }
        result.text.push_str(&line);
    };
    if status.timed_out {
        // Word for word as in spec 5.4.
        add(format!(
            "[ERROR: Command timed out after {timeout_ms}ms. Partial output is shown above.\n\
             You can retry with a longer timeout by setting the timeout_ms parameter.]"
        ));
        return result;
    }
    if status.duration_ms >= 1000 {
        let tenths = status.duration_ms / 100;
        add(format!("[duration: {}.{} s]", tenths / 10, tenths % 10));
    }
    if status.exit_code != 0 {
        add(format!("[exit code: {}]", status.exit_code));
    }
    result
}

/// Standard output, then standard error, within one limit.
struct Combined {
    max_bytes: usize,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
}

impl Combined {
    fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            stdout: CapturedOutput::new(max_bytes),
            stderr: CapturedOutput::new(max_bytes),
        }
    }

    fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stdout => self.stdout.push(bytes),
            OutputStream::Stderr => self.stderr.push(bytes),
        }
    }

    fn finish(mut self) -> ToolOutput {
        // Each may have half of the limit, and what the other leaves of its half.
        let (out, err) = (self.stdout.kept(), self.stderr.kept());
        let err_limit = err.min((self.max_bytes / 2).max(self.max_bytes.saturating_sub(out)));
        self.stderr.lower_limit(err_limit);
        self.stdout.lower_limit(self.max_bytes - err_limit);
        let stdout = self.stdout.finish();
        let stderr = self.stderr.finish();
        let mut text = stdout.text;
        if !text.is_empty() && !text.ends_with('\n') && !stderr.text.is_empty() {
            text.push('\n');
        }
        text.push_str(&stderr.text);
        ToolOutput {
            output_bytes: stdout.output_bytes + stderr.output_bytes,
            output_complete: stdout.output_complete && stderr.output_complete,
            ..ToolOutput::text(text)
        }
    }
}
