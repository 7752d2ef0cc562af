//! The driver: steps the instance, starts its effects, collects their outcomes.
//! It decides nothing about sessions; it keeps the promise that every effect
//! gets exactly one final outcome, whatever the JavaScript side does.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use js_sys::Array;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{AbortController, AbortSignal};

use super::convert;
use super::host::Host;
use super::perform::perform;
use crate::effect::{Effect, EffectKind, Outcome, OutcomeKind};
use crate::environment::{Cancel, ExecStatus};
use crate::session::{Instance, LogLine, SessionEvent};
use crate::text::SortedMap;

/// How long a cancelled effect may take to end, in ms. The contract says
/// 2.5 s (DESIGN §2); timers are late by some ms.
const CANCEL_GRACE_MS: u32 = 2_400;

/// One instance and everything that is under way for it.
pub(super) struct Driver {
    host: Host,
    instance: RefCell<Instance>,
    inbox: RefCell<Vec<Outcome>>,
    running: RefCell<SortedMap<u64, Call>>,
    stopped: Cell<bool>,
}

impl Driver {
    pub(super) fn new(host: Host, seed: [u8; 32]) -> Rc<Self> {
        Rc::new(Self {
            host,
            instance: RefCell::new(Instance::new(seed)),
            inbox: RefCell::default(),
            running: RefCell::default(),
            stopped: Cell::new(false),
        })
    }

    /// Changes the instance and asks for a step.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Instance) -> T) -> T {
        let result = change(&mut self.instance.borrow_mut());
        self.wake();
        result
    }

    /// Looks at the instance.
    #[cfg(feature = "sandbox")]
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
        // Nothing below calls JavaScript while the instance is borrowed.
        let step = self.instance.borrow_mut().step(now_ms, outcomes);
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

    fn start(self: &Rc<Self>, effect: Effect) -> Result<(), JsValue> {
        if let EffectKind::Cancel { target } = effect.kind {
            let call = self.running.borrow().get(&target).cloned();
            if let Some(call) = call {
                call.cancel();
            }
            return Ok(());
        }
        let call = Call {
            id: effect.id,
            owner: effect.owner,
            cancel: Cancel::new(),
            abort: AbortController::new()?,
            driver: self.clone(),
        };
        self.running.borrow_mut().insert(call.id, call.clone());
        spawn_local(async move {
            let outcome = call.until_final(effect.kind).await;
            call.driver.finish(call.id, outcome);
        });
        Ok(())
    }

    /// Hands in the final outcome, unless the effect already had one.
    fn finish(&self, id: u64, kind: OutcomeKind) {
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
    cancel: Cancel,
    abort: AbortController,
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

    fn cancel(&self) {
        self.abort.abort();
        self.cancel.cancel();
    }

    /// Performs the effect; gives it up when it outlives its cancellation.
    async fn until_final(&self, kind: EffectKind) -> OutcomeKind {
        let is_command = matches!(kind, EffectKind::Exec { .. });
        let work = pin!(perform(self, kind));
        match select(work, pin!(self.overdue())).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) if is_command => OutcomeKind::ExecEnd(cancelled_command()),
            Either::Right(_) => OutcomeKind::Cancelled,
        }
    }

    async fn overdue(&self) {
        self.cancel.cancelled().await;
        Sleep::start(self.host(), f64::from(CANCEL_GRACE_MS)).await;
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

/// A timer of the host that is cleared when it is no longer awaited: a pending
/// timer would keep a Node process alive.
struct Sleep(Option<AbortController>);

impl Sleep {
    async fn start(host: &Host, ms: f64) {
        let sleep = Self(AbortController::new().ok());
        let Some(abort) = &sleep.0 else { return };
        if let Ok(promise) = host.sleep(ms, &abort.signal()) {
            let _ = JsFuture::from(promise).await;
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(abort) = &self.0 {
            abort.abort();
        }
    }
}
