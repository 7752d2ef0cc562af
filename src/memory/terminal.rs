//! `Terminal`: one shell whose state outlives its commands, for people.
//!
//! It is an environment of its own over the files of a sandbox: `exec` runs a
//! line in it and keeps directory, variables, functions, aliases and `set`
//! options for the next. Commands of sessions never see its state. What a line
//! reads as standard input is empty, and traps end with their line.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use async_trait::async_trait;
use bashkit::hooks::{ExitEvent, HookAction};
use bashkit::{Bash, ShellState};
use serde::Serialize;

use super::clock;
use super::{MemoryEnvironment, shell, unsupported};
use crate::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, EnvironmentReply,
    ExecRequest, ExecStatus, ExecutionEnvironment, OutputSink, OutputStream, Scope,
};

/// Options of `set` that last, by the variable in which bashkit keeps them; it
/// takes them back before each execution.
const LASTING_OPTIONS: [(&str, &str); 11] = [
    ("SHOPT_a", "allexport"),
    ("SHOPT_e", "errexit"),
    ("SHOPT_E", "errtrace"),
    ("SHOPT_T", "functrace"),
    ("SHOPT_C", "noclobber"),
    ("SHOPT_f", "noglob"),
    ("SHOPT_u", "nounset"),
    ("SHOPT_P", "physical"),
    ("SHOPT_pipefail", "pipefail"),
    ("SHOPT_v", "verbose"),
    ("SHOPT_x", "xtrace"),
];

/// Exit code of a line that Ctrl-C ended: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Parts of bashkit's sentences about text that more lines could complete.
const INCOMPLETE: [&str; 8] = [
    "unterminated",
    "unexpected end of input",
    "unexpected eof",
    "unexpected end of file",
    "expected 'fi'",
    "expected 'done'",
    "expected 'esac'",
    "expected '}' to close brace group",
];

/// What a prompt shows of a shell.
#[derive(Clone, Debug, Serialize)]
pub struct TerminalState {
    /// Working directory, absolute.
    pub working_directory: String,
    /// Home directory.
    pub home: String,
    /// Exit code of the last line.
    pub exit_code: i32,
    /// Whether the shell has ended, by `exit`.
    pub exited: bool,
    /// The variable `PS1`, if it is set.
    pub ps1: Option<String>,
    /// The variable `PS2`, if it is set.
    pub ps2: Option<String>,
}

/// A shell for a person.
pub struct Terminal {
    sandbox: Rc<MemoryEnvironment>,
    /// The shell while no line runs in it.
    bash: RefCell<Option<Bash>>,
    /// Its state as of the last end of a line.
    state: RefCell<ShellState>,
    /// Of `$RANDOM`, until the first line assigns it: see `shell`.
    seed: Cell<Option<u32>>,
    exit: Arc<Exit>,
}

/// What `exit` said.
#[derive(Default)]
struct Exit {
    asked: AtomicBool,
    code: AtomicI32,
}

impl Terminal {
    /// A shell in the working directory of `sandbox`, over its files.
    pub fn new(sandbox: Rc<MemoryEnvironment>) -> Self {
        let exit = Arc::new(Exit::default());
        let timeline = clock::Timeline::start(&sandbox.clock, 0, 0, sandbox.random.clone());
        let mut bash = clock::enter(&timeline, || build(&sandbox, &exit));
        bash.set_env("PWD", &sandbox.info.working_directory);
        Self {
            state: RefCell::new(bash.shell_state()),
            bash: RefCell::new(Some(bash)),
            seed: Cell::new(Some(sandbox.random.next_u32() >> 1)),
            exit,
            sandbox,
        }
    }

    /// What a prompt shows.
    pub fn state(&self) -> TerminalState {
        let state = self.state.borrow();
        let variable = |name: &str| {
            let value = state.variables.get(name).or_else(|| state.env.get(name));
            value.cloned()
        };
        TerminalState {
            working_directory: state.cwd.display().to_string(),
            home: variable("HOME").unwrap_or_default(),
            exit_code: state.last_exit_code,
            exited: self.exit.asked.load(Ordering::Relaxed),
            ps1: variable("PS1"),
            ps2: variable("PS2"),
        }
    }

    /// Whether `text` is the beginning of a command that goes on in the next line.
    pub fn is_incomplete(&self, text: &str) -> bool {
        let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 1 || heredoc_is_open(text) {
            return true;
        }
        let bash = self.bash.borrow();
        let Some(Err(error)) = bash.as_ref().map(|bash| bash.analyze(text)) else {
            return false;
        };
        let sentence = error.to_string().to_lowercase();
        INCOMPLETE.iter().any(|part| sentence.contains(part))
    }

    /// Names that can stand at the head of a command: builtins, lent programs,
    /// functions and aliases, sorted.
    pub fn command_names(&self) -> Vec<String> {
        let state = self.state.borrow();
        let builtins = self.bash.borrow().as_ref().map(Bash::builtin_names);
        let names: BTreeSet<String> = builtins
            .unwrap_or_default()
            .into_iter()
            .chain(state.functions.keys().cloned())
            .chain(state.aliases.keys().cloned())
            .collect();
        names.into_iter().collect()
    }

    /// What has to run before a line: bashkit forgets options and the exit code
    /// between executions.
    fn preamble(&self) -> String {
        use std::fmt::Write as _;

        let state = self.state.borrow();
        let mut preamble = String::new();
        for (variable, option) in LASTING_OPTIONS {
            if state.variables.get(variable).is_some_and(|on| on == "1") {
                let _ = write!(preamble, "set -o {option}; ");
            }
        }
        if let Some(seed) = self.seed.take() {
            let _ = write!(preamble, "RANDOM={seed} SECONDS=0; ");
        }
        // From here on lines are remembered as they are read: this one is not.
        preamble.push_str("set -o history; ");
        let code = state.last_exit_code;
        if code != 0 {
            // Within a list that goes on, it ends no shell (`set -e`).
            let _ = write!(preamble, "(exit {code}) && :");
        }
        preamble.push('\n');
        preamble
    }
}

fn build(sandbox: &MemoryEnvironment, exit: &Arc<Exit>) -> Bash {
    let exit = exit.clone();
    let mut bash = sandbox
        .shells
        .builder()
        .env("TERM", "xterm-256color")
        .tty(0, true)
        .tty(1, true)
        .tty(2, true)
        .on_exit(Box::new(move |event: ExitEvent| {
            exit.asked.store(true, Ordering::Relaxed);
            exit.code.store(event.code, Ordering::Relaxed);
            HookAction::Continue(event)
        }))
        .build();
    bash.set_interactive(true);
    // What an interactive bash has on.
    let mut state = bash.shell_state();
    let aliases = "SHOPT_expand_aliases".to_owned();
    state.variables.insert(aliases, "1".to_owned());
    bash.restore_shell_state(&state);
    bash
}

#[async_trait(?Send)]
impl ExecutionEnvironment for Terminal {
    fn info(&self) -> &EnvironmentInfo {
        self.sandbox.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.sandbox.call(scope, call).await
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        if self.exit.asked.load(Ordering::Relaxed) {
            return Err(refused("the shell has ended; open a new one"));
        }
        if request.command.contains('\0') {
            return Err(refused("the command holds a NUL byte"));
        }
        if let Some(sentence) = unsupported::in_command(&request.command) {
            output(OutputStream::Stderr, sentence.as_bytes());
            self.state.borrow_mut().last_exit_code = 1;
            return Ok(ExecStatus {
                exit_code: 1,
                ..ExecStatus::default()
            });
        }
        let taken = self.bash.borrow_mut().take();
        let Some(mut bash) = taken else {
            return Err(refused("a command is running in this shell; end it first"));
        };
        // Here, not where it runs: there the sentence would count the lines of
        // the preamble.
        if let Err(bashkit::Error::Parse { message, .. }) = bash.analyze(&request.command) {
            *self.bash.borrow_mut() = Some(bash);
            self.state.borrow_mut().last_exit_code = 2;
            let sentence = format!("bash: {message}\n");
            output(OutputStream::Stderr, sentence.as_bytes());
            return Ok(ExecStatus {
                exit_code: 2,
                ..ExecStatus::default()
            });
        }
        for (name, value) in &request.env {
            if shell::is_variable(name) && !value.contains('\0') {
                bash.set_env(name, value);
            }
        }
        let sandbox = &self.sandbox;
        let script = self.preamble() + &request.command;
        let timeline = sandbox
            .shells
            .timeline(&sandbox.clock, &sandbox.random, scope, &request);
        let (mut status, ended) = sandbox
            .shells
            .drive(&timeline, bash, script, scope, &request, output)
            .await;
        let bash = clock::enter(&timeline, || match ended {
            Some((bash, result)) => {
                if !status.timed_out && !status.cancelled {
                    status.exit_code = sandbox.shells.report(&result, output);
                }
                *self.state.borrow_mut() = bash.shell_state();
                bash
            }
            // It had to be dropped where it was: what it knew before the line
            // is still known.
            None => {
                let mut bash = build(sandbox, &self.exit);
                bash.restore_shell_state(&self.state.borrow());
                bash
            }
        });
        if status.cancelled {
            status.exit_code = INTERRUPTED;
        }
        if self.exit.asked.load(Ordering::Relaxed) {
            status.exit_code = self.exit.code.load(Ordering::Relaxed);
        }
        self.state.borrow_mut().last_exit_code = status.exit_code;
        *self.bash.borrow_mut() = Some(bash);
        Ok(status)
    }
}

/// Whether the last here-document of `text` lacks its end: bashkit takes the
/// end of the text for it.
fn heredoc_is_open(text: &str) -> bool {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((strips, end)) = heredoc_end(line) else {
            continue;
        };
        let is_end = |line: &str| {
            let line = if strips {
                line.trim_start_matches('\t')
            } else {
                line
            };
            line == end
        };
        if !lines.by_ref().any(is_end) {
            return true;
        }
    }
    false
}

/// The delimiter of the here-document that `line` begins, and whether it is
/// one of `<<-`.
fn heredoc_end(line: &str) -> Option<(bool, String)> {
    let mut quote = None;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (None, '\\') => drop(characters.next()),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, '#') if line[..at].ends_with(|c: char| c.is_whitespace()) || at == 0 => {
                return None;
            }
            (None, '<') if line[at..].starts_with("<<<") => {
                characters.next();
                characters.next();
            }
            // Inside `$((…))` it shifts.
            (None, '<') if line[at..].starts_with("<<") && !line[..at].contains("((") => {
                let rest = &line[at + 2..];
                let strips = rest.starts_with('-');
                let rest = rest.trim_start_matches('-').trim_start();
                let word = rest.split(|c: char| c.is_whitespace() || ";|&<>()".contains(c));
                let word: String = word.take(1).collect();
                let end = word.replace(['\'', '"', '\\'], "");
                return (!end.is_empty()).then_some((strips, end));
            }
            _ => {}
        }
    }
    None
}

fn refused(reason: &str) -> EnvironmentError {
    EnvironmentError::new(EnvironmentErrorKind::InvalidInput, reason)
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
