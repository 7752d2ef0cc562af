//! `Journaled`: a core that can be brought back to where it was before the call
//! that ended it.
//!
//! A core is a pure function of its inputs. So nothing of it is saved while it
//! works: its inputs are kept (nearly all of them share their bytes with who
//! sent them), and when it has died, all but the last are told to a fresh one.
//! What the core held then is there again: files, clock, conversations. If it
//! was a command that ended it, the fresh one ends that command and goes on: its
//! sessions notice nothing but the result of a call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::effect::{Outcome, OutcomeKind};
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentInfo, EnvironmentReply, ExecRequest, FileNode,
};
use hermitcrab::event::SessionState;
use hermitcrab::llm::Content;
use hermitcrab::memory::Change;
use hermitcrab::session::{Action, AgentCall};

use crate::core::{
    AgentInfo, CallResult, CommandPolicy, Core, CoreError, CoreFailure, CoreStep, EndReason,
};

/// What an entry takes beside the bytes that it holds.
const ENTRY_BYTES: usize = 200;

/// A core that has worked for longer does not go on after a command that ended
/// it: all that work would be done again meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a core like the one that is journaled.
pub(crate) type Restart = Box<dyn Fn() -> CallResult<Box<dyn Core>> + Send>;

/// A call as it is told again.
type Call = Box<dyn Fn(&mut dyn Core) + Send>;

/// What a core was told, in order.
struct Journal {
    restart: Restart,
    calls: Vec<Call>,
    bytes: usize,
    max_bytes: usize,
    /// How long all of that took.
    worked: Duration,
}

/// A core and its journal.
pub(crate) struct Journaled {
    /// None once it has died: a dead one only holds memory.
    core: Result<Box<dyn Core>, CoreFailure>,
    journal: Option<Journal>,
}

impl Journaled {
    /// Keeps no journal.
    pub(crate) fn without(core: Box<dyn Core>) -> Self {
        Self {
            core: Ok(core),
            journal: None,
        }
    }

    /// Keeps up to `max_bytes` of what `core`, which `restart` has just started,
    /// is told; what it cannot keep all of it forgets.
    pub(crate) fn new(core: Box<dyn Core>, restart: Restart, max_bytes: usize) -> Self {
        Self {
            core: Ok(core),
            journal: Some(Journal {
                restart,
                calls: Vec::new(),
                bytes: 0,
                max_bytes,
                worked: Duration::ZERO,
            }),
        }
    }

    /// The core as it was before the call that ended it, once; none if it
    /// lives, or if there is no journal.
    pub(crate) fn recover(&mut self) -> Option<CallResult<Box<dyn Core>>> {
        self.core.as_ref().err()?;
        Some(self.journal.take()?.told())
    }

    /// Replaces the dead core by a fresh one that has had the same calls, and whose
    /// next step ends commands. Says whether that was possible.
    fn go_on(&mut self, reason: EndReason) -> bool {
        let Some(journal) = self.journal.as_ref() else {
            return false;
        };
        if journal.worked > PATIENCE {
            return false;
        }
        let Ok(core) = journal.told() else {
            return false;
        };
        let failure = std::mem::replace(&mut self.core, Ok(core));
        if self.tell(0, move |core| core.end_commands(reason)).is_ok() {
            return true;
        }
        self.core = failure;
        false
    }

    /// Makes a call that changes nothing.
    fn look<T>(&mut self, call: impl FnOnce(&mut dyn Core) -> CallResult<T>) -> CallResult<T> {
        let core = self.core.as_mut().map_err(|failure| failure.clone())?;
        let result = call(&mut **core);
        if let Err(CoreError::Failed(failure)) = &result {
            self.core = Err(failure.clone());
        }
        result
    }

    /// Makes a call and, if it did not end the core, notes it. Also one that was
    /// refused may have drawn a random number.
    fn tell<T>(
        &mut self,
        bytes: usize,
        call: impl Fn(&mut dyn Core) -> CallResult<T> + Send + 'static,
    ) -> CallResult<T> {
        let began = Instant::now();
        let result = self.look(&call);
        if let Some(journal) = &mut self.journal
            && self.core.is_ok()
        {
            journal.worked += began.elapsed();
            journal.bytes += bytes + ENTRY_BYTES;
            journal.calls.push(Box::new(move |core| drop(call(core))));
            if journal.bytes > journal.max_bytes {
                self.journal = None;
            }
        }
        result
    }
}

impl Journal {
    /// A fresh core after all the calls.
    fn told(&self) -> CallResult<Box<dyn Core>> {
        let mut core = (self.restart)()?;
        for call in &self.calls {
            call(&mut *core);
        }
        Ok(core)
    }
}

/// Bytes that an outcome holds, roughly.
fn weight(outcome: &Outcome) -> usize {
    let bytes = match &outcome.kind {
        OutcomeKind::HttpChunk(bytes) => bytes.len(),
        OutcomeKind::ExecOutput { data, .. } => data.len(),
        OutcomeKind::Environment(Ok(EnvironmentReply::Bytes(bytes))) => bytes.len(),
        OutcomeKind::Environment(Ok(EnvironmentReply::Matches(found))) => found
            .matches
            .iter()
            .map(|found| found.text.len() + ENTRY_BYTES)
            .sum(),
        OutcomeKind::Environment(Ok(EnvironmentReply::Entries(found))) => {
            found.entries.len() * ENTRY_BYTES
        }
        OutcomeKind::ToolOutput(text) => text.len(),
        OutcomeKind::ToolEnd(result) => result.content.bytes(),
        OutcomeKind::ProgramEnd(result) => {
            let changes = result.changes.iter().map(|change| match &change.node {
                FileNode::File(content) => content.len() + ENTRY_BYTES,
                FileNode::Link(target) => target.len() + ENTRY_BYTES,
                FileNode::Directory | FileNode::Removed => ENTRY_BYTES,
            });
            result.stdout.len() + result.stderr.len() + changes.sum::<usize>()
        }
        _ => 0,
    };
    bytes + ENTRY_BYTES
}

impl Core for Journaled {
    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep> {
        // One that another call has ended stays dead.
        if self.journal.is_none() || self.core.is_err() {
            return self.look(|core| core.step(now_ms, outcomes));
        }
        let bytes = outcomes.iter().map(weight).sum();
        let outcomes = Arc::new(Mutex::new(outcomes));
        let step = move |core: &mut dyn Core| {
            let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            core.step(now_ms, outcomes.clone())
        };
        let result = self.tell(bytes, step.clone());
        let Err(CoreError::Failed(failure)) = &result else {
            return result;
        };
        if !self.go_on(failure.ends) {
            return result;
        }
        // One that fails without its commands, too, has another reason.
        self.tell(bytes, step)
    }

    fn end_commands(&mut self, reason: EndReason) -> CallResult<()> {
        self.tell(0, move |core| core.end_commands(reason))
    }

    fn add_memory_environment(&mut self, options_json: &str) -> CallResult<u32> {
        let options = options_json.to_owned();
        self.tell(options.len(), move |core| {
            core.add_memory_environment(&options)
        })
    }

    fn add_remote_environment(&mut self, info: EnvironmentInfo) -> CallResult<u32> {
        // The files are elsewhere and stay; the rest is not worth the memory.
        self.journal = None;
        self.look(|core| core.add_remote_environment(info))
    }

    fn make_read_only(&mut self, environment: u32, commands: CommandPolicy) -> CallResult<()> {
        self.tell(0, move |core| core.make_read_only(environment, commands))
    }

    fn log_calls(&mut self, environment: u32) -> CallResult<u32> {
        self.tell(0, move |core| core.log_calls(environment))
    }

    fn import_tar(&mut self, environment: u32, archive: &Bytes) -> CallResult<()> {
        let archive = archive.clone();
        self.tell(archive.len(), move |core| {
            core.import_tar(environment, &archive)
        })
    }

    fn export_tar(&mut self, environment: u32) -> CallResult<Bytes> {
        self.look(|core| core.export_tar(environment))
    }

    fn import_files(&mut self, environment: u32, files: Vec<(String, Bytes)>) -> CallResult<()> {
        let bytes = files.iter().map(|(_, content)| content.len() + ENTRY_BYTES);
        self.tell(bytes.sum(), move |core| {
            core.import_files(environment, files.clone())
        })
    }

    fn snapshot(&mut self, environment: u32) -> CallResult<u64> {
        self.tell(0, move |core| core.snapshot(environment))
    }

    fn restore(&mut self, environment: u32, snapshot: u64) -> CallResult<()> {
        self.tell(0, move |core| core.restore(environment, snapshot))
    }

    fn changes(&mut self, environment: u32, snapshot: u64) -> CallResult<Vec<Change>> {
        self.look(|core| core.changes(environment, snapshot))
    }

    fn forget_snapshot(&mut self, snapshot: u64) -> CallResult<()> {
        self.tell(0, move |core| core.forget_snapshot(snapshot))
    }

    fn start_exec(&mut self, environment: u32, request: ExecRequest) -> CallResult<Arc<str>> {
        self.tell(request.command.len(), move |core| {
            core.start_exec(environment, request.clone())
        })
    }

    fn start_call(&mut self, environment: u32, call: EnvironmentCall) -> CallResult<Arc<str>> {
        let bytes = match &call {
            EnvironmentCall::Write { content, .. } => content.len(),
            _ => 0,
        };
        self.tell(bytes, move |core| {
            core.start_call(environment, call.clone())
        })
    }

    fn act(&mut self, effect: u64, action: Action) -> CallResult<Arc<str>> {
        let bytes = match &action {
            Action::Call(EnvironmentCall::Write { content, .. }) => content.len(),
            Action::Exec(request) => request.command.len(),
            Action::Call(_) => 0,
        };
        self.tell(bytes, move |core| core.act(effect, action.clone()))
    }

    fn cancel_job(&mut self, job: &str) -> CallResult<()> {
        let job = job.to_owned();
        self.tell(0, move |core| core.cancel_job(&job))
    }

    fn open_session(
        &mut self,
        environment: u32,
        config_json: &str,
        record_json: Option<&str>,
    ) -> CallResult<Arc<str>> {
        let config = config_json.to_owned();
        let record = record_json.map(str::to_owned);
        let bytes = config.len() + record.as_ref().map_or(0, String::len);
        self.tell(bytes, move |core| {
            core.open_session(environment, &config, record.as_deref())
        })
    }

    fn state(&mut self, session: &str) -> CallResult<SessionState> {
        self.look(|core| core.state(session))
    }

    fn submit(&mut self, session: &str, input: &Content) -> CallResult<()> {
        let (session, input) = (session.to_owned(), input.clone());
        self.tell(input.bytes(), move |core| core.submit(&session, &input))
    }

    fn answer(&mut self, session: &str, input: &Content) -> CallResult<()> {
        let (session, input) = (session.to_owned(), input.clone());
        self.tell(input.bytes(), move |core| core.answer(&session, &input))
    }

    fn resume(&mut self, session: &str) -> CallResult<()> {
        let session = session.to_owned();
        self.tell(0, move |core| core.resume(&session))
    }

    fn steer(&mut self, session: &str, message: &Content) -> CallResult<u64> {
        let (session, message) = (session.to_owned(), message.clone());
        self.tell(message.bytes(), move |core| core.steer(&session, &message))
    }

    fn follow_up(&mut self, session: &str, message: &Content) -> CallResult<()> {
        let (session, message) = (session.to_owned(), message.clone());
        self.tell(message.bytes(), move |core| {
            core.follow_up(&session, &message)
        })
    }

    fn add_system_turn(&mut self, session: &str, content: &str) -> CallResult<()> {
        let (session, content) = (session.to_owned(), content.to_owned());
        self.tell(content.len(), move |core| {
            core.add_system_turn(&session, &content)
        })
    }

    fn interrupt(&mut self, session: &str) -> CallResult<()> {
        let session = session.to_owned();
        self.tell(0, move |core| core.interrupt(&session))
    }

    fn abort(&mut self, session: &str) -> CallResult<()> {
        let session = session.to_owned();
        self.tell(0, move |core| core.abort(&session))
    }

    fn close(&mut self, session: &str) -> CallResult<()> {
        let session = session.to_owned();
        self.tell(0, move |core| core.close(&session))
    }

    fn config(&mut self, session: &str) -> CallResult<String> {
        self.look(|core| core.config(session))
    }

    fn configure(&mut self, session: &str, patch_json: &str) -> CallResult<()> {
        let (session, patch) = (session.to_owned(), patch_json.to_owned());
        self.tell(patch.len(), move |core| core.configure(&session, &patch))
    }

    fn register_tool(&mut self, session: &str, definition_json: &str) -> CallResult<()> {
        let (session, definition) = (session.to_owned(), definition_json.to_owned());
        self.tell(definition.len(), move |core| {
            core.register_tool(&session, &definition)
        })
    }

    fn unregister_tool(&mut self, session: &str, name: &str) -> CallResult<bool> {
        let (session, name) = (session.to_owned(), name.to_owned());
        self.tell(0, move |core| core.unregister_tool(&session, &name))
    }

    fn agents(&mut self, session: &str) -> CallResult<Vec<AgentInfo>> {
        self.look(|core| core.agents(session))
    }

    fn agent_history(&mut self, session: &str, agent: &str) -> CallResult<Bytes> {
        self.look(|core| core.agent_history(session, agent))
    }

    fn tell_agent(&mut self, session: &str, agent: &str, call: AgentCall) -> CallResult<()> {
        let (session, agent) = (session.to_owned(), agent.to_owned());
        let bytes = match &call {
            AgentCall::Steer(message) => message.bytes(),
            AgentCall::Interrupt | AgentCall::Close => 0,
        };
        self.tell(bytes, move |core| {
            core.tell_agent(&session, &agent, call.clone())
        })
    }

    fn tool_names(&mut self, session: &str) -> CallResult<Vec<String>> {
        self.look(|core| core.tool_names(session))
    }

    fn history(&mut self, session: &str) -> CallResult<Bytes> {
        self.look(|core| core.history(session))
    }

    fn record(&mut self, session: &str) -> CallResult<Bytes> {
        self.look(|core| core.record(session))
    }

    fn forget_session(&mut self, session: &str) -> CallResult<()> {
        let session = session.to_owned();
        self.tell(0, move |core| core.forget_session(&session))
    }
}
