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
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use self::driver::Driver;
use self::host::Host;
use crate::effect::OutcomeKind;
use crate::session::{
    AgentCall, Instance, Session, SessionConfig, SessionError, SessionErrorKind, SessionRecord,
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
    sandboxes: sandbox::Sandboxes,
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
            sandboxes: sandbox::Sandboxes::default(),
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
        let config = SessionConfig::from_json(config).map_err(thrown)?;
        let record = record.map(|json| SessionRecord::from_json(&json));
        let record = record.transpose().map_err(thrown)?;
        let open = |instance: &mut Instance| match record {
            None => instance.open_session(environment, config),
            Some(record) => instance.open_recorded_session(environment, config, record),
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

    /// Current state, such as `IDLE`.
    #[wasm_bindgen(getter)]
    pub fn state(&self) -> Result<JsValue, JsValue> {
        Ok(convert::to_object(&self.session.state()))
    }

    /// See [`Session::submit`]; `input` is a string or a list of parts, see
    /// [`convert::content`].
    pub fn submit(&self, input: JsValue) -> Result<(), JsValue> {
        let input = convert::content(&input).map_err(invalid)?;
        self.call(|session| session.submit(input))
    }

    /// See [`Session::answer`].
    pub fn answer(&self, input: JsValue) -> Result<(), JsValue> {
        let input = convert::content(&input).map_err(invalid)?;
        self.call(|session| session.answer(input))
    }

    /// See [`Session::resume`].
    pub fn resume(&self) -> Result<(), JsValue> {
        self.call(Session::resume)
    }

    /// See [`Session::steer`].
    pub fn steer(&self, message: JsValue) -> Result<f64, JsValue> {
        let message = convert::content(&message).map_err(invalid)?;
        self.call(|session| session.steer(message))
            .map(|number| number as f64)
    }

    /// See [`Session::follow_up`].
    #[wasm_bindgen(js_name = followUp)]
    pub fn follow_up(&self, message: JsValue) -> Result<(), JsValue> {
        let message = convert::content(&message).map_err(invalid)?;
        self.call(|session| session.follow_up(message))
    }

    /// See [`Session::add_system_turn`].
    #[wasm_bindgen(js_name = addSystemTurn)]
    pub fn add_system_turn(&self, content: String) -> Result<(), JsValue> {
        self.call(|session| session.add_system_turn(content))
    }

    /// See [`Session::interrupt`].
    pub fn interrupt(&self) -> Result<(), JsValue> {
        self.call(Session::interrupt)
    }

    /// See [`Session::abort`].
    pub fn abort(&self) {
        self.session.abort();
        self.driver.wake();
    }

    /// See [`Session::close`].
    pub fn close(&self) -> Result<(), JsValue> {
        self.call(Session::close)
    }

    /// The configuration in force, as an object.
    pub fn config(&self) -> Result<JsValue, JsValue> {
        Ok(convert::to_object(&self.session.config()))
    }

    /// See [`Session::configure`]; `patch` is an object.
    pub fn configure(&self, patch: JsValue) -> Result<(), JsValue> {
        let patch = convert::from_object(&patch)
            .map_err(|error| invalid(format!("invalid session configuration: {error}")))?;
        self.call(|session| session.configure(&patch))
    }

    /// See [`Session::register_tool`]; `definition` is an object.
    #[wasm_bindgen(js_name = registerTool)]
    pub fn register_tool(&self, definition: JsValue) -> Result<(), JsValue> {
        let definition = convert::from_object(&definition).map_err(|error| {
            thrown(SessionError::new(
                SessionErrorKind::InvalidTool,
                format!("invalid tool: {error}"),
            ))
        })?;
        self.call(|session| session.register_tool(definition))
    }

    /// See [`Session::unregister_tool`].
    #[wasm_bindgen(js_name = unregisterTool)]
    pub fn unregister_tool(&self, name: &str) -> Result<bool, JsValue> {
        self.call(|session| session.unregister_tool(name))
    }

    /// The subagents: an array of objects, see [`crate::session::AgentInfo`].
    pub fn agents(&self) -> Result<JsValue, JsValue> {
        Ok(convert::to_object(&self.session.agents()))
    }

    /// The turns of a subagent so far, as [`CoreSession::history`] gives them.
    #[wasm_bindgen(js_name = agentHistory)]
    pub fn agent_history(&self, agent: &str) -> Result<JsValue, JsValue> {
        let turns = self.session.agent_history(agent).map_err(thrown)?;
        Ok(convert::to_object(&turns))
    }

    /// See [`AgentCall::Steer`]; `message` as in [`CoreSession::submit`].
    #[wasm_bindgen(js_name = steerAgent)]
    pub fn steer_agent(&self, agent: &str, message: JsValue) -> Result<(), JsValue> {
        let message = convert::content(&message).map_err(invalid)?;
        self.call(|session| session.tell_agent(agent, AgentCall::Steer(message)))
    }

    /// See [`AgentCall::Interrupt`].
    #[wasm_bindgen(js_name = interruptAgent)]
    pub fn interrupt_agent(&self, agent: &str) -> Result<(), JsValue> {
        self.call(|session| session.tell_agent(agent, AgentCall::Interrupt))
    }

    /// See [`AgentCall::Close`].
    #[wasm_bindgen(js_name = closeAgent)]
    pub fn close_agent(&self, agent: &str) -> Result<(), JsValue> {
        self.call(|session| session.tell_agent(agent, AgentCall::Close))
    }

    /// Names of the tools that the model is offered.
    #[wasm_bindgen(js_name = toolNames)]
    pub fn tool_names(&self) -> Result<Array, JsValue> {
        let names = self.session.tool_names();
        Ok(names.iter().map(|name| JsValue::from_str(name)).collect())
    }

    /// The turns so far: an array of objects, see [`crate::session::Turn`].
    pub fn history(&self) -> Result<JsValue, JsValue> {
        Ok(convert::to_object(&self.session.history()))
    }

    /// The session as it is now: the JSON of a [`SessionRecord`].
    pub fn record(&self) -> String {
        // Turns are strings, numbers and JSON values: they always serialise.
        serde_json::to_string(&self.session.record()).unwrap_or_default()
    }

    fn call<T>(
        &self,
        call: impl FnOnce(&Session) -> Result<T, SessionError>,
    ) -> Result<T, JsValue> {
        let result = call(&self.session).map_err(thrown);
        self.driver.wake();
        result
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
