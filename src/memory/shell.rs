//! Shells over one tree: a pool, and the running of one command.
//!
//! Every command starts from pristine state, like `bash -c`. A shell goes back
//! to the pool only after a command that cannot have left anything behind that
//! restoring its state does not undo; parallel commands each have their own.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::hooks::{HookAction, ToolEvent};
use bashkit::{Bash, BashBuilder, BuiltinRegistry, ExecResult, SessionLimits, ShellState};

#[cfg(feature = "web")]
use super::Snapshot;
use super::bashkit::grep::Narrow;
use super::bashkit::jq::{self, Filter};
use super::bashkit::layers::RootFileSystem;
use super::bashkit::random as shell_random;
use super::bashkit::script::Script;
use super::bashkit::{
    self as workarounds, arguments, checked, costs, hooks, limits, rg, script, sed, watcher,
};
use super::clock::{self, Clock, Stop, Timeline};
use super::drive::Drive;
use super::filesystem::TreeFileSystem;
use super::program::{Lender, LentProgram, Seen};
use super::random::Random;
use super::tree::Tree;
use super::{MemoryLimits, MemoryOptions};
use crate::environment::{
    EnvironmentError, ExecRequest, ExecStatus, OutputSink, OutputStream, ProgramPort, Scope,
};

/// Who runs the commands, and where.
const USER: &str = "user";
const HOST: &str = "sandbox";
/// Exit code of a command that timed out, as of `timeout`.
const TIMED_OUT: i32 = 124;
/// Exit code of a cancelled command: 128 + SIGTERM.
const TERMINATED: i32 = 143;
/// Exit code of a command that held too much: 128 + SIGKILL, as of one that
/// Linux ends for it.
const KILLED: i32 = 137;
/// Exit code of a command whose stack was full: 128 + SIGSEGV, as of one that
/// Linux ends for it.
const SEGMENTATION_FAULT: i32 = 139;
/// Exit code of a command that failed: 128 + SIGABRT.
const ABORTED: i32 = 134;

/// Work in one go after which a cancellation may be waiting unheard.
const DEAF_WORK: u64 = 4_000;
/// Bytes of output that are worth one unit of work: they are encoded, copied to
/// the host and kept.
const OUTPUT_BYTES_PER_WORK: usize = 64;

/// What shells stand on: a tree, and all they need beside it. It can be made
/// before there is an environment.
pub(crate) struct ShellBase {
    /// The files; who takes the base puts the environment's here.
    pub(crate) tree: Rc<RefCell<Tree>>,
    files: Arc<RootFileSystem>,
    builtins: BuiltinRegistry,
    limits: MemoryLimits,
    working_directory: String,
    idle: RefCell<Vec<Bash>>,
    pristine: RefCell<Option<ShellState>>,
}

thread_local! {
    /// One that is ready for an environment of the usual kind.
    static SPARE: RefCell<Option<ShellBase>> = const { RefCell::new(None) };
}

/// Makes a base with a shell on it for the first environment that uses the
/// default limits and working directory.
pub(crate) fn prepare() {
    let options = MemoryOptions::default();
    let base = ShellBase::new(options.limits, &options.working_directory);
    let shell = base.build();
    *base.pristine.borrow_mut() = Some(shell.shell_state());
    base.idle.borrow_mut().push(shell);
    SPARE.set(Some(base));
}

/// The shells of one environment.
pub(crate) struct Shells {
    base: ShellBase,
    lender: Rc<Lender>,
}

type Chunks = Arc<Mutex<Vec<(OutputStream, Vec<u8>)>>>;

impl ShellBase {
    /// The base for an environment with these limits.
    pub(crate) fn take(limits: MemoryLimits, working_directory: &str) -> Self {
        let spare = SPARE.with_borrow_mut(|spare| {
            spare.take_if(|spare| {
                spare.limits == limits && spare.working_directory == working_directory
            })
        });
        spare.unwrap_or_else(|| Self::new(limits, working_directory))
    }

    fn new(limits: MemoryLimits, working_directory: &str) -> Self {
        let tree = Rc::new(RefCell::new(Tree::new(limits.tree)));
        let registry = BuiltinRegistry::new();
        workarounds::register(&registry);
        let system = registry.clone();
        let layers = Box::new(move |tree| {
            let shell = Bash::builder()
                .fs(tree)
                .builtin_registry(system.clone())
                .username(USER)
                .hostname(HOST)
                .follow_symlinks(false);
            shell.build().fs()
        });
        let files = TreeFileSystem::new(tree.clone());
        Self {
            tree,
            files: Arc::new(RootFileSystem::new(files, layers)),
            builtins: registry,
            limits,
            working_directory: working_directory.to_owned(),
            idle: RefCell::default(),
            pristine: RefCell::default(),
        }
    }

    fn build(&self) -> Bash {
        self.builder().build()
    }

    /// A shell over the tree, not yet built.
    fn builder(&self) -> BashBuilder {
        Bash::builder()
            .fs(self.files.clone())
            .rootfs(false)
            .builtin_registry(self.builtins.clone())
            .username(USER)
            .hostname(HOST)
            .cwd(&self.working_directory)
            .env("HOME", "/home/user")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .limits(limits::of_execution(&self.limits))
            .session_limits(SessionLimits::unlimited())
            .memory_limits(limits::of_memory())
            .before_tool(Box::new(|mut event: ToolEvent| {
                if let Some(name) = checked::name_of(&event.name) {
                    event.name = name.to_owned();
                }
                arguments::correct(&event.name, &mut event.args);
                let carries = checked::take_carrying(&mut event.args);
                if let Some(timeline) = clock::current() {
                    timeline.hooks.set_carries_bytes(carries);
                    if timeline.refuses(&event.name) {
                        return HookAction::Cancel("the time is over".to_owned());
                    }
                    timeline.builtin_starts(&event.name);
                    let refusal = arguments::refusal(&event.name, &event.args)
                        .or_else(|| look_through(&event, &timeline));
                    if let Some(sentence) = refusal {
                        if let Some(args) = checked::refused(&event.name, &sentence) {
                            event.args = args;
                            return HookAction::Continue(event);
                        }
                        timeline.hooks.add_refusal(&event.name, sentence);
                        return HookAction::Cancel("not supported".to_owned());
                    }
                    define(&mut event, &timeline);
                    timeline
                        .hooks
                        .set_script_file(script::script_file(&event.name, &event.args));
                    let is_grep = event.name == "grep";
                    timeline
                        .hooks
                        .set_narrow(is_grep.then(|| Narrow::of_grep(&event.args)).flatten());
                    let searched = if is_grep { &event.args[..] } else { &[] };
                    timeline.hooks.set_searched(searched);
                }
                HookAction::Continue(event)
            }))
    }
}

/// Why the text that a builtin runs as a script cannot be run, if it is one.
fn look_through(event: &ToolEvent, timeline: &Timeline) -> Option<String> {
    let script = script::read(&script::script_of(&event.name, &event.args)?);
    timeline.hooks.need_device_bytes(script.device_bytes);
    let problem = script.problem?;
    Some(format!("hermitcrab: {}: {problem}\n", event.name))
}

/// Gives the filter of `jq` the definitions that it needs ([`jq`]).
fn define(event: &mut ToolEvent, timeline: &Timeline) {
    let file = match jq::filter_of(&event.name, &event.args) {
        Some(Filter::Argument { index, from }) => {
            let filter = &mut event.args[index];
            let rest = &filter.as_bytes()[from..];
            let definitions = jq::definitions(rest, timeline.now_us());
            filter.insert_str(from, &definitions);
            None
        }
        Some(Filter::File(index)) => Some(event.args[index].clone()),
        None => None,
    };
    timeline.hooks.set_filter_file(file);
}

impl Shells {
    pub(crate) fn new(options: &MemoryOptions, base: ShellBase, port: Rc<dyn ProgramPort>) -> Self {
        let lender = Rc::new(Lender {
            environment: options.id,
            tree: base.tree.clone(),
            port,
            seen: Seen::default(),
        });
        let shells = Self { base, lender };
        for name in &options.programs {
            shells.lend(name);
        }
        shells
    }

    /// Calls a program of the host's under `name`, in shells that exist, too.
    pub(crate) fn lend(&self, name: &str) {
        let program = LentProgram::new(name.to_owned(), self.lender.clone());
        self.base.builtins.insert(name, Arc::new(program));
    }

    /// A shell over the tree, not yet built.
    pub(crate) fn builder(&self) -> BashBuilder {
        self.base.builder()
    }

    /// Runs one command to its end, its time limit, or its cancellation.
    pub(crate) async fn exec(
        &self,
        clock: &Rc<Clock>,
        random: &Random,
        scope: &Scope,
        directory: String,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let script = script::read(&request.command);
        if let Some(sentence) = script.refusal() {
            output(OutputStream::Stderr, sentence.as_bytes());
            return Ok(ExecStatus {
                exit_code: 1,
                ..ExecStatus::default()
            });
        }
        // A command can keep the core busy for seconds, and end it: what began
        // it is said before.
        clock::end_step().await;
        rg::warm_up(&script);
        let timeline = self.timeline(clock, random, scope, &request, &script);
        let is_new = script.leftovers.may_be_seen();
        let bash = clock::enter(&timeline, || self.shell(&directory, &request, is_new));
        let reusable = script.leftovers.are_none();
        let seed = random.next_u32() >> 1;
        let text = shell_random::preamble(seed) + &request.command;
        let (mut status, ended) = self
            .drive(&timeline, bash, text, scope, &request, output)
            .await;
        if let Some((bash, result)) = ended {
            if timeline.stopped().is_none() {
                status.exit_code = self.report(&result, output);
                if reusable && result.is_ok() {
                    self.keep(bash);
                    return Ok(status);
                }
            }
            clock::enter(&timeline, || drop(bash));
        }
        Ok(status)
    }

    /// The timeline of a command, with what the command needs of it.
    pub(crate) fn timeline(
        &self,
        clock: &Rc<Clock>,
        random: &Random,
        scope: &Scope,
        request: &ExecRequest,
        script: &Script,
    ) -> Rc<Timeline> {
        let timeout_us = request.timeout_ms.max(1).saturating_mul(1_000);
        let timeline = Timeline::start(
            clock,
            timeout_us,
            self.base.limits.work_bound,
            random.clone(),
        );
        #[cfg(feature = "web")]
        timeline.set_before(Snapshot {
            tree: self.base.tree.borrow().clone(),
            clock: clock.state(),
            random: random.state(),
        });
        timeline.set_files(&self.base.tree);
        timeline.hooks.set_scope(scope.clone());
        timeline.hooks.need_device_bytes(script.device_bytes);
        timeline.hooks.set_pipes_are_shared(script.pipes.shared);
        let readers = script.pipes.readers.clone();
        timeline.last_words.set_readers(readers);
        timeline
    }

    /// Runs `script` in `bash` to its end, the time limit of `request`, or its
    /// cancellation. The shell comes back unless it had to be dropped; the exit
    /// code of a command that ended by itself is in its result.
    pub(crate) async fn drive(
        &self,
        timeline: &Rc<Timeline>,
        bash: Bash,
        script: String,
        scope: &Scope,
        request: &ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> (ExecStatus, Option<(Bash, bashkit::Result<ExecResult>)>) {
        timeline.set_stop_flag(bash.cancellation_token());
        let chunks = Chunks::default();
        let run = run(bash, script, chunks.clone());
        let mut drive = pin!(Drive::new(run, timeline.clone(), watcher::WAKES));
        let _guard = {
            let cancel = drive.canceller();
            scope.cancel.on_cancel(move |_| cancel())
        };
        let ended = poll_fn(|cx| {
            let polled = drive.as_mut().poll(cx);
            assert!(timeline.is_apart(), "a change of a file has no end");
            // Locked for good by a command that was left as it printed.
            let arrived = match chunks.try_lock() {
                Ok(mut chunks) => std::mem::take(&mut *chunks),
                Err(_) => Vec::new(),
            };
            for (stream, bytes) in arrived {
                output(stream, &bytes);
            }
            polled
        })
        .await;

        let mut status = ExecStatus {
            duration_ms: timeline.elapsed_us().div_ceil(1_000),
            ..ExecStatus::default()
        };
        if let Some(reason) = timeline.over() {
            timeline.stop(reason);
        }
        let stopped = match timeline.stopped() {
            Some(Stop::Cancelled) => Some(Stop::Cancelled),
            // The core heard nothing while it worked: a cancellation that was
            // asked for meanwhile arrives with the next step, and came first.
            _ if timeline.poll_work() >= DEAF_WORK || costs::may_be_uncounted(&request.command) => {
                clock::end_step().await;
                let cancelled = scope.cancel.is_cancelled().then_some(Stop::Cancelled);
                cancelled.inspect(|reason| timeline.stop(*reason));
                cancelled.or(timeline.stopped())
            }
            stopped => stopped,
        };
        match stopped {
            Some(Stop::Timeout) => {
                status.exit_code = TIMED_OUT;
                status.timed_out = true;
                status.duration_ms = request.timeout_ms;
            }
            Some(Stop::Work) => {
                let sentence = format!(
                    "hermitcrab: the command was ended: it kept the sandbox busy for more than {} units of work without a pause\n",
                    self.base.limits.work_bound
                );
                output(OutputStream::Stderr, sentence.as_bytes());
                status.exit_code = TIMED_OUT;
                status.timed_out = true;
            }
            Some(Stop::Memory) => {
                let sentence = match timeline.memory_bytes() >> 20 {
                    0 => "hermitcrab: this sandbox runs no more commands: those that were ended before hold its memory; continue in a new one, with these files\n".to_owned(),
                    mebibytes => format!(
                        "hermitcrab: the command was ended: it held more memory than the {mebibytes} MiB that the sandboxes' files leave for one\n"
                    ),
                };
                output(OutputStream::Stderr, sentence.as_bytes());
                status.exit_code = KILLED;
            }
            Some(Stop::Cancelled) => {
                status.exit_code = TERMINATED;
                status.cancelled = true;
            }
            Some(Stop::Stack) => {
                let sentence =
                    "hermitcrab: the command was ended: it recursed until its stack was full\n";
                output(OutputStream::Stderr, sentence.as_bytes());
                status.exit_code = SEGMENTATION_FAULT;
            }
            Some(Stop::Failed) => {
                let sentence = format!(
                    "hermitcrab: the command was ended: it failed inside the sandbox ({})\n",
                    timeline.failure()
                );
                output(OutputStream::Stderr, sentence.as_bytes());
                status.exit_code = ABORTED;
            }
            None => {}
        }
        (status, ended.ok())
    }

    /// Exit code of a command that ended by itself; what bashkit refused to do
    /// is said on standard error.
    pub(crate) fn report(
        &self,
        result: &bashkit::Result<ExecResult>,
        output: &mut OutputSink<'_>,
    ) -> i32 {
        match result {
            Ok(result) => {
                if result.stdout_truncated || result.stderr_truncated {
                    let sentence = format!(
                        "hermitcrab: output was cut: the limit is {} bytes per stream\n",
                        self.base.limits.output_bytes
                    );
                    output(OutputStream::Stderr, sentence.as_bytes());
                    if result.exit_code == 0 {
                        return 1;
                    }
                }
                result.exit_code
            }
            Err(bashkit::Error::Parse { message, line, .. }) => {
                let sentence = format!("bash: -c: line {}: {message}\n", line.max(&1));
                output(OutputStream::Stderr, sentence.as_bytes());
                2
            }
            Err(error) => {
                output(OutputStream::Stderr, format!("bash: {error}\n").as_bytes());
                1
            }
        }
    }

    /// A shell in pristine state for `request`; `is_new`: one in which nothing has run.
    fn shell(&self, directory: &str, request: &ExecRequest, is_new: bool) -> Bash {
        let idle = match is_new {
            true => None,
            false => self.base.idle.borrow_mut().pop(),
        };
        let mut bash = idle.unwrap_or_else(|| self.base.build());
        let mut pristine = self.base.pristine.borrow_mut();
        let pristine = pristine.get_or_insert_with(|| bash.shell_state());
        // Overwritten by every command; a copy would cost as much as restoring.
        pristine.env.insert("PWD".to_owned(), directory.to_owned());
        pristine.cwd = directory.into();
        if request.env.is_empty() {
            bash.restore_shell_state(pristine);
            return bash;
        }
        let mut state = pristine.clone();
        // As a process does: names and values that no process can have are left
        // out, and a name that no variable can have stays in the environment.
        for (name, value) in &request.env {
            let odd = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
            if odd || name == "PWD" {
                continue;
            }
            state.env.insert(name.clone(), value.clone());
            if is_variable(name) {
                state.variables.insert(name.clone(), value.clone());
            }
        }
        bash.restore_shell_state(&state);
        bash
    }

    fn keep(&self, bash: Bash) {
        let mut idle = self.base.idle.borrow_mut();
        if idle.len() < self.base.limits.idle_shells {
            idle.push(bash);
        }
    }
}

/// Whether `name` is one that a shell variable can have.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

async fn run(
    mut bash: Bash,
    command: String,
    chunks: Chunks,
) -> (Bash, bashkit::Result<ExecResult>) {
    let cut_off = Arc::new(AtomicBool::new(false));
    let sink = |stream: OutputStream| {
        let chunks = chunks.clone();
        let cut_off = cut_off.clone();
        move |bytes: Vec<u8>| {
            if bytes.starts_with(sed::LOOP_LIMIT) {
                cut_off.store(true, Ordering::Relaxed);
            }
            let length = bytes.len();
            clock::spend(1 + (length / OUTPUT_BYTES_PER_WORK) as u64);
            let timeline = clock::current();
            let refused = hooks::has_refusal(&bytes);
            let bytes = match timeline.as_ref().filter(|_| refused) {
                Some(timeline) => timeline.hooks.say_refusals(&bytes),
                None => bytes,
            };
            if timeline
                .as_ref()
                .is_none_or(|timeline| timeline.last_words.are_heard())
                || !refused
            {
                chunks
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((stream, bytes));
            }
            if let Some(timeline) = timeline {
                timeline.last_words.came_out(length);
            }
            std::future::ready(Ok(()))
        }
    };
    let result = bash
        .execute(&command)
        .stdout_fn(sink(OutputStream::Stdout))
        .stderr_fn(sink(OutputStream::Stderr))
        .await;
    let result = result.map(|mut result| {
        if result.exit_code == 0 && cut_off.load(Ordering::Relaxed) {
            result.exit_code = sed::TROUBLE;
        }
        result
    });
    (bash, result)
}
