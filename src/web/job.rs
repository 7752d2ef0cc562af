//! Jobs: what a host does in an environment itself, outside of any session, or
//! for a tool that it runs.

use bytes::Bytes;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::{Core, convert, copied, invalid};
use crate::environment::{EnvironmentCall, ExecRequest};
use crate::session::{Action, InstanceCall};

#[wasm_bindgen]
impl Core {
    /// Starts a command; `request` is an object with the fields of
    /// [`ExecRequest`]. Returns the id of the job.
    #[wasm_bindgen(js_name = startExec)]
    pub fn start_exec(&self, environment: u32, request: JsValue) -> Result<String, JsValue> {
        let request = command(&request)?;
        self.begun(InstanceCall::StartExec {
            environment,
            request,
        })
    }

    /// Starts a call; `call` is an object `{call, …}` with the fields of an
    /// [`EnvironmentCall`], except that the content of a write is `content`.
    /// Returns the id of the job.
    #[wasm_bindgen(js_name = startCall)]
    pub fn start_call(
        &self,
        environment: u32,
        call: JsValue,
        content: Option<Uint8Array>,
    ) -> Result<String, JsValue> {
        let request = environment_call(&call, content)?;
        self.begun(InstanceCall::StartCall {
            environment,
            request,
        })
    }

    /// Starts a command for the tool that runs as `effect`, as
    /// [`Core::start_exec`] does; see [`crate::session::Instance::act`].
    #[wasm_bindgen(js_name = execForTool)]
    pub fn exec_for_tool(&self, effect: f64, request: JsValue) -> Result<String, JsValue> {
        self.act(effect, Action::Exec(command(&request)?))
    }

    /// Starts a call for the tool that runs as `effect`, as
    /// [`Core::start_call`] does; see [`crate::session::Instance::act`].
    #[wasm_bindgen(js_name = callForTool)]
    pub fn call_for_tool(
        &self,
        effect: f64,
        call: JsValue,
        content: Option<Uint8Array>,
    ) -> Result<String, JsValue> {
        self.act(effect, Action::Call(environment_call(&call, content)?))
    }

    fn act(&self, effect: f64, action: Action) -> Result<String, JsValue> {
        let effect = effect as u64;
        self.begun(InstanceCall::Act { effect, action })
    }

    /// Ends a job early; its last report still comes.
    #[wasm_bindgen(js_name = cancelJob)]
    pub fn cancel_job(&self, job: &str) {
        let job = job.to_owned();
        // Unknown ones are ignored.
        let _ = self.carry_out(InstanceCall::CancelJob { job });
    }
}

fn command(request: &JsValue) -> Result<ExecRequest, JsValue> {
    convert::from_object(request).map_err(|error| invalid(format!("invalid command: {error}")))
}

fn environment_call(
    call: &JsValue,
    content: Option<Uint8Array>,
) -> Result<EnvironmentCall, JsValue> {
    match content {
        Some(content) => Ok(EnvironmentCall::Write {
            path: convert::text(call, "path").unwrap_or_default(),
            content: Bytes::from(copied(&content)?),
        }),
        None => {
            convert::from_object(call).map_err(|error| invalid(format!("invalid call: {error}")))
        }
    }
}
