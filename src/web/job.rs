//! Jobs: what a host does with a sandbox itself. Who brings an environment of
//! their own needs no core for that.

use bytes::Bytes;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::{Core, convert, copied, invalid, thrown};
use crate::environment::{EnvironmentCall, ExecRequest};

#[wasm_bindgen]
impl Core {
    /// Starts a command; `request` is an object with the fields of
    /// [`ExecRequest`]. Returns the id of the job.
    #[wasm_bindgen(js_name = startExec)]
    pub fn start_exec(&self, environment: u32, request: JsValue) -> Result<String, JsValue> {
        let request: ExecRequest = convert::from_object(&request)
            .map_err(|error| invalid(format!("invalid command: {error}")))?;
        let job = self
            .driver
            .with(|instance| instance.start_exec(environment, request));
        job.map(|job| job.to_string()).map_err(thrown)
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
        let call = match content {
            Some(content) => EnvironmentCall::Write {
                path: convert::text(&call, "path").unwrap_or_default(),
                content: Bytes::from(copied(&content)?),
            },
            None => convert::from_object(&call)
                .map_err(|error| invalid(format!("invalid call: {error}")))?,
        };
        let job = self
            .driver
            .with(|instance| instance.start_call(environment, call));
        job.map(|job| job.to_string()).map_err(thrown)
    }

    /// Ends a job early; its last report still comes.
    #[wasm_bindgen(js_name = cancelJob)]
    pub fn cancel_job(&self, job: &str) {
        self.driver.with(|instance| instance.cancel_job(job));
    }
}
