//! The scripted model for JavaScript hosts: answers requests as data;
//! `js/model/scripted-model.js` waits and sends.

use bytes::Bytes;
use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use super::convert::{Record, strings};
use super::invalid;
use crate::script::{Ending, ModelRequest};

/// A model that plays a script: [`crate::script`].
#[wasm_bindgen]
pub struct ScriptedModel(crate::script::ScriptedModel);

#[wasm_bindgen]
impl ScriptedModel {
    /// A model at the start of the script in `json`.
    #[wasm_bindgen(constructor)]
    pub fn new(json: &str) -> Result<ScriptedModel, JsValue> {
        let model = crate::script::ScriptedModel::from_json(json)
            .map_err(|error| invalid(format!("invalid script: {error}")))?;
        // Nobody asks here which requests there were.
        Ok(Self(model.keep_requests(0)))
    }

    /// The answer to a request: `{status, headers, chunks: [{delayMs, bytes}],
    /// complete}`. Holds do not hold: nobody here could release them.
    pub fn respond(&mut self, path: &str, body: &[u8]) -> Result<Object, JsValue> {
        let response = self.0.respond(&ModelRequest {
            path: path.to_owned(),
            headers: Vec::new(),
            body: Bytes::copy_from_slice(body),
        });
        let chunks = Array::new();
        for chunk in &response.chunks {
            let chunk = Record::new()
                .number("delayMs", chunk.delay_ms as f64)
                .bytes("bytes", &chunk.bytes);
            chunks.push(chunk.object());
        }
        let complete = response.ending == Ending::Complete;
        let answer = Record::new()
            .number("status", f64::from(response.status))
            .value("headers", &strings(&response.headers.into_iter().collect()))
            .value("chunks", &chunks)
            .value("complete", &complete.into());
        Ok(answer.object().clone())
    }
}
