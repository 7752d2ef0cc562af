//! The driver: steps the instance, starts its effects, collects their outcomes.
//! It decides nothing about sessions; it keeps the promise that every effect
//! gets exactly one final outcome, whatever the JavaScript side does.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::future::{Either, select};
use js_sys::Array;
use serde_json::Value;
use wasm_bindgen::JsValue;
use web_sys::{AbortController, AbortSignal};

use super::convert;
use super::host::Host;
#[cfg(feature = "log")]
use super::recording::Recording;
#[cfg(feature = "log")]
use crate::effect::{Effect, EffectKind};
use crate::effect::{Outcome, OutcomeKind};
use crate::environment::{Cancel, ExecStatus};
#[cfg(feature = "log")]
use crate::environment::{EnvironmentError, EnvironmentErrorKind};
#[cfg(feature = "log")]
use crate::llm::{TransportError, TransportErrorKind};
#[cfg(feature = "log")]
use crate::log::{Delivered, OpenEffect};
use crate::session::{
    CallError, Instance, InstanceCall, InstanceReply, LogLine, Session, SessionCall, SessionError,
    SessionEvent, SessionReply,
};
use crate::text::SortedMap;

/// One instance and everything that is under way for it.
pub(super) struct Driver {
    host: Host,
    instance: RefCell<Instance>,
    inbox: RefCell<Vec<Outcome>>,
    pub(super) running: RefCell<SortedMap<u64, Call>>,
    stopped: Cell<bool>,
    #[cfg(feature = "log")]
    recording: Recording,
    /// What is to be begun again.
    #[cfg(feature = "log")]
    open: RefCell<Vec<OpenEffect>>,
}

impl Driver {
    pub(super) fn new(host: Host, seed: [u8; 32]) -> Self {
        Self::around(host, Instance::new(seed))
    }

    /// Of an instance that has worked before.
    pub(super) fn around(host: Host, instance: Instance) -> Self {
        Self {
            host,
            instance: RefCell::new(instance),
            inbox: RefCell::default(),
            running: RefCell::default(),
            stopped: Cell::new(false),
            #[cfg(feature = "log")]
            recording: Recording::default(),
            #[cfg(feature = "log")]
            open: RefCell::default(),
        }
    }

    /// Keeps what is under way where a replay stopped, for [`Driver::begin_open`].
    #[cfg(feature = "log")]
    pub(super) fn keep_open(&self, open: Vec<OpenEffect>) {
        self.open.replace(open);
    }

    /// Begins what was under way, or says that it was cut off: of what can change
    /// something outside, nobody knows how far it came.
    #[cfg(feature = "log")]
    pub(super) fn begin_open(self: &Rc<Self>) -> Result<(), JsValue> {
        const CUT_OFF: &str = "cut off, because the run was forked here";
        let broken = || TransportError {
            kind: TransportErrorKind::Broken,
            message: CUT_OFF.to_owned(),
        };
        for OpenEffect {
            id,
            owner,
            kind,
            delivered,
        } in self.open.take()
        {
            let end = match (&kind, delivered) {
                (EffectKind::Exec { .. }, Delivered::Cancelled) => {
                    OutcomeKind::ExecEnd(cancelled_command())
                }
                (_, Delivered::Cancelled) => OutcomeKind::Cancelled,
                (EffectKind::Http(_), Delivered::Part) => OutcomeKind::HttpFailed(broken()),
                (EffectKind::Exec { .. }, _) => OutcomeKind::ExecFailed(EnvironmentError::new(
                    EnvironmentErrorKind::Io,
                    CUT_OFF,
                )),
                (_, Delivered::Nothing | Delivered::Part) => {
                    let owner = owner.into();
                    self.start(Effect { id, owner, kind })?;
                    continue;
                }
            };
            self.inbox.borrow_mut().push(Outcome { id, kind: end });
        }
        self.wake();
        Ok(())
    }

    /// Records everything from now on; to be called first.
    #[cfg(feature = "log")]
    pub(super) fn record(mut self, recording: Recording) -> Self {
        self.recording = recording;
        self
    }

    /// The log of the instance.
    #[cfg(feature = "log")]
    pub(super) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Makes a call.
    pub(super) fn call(&self, call: InstanceCall) -> Result<InstanceReply, CallError> {
        let noted = self.noted(|| call.clone());
        let reply = self.instance.borrow_mut().call(call);
        self.note(noted);
        reply
    }

    /// Opens a session.
    pub(super) fn open(
        &self,
        environment: u32,
        config: &str,
        record: Option<&str>,
    ) -> Result<Session, SessionError> {
        // What is no JSON is refused, then as in a replay.
        let value = |json: &str| serde_json::from_str(json).unwrap_or_default();
        let call = || InstanceCall::OpenSession {
            environment,
            config: value(config),
            record: record.map(value),
        };
        self.opened(call, |instance| {
            instance.open_from_json(environment, config, record)
        })
    }

    /// Opens a saved session.
    pub(super) fn open_saved(
        &self,
        environment: u32,
        saved: Bytes,
        settings: Value,
    ) -> Result<Session, SessionError> {
        let call = || InstanceCall::OpenSavedSession {
            environment,
            saved: saved.clone(),
            settings: settings.clone(),
        };
        self.opened(call, |instance| {
            instance.open_saved_session(environment, &saved, &settings)
        })
    }

    /// Opens a session by `open`, which is `call`.
    fn opened(
        &self,
        call: impl FnOnce() -> InstanceCall,
        open: impl FnOnce(&mut Instance) -> Result<Session, SessionError>,
    ) -> Result<Session, SessionError> {
        let noted = self.noted(call);
        let session = open(&mut self.instance.borrow_mut());
        self.note(noted);
        self.wake();
        session
    }

    /// A session as a file.
    pub(super) fn save(&self, session: &Session) -> Result<Bytes, SessionError> {
        self.instance.borrow().save_session(session)
    }

    /// Makes a call on a session. It does not borrow the instance: a session of one
    /// that has failed still has its history.
    pub(super) fn ask(
        &self,
        session: &Session,
        ask: SessionCall,
    ) -> Result<SessionReply, SessionError> {
        let noted = self.noted(|| InstanceCall::Session {
            session: session.id().to_string(),
            ask: ask.clone(),
        });
        let is_question = ask.is_question();
        let reply = session.call(ask);
        self.note(noted);
        if !is_question {
            self.wake();
        }
        reply
    }

    /// A call for the log, if there is one.
    fn noted(&self, call: impl FnOnce() -> InstanceCall) -> Option<InstanceCall> {
        #[cfg(feature = "log")]
        let is_on = self.recording.is_on();
        #[cfg(not(feature = "log"))]
        let is_on = false;
        is_on.then(call).filter(|call| !call.is_question())
    }

    fn note(&self, call: Option<InstanceCall>) {
        #[cfg(feature = "log")]
        if let Some(call) = &call {
            self.recording.call(call);
        }
        #[cfg(not(feature = "log"))]
        let _ = call;
    }

    /// Makes a call whose work a step does, and asks for that.
    pub(super) fn tell(&self, call: InstanceCall) -> Result<InstanceReply, CallError> {
        let reply = self.call(call);
        self.wake();
        reply
    }

    /// Looks at the instance.
    #[cfg(feature = "log")]
    pub(super) fn look<T>(&self, look: impl FnOnce(&Instance) -> T) -> T {
        look(&self.instance.borrow())
    }

    /// Asks for a step.
    pub(super) fn wake(&self) {
        if !self.stopped.get() {
            // A host whose `wake` throws cannot be helped from here.
            let _ = self.host.wake();
        }
    }

    /// One step; returns whether the next one should follow at once.
    pub(super) fn step(self: &Rc<Self>, now_ms: u64) -> Result<bool, JsValue> {
        let outcomes = self.inbox.take();
        #[cfg(feature = "log")]
        let noted = self.recording.is_on().then(|| outcomes.clone());
        // Nothing below calls JavaScript while the instance is borrowed.
        let step = self.instance.borrow_mut().step(now_ms, outcomes);
        #[cfg(feature = "log")]
        if let Some(outcomes) = noted {
            self.recording.step(now_ms, &outcomes, &step);
        }
        for LogLine { log, line } in &step.log {
            self.host.log_line(*log, line)?;
        }
        for effect in step.effects {
            self.start(effect)?;
        }
        self.report_events(&step.events)?;
        if !step.reports.is_empty() {
            let reports = Array::new();
            for report in step.reports {
                reports.push(&convert::report(report)?);
            }
            self.host.reports(&reports)?;
        }
        Ok(step.busy)
    }

    /// Whether it was given up.
    #[cfg(feature = "sandbox")]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Cancels everything and goes silent. For an instance that is given up.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
        for call in self.running.take().into_values() {
            call.cancel();
        }
    }

    /// Hands in a streamed outcome of effect `id`, if that is still under way.
    pub(super) fn stream(&self, id: u64, kind: OutcomeKind) {
        if self.running.borrow().contains_key(&id) {
            self.inbox.borrow_mut().push(Outcome { id, kind });
            self.wake();
        }
    }

    /// One crossing per session and step: neighbours of one session travel as
    /// one JSON array.
    fn report_events(&self, events: &[SessionEvent]) -> Result<(), JsValue> {
        for batch in events.chunk_by(|a, b| a.session_id == b.session_id) {
            let mut json = String::from("[");
            for (index, event) in batch.iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                json.push_str(&String::from_utf8_lossy(&event.json));
            }
            json.push(']');
            self.host.events(&batch[0].session_id, &json)?;
        }
        Ok(())
    }

    /// Hands in the final outcome, unless the effect already had one.
    pub(super) fn finish(&self, id: u64, kind: OutcomeKind) {
        let call = self.running.borrow_mut().remove(&id);
        if call.is_some() {
            self.inbox.borrow_mut().push(Outcome { id, kind });
            self.wake();
        }
    }
}

/// One effect under way.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) id: u64,
    pub(super) owner: Rc<str>,
    pub(super) driver: Rc<Driver>,
    pub(super) cancel: Cancel,
    pub(super) abort: AbortController,
}

impl Call {
    pub(super) fn host(&self) -> &Host {
        &self.driver.host
    }

    /// Fires when the effect is cancelled.
    pub(super) fn signal(&self) -> AbortSignal {
        self.abort.signal()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Hands in a streamed outcome.
    pub(super) fn stream(&self, kind: OutcomeKind) {
        self.driver.stream(self.id, kind);
    }

    /// `work`, or `None` as soon as the effect is cancelled: for work that
    /// leaves nothing half done when it is dropped.
    pub(super) async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), self.cancel.cancelled()).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(_) => None,
        }
    }

    pub(super) fn cancel(&self) {
        self.abort.abort();
        self.cancel.cancel();
    }
}

/// How a command ended that was cancelled and said nothing about its end.
pub(super) fn cancelled_command() -> ExecStatus {
    ExecStatus {
        // As a shell reports a command ended by SIGINT.
        exit_code: 130,
        cancelled: true,
        ..ExecStatus::default()
    }
}
