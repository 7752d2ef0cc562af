//! `ComponentCore`: the sealed component under wasmtime.
//!
//! Every call gets a fresh epoch deadline; whatever traps kills the instance
//! for good, because a Rust program that was stopped in the middle may hold
//! broken data.

mod bindings;
// The component's own: what it converts one way, a host converts the other.
#[path = "../../../src/component/convert.rs"]
mod convert;

use hermitcrab_engine::{EngineError, TICK, Ticking, instantiate};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::effect::Outcome;
use hermitcrab::memory::EndReason;
use hermitcrab::session::{InstanceCall, InstanceReply, SessionError, SessionErrorKind};
use wasmtime::component::{Component, Linker, ResourceAny};
use wasmtime::{ResourceLimiter, Store, Trap};

use crate::core::{
    CallResult, Core, CoreEffect, CoreError, CoreEvent, CoreFailure, CoreReport, CoreStep,
};
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
    /// How much of the inputs of an instance is kept, in bytes, to bring its
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

impl CoreLimits {
    /// For a core that repeats what another one has done: what that did in time, this
    /// one may do on a busier machine.
    pub(crate) fn patient(self) -> Self {
        Self {
            step_timeout: self.step_timeout * 10,
            ..self
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
        let agent = instantiate(|| self.pre.instantiate(&mut store))
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

/// A call into the guest that returns a result.
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

    /// Keeps a session; answers its id.
    fn adopt_session(&mut self, handle: ResourceAny) -> CallResult<InstanceReply> {
        let id = self.enter(|guest, store| guest.session().call_id(store, handle))?;
        self.sessions.insert(id.as_str().into(), handle);
        Ok(InstanceReply::Id(id))
    }

    /// Makes a call whose answer is a second copy of the files: what was made within the
    /// limit of the memory must come out, whatever it takes.
    fn with_all_memory<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> CallResult<T>,
    ) -> CallResult<T> {
        self.store.data_mut().memory_bytes = GUEST_BYTES;
        let answer = call(self);
        self.store.data_mut().memory_bytes = self.limits.memory_bytes;
        answer
    }

    fn adopt_job(&mut self, job: String) -> InstanceReply {
        self.jobs.insert(job.as_str().into(), ());
        InstanceReply::Id(job)
    }

    fn release(&mut self, handle: Option<ResourceAny>) -> CallResult<()> {
        match handle {
            Some(handle) => self.enter(|_, store| handle.resource_drop(store)),
            None => Ok(()),
        }
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
                .map(|effect| CoreEffect {
                    id: effect.id,
                    owner: self.owner(effect.owner),
                    kind: effect.request.into(),
                })
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

    fn call(&mut self, call: InstanceCall) -> CallResult<InstanceReply> {
        use InstanceReply as Reply;
        Ok(match call {
            InstanceCall::AddMemoryEnvironment { settings } => {
                let settings = settings.to_string();
                let handle = self
                    .refusable(|guest, store| guest.environment().call_memory(store, &settings))?;
                Reply::Number(self.adopt_environment(handle)?.into())
            }
            InstanceCall::AddRemoteEnvironment { info } => {
                let info = info.into();
                let handle =
                    self.refusable(|guest, store| guest.environment().call_remote(store, &info))?;
                Reply::Number(self.adopt_environment(handle)?.into())
            }
            InstanceCall::MakeReadOnly {
                environment,
                allow_commands,
            } => {
                let handle = self.environment(environment)?;
                self.refusable(|guest, store| {
                    let environment = guest.environment();
                    environment.call_make_read_only(store, handle, allow_commands)
                })?;
                Reply::Done
            }
            InstanceCall::LogCalls { environment } => {
                let handle = self.environment(environment)?;
                let log = self
                    .refusable(|guest, store| guest.environment().call_log_calls(store, handle))?;
                Reply::Number(log.into())
            }
            InstanceCall::ImportTar {
                environment,
                archive,
            } => {
                let handle = self.environment(environment)?;
                self.answer(|guest, store| {
                    guest.environment().call_import_tar(store, handle, &archive)
                })?;
                Reply::Done
            }
            InstanceCall::ImportFiles { environment, files } => {
                let handle = self.environment(environment)?;
                let file = |(path, content): (String, Bytes)| wit::File {
                    path,
                    content: content.into(),
                };
                let files: Vec<wit::File> = files.into_iter().map(file).collect();
                self.answer(|guest, store| {
                    guest.environment().call_import_files(store, handle, &files)
                })?;
                Reply::Done
            }
            InstanceCall::ReplaceTree {
                environment,
                archive,
            } => {
                let handle = self.environment(environment)?;
                self.answer(|guest, store| {
                    guest
                        .environment()
                        .call_replace_tree(store, handle, &archive)
                })?;
                Reply::Done
            }
            InstanceCall::ApplyDelta {
                environment,
                archive,
                removed,
            } => {
                let handle = self.environment(environment)?;
                self.answer(|guest, store| {
                    let environment = guest.environment();
                    environment.call_apply_delta(store, handle, &archive, &removed)
                })?;
                Reply::Done
            }
            InstanceCall::LendProgram { environment, name } => {
                let handle = self.environment(environment)?;
                self.answer(|guest, store| {
                    guest.environment().call_lend_program(store, handle, &name)
                })?;
                Reply::Done
            }
            InstanceCall::OpenTerminal { environment } => {
                let handle = self.environment(environment)?;
                let terminal = self
                    .answer(|guest, store| guest.environment().call_open_terminal(store, handle))?;
                Reply::Number(self.adopt_environment(terminal)?.into())
            }
            InstanceCall::CloseTerminal { terminal } => {
                if let Ok(handle) = self.environment(terminal) {
                    self.enter(|guest, store| {
                        guest.environment().call_close_terminal(store, handle)
                    })?;
                }
                Reply::Done
            }
            InstanceCall::ExportTar { environment } => {
                let handle = self.environment(environment)?;
                let archive = self.with_all_memory(|core| {
                    core.answer(|guest, store| guest.environment().call_export_tar(store, handle))
                });
                Reply::Archive(archive?.into())
            }
            InstanceCall::Snapshot { environment } => {
                let handle = self.environment(environment)?;
                let snapshot =
                    self.answer(|guest, store| guest.environment().call_snapshot(store, handle))?;
                let number = self.next_snapshot;
                self.next_snapshot += 1;
                self.snapshots.insert(number, snapshot);
                Reply::Number(number)
            }
            InstanceCall::Restore {
                environment,
                snapshot,
            } => {
                let handle = self.environment(environment)?;
                let snapshot = self.snapshot_handle(snapshot)?;
                self.answer(|guest, store| {
                    guest.environment().call_restore(store, handle, snapshot)
                })?;
                Reply::Done
            }
            InstanceCall::Changes {
                environment,
                snapshot,
            } => {
                let handle = self.environment(environment)?;
                let snapshot = self.snapshot_handle(snapshot)?;
                let changes = self.answer(|guest, store| {
                    guest.environment().call_changes(store, handle, snapshot)
                })?;
                Reply::Changes(changes.into_iter().map(Into::into).collect())
            }
            InstanceCall::ForgetSnapshot { snapshot } => {
                self.release(self.snapshots.get(&snapshot).copied())?;
                self.snapshots.remove(&snapshot);
                Reply::Done
            }
            InstanceCall::StartExec {
                environment,
                request,
            } => {
                let handle = self.environment(environment)?;
                let request = request.into();
                let job = self.refusable(|guest, store| {
                    guest.environment().call_exec(store, handle, &request)
                })?;
                self.adopt_job(job)
            }
            InstanceCall::StartCall {
                environment,
                request,
            } => {
                let handle = self.environment(environment)?;
                let request = request.into();
                let job = self.refusable(|guest, store| {
                    guest.environment().call_call(store, handle, &request)
                })?;
                self.adopt_job(job)
            }
            InstanceCall::Act { effect, action } => {
                let action = action.into();
                let job = self.refusable(|guest, store| guest.call_act(store, effect, &action))?;
                self.adopt_job(job)
            }
            InstanceCall::CancelJob { job } => {
                self.enter(|guest, store| guest.call_cancel_job(store, &job))?;
                Reply::Done
            }
            InstanceCall::EndCommands { reason } => {
                self.enter(|guest, store| guest.call_end_commands(store, reason.into()))?;
                Reply::Done
            }
            InstanceCall::OpenSession {
                environment,
                config,
                record,
            } => {
                let environment = self.environment(environment)?;
                let config = config.to_string();
                let record = record.map(|record| record.to_string());
                let handle = self.refusable(|guest, store| {
                    let session = guest.session();
                    session.call_open(store, environment, &config, record.as_deref())
                })?;
                self.adopt_session(handle)?
            }
            InstanceCall::CopyEnvironment { environment } => {
                let handle = self.environment(environment)?;
                let copy =
                    self.answer(|guest, store| guest.environment().call_copy(store, handle))?;
                Reply::Number(self.adopt_environment(copy)?.into())
            }
            InstanceCall::SaveSession { session } => {
                let handle = self.session(&session)?;
                let archive = self.with_all_memory(|core| {
                    core.refusable(|guest, store| guest.session().call_save(store, handle))
                });
                Reply::Archive(archive?.into())
            }
            InstanceCall::AddSavedEnvironment { saved, settings } => {
                let settings = settings.to_string();
                let handle = self.answer(|guest, store| {
                    guest.environment().call_saved(store, &saved, &settings)
                })?;
                Reply::Number(self.adopt_environment(handle)?.into())
            }
            InstanceCall::OpenSavedSession {
                environment,
                saved,
                settings,
            } => {
                let environment = self.environment(environment)?;
                let settings = settings.to_string();
                let handle = self.refusable(|guest, store| {
                    let session = guest.session();
                    session.call_open_saved(store, environment, &saved, &settings)
                })?;
                self.adopt_session(handle)?
            }
            InstanceCall::CopySession {
                session,
                environment,
                settings,
            } => {
                let original = self.session(&session)?;
                let environment = self.environment(environment)?;
                let settings = settings.to_string();
                let handle = self.refusable(|guest, store| {
                    let session = guest.session();
                    session.call_copy(store, original, environment, &settings)
                })?;
                self.adopt_session(handle)?
            }
            InstanceCall::Session { session, ask } => {
                let handle = self.session(&session)?;
                let ask = ask.into();
                let reply =
                    self.refusable(|guest, store| guest.session().call_call(store, handle, &ask))?;
                Reply::Session(reply.into())
            }
            InstanceCall::ForgetSession { session } => {
                self.release(self.sessions.get(session.as_str()).copied())?;
                self.sessions.remove(session.as_str());
                Reply::Done
            }
        })
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
        let message = "the core cannot start: its memory begins as a file of some MiB, and the \
                       system's limit on files (`ulimit -f`) is smaller; raise it"
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
