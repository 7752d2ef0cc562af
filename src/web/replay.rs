//! The replay exports: a log is run again in this core, and what stands where it
//! stopped can go on live.

use std::io::Cursor;
use std::rc::Rc;

use bytes::Bytes;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::convert::Record;
use super::driver::Driver;
use super::host::Host;
use super::recording::Recording;
use super::{Core, CoreSession, convert, copied, invalid, refused, thrown};
use crate::effect::Outcome;
use crate::environment::EnvironmentInfo;
use crate::log::{LogReader, Output, Progress, Replay as Repeat, ReplayError, Replayable, Stop};
use crate::session::{
    CallError, Instance, InstanceCall, InstanceReply, SessionError, SessionErrorKind, Step,
};

/// An instance with the log of what it repeats.
struct Repeated {
    instance: Instance,
    recording: Recording,
}

impl Replayable for Repeated {
    type Step = Step;
    type Error = CallError;

    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> Result<Step, CallError> {
        let noted = self.recording.is_on().then(|| outcomes.clone());
        let step = self.instance.step(now_ms, outcomes);
        if let Some(outcomes) = noted {
            self.recording.step(now_ms, &outcomes, &step);
        }
        Ok(step)
    }

    fn call(&mut self, call: InstanceCall) -> Result<InstanceReply, CallError> {
        let is_noted = self.recording.is_on() && !call.is_question();
        let noted = is_noted.then(|| call.clone());
        let reply = self.instance.call(call);
        if let Some(call) = noted {
            self.recording.call(&call);
        }
        reply
    }

    fn is_refusal(_: &CallError) -> bool {
        true
    }

    fn output(step: &Step) -> Output<'_> {
        step.into()
    }
}

/// A log that is run again.
#[wasm_bindgen]
pub struct Replay {
    repeat: Repeat<Cursor<Vec<u8>>, Repeated>,
    stop: Option<Stop>,
}

#[wasm_bindgen]
impl Replay {
    /// Begins to repeat `log`. With `until`, it stops once the first session has so
    /// many answers. With `record`, it writes a log of what it repeats. Of `host` only
    /// `contain` is called.
    #[wasm_bindgen(constructor)]
    pub fn new(
        host: &Host,
        log: &Uint8Array,
        until: Option<u32>,
        record: bool,
    ) -> Result<Replay, JsValue> {
        #[cfg(feature = "sandbox")]
        super::containment::offer(host);
        #[cfg(not(feature = "sandbox"))]
        let _ = host;
        let unusable = |error: crate::log::LogError| invalid(error.to_string());
        let log = LogReader::open(Cursor::new(copied(log)?)).map_err(unusable)?;
        let seed = log.seed().map_err(unusable)?;
        let repeated = Repeated {
            instance: Instance::new(seed),
            recording: match record {
                true => Recording::begin(&seed),
                false => Recording::default(),
            },
        };
        let mut repeat = Repeat::begin(log, repeated);
        if let Some(round) = until {
            repeat.stop_at(round);
        }
        Ok(Self { repeat, stop: None })
    }

    /// Repeats up to so many steps. Returns `{events, done}`: the text of a JSON array
    /// of the events of all sessions, and whether it is where it was to go.
    pub fn advance(&mut self, steps: u32) -> Result<JsValue, JsValue> {
        let mut events = String::from("[");
        let mut done = false;
        for _ in 0..steps {
            let repeated = match self.repeat.advance().map_err(differs)? {
                Progress::Step(step) => vec![step],
                Progress::Stopped(stop, steps) => {
                    self.stop = Some(stop);
                    done = true;
                    steps
                }
                Progress::End => {
                    done = true;
                    Vec::new()
                }
            };
            for event in repeated.iter().flat_map(|step| &step.events) {
                if events.len() > 1 {
                    events.push(',');
                }
                events.push_str(&String::from_utf8_lossy(&event.json));
            }
            if done {
                break;
            }
        }
        events.push(']');
        let record = Record::new().text("events", &events);
        let record = record.value("done", &done.into());
        Ok(record.object().into())
    }

    /// Where it stands: `{version, hash, steps, rounds, closed, session, environment,
    /// round, paused, sandboxes, remote}`; what there is not is absent.
    pub fn place(&self) -> Result<JsValue, JsValue> {
        let core = &self.repeat.header().core;
        let (session, environment) = match &self.stop {
            Some(stop) => (Some(&*stop.session), Some(stop.environment)),
            None => (self.repeat.session(), self.repeat.environment()),
        };
        let mut record = Record::new()
            .text("version", &core.version)
            .text("hash", &core.hash)
            .number("steps", self.repeat.steps() as f64)
            .number("rounds", self.repeat.rounds() as f64)
            .value("closed", &self.repeat.is_closed().into())
            .maybe_text("session", session)
            .value("sandboxes", &convert::to_object(&self.repeat.sandboxes()));
        if let Some(number) = environment {
            record = record.number("environment", f64::from(number));
        }
        if let Some(stop) = &self.stop {
            record = record
                .number("round", f64::from(stop.round))
                .value("paused", &stop.is_paused.into());
        }
        let remote: Vec<(&u32, &EnvironmentInfo)> = self.repeat.remote().iter().collect();
        let record = record.value("remote", &convert::to_object(&remote));
        Ok(record.object().into())
    }

    /// Makes a call that changes nothing on the first session, as
    /// [`CoreSession::call`] does.
    pub fn ask(&mut self, call: JsValue) -> Result<JsValue, JsValue> {
        let ask: crate::session::SessionCall = convert::from_object(&call).map_err(invalid)?;
        let id = self.repeat.session().unwrap_or_default().to_owned();
        let session = self.repeat.core().instance.session_of(&id);
        let reply = session.ok_or_else(|| no_session(&id))?.call(ask);
        super::answered(reply.map_err(thrown)?)
    }

    /// The working directory of a sandbox as a tar archive.
    #[wasm_bindgen(js_name = exportTar)]
    pub fn export_tar(&mut self, environment: u32) -> Result<Vec<u8>, JsValue> {
        let call = InstanceCall::ExportTar { environment };
        match self.repeat.core().instance.call(call).map_err(refused)? {
            InstanceReply::Archive(archive) => Ok(archive.into()),
            _ => Err(super::out_of_place()),
        }
    }

    /// The last event of the first session, as JSON.
    #[wasm_bindgen(js_name = lastEvent)]
    pub fn last_event(&self) -> Option<String> {
        let last: Bytes = self.repeat.last_event();
        (!last.is_empty()).then(|| String::from_utf8_lossy(&last).into_owned())
    }
}

#[wasm_bindgen]
impl Core {
    /// A core that goes on live from where `replay` stands. What is under way there is
    /// begun again once [`Core::go_on`] is called.
    #[wasm_bindgen(js_name = after)]
    pub fn after(host: Host, replay: Replay) -> Result<Core, JsValue> {
        #[cfg(feature = "sandbox")]
        super::containment::offer(&host);
        let (repeated, open) = replay.repeat.into_parts();
        let driver = Driver::around(host, repeated.instance).record(repeated.recording);
        driver.keep_open(open);
        Ok(Self {
            driver: Rc::new(driver),
        })
    }

    /// Begins what was under way where a replay stopped.
    #[wasm_bindgen(js_name = goOn)]
    pub fn go_on(&self) -> Result<(), JsValue> {
        self.driver.begin_open()
    }

    /// A session that was opened before the core was taken over.
    #[wasm_bindgen(js_name = sessionOf)]
    pub fn session_of(&self, id: &str) -> Result<CoreSession, JsValue> {
        let session = self.driver.look(|instance| instance.session_of(id));
        Ok(CoreSession {
            session: session.ok_or_else(|| no_session(id))?,
            driver: self.driver.clone(),
        })
    }
}

fn no_session(id: &str) -> JsValue {
    let message = match id {
        "" => "the log holds no session".to_owned(),
        id => format!("session {id} is over"),
    };
    thrown(SessionError::new(SessionErrorKind::NotFound, message))
}

/// What a replay throws: `{kind, message}`, and of a difference `{step, round, what,
/// recorded, replayed}`, too.
fn differs(error: ReplayError<CallError>) -> JsValue {
    let message = match &error {
        ReplayError::Log(error) => return invalid(error.to_string()),
        ReplayError::NoSuchRound(_) => return invalid(error.to_string()),
        ReplayError::Core(step, error) => format!("step {step}: {error}"),
        ReplayError::Differs(difference) => difference.to_string(),
    };
    let mut record = Record::new()
        .text("kind", "differs")
        .text("message", &message);
    if let ReplayError::Differs(difference) = error {
        record = record
            .number("step", difference.step as f64)
            .number("round", difference.round as f64)
            .text("what", &difference.what)
            .text("recorded", &difference.recorded)
            .text("replayed", &difference.replayed);
    }
    record.object().into()
}
