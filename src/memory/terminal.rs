//! `Terminal`: one shell whose state outlives its commands, for people.
//!
//! It is a separate environment over the files of a sandbox: `exec` runs a
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

use super::bashkit::{incomplete, options, random, script};
use super::clock;
use super::{MemoryEnvironment, shell};
use crate::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, EnvironmentReply,
    ExecRequest, ExecStatus, ExecutionEnvironment, OutputSink, OutputStream, Scope,
};

/// Exit code of a line that Ctrl-C ended: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

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
        let bash = self.bash.borrow();
        incomplete::is_incomplete(text, bash.as_ref())
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

    /// What has to run before a line.
    fn preamble(&self) -> String {
        let seed = self.seed.take().map(random::preamble);
        options::preamble(&self.state.borrow(), &seed.unwrap_or_default())
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
        let script = script::read(&request.command);
        if let Some(sentence) = script.refusal() {
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
        let text = self.preamble() + &request.command;
        let timeline =
            sandbox
                .shells
                .timeline(&sandbox.clock, &sandbox.random, scope, &request, &script);
        let (mut status, ended) = sandbox
            .shells
            .drive(&timeline, bash, text, scope, &request, output)
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
