//! `NativeCore`: the core as a Rust library, on a separate thread.
//!
//! The same code as the component without the seal: no memory limit, no epoch,
//! no sandbox. An instance cannot change threads, so it lives on one, and each
//! call travels there and back. Tests run the same cases over both.

use std::sync::mpsc;

use hermitcrab::effect::Outcome;
use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind};
use hermitcrab::memory::EndReason;
use hermitcrab::session::{Instance, InstanceCall, InstanceReply};

use crate::core::{
    CallResult, Core, CoreEffect, CoreError, CoreEvent, CoreFailure, CoreReport, CoreStep,
};

type Call = Box<dyn FnOnce(&mut Instance) + Send>;

/// One instance of the core as a library.
#[derive(Debug)]
pub struct NativeCore {
    calls: mpsc::Sender<Call>,
}

impl NativeCore {
    /// Starts an instance whose every random number follows from `seed`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(seed: [u8; 32]) -> CallResult<Self> {
        let (calls, inbox) = mpsc::channel::<Call>();
        std::thread::Builder::new()
            .name("hermitcrab-core".to_owned())
            .spawn(move || {
                let mut instance = Instance::new(seed);
                for call in inbox {
                    call(&mut instance);
                }
            })
            .map_err(|error| failed(&format!("its thread cannot be started: {error}")))?;
        Ok(Self { calls })
    }

    /// Makes a call on the thread and waits for its result; a panic there ends
    /// the thread, and with it the instance.
    fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Instance) -> CallResult<T> + Send + 'static,
    ) -> CallResult<T> {
        let (reply, result) = mpsc::sync_channel(1);
        let call: Call = Box::new(move |instance| {
            let _ = reply.send(call(instance));
        });
        self.calls
            .send(call)
            .map_err(|_| failed("it has panicked"))?;
        result.recv().map_err(|_| failed("it has panicked"))?
    }
}

fn failed(why: &str) -> CoreError {
    CoreError::Failed(CoreFailure {
        code: "core_trapped",
        message: format!("the native core failed: {why}"),
        ends: EndReason::Failed,
    })
}

impl Core for NativeCore {
    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep> {
        self.run(move |instance| {
            let step = instance.step(now_ms, outcomes);
            Ok(CoreStep {
                events: step
                    .events
                    .into_iter()
                    .map(|event| CoreEvent {
                        session: (&*event.session_id).into(),
                        json: event.json,
                    })
                    .collect(),
                reports: step
                    .reports
                    .into_iter()
                    .map(|report| CoreReport {
                        job: (&*report.job).into(),
                        kind: report.kind,
                    })
                    .collect(),
                effects: step
                    .effects
                    .into_iter()
                    .map(|effect| CoreEffect {
                        id: effect.id,
                        owner: (&*effect.owner).into(),
                        kind: effect.kind,
                    })
                    .collect(),
                log: step.log,
                busy: step.busy,
            })
        })
    }

    fn call(&mut self, call: InstanceCall) -> CallResult<InstanceReply> {
        if call.adds_sandbox() || matches!(call, InstanceCall::EndCommands { .. }) {
            return Err(CoreError::Environment(EnvironmentError::new(
                EnvironmentErrorKind::Unsupported,
                "the native core has no sandbox; use the component",
            )));
        }
        self.run(move |instance| Ok(instance.call(call)?))
    }
}
