//! `Journaled`: a core that can be brought back to where it was before the call
//! that ended it.
//!
//! A core is a pure function of its inputs. So nothing of it is saved while it
//! works: its inputs are kept (nearly all of them share their bytes with who
//! sent them), and when it has died, all but the last go to a fresh one.
//! What the core held then is there again: files, clock, conversations. If it
//! was a command that ended it, the fresh one ends that command and goes on: its
//! sessions notice nothing but the result of a call.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::effect::{Outcome, OutcomeKind};
use hermitcrab::environment::{EnvironmentCall, EnvironmentReply, FileNode};
use hermitcrab::llm::Content;
use hermitcrab::memory::EndReason;
use hermitcrab::session::{Action, InstanceCall, InstanceReply, SessionCall};
use tokio::sync::OwnedSemaphorePermit;

use crate::core::{CallResult, Core, CoreError, CoreFailure, CoreStep};
use crate::error::HostError;
use crate::keys::Keys;
use crate::log::Recorder;

/// What an entry takes beside the bytes that it holds.
const ENTRY_BYTES: usize = 200;

/// A core that has worked for longer does not go on after a command that ended
/// it: all that work would be done again meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a core like the one that is journaled.
pub(crate) type Restart = Box<dyn Fn() -> CallResult<Box<dyn Core>> + Send>;

/// One input of a core.
#[derive(Clone)]
enum Input {
    Step { now_ms: u64, outcomes: Vec<Outcome> },
    Call(InstanceCall),
}

impl Input {
    /// Passes it to `core` once more. Errors do not count: a call that the first core
    /// refused is refused again.
    fn repeat(self, core: &mut dyn Core) {
        match self {
            Self::Step { now_ms, outcomes } => drop(core.step(now_ms, outcomes)),
            Self::Call(call) => drop(core.call(call)),
        }
    }

    /// Bytes that it holds, roughly.
    fn weight(&self) -> usize {
        match self {
            Self::Step { outcomes, .. } => outcomes.iter().map(weight).sum(),
            Self::Call(call) => weight_of_call(call),
        }
    }
}

/// The inputs of a core, in order.
struct Journal {
    restart: Restart,
    inputs: Vec<Input>,
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
    /// Writes the inputs and outputs of the living core where its user wants them.
    recorder: Option<Recorder>,
    /// Writes them where the host keeps its sessions.
    kept: Option<Recorder>,
    /// What no file of the core's may hold.
    keys: Keys,
    /// The place in a pool that the core takes; free again when it is gone.
    _place: Option<OwnedSemaphorePermit>,
}

impl Journaled {
    /// Keeps no journal.
    pub(crate) fn without(core: Box<dyn Core>) -> Self {
        Self {
            core: Ok(core),
            journal: None,
            recorder: None,
            kept: None,
            keys: Keys::default(),
            _place: None,
        }
    }

    /// Keeps up to `max_bytes` of inputs of `core`, which `restart` has just started.
    /// Beyond that it drops all of them.
    pub(crate) fn new(core: Box<dyn Core>, restart: Restart, max_bytes: usize) -> Self {
        Self {
            core: Ok(core),
            journal: Some(Journal {
                restart,
                inputs: Vec::new(),
                bytes: 0,
                max_bytes,
                worked: Duration::ZERO,
            }),
            recorder: None,
            kept: None,
            keys: Keys::default(),
            _place: None,
        }
    }

    /// Saves no session that holds one of `keys`.
    pub(crate) fn without_keys(mut self, keys: &Keys) -> Self {
        self.keys = keys.clone();
        self
    }

    /// Keeps a place in a pool taken as long as it lives.
    pub(crate) fn hold(mut self, place: Option<OwnedSemaphorePermit>) -> Self {
        self._place = place;
        self
    }

    /// Records everything from now on.
    pub(crate) fn record(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// A session as a file.
    ///
    /// # Errors
    /// The core refuses, or a key stands in it.
    pub(crate) fn save(&mut self, session: String) -> Result<Bytes, HostError> {
        let saved = self.archive(InstanceCall::SaveSession { session })?;
        match self.keys.are_in(&saved) {
            true => Err(HostError::Setup(
                "a key of the host's stands in what was said or in the files of the sandbox, \
                 and is not written to a file"
                    .to_owned(),
            )),
            false => Ok(saved),
        }
    }

    /// Keeps everything from now on, beside a record.
    pub(crate) fn keep_in(mut self, recorder: Recorder) -> Self {
        self.kept = Some(recorder);
        self
    }

    /// Ends what is kept. Says why it is not whole, if it is not.
    pub(crate) fn end_kept(&mut self) -> Option<io::Error> {
        self.kept.take()?.finish().err()
    }

    fn recorders(&mut self) -> impl Iterator<Item = &mut Recorder> {
        self.recorder.iter_mut().chain(&mut self.kept)
    }

    /// Why the record is not whole, if it is not.
    pub(crate) fn record_failure(&self) -> Option<String> {
        self.recorder.as_ref()?.failed().map(ToString::to_string)
    }

    /// Ends the record. Says why it is not whole, if it is not.
    pub(crate) fn end_record(&mut self) -> Option<io::Error> {
        self.recorder.take()?.finish().err()
    }

    /// The core as it was before the call that ended it, once; none if it
    /// lives, or if there is no journal.
    pub(crate) fn recover(&mut self) -> Option<CallResult<Box<dyn Core>>> {
        self.core.as_ref().err()?;
        Some(self.journal.take()?.retell())
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
        let Ok(core) = journal.retell() else {
            return false;
        };
        let failure = std::mem::replace(&mut self.core, Ok(core));
        if self.tell(InstanceCall::EndCommands { reason }).is_ok() {
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

    /// Steps the core and, if that did not end it, notes it.
    fn step_once(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep> {
        let began = Instant::now();
        let kept = self.keeps().then(|| outcomes.clone());
        let step = self.look(|core| core.step(now_ms, outcomes))?;
        if let Some(outcomes) = kept {
            for recorder in self.recorders() {
                recorder.step(now_ms, &outcomes, &step);
            }
            self.keep(Input::Step { now_ms, outcomes }, began);
        }
        Ok(step)
    }

    /// Whether anything keeps the inputs of the core.
    fn keeps(&self) -> bool {
        self.journal.is_some() || self.recorder.is_some() || self.kept.is_some()
    }

    fn keep(&mut self, input: Input, began: Instant) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        journal.worked += began.elapsed();
        journal.bytes += input.weight() + ENTRY_BYTES;
        journal.inputs.push(input);
        if journal.bytes > journal.max_bytes {
            self.journal = None;
        }
    }
}

impl Journal {
    /// A fresh core after the same inputs.
    fn retell(&self) -> CallResult<Box<dyn Core>> {
        let mut core = (self.restart)()?;
        for input in &self.inputs {
            input.clone().repeat(&mut *core);
        }
        Ok(core)
    }
}

/// Bytes that a call holds, roughly.
fn weight_of_call(call: &InstanceCall) -> usize {
    let in_environment = |call: &EnvironmentCall| match call {
        EnvironmentCall::Write { content, .. } => content.len(),
        _ => 0,
    };
    match call {
        InstanceCall::ImportTar { archive, .. }
        | InstanceCall::ReplaceTree { archive, .. }
        | InstanceCall::ApplyDelta { archive, .. } => archive.len(),
        InstanceCall::ImportFiles { files, .. } => {
            let bytes = files.iter().map(|(_, content)| content.len() + ENTRY_BYTES);
            bytes.sum()
        }
        InstanceCall::AddSavedEnvironment { saved, .. }
        | InstanceCall::OpenSavedSession { saved, .. } => saved.len(),
        InstanceCall::StartExec { request, .. } => request.command.len(),
        InstanceCall::StartCall { request, .. } => in_environment(request),
        InstanceCall::Act { action, .. } => match action {
            Action::Exec(request) => request.command.len(),
            Action::Call(call) => in_environment(call),
        },
        InstanceCall::OpenSession { config, record, .. } => {
            let record = record.as_ref().map_or(0, |record| record.to_string().len());
            config.to_string().len() + record
        }
        InstanceCall::Session { ask, .. } => match ask {
            SessionCall::AddSystemTurn { content } => content.len(),
            SessionCall::Configure { patch: value }
            | SessionCall::RegisterTool { definition: value } => value.to_string().len(),
            ask => ask.content().map_or(0, Content::bytes),
        },
        _ => 0,
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
            return self.step_once(now_ms, outcomes);
        }
        let result = self.step_once(now_ms, outcomes.clone());
        let Err(CoreError::Failed(failure)) = &result else {
            return result;
        };
        if !self.go_on(failure.ends) {
            return result;
        }
        // One that fails without its commands, too, has another reason.
        self.step_once(now_ms, outcomes)
    }

    /// Makes a call and, if it did not end the core, notes it. Also one that was
    /// refused may have drawn a random number.
    fn call(&mut self, call: InstanceCall) -> CallResult<InstanceReply> {
        if let InstanceCall::AddRemoteEnvironment { .. } = call {
            // The files are elsewhere and stay; the rest is not worth the memory.
            self.journal = None;
        }
        let began = Instant::now();
        let kept = (self.keeps() && !call.is_question()).then(|| call.clone());
        let result = self.look(|core| core.call(call));
        if let Some(call) = kept
            && self.core.is_ok()
        {
            for recorder in self.recorders() {
                recorder.call(&call);
            }
            self.keep(Input::Call(call), began);
        }
        result
    }
}
