//! `shell` (spec 3.3, 5.4): runs a command line.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional, required};
use super::{CallContext, CommandLine, Declared, ToolError, ToolOutput};
use crate::environment::{EnvironmentErrorKind, ExecRequest, ExecStatus, OutputStream};
use crate::text::CapturedOutput;

pub(super) const PARAMETERS: &[Parameter] = &[
    required("command", Kind::Text),
    optional("timeout_ms", Kind::Count),
    optional("working_dir", Kind::Text),
    optional("max_output_chars", Kind::Count),
    optional("run_in_background", Kind::Flag),
    // For people: the event of the call shows it.
    optional("description", Kind::Text),
];

/// Runs commands.
pub(super) struct Shell;

#[derive(Deserialize)]
pub(super) struct Arguments {
    command: String,
    timeout_ms: Option<u64>,
    /// Absent: the working directory of the environment.
    working_dir: Option<String>,
    max_output_chars: Option<u64>,
    #[serde(default)]
    run_in_background: bool,
}

#[async_trait(?Send)]
impl Executor for Shell {
    type Arguments = Arguments;

    const KIND: &'static str = "shell";

    fn command(&self, arguments: &Arguments) -> Option<CommandLine> {
        let named = |path: &&String| !path.is_empty();
        Some(CommandLine {
            text: arguments.command.clone(),
            working_dir: arguments.working_dir.as_ref().filter(named).cloned(),
        })
    }

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let timeout_ms = call.timeouts.resolve(arguments.timeout_ms);
        let request = ExecRequest {
            command: arguments.command,
            timeout_ms,
            working_dir: arguments
                .working_dir
                .filter(|path| !path.is_empty())
                .map(|path| call.environment.absolute(&path)),
            env: BTreeMap::new(),
        };
        if arguments.run_in_background {
            let number = call.background.start(call, request)?;
            return Ok(ToolOutput::text(left_running(declared, number)));
        }
        let mut output = Combined::new(call.max_captured_bytes);
        let result = call
            .environment
            .exec(request, &mut |stream, bytes| {
                output.push(stream, bytes);
                (call.progress)(Some(stream), bytes);
            })
            .await;
        match result {
            Ok(status) if status.cancelled => {
                let how = format!("before it ended {}", last_line(&status));
                Err(ToolError::stopped(how).after(output.finish()))
            }
            Ok(status) => {
                let parameter = declared.advertised("timeout_ms");
                let max_chars = arguments.max_output_chars;
                Ok(ToolOutput {
                    max_chars: max_chars.map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
                    ..report(output, &status, timeout_ms, parameter)
                })
            }
            Err(error) if error.kind == EnvironmentErrorKind::Cancelled => {
                Err(ToolError::stopped("before it ended").after(output.finish()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What the model reads of a command that it left running.
fn left_running(declared: &Declared, number: u64) -> String {
    let mut text =
        format!("Command {number} runs in the background; it ends with the session at the latest.");
    for (executor, does) in [
        ("command_output", "says what it prints"),
        ("stop_command", "ends it"),
    ] {
        if let Some(name) = declared.others(&[executor]) {
            text += &format!(" {name} {does}.");
        }
    }
    text
}

/// Exit code and duration.
pub(super) fn last_line(status: &ExecStatus) -> String {
    let (exit_code, tenths) = (status.exit_code, status.duration_ms / 100);
    format!(
        "[exit code: {exit_code}, duration: {}.{} s]",
        tenths / 10,
        tenths % 10
    )
}

/// The output, then how the command ended: whether in time, its exit code and
/// how long it took. The last line is there for every command, so that a model
/// never has to guess from silence.
fn report(
    output: Combined,
    status: &ExecStatus,
    timeout_ms: u64,
    timeout_parameter: Option<&str>,
) -> ToolOutput {
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
        // Word for word as in spec 5.4, with the name that the model knows.
        let retry = match timeout_parameter {
            Some(name) => {
                format!("\nYou can retry with a longer timeout by setting the {name} parameter.")
            }
            None => String::new(),
        };
        add(format!(
            "[ERROR: Command timed out after {timeout_ms}ms. Partial output is shown above.\
             {retry}]"
        ));
    }
    add(last_line(status));
    result
}

/// Standard output, then standard error, within one limit.
pub(super) struct Combined {
    max_bytes: usize,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
}

impl Combined {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            stdout: CapturedOutput::new(max_bytes),
            stderr: CapturedOutput::new(max_bytes),
        }
    }

    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stdout => self.stdout.push(bytes),
            OutputStream::Stderr => self.stderr.push(bytes),
        }
    }

    pub(super) fn finish(mut self) -> ToolOutput {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::super::testing::{call, play, remote};
    use super::*;
    use crate::effect::{EffectKind, OutcomeKind};
    use crate::environment::EnvironmentError;
    use crate::environment::Scope;

    fn out(text: &[u8]) -> OutcomeKind {
        OutcomeKind::ExecOutput {
            stream: OutputStream::Stdout,
            data: Bytes::copy_from_slice(text),
        }
    }

    fn err(text: &[u8]) -> OutcomeKind {
        OutcomeKind::ExecOutput {
            stream: OutputStream::Stderr,
            data: Bytes::copy_from_slice(text),
        }
    }

    fn end(exit_code: i32, duration_ms: u64) -> OutcomeKind {
        OutcomeKind::ExecEnd(ExecStatus {
            exit_code,
            duration_ms,
            ..ExecStatus::default()
        })
    }

    fn check(answers: Vec<OutcomeKind>, text: &str, is_error: bool) {
        let (pipeline, _) = remote();
        let command = call("shell", r#"{"command": "x", "description": "does x"}"#);
        let (executed, _) = play(&pipeline, &Scope::new("s"), command, vec![answers]);
        assert_eq!(executed.full, text);
        assert_eq!(executed.is_error, is_error);
    }

    #[test]
    fn output_and_exit_code() {
        let cases: [(Vec<_>, _, _); 6] = [
            (
                vec![out(b"a\n"), end(0, 3)],
                "a\n[exit code: 0, duration: 0.0 s]",
                false,
            ),
            (
                vec![end(0, 3)],
                "(no output)\n[exit code: 0, duration: 0.0 s]",
                false,
            ),
            (
                vec![end(1, 3)],
                "(no output)\n[exit code: 1, duration: 0.0 s]",
                true,
            ),
            (
                vec![out(b"a"), end(2, 999)],
                "a\n[exit code: 2, duration: 0.9 s]",
                true,
            ),
            (
                vec![out(b"a\n"), end(2, 1250)],
                "a\n[exit code: 2, duration: 1.2 s]",
                true,
            ),
            (
                vec![out(b"a\n"), end(0, 61_000)],
                "a\n[exit code: 0, duration: 61.0 s]",
                false,
            ),
        ];
        for (answers, text, is_error) in cases {
            check(answers, text, is_error);
        }
    }

    #[test]
    fn standard_output_comes_first() {
        check(
            vec![err(b"e1\n"), out(b"o1"), err(b"e2"), end(0, 1)],
            "o1\ne1\ne2\n[exit code: 0, duration: 0.0 s]",
            false,
        );
    }

    #[test]
    fn characters_may_arrive_in_pieces() {
        let (pipeline, log) = remote();
        let answers = vec![out(b"\xE2\x82"), err(b"!"), out(b"\xAC\xFF"), end(0, 1)];
        let command = call("shell", r#"{"command": "x"}"#);
        let (executed, _) = play(&pipeline, &Scope::new("s"), command, vec![answers]);
        assert_eq!(
            executed.full,
            "€\u{FFFD}\n!\n[exit code: 0, duration: 0.0 s]"
        );
        assert_eq!(
            *log.0.borrow(),
            [
                "start shell",
                "delta Some(Stderr) !",
                "delta Some(Stdout) €\u{FFFD}",
                "end shell 40"
            ]
        );
    }

    #[test]
    fn timeout() {
        let status = ExecStatus {
            exit_code: 124,
            timed_out: true,
            cancelled: false,
            duration_ms: 12_000,
        };
        check(
            vec![out(b"half"), OutcomeKind::ExecEnd(status)],
            "half\n[ERROR: Command timed out after 10000ms. Partial output is shown above.\nYou can \
             retry with a longer timeout by setting the timeout_ms parameter.]\n[exit code: 124, \
             duration: 12.0 s]",
            true,
        );
    }

    #[test]
    fn interrupted_with_what_had_arrived() {
        let status = ExecStatus {
            exit_code: 143,
            cancelled: true,
            ..ExecStatus::default()
        };
        let unknown = "Tool error (shell): interrupted before it ended";
        let message = format!("{unknown} [exit code: 143, duration: 0.0 s]");
        let partial = |message: &str| format!("{message}\nPartial output:\nhalf");
        check(
            vec![out(b"half"), OutcomeKind::ExecEnd(status.clone())],
            &partial(&message),
            true,
        );
        let cancelled = vec![out(b"half"), OutcomeKind::Cancelled];
        check(cancelled, &partial(unknown), true);
        check(vec![OutcomeKind::ExecEnd(status)], &message, true);
    }

    #[test]
    fn a_command_that_cannot_start() {
        let error = EnvironmentError::new(EnvironmentErrorKind::ReadOnly, "commands are disabled");
        check(
            vec![OutcomeKind::ExecFailed(error)],
            "Tool error (shell): commands are disabled",
            true,
        );
    }

    #[test]
    fn one_limit_for_both_pipes() {
        let (mut pipeline, _) = remote();
        pipeline.max_captured_bytes = 8;
        let answers = vec![out(b"0123456789"), err(b"ab"), end(0, 1)];
        let command = call("shell", r#"{"command": "x"}"#);
        let (executed, _) = play(&pipeline, &Scope::new("s"), command, vec![answers]);
        assert_eq!(
            executed.full,
            "012\n\n[... 4 bytes of output were not kept ...]\n\n789\nab\n[exit code: 0, duration: 0.0 s]"
        );
        assert_eq!(
            (executed.output_bytes, executed.output_complete),
            (12, false)
        );
    }

    #[test]
    fn the_timeout_of_the_call_wins() {
        let (mut pipeline, _) = remote();
        pipeline.timeouts.default_ms = Some(5000);
        for (timeout, expected) in [(json!(700), 700), (json!(null), 5000)] {
            let arguments = json!({"command": "x", "timeout_ms": timeout}).to_string();
            let command = call("shell", &arguments);
            let answers = vec![vec![end(0, 1)]];
            let (_, effects) = play(&pipeline, &Scope::new("s"), command, answers);
            let expected = EffectKind::Exec {
                environment: 0,
                request: ExecRequest {
                    command: "x".to_owned(),
                    timeout_ms: expected,
                    working_dir: None,
                    env: BTreeMap::new(),
                },
            };
            assert_eq!(effects, [expected]);
        }
    }
}
