//! `ComponentCore`: the sealed component under wasmtime.
//!
//! Every call gets a fresh epoch deadline; whatever traps kills the instance
//! for good, because a Rust program that was stopped in the middle may hold
//! broken data.

mod bindings;
mod convert;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::effect::Outcome;
use hermitcrab::environment::{EnvironmentCall, EnvironmentInfo, ExecRequest};
use hermitcrab::event::SessionState;
use hermitcrab::llm::Content;
use hermitcrab::memory::Change;
use hermitcrab::session::{Action, AgentCall, SessionError, SessionErrorKind};
use wasmtime::component::{Component, Linker, ResourceAny};
use wasmtime::{ResourceLimiter, Store, Trap};

use crate::core::{
    AgentInfo, CallResult, CommandPolicy, Core, CoreError, CoreEvent, CoreFailure, CoreReport,
    CoreStep, EndReason,
};
use crate::engine::{EngineError, TICK, Ticking};
use bindings::exports::hermitcrab::core::instance as wit;
use bindings::{Agent, AgentPre};

/// Bounds of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreLimits {
    /// Linear memory, in bytes.
    pub memory_bytes: usize,
    /// How long one call into the core may take before it counts as stalled.
    /// Steps return after some 4 ms of work by themselves.
    pub step_timeout: Duration,
    /// How much of what an instance is told is kept, in bytes, to bring its
    /// sandboxes back when a command has ended it
    /// ([`EnvironmentHandle::recover_tar`](crate::EnvironmentHandle::recover_tar)):
    /// archives and files that it was given, answers of models and of lent
    /// programs. 0 keeps nothing. Nothing is kept either for an instance with
    /// an environment that is no sandbox.
    pub journal_bytes: usize,
}

impl Default for CoreLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            step_timeout: Duration::from_secs(10),
            journal_bytes: 256 << 20,
        }
    }
}

/// Bytes that a 32-bit guest can have at most.
const GUEST_BYTES: usize = u32::MAX as usize;

/// A core that is loaded and linked; instances start from it in microseconds.
/// Clones share it.
#[derive(Clone)]
pub struct LoadedCore {
    pre: AgentPre<Guard>,
}

impl LoadedCore {
    pub(crate) fn new(component: &Component) -> Result<Self, EngineError> {
        // Nothing is linked in: a core that imports something does not load.
        let linker = Linker::new(component.engine());
        linker
            .instantiate_pre(component)
            .and_then(AgentPre::new)
            .map(|pre| Self { pre })
            .map_err(|error| EngineError::new(&error))
    }

    /// Starts an instance whose every random number follows from `seed`.
    ///
    /// # Errors
    /// The instance cannot be started: no memory left, for example.
    pub fn start(&self, seed: [u8; 32], limits: CoreLimits) -> CallResult<ComponentCore> {
        let engine = self.pre.engine();
        let guard = Guard {
            memory_bytes: limits.memory_bytes,
            refused: false,
        };
        let mut store = Store::new(engine, guard);
        store.limiter(|guard| guard);
        // What one call may bring out of the guest: all that it can hold.
        store.set_hostcall_fuel(GUEST_BYTES);
        let deadline = deadline(limits.step_timeout);
        store.set_epoch_deadline(deadline);
        let agent = self
            .pre
            .instantiate(&mut store)
            .map_err(|error| failure(&error, &store, limits))?;
        let mut core = ComponentCore {
            _ticking: Ticking::start(engine),
            store,
            agent,
            limits,
            deadline,
            environments: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            next_snapshot: 1,
            sessions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            failed: None,
        };
        core.refusable(|guest, store| guest.call_open(store, &seed))?;
        Ok(core)
    }
}

impl std::fmt::Debug for LoadedCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoadedCore")
    }
}

/// A call into the guest with a result of its own.
trait GuestCall<T, E>:
    FnOnce(&wit::Guest, &mut Store<Guard>) -> wasmtime::Result<Result<T, E>>
{
}

impl<T, E, F> GuestCall<T, E> for F where
    F: FnOnce(&wit::Guest, &mut Store<Guard>) -> wasmtime::Result<Result<T, E>>
{
}

/// Ticks after which a call counts as stalled; one more, because the first may
/// come at once.
fn deadline(timeout: Duration) -> u64 {
    let ticks = timeout.as_millis().div_ceil(TICK.as_millis()) + 1;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Keeps the memory of a guest within its limit.
struct Guard {
    memory_bytes: usize,
    refused: bool,
}

impl ResourceLimiter for Guard {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = desired <= self.memory_bytes;
        self.refused |= !allowed;
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= 1_000_000)
    }
}

/// One instance of the sealed core.
pub struct ComponentCore {
    store: Store<Guard>,
    agent: Agent,
    limits: CoreLimits,
    deadline: u64,
    environments: BTreeMap<u32, ResourceAny>,
    snapshots: BTreeMap<u64, ResourceAny>,
    next_snapshot: u64,
    sessions: BTreeMap<Arc<str>, ResourceAny>,
    jobs: BTreeMap<Arc<str>, ()>,
    failed: Option<CoreFailure>,
    _ticking: Ticking,
}

impl ComponentCore {
    /// Makes one call into the guest.
    fn enter<T>(
        &mut self,
        call: impl FnOnce(&wit::Guest, &mut Store<Guard>) -> wasmtime::Result<T>,
    ) -> CallResult<T> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone().into());
        }
        self.store.set_epoch_deadline(self.deadline);
        let guest = self.agent.hermitcrab_core_instance();
        call(guest, &mut self.store).map_err(|error| {
            let failure = failure(&error, &self.store, self.limits);
            self.failed = Some(failure.clone());
            failure.into()
        })
    }

    /// Makes one call that the guest may refuse.
    fn refusable<T>(&mut self, call: impl GuestCall<T, wit::SessionError>) -> CallResult<T> {
        self.enter(call)?
            .map_err(|error| CoreError::Refused(error.into()))
    }

    /// Makes one call that a sandbox answers.
    fn answer<T>(&mut self, call: impl GuestCall<T, wit::EnvironmentError>) -> CallResult<T> {
        self.enter(call)?
            .map_err(|error| CoreError::Environment(error.into()))
    }

    fn environment(&self, number: u32) -> CallResult<ResourceAny> {
        self.environments
            .get(&number)
            .copied()
            .ok_or_else(|| not_found(format!("environment {number} does not exist")))
    }

    fn snapshot_handle(&self, number: u64) -> CallResult<ResourceAny> {
        self.snapshots
            .get(&number)
            .copied()
            .ok_or_else(|| not_found(format!("snapshot {number} does not exist")))
    }

    fn session(&self, id: &str) -> CallResult<ResourceAny> {
        self.sessions
            .get(id)
            .copied()
            .ok_or_else(|| not_found(format!("session {id} does not exist")))
    }

    fn adopt_environment(&mut self, handle: ResourceAny) -> CallResult<u32> {
        let number = self.enter(|guest, store| guest.environment().call_number(store, handle))?;
        self.environments.insert(number, handle);
        Ok(number)
    }

    fn adopt_job(&mut self, job: String) -> Arc<str> {
        let job: Arc<str> = job.into();
        self.jobs.insert(job.clone(), ());
        job
    }

    fn release(&mut self, handle: ResourceAny) -> CallResult<()> {
        self.enter(|_, store| handle.resource_drop(store))
    }

    /// The shared name of an owner, without allocating for the known ones.
    fn owner(&self, name: String) -> Arc<str> {
        let name = name.as_str();
        if let Some((known, _)) = self.sessions.get_key_value(name) {
            return known.clone();
        }
        match self.jobs.get_key_value(name) {
            Some((known, ())) => known.clone(),
            None => name.into(),
        }
    }
}

impl std::fmt::Debug for ComponentCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComponentCore")
            .field("sessions", &self.sessions.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Core for ComponentCore {
    fn end_commands(&mut self, reason: EndReason) -> CallResult<()> {
        let reason = match reason {
            EndReason::Work => wit::EndReason::Work,
            EndReason::Memory => wit::EndReason::Memory,
            EndReason::Stack => wit::EndReason::Stack,
            EndReason::Failed => wit::EndReason::Failed,
        };
        self.enter(|guest, store| guest.call_end_commands(store, reason))
    }

    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep> {
        let outcomes: Vec<wit::Outcome> = outcomes.into_iter().map(Into::into).collect();
        let step = self.enter(|guest, store| guest.call_step(store, now_ms, &outcomes))?;
        let step = CoreStep {
            events: step
                .events
                .into_iter()
                .map(|event| CoreEvent {
                    session: self.owner(event.session_id),
                    json: event.json.into(),
                })
                .collect(),
            reports: step
                .reports
                .into_iter()
                .map(|report| CoreReport {
                    job: self.owner(report.job),
                    kind: report.news.into(),
                })
                .collect(),
            effects: step
                .effects
                .into_iter()
                .map(|effect| convert::effect(effect, |owner| self.owner(owner)))
                .collect(),
            log: step.log.into_iter().map(Into::into).collect(),
            busy: step.busy,
        };
        for report in &step.reports {
            if report.is_last() {
                self.jobs.remove(&report.job);
            }
        }
        Ok(step)
    }

    fn add_memory_environment(&mut self, options_json: &str) -> CallResult<u32> {
        let handle =
            self.refusable(|guest, store| guest.environment().call_memory(store, options_json))?;
        self.adopt_environment(handle)
    }

    fn add_remote_environment(&mut self, info: EnvironmentInfo) -> CallResult<u32> {
        let info = info.into();
        let handle =
            self.refusable(|guest, store| guest.environment().call_remote(store, &info))?;
        self.adopt_environment(handle)
    }

    fn make_read_only(&mut self, environment: u32, commands: CommandPolicy) -> CallResult<()> {
        let handle = self.environment(environment)?;
        let allow = commands == CommandPolicy::Allow;
        self.refusable(|guest, store| {
            guest
                .environment()
                .call_make_read_only(store, handle, allow)
        })
    }

    fn log_calls(&mut self, environment: u32) -> CallResult<u32> {
        let handle = self.environment(environment)?;
        self.refusable(|guest, store| guest.environment().call_log_calls(store, handle))
    }

    fn import_tar(&mut self, environment: u32, archive: &Bytes) -> CallResult<()> {
        let handle = self.environment(environment)?;
        self.answer(|guest, store| guest.environment().call_import_tar(store, handle, archive))
    }

    fn export_tar(&mut self, environment: u32) -> CallResult<Bytes> {
        let handle = self.environment(environment)?;
        // The archive is a second copy of the files: what was made within the
        // limit must come out, whatever it takes.
        self.store.data_mut().memory_bytes = GUEST_BYTES;
        let archive =
            self.answer(|guest, store| guest.environment().call_export_tar(store, handle));
        self.store.data_mut().memory_bytes = self.limits.memory_bytes;
        Ok(archive?.into())
    }

    fn import_files(&mut self, environment: u32, files: Vec<(String, Bytes)>) -> CallResult<()> {
        let handle = self.environment(environment)?;
        let files: Vec<wit::File> = files
            .into_iter()
            .map(|(path, content)| wit::File {
                path,
                content: content.into(),
            })
            .collect();
        self.answer(|guest, store| guest.environment().call_import_files(store, handle, &files))
    }

    fn snapshot(&mut self, environment: u32) -> CallResult<u64> {
        let handle = self.environment(environment)?;
        let snapshot =
            self.answer(|guest, store| guest.environment().call_snapshot(store, handle))?;
        let number = self.next_snapshot;
        self.next_snapshot += 1;
        self.snapshots.insert(number, snapshot);
        Ok(number)
    }

    fn restore(&mut self, environment: u32, snapshot: u64) -> CallResult<()> {
        let handle = self.environment(environment)?;
        let snapshot = self.snapshot_handle(snapshot)?;
        self.answer(|guest, store| guest.environment().call_restore(store, handle, snapshot))
    }

    fn changes(&mut self, environment: u32, snapshot: u64) -> CallResult<Vec<Change>> {
        let handle = self.environment(environment)?;
        let snapshot = self.snapshot_handle(snapshot)?;
        let changes =
            self.answer(|guest, store| guest.environment().call_changes(store, handle, snapshot))?;
        Ok(changes.into_iter().map(Into::into).collect())
    }

    fn forget_snapshot(&mut self, snapshot: u64) -> CallResult<()> {
        match self.snapshots.remove(&snapshot) {
            Some(handle) => self.release(handle),
            None => Ok(()),
        }
    }

    fn start_exec(&mut self, environment: u32, request: ExecRequest) -> CallResult<Arc<str>> {
        let handle = self.environment(environment)?;
        let request = request.into();
        let job =
            self.refusable(|guest, store| guest.environment().call_exec(store, handle, &request))?;
        Ok(self.adopt_job(job))
    }

    fn start_call(&mut self, environment: u32, call: EnvironmentCall) -> CallResult<Arc<str>> {
        let handle = self.environment(environment)?;
        let call = call.into();
        let job =
            self.refusable(|guest, store| guest.environment().call_call(store, handle, &call))?;
        Ok(self.adopt_job(job))
    }

    fn act(&mut self, effect: u64, action: Action) -> CallResult<Arc<str>> {
        let action = action.into();
        let job = self.refusable(|guest, store| guest.call_act(store, effect, &action))?;
        Ok(self.adopt_job(job))
    }

    fn cancel_job(&mut self, job: &str) -> CallResult<()> {
        self.enter(|guest, store| guest.call_cancel_job(store, job))
    }

    fn open_session(
        &mut self,
        environment: u32,
        config_json: &str,
        record_json: Option<&str>,
    ) -> CallResult<Arc<str>> {
        let environment = self.environment(environment)?;
        let handle = self.refusable(|guest, store| {
            guest
                .session()
                .call_open(store, environment, config_json, record_json)
        })?;
        let id: Arc<str> = self
            .enter(|guest, store| guest.session().call_id(store, handle))?
            .into();
        self.sessions.insert(id.clone(), handle);
        Ok(id)
    }

    fn state(&mut self, session: &str) -> CallResult<SessionState> {
        let handle = self.session(session)?;
        let state = self.enter(|guest, store| guest.session().call_state(store, handle))?;
        Ok(state.into())
    }

    fn submit(&mut self, session: &str, input: &Content) -> CallResult<()> {
        let handle = self.session(session)?;
        let input = convert::content(input);
        self.refusable(|guest, store| guest.session().call_submit(store, handle, &input))
    }

    fn answer(&mut self, session: &str, input: &Content) -> CallResult<()> {
        let handle = self.session(session)?;
        let input = convert::content(input);
        self.refusable(|guest, store| guest.session().call_answer(store, handle, &input))
    }

    fn resume(&mut self, session: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| guest.session().call_resume(store, handle))
    }

    fn steer(&mut self, session: &str, message: &Content) -> CallResult<u64> {
        let handle = self.session(session)?;
        let message = convert::content(message);
        self.refusable(|guest, store| guest.session().call_steer(store, handle, &message))
    }

    fn follow_up(&mut self, session: &str, message: &Content) -> CallResult<()> {
        let handle = self.session(session)?;
        let message = convert::content(message);
        self.refusable(|guest, store| guest.session().call_follow_up(store, handle, &message))
    }

    fn add_system_turn(&mut self, session: &str, content: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| guest.session().call_add_system_turn(store, handle, content))
    }

    fn interrupt(&mut self, session: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| guest.session().call_interrupt(store, handle))
    }

    fn abort(&mut self, session: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.enter(|guest, store| guest.session().call_abort(store, handle))
    }

    fn close(&mut self, session: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| guest.session().call_close(store, handle))
    }

    fn config(&mut self, session: &str) -> CallResult<String> {
        let handle = self.session(session)?;
        self.enter(|guest, store| guest.session().call_config(store, handle))
    }

    fn configure(&mut self, session: &str, patch_json: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| guest.session().call_configure(store, handle, patch_json))
    }

    fn register_tool(&mut self, session: &str, definition_json: &str) -> CallResult<()> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| {
            guest
                .session()
                .call_register_tool(store, handle, definition_json)
        })
    }

    fn unregister_tool(&mut self, session: &str, name: &str) -> CallResult<bool> {
        let handle = self.session(session)?;
        self.refusable(|guest, store| guest.session().call_unregister_tool(store, handle, name))
    }

    fn agents(&mut self, session: &str) -> CallResult<Vec<AgentInfo>> {
        let handle = self.session(session)?;
        let agents = self.enter(|guest, store| guest.session().call_agents(store, handle))?;
        Ok(agents.into_iter().map(Into::into).collect())
    }

    fn agent_history(&mut self, session: &str, agent: &str) -> CallResult<Bytes> {
        let handle = self.session(session)?;
        let history = self
            .refusable(|guest, store| guest.session().call_agent_history(store, handle, agent))?;
        Ok(history.into())
    }

    fn tell_agent(&mut self, session: &str, agent: &str, call: AgentCall) -> CallResult<()> {
        let handle = self.session(session)?;
        let call = call.into();
        self.refusable(|guest, store| guest.session().call_tell_agent(store, handle, agent, &call))
    }

    fn tool_names(&mut self, session: &str) -> CallResult<Vec<String>> {
        let handle = self.session(session)?;
        self.enter(|guest, store| guest.session().call_tool_names(store, handle))
    }

    fn history(&mut self, session: &str) -> CallResult<Bytes> {
        let handle = self.session(session)?;
        let history = self.enter(|guest, store| guest.session().call_history(store, handle))?;
        Ok(history.into())
    }

    fn record(&mut self, session: &str) -> CallResult<Bytes> {
        let handle = self.session(session)?;
        let record = self.enter(|guest, store| guest.session().call_record(store, handle))?;
        Ok(record.into())
    }

    fn forget_session(&mut self, session: &str) -> CallResult<()> {
        match self.sessions.remove(session) {
            Some(handle) => self.release(handle),
            None => Ok(()),
        }
    }
}

fn not_found(message: String) -> CoreError {
    CoreError::Refused(SessionError::new(SessionErrorKind::NotFound, message))
}

/// What a trap means to the sessions of the instance.
fn failure(error: &wasmtime::Error, store: &Store<Guard>, limits: CoreLimits) -> CoreFailure {
    let trap = error.downcast_ref::<Trap>();
    let (code, ends, message) = if trap == Some(&Trap::IntegerDivisionByZero) {
        // By this the core itself leaves a command that does not end
        // (`xtask/src/count.rs`); a division of ours is checked before.
        let message = "a command kept the core busy and was stopped".to_owned();
        ("core_stalled", EndReason::Work, message)
    } else if trap == Some(&Trap::Interrupt) {
        let seconds = limits.step_timeout.as_secs_f64();
        let message = format!("the core did not return within {seconds} s and was stopped");
        ("core_stalled", EndReason::Work, message)
    } else if store.data().refused {
        let mib = limits.memory_bytes >> 20;
        let message = format!("the core needed more than its {mib} MiB of memory and was stopped");
        ("core_memory", EndReason::Memory, message)
    } else if matches!(trap, Some(Trap::StackOverflow | Trap::MemoryOutOfBounds)) {
        // The core's own stack lies at the beginning of its memory and ends there.
        let message = "the core used up its stack and was stopped".to_owned();
        ("core_trapped", EndReason::Stack, message)
    } else if is_too_large(error) {
        let message = "the core cannot start: its memory begins as a file of some MiB, and the                        system's limit on files (`ulimit -f`) is smaller; raise it"
            .to_owned();
        ("core_trapped", EndReason::Failed, message)
    } else {
        let error = EngineError::new(error);
        let message = format!("the core failed and was stopped ({error})");
        ("core_trapped", EndReason::Failed, message)
    };
    CoreFailure {
        code,
        message,
        ends,
    }
}

/// Whether the system refused a file for its size.
fn is_too_large(error: &wasmtime::Error) -> bool {
    #[cfg(unix)]
    {
        let told = format!("os error {}", nix::libc::EFBIG);
        error.chain().any(|cause| cause.to_string().contains(&told))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}
