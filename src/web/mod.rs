//! The web face: wasm-bindgen exports and the driver that performs effects
//! with what JavaScript offers. It converts and delegates; what a session or an
//! environment does is decided elsewhere, and keys never come here.
//!
//! The JavaScript in `js/` is the only user of these exports; its API is the
//! public one. Calls that cannot be carried out throw `{kind, message}`.
//!
//! An export that gives JavaScript an object returns a `Result`, also where
//! nothing can fail. V8 takes a call that returns one reference and nothing else
//! into the code of its caller, and up to Node 22 ends the process where that
//! code is given up in the middle of the call (`tests/node/exports.test.mjs`).

#[cfg(feature = "sandbox")]
mod containment;
mod convert;
mod driver;
mod host;
mod http;
mod job;
mod model;
mod perform;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(feature = "sandbox")]
mod script;
#[cfg(feature = "sandbox")]
mod terminal;

use std::rc::Rc;

use bytes::Bytes;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use self::driver::Driver;
use self::host::Host;
use crate::effect::OutcomeKind;
use crate::session::{
    Instance, Session, SessionCall, SessionError, SessionErrorKind, SessionReply,
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
    #[cfg(feature = "sandbox")]
    terminals: terminal::Terminals,
}

#[wasm_bindgen]
impl Core {
    /// An instance whose random numbers follow from the 32 bytes of `seed`.
    #[wasm_bindgen(constructor)]
    pub fn new(host: Host, seed: &[u8]) -> Result<Core, JsValue> {
        let seed = seed
            .try_into()
            .map_err(|_| invalid("the seed must be 32 bytes"))?;
        #[cfg(feature = "sandbox")]
        containment::offer(&host);
        Ok(Self {
            driver: Driver::new(host, seed),
            #[cfg(feature = "sandbox")]
            terminals: terminal::Terminals::default(),
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
        Ok(self
            .driver
            .with(|instance| instance.add_remote_environment(info)))
    }

    /// See [`Instance::make_read_only`].
    #[wasm_bindgen(js_name = makeReadOnly)]
    pub fn make_read_only(&self, environment: u32, commands: bool) -> Result<(), JsValue> {
        self.driver
            .with(|instance| instance.make_read_only(environment, commands))
            .map_err(thrown)
    }

    /// See [`Instance::log_calls`]; the lines go to the host's `logLine`.
    #[wasm_bindgen(js_name = logCalls)]
    pub fn log_calls(&self, environment: u32) -> Result<u32, JsValue> {
        self.driver
            .with(|instance| instance.log_calls(environment))
            .map_err(thrown)
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
        let open = |instance: &mut Instance| {
            instance.open_from_json(environment, config, record.as_deref())
        };
        let session = self.driver.with(open).map_err(thrown)?;
        Ok(CoreSession {
            session,
            driver: self.driver.clone(),
        })
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

    /// Makes a call: `call` is an object, see [`SessionCall`], without what is said
    /// to a model. That is `content`, a string or a list of parts, see
    /// [`convert::content`]. Returns what answers the call, as plain data.
    pub fn call(&self, call: JsValue, content: JsValue) -> Result<JsValue, JsValue> {
        let mut call: SessionCall = convert::from_object(&call).map_err(invalid)?;
        if let Some(said) = call.content_mut() {
            *said = convert::content(&content).map_err(invalid)?;
        }
        let is_question = call.is_question();
        let reply = self.session.call(call).map_err(thrown);
        if !is_question {
            self.driver.wake();
        }
        Ok(match reply? {
            SessionReply::Done => JsValue::UNDEFINED,
            SessionReply::State(state) => convert::to_object(&state),
            SessionReply::Number(number) => (number as f64).into(),
            SessionReply::Flag(flag) => flag.into(),
            SessionReply::Agents(agents) => convert::to_object(&agents),
            SessionReply::Names(names) => convert::to_object(&names),
            SessionReply::Json(json) => convert::parsed(&json),
        })
    }
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

/// As [`convert::copied`], with what an export throws.
fn copied(array: &Uint8Array) -> Result<Vec<u8>, JsValue> {
    convert::copied(array).map_err(|error| convert::to_object(&error))
}

fn invalid(message: impl Into<String>) -> JsValue {
    thrown(SessionError::new(SessionErrorKind::InvalidInput, message))
}
