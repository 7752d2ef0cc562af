//! The web face: wasm-bindgen exports and the driver that performs effects
//! with what JavaScript offers. It converts and delegates; what a session or an
//! environment does is decided elsewhere, and keys never come here.
//!
//! The JavaScript in `js/` is the only user of these exports; its API is the
//! public one. Calls that cannot be carried out throw `{kind, message}`.
//!
//! Exports that return objects return a `Result`, even if nothing can fail: V8 (Node ≤ 22)
//! ends the process when an inlined export that returns a bare reference is
//! deoptimised (`tests/node/exports.test.mjs`).

#[cfg(feature = "sandbox")]
mod containment;
mod convert;
mod driver;
mod host;
mod http;
mod job;
mod model;
mod perform;
#[cfg(feature = "log")]
mod recording;
#[cfg(feature = "log")]
mod replay;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "sandbox")]
mod script;
mod start;
#[cfg(feature = "sandbox")]
mod terminal;

use std::rc::Rc;

use bytes::Bytes;
use js_sys::Uint8Array;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use self::driver::Driver;
use self::host::Host;
use crate::effect::OutcomeKind;
use crate::session::{
    CallError, InstanceCall, InstanceReply, Session, SessionCall, SessionError, SessionErrorKind,
    SessionReply, saved_config,
};

/// Runs once when the module is loaded: a panic becomes a JavaScript error
/// that says what happened, instead of a bare `unreachable`.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        wasm_bindgen::throw_str(&format!("the core panicked: {message}"));
    }));
}

/// One instance with its driver.
#[wasm_bindgen]
pub struct Core {
    driver: Rc<Driver>,
}

#[wasm_bindgen]
impl Core {
    /// An instance whose random numbers follow from the 32 bytes of `seed`. With
    /// `record` it writes a log, where the core can.
    #[wasm_bindgen(constructor)]
    pub fn new(host: Host, seed: &[u8], record: bool) -> Result<Core, JsValue> {
        let seed = seed
            .try_into()
            .map_err(|_| invalid("the seed must be 32 bytes"))?;
        #[cfg(feature = "sandbox")]
        containment::offer(&host);
        let driver = Driver::new(host, seed);
        #[cfg(feature = "log")]
        let driver = match record {
            true => driver.record(recording::Recording::begin(&seed)),
            false => driver,
        };
        #[cfg(not(feature = "log"))]
        let _ = record;
        Ok(Self {
            driver: Rc::new(driver),
        })
    }

    /// Steps the instance at `now` (ms since 1970-01-01 UTC). Returns whether
    /// work remains; then call it again after a macrotask.
    pub fn step(&self, now: f64) -> Result<bool, JsValue> {
        self.driver.step(now as u64)
    }

    /// Cancels everything under way and calls the host no more.
    pub fn stop(&self) {
        self.driver.stop();
    }

    /// Adds an environment that the host answers for; `info` is an object with
    /// the fields of [`crate::environment::EnvironmentInfo`].
    #[wasm_bindgen(js_name = addEnvironment)]
    pub fn add_environment(&self, info: JsValue) -> Result<u32, JsValue> {
        let info = convert::from_object(&info)
            .map_err(|error| invalid(format!("invalid environment: {error}")))?;
        self.small_number(InstanceCall::AddRemoteEnvironment { info })
    }

    /// See [`InstanceCall::MakeReadOnly`].
    #[wasm_bindgen(js_name = makeReadOnly)]
    pub fn make_read_only(&self, environment: u32, commands: bool) -> Result<(), JsValue> {
        self.carry_out(InstanceCall::MakeReadOnly {
            environment,
            allow_commands: commands,
        })
    }

    /// See [`InstanceCall::LogCalls`]; the lines go to the host's `logLine`.
    #[wasm_bindgen(js_name = logCalls)]
    pub fn log_calls(&self, environment: u32) -> Result<u32, JsValue> {
        self.small_number(InstanceCall::LogCalls { environment })
    }

    /// Opens a session; `config` is the JSON of a [`SessionConfig`], `record`
    /// that of a [`SessionRecord`] to go on with.
    #[wasm_bindgen(js_name = openSession)]
    pub fn open_session(
        &self,
        environment: u32,
        config: &str,
        record: Option<String>,
    ) -> Result<CoreSession, JsValue> {
        let session = self.driver.open(environment, config, record.as_deref());
        CoreSession::of(&self.driver, session)
    }

    /// Opens a saved session; `settings` is the JSON of those that are other than they
    /// were.
    #[wasm_bindgen(js_name = openSaved)]
    pub fn open_saved(
        &self,
        environment: u32,
        saved: &Uint8Array,
        settings: &str,
    ) -> Result<CoreSession, JsValue> {
        let saved = copied(saved)?.into();
        let session = self.driver.open_saved(environment, saved, json(settings)?);
        CoreSession::of(&self.driver, session)
    }

    /// What was written of the log since the last time; with `flush`, all that was
    /// noted so far. Empty for a core that records nothing.
    #[cfg(feature = "log")]
    #[wasm_bindgen(js_name = takeLog)]
    pub fn take_log(&self, flush: bool) -> Vec<u8> {
        self.driver.recording().take(flush)
    }

    /// Closes the log.
    #[cfg(feature = "log")]
    #[wasm_bindgen(js_name = endLog)]
    pub fn end_log(&self) {
        self.driver.recording().end();
    }

    /// Output of the command that effect `id` runs; `stream` is `stdout` or
    /// `stderr`. Ignored once the effect is over.
    #[wasm_bindgen(js_name = execOutput)]
    pub fn exec_output(&self, id: f64, stream: &str, data: &Uint8Array) -> Result<(), JsValue> {
        let kind = OutcomeKind::ExecOutput {
            stream: convert::output_stream(stream),
            data: Bytes::from(copied(data)?),
        };
        self.driver.stream(id as u64, kind);
        Ok(())
    }

    /// Progress of the tool that effect `id` calls. Ignored once it is over.
    #[wasm_bindgen(js_name = toolOutput)]
    pub fn tool_output(&self, id: f64, text: String) {
        self.driver.stream(id as u64, OutcomeKind::ToolOutput(text));
    }
}

impl Core {
    /// Makes a call that answers nothing.
    fn carry_out(&self, call: InstanceCall) -> Result<(), JsValue> {
        self.driver.tell(call).map(drop).map_err(refused)
    }

    /// Makes a call that answers the number of an environment or of a log.
    fn small_number(&self, call: InstanceCall) -> Result<u32, JsValue> {
        match self.driver.tell(call).map_err(refused)? {
            InstanceReply::Number(number) => Ok(number as u32),
            _ => Err(out_of_place()),
        }
    }

    /// Makes a call that answers the id of what it begins.
    fn begun(&self, call: InstanceCall) -> Result<String, JsValue> {
        match self.driver.tell(call).map_err(refused)? {
            InstanceReply::Id(id) => Ok(id),
            _ => Err(out_of_place()),
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.driver.stop();
    }
}

/// A session of a [`Core`].
#[wasm_bindgen]
pub struct CoreSession {
    session: Session,
    driver: Rc<Driver>,
}

#[wasm_bindgen]
impl CoreSession {
    /// Id of the session.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        self.session.id().to_string()
    }

    /// The session, and its sandbox if it works in one, as a file.
    pub fn save(&self) -> Result<Vec<u8>, JsValue> {
        let saved = self.driver.save(&self.session).map_err(thrown)?;
        Ok(saved.into())
    }

    /// Makes a call: `call` is an object, see [`SessionCall`], without what is said
    /// to a model. That is `content`, a string or a list of parts, see
    /// [`convert::content`]. Returns what answers the call, as plain data.
    pub fn call(&self, call: JsValue, content: JsValue) -> Result<JsValue, JsValue> {
        let mut call: SessionCall = convert::from_object(&call).map_err(invalid)?;
        if let Some(said) = call.content_mut() {
            *said = convert::content(&content).map_err(invalid)?;
        }
        let reply = self.driver.ask(&self.session, call).map_err(thrown)?;
        answered(reply)
    }
}

impl CoreSession {
    fn of(
        driver: &Rc<Driver>,
        session: Result<Session, SessionError>,
    ) -> Result<CoreSession, JsValue> {
        Ok(CoreSession {
            session: session.map_err(thrown)?,
            driver: driver.clone(),
        })
    }
}

/// The settings of a saved session, with those of `settings` in their places; both as
/// JSON objects.
#[wasm_bindgen(js_name = savedConfig)]
#[allow(unreachable_pub, reason = "wasm-bindgen exports public functions only")]
pub fn saved_config_of(saved: &Uint8Array, settings: &str) -> Result<JsValue, JsValue> {
    let config = saved_config(&copied(saved)?, &json(settings)?).map_err(thrown)?;
    Ok(convert::to_object(&config))
}

fn json(text: &str) -> Result<Value, JsValue> {
    serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
}

/// What answers a call on a session, as plain data.
fn answered(reply: SessionReply) -> Result<JsValue, JsValue> {
    Ok(match reply {
        SessionReply::Done => JsValue::UNDEFINED,
        SessionReply::State(state) => convert::to_object(&state),
        SessionReply::Number(number) => (number as f64).into(),
        SessionReply::Flag(flag) => flag.into(),
        SessionReply::Agents(agents) => convert::to_object(&agents),
        SessionReply::Names(names) => convert::to_object(&names),
        SessionReply::Json(json) => convert::parsed(&json),
    })
}

/// Where `provider`'s own API lives, for the credential that belongs there.
#[wasm_bindgen(js_name = providerUrl)]
#[allow(unreachable_pub, reason = "wasm-bindgen exports public functions only")]
pub fn provider_url(provider: &str) -> Option<String> {
    crate::llm::adapter(provider).map(|adapter| adapter.default_base_url().to_owned())
}

fn thrown(error: SessionError) -> JsValue {
    convert::session_error(&error)
}

fn refused(error: CallError) -> JsValue {
    match error {
        CallError::Refused(error) => thrown(error),
        CallError::Environment(error) => convert::to_object(&error),
    }
}

/// A call that answered something else than it promises.
fn out_of_place() -> JsValue {
    JsValue::from_str("the core answered something else than was asked")
}

/// As [`convert::copied`], with what an export throws.
fn copied(array: &Uint8Array) -> Result<Vec<u8>, JsValue> {
    convert::copied(array).map_err(|error| convert::to_object(&error))
}

fn invalid(message: impl Into<String>) -> JsValue {
    thrown(SessionError::new(SessionErrorKind::InvalidInput, message))
}
