//! Starts effects, and gives up those that outlive their cancellation.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::AbortController;

use super::driver::{Call, Driver, cancelled_command};
use super::host::Host;
use super::perform::perform;
use crate::effect::{Effect, EffectKind, OutcomeKind};
use crate::environment::Cancel;

/// How long a cancelled effect may take to end, in ms. The contract says 2.5 s;
/// timers are late by some ms.
const CANCEL_GRACE_MS: u32 = 2_400;

impl Driver {
    pub(super) fn start(self: &Rc<Self>, effect: Effect) -> Result<(), JsValue> {
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
}

impl Call {
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
