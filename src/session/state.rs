//! The state behind a session, shared by its handle and its task.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::config::SessionConfig;
use super::control::Control;
use super::emitter::Emitter;
use super::meter::Meter;
use super::transcript::{Outcome, Transcript};
use super::workspace::Workspace;
use crate::effect::{EffectPort, Random, Spawner};
use crate::environment::{Cancel, CancelReason, Environment, Scope};
use crate::event::{EndReason, EventKind, SessionState};
use crate::profile::Profile;
use crate::tool::{BackgroundCommands, KnownFiles, Registry, Tool};

/// Everything a session consists of. Shared by its handle and its task.
pub(super) struct Shared {
    pub(super) identity: Identity,
    pub(super) control: Control,
    pub(super) transcript: Transcript,
    pub(super) profile: Arc<Profile>,
    pub(super) workspace: Workspace,
    pub(super) port: EffectPort,
    pub(super) random: Random,
    pub(super) spawner: Spawner,
    pub(super) emitter: Emitter,
    pub(super) meter: Meter,
    pub(super) config: RefCell<SessionConfig>,
    pub(super) registry: RefCell<Registry>,
    pub(super) agents: Agents,
    /// What it knows of files.
    pub(super) known: KnownFiles,
    /// Commands that it has left running.
    pub(super) background: BackgroundCommands,
}

/// Who a session is.
pub(super) struct Identity {
    /// Id of the session that the host opened.
    pub(super) id: Rc<str>,
    /// Id of the subagent, if it is one.
    pub(super) agent: Option<Rc<str>>,
    /// 0 for a session that the host opened, 1 for its subagents, and so on.
    pub(super) depth: u32,
    /// Key under which the provider caches the prefix.
    pub(super) cache_key: Rc<str>,
}

/// A session of an [`super::Instance`]. Clones are handles to the same session.
#[derive(Clone)]
pub struct Session(pub(super) Rc<Shared>);

/// The subagents of one session, in the order in which they were started.
#[derive(Default)]
pub(super) struct Agents(pub(super) RefCell<Vec<Agent>>);

/// A subagent; its session keeps its result when it is closed.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) id: Rc<str>,
    pub(super) task: Rc<str>,
    pub(super) session: Session,
}

/// What a session is made of, at open.
pub(super) struct Parts {
    pub(super) identity: Identity,
    pub(super) profile: Arc<Profile>,
    pub(super) workspace: Workspace,
    pub(super) port: EffectPort,
    pub(super) random: Random,
    pub(super) spawner: Spawner,
    pub(super) emitter: Emitter,
    pub(super) meter: Meter,
    pub(super) config: SessionConfig,
    pub(super) registry: Registry,
    /// Tools that the host executes; they win over others of their names.
    pub(super) host_tools: Vec<Rc<dyn Tool>>,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        let control = Control::default();
        let background = BackgroundCommands::new(parts.spawner.clone(), control.life.clone());
        Self {
            identity: parts.identity,
            control,
            transcript: Transcript::default(),
            profile: parts.profile,
            workspace: parts.workspace,
            port: parts.port,
            random: parts.random,
            spawner: parts.spawner,
            emitter: parts.emitter,
            meter: parts.meter,
            config: RefCell::new(parts.config),
            registry: RefCell::new(parts.registry),
            agents: Agents::default(),
            known: KnownFiles::default(),
            background,
        }
    }

    pub(super) fn emit(&self, kind: EventKind) {
        match &kind {
            EventKind::Error { message, .. } => {
                self.transcript.outcome.borrow_mut().error = Some(message.clone());
            }
            EventKind::ProcessingEnd { reason, .. } => {
                self.transcript.outcome.borrow_mut().reason = Some(*reason);
            }
            _ => {}
        }
        self.emitter.emit(kind);
    }

    pub(super) fn set_state(&self, to: SessionState) {
        let from = self.control.replace_state(to);
        if from != to {
            self.emit(EventKind::StateChanged { from, to });
        }
        self.control.wake_resting();
    }

    /// Model in use: the configured one, else the profile's default.
    pub(super) fn model_name(&self) -> String {
        let config = self.config.borrow();
        match config.model.is_empty() {
            true => self.profile.default_model.to_owned(),
            false => config.model.clone(),
        }
    }

    /// A scope that belongs to this session and ends with `cancel`.
    pub(super) fn scope(&self, cancel: Cancel) -> Scope {
        Scope {
            owner: self.identity.id.clone(),
            agent: self.identity.agent.clone(),
            cancel,
            in_background: false,
        }
    }

    /// The environment as seen from `scope`.
    pub(super) fn environment_in(&self, scope: &Scope) -> Environment {
        Environment::new(self.workspace.inner(), scope.clone())
    }

    /// Begins an input: nothing stops it yet. Called when the input is
    /// accepted, so that a stop right behind it is not lost.
    pub(super) fn begin_input(&self) {
        self.control.begin_input();
        *self.transcript.outcome.borrow_mut() = Outcome::default();
    }

    /// Ends the current input for `reason`; the first reason stands, except
    /// that an abort overrides everything.
    pub(super) fn stop_input(&self, reason: EndReason) {
        self.control.stop(reason);
        self.cancel_input(match reason {
            EndReason::TimeLimit => CancelReason::TimeLimit,
            _ => CancelReason::Interrupted,
        });
    }

    /// Ends the current input because that of a parent ends.
    pub(super) fn interrupt_for(&self, why: CancelReason) {
        self.control.stop(EndReason::Interrupted);
        self.cancel_input(why);
    }

    fn cancel_input(&self, why: CancelReason) {
        self.control.cancel_input(why);
        self.agents.interrupt(why);
    }

    /// Waits while the session is to pause before a request; says whether it had to.
    /// A stop of the input ends the pause.
    pub(super) async fn paused(&self, scope: &Scope) -> bool {
        let answers = || self.answers();
        self.control.stopped().is_none() && self.control.pause.wait(answers, &scope.cancel).await
    }

    /// Whether [`Shared::paused`] would wait.
    pub(super) fn is_pause_due(&self) -> bool {
        self.control.pause.is_due(self.answers())
    }

    fn answers(&self) -> u32 {
        self.transcript.history.borrow().assistant_turns()
    }
}
