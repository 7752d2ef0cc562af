//! `Host`: what the JavaScript side answers for. The entry file implements it
//! on top of the user's objects; every method catches what they throw.
//!
//! Shapes: `signal` is an `AbortSignal` that fires when the effect is
//! cancelled. Promises reject with `{kind, message}`, where `kind` is a name of
//! the error type that the effect's outcome has. Bytes are `Uint8Array`s.

use js_sys::{Array, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

#[wasm_bindgen]
extern "C" {
    /// The object given to the constructor of [`super::Core`].
    #[derive(Clone)]
    pub type Host;

    /// Call [`super::Core::step`] soon: outcomes or calls wait for it.
    #[wasm_bindgen(method, catch)]
    pub(super) fn wake(this: &Host) -> Result<(), JsValue>;

    /// Calls `work`; says why, if something was thrown through it: the core goes
    /// on where it was called from.
    #[cfg(feature = "sandbox")]
    #[wasm_bindgen(method, catch)]
    pub(super) fn contain(this: &Host, work: &mut dyn FnMut()) -> Result<Option<String>, JsValue>;

    /// Events of one session, in order: the text of a JSON array.
    #[wasm_bindgen(method, catch)]
    pub(super) fn events(this: &Host, session: &str, json: &str) -> Result<(), JsValue>;

    /// News of jobs, in order: `{job, kind, …}`, see [`super::convert::report`].
    #[wasm_bindgen(method, catch)]
    pub(super) fn reports(this: &Host, reports: &Array) -> Result<(), JsValue>;

    /// A line of the log that [`super::Core::log_calls`] gave the number of.
    #[wasm_bindgen(method, catch, js_name = logLine)]
    pub(super) fn log_line(this: &Host, log: u32, line: &str) -> Result<(), JsValue>;

    /// Resolves after `ms` milliseconds, early when `signal` fires.
    #[wasm_bindgen(method, catch)]
    pub(super) fn sleep(this: &Host, ms: f64, signal: &AbortSignal) -> Result<Promise, JsValue>;

    /// Sends `{method, url, headers, body, auth}` and resolves to a `Response`.
    /// The key is added there; it never comes here.
    #[wasm_bindgen(method, catch)]
    pub(super) fn fetch(
        this: &Host,
        owner: &str,
        request: &Object,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;

    /// Whether the consumer of `owner`'s events has room for more: `undefined`,
    /// or a promise of `true` for when it has, or of `false` to be asked again.
    /// Response bodies are read no faster.
    #[wasm_bindgen(method, catch)]
    pub(super) fn room(this: &Host, owner: &str) -> Result<Option<Promise>, JsValue>;

    /// Calls a tool, `{id, name, callId, agentId, workingDirectory, arguments}`;
    /// resolves to `{content, isError}`. Progress goes to
    /// [`super::Core::tool_output`]. Until then the tool may use the environment
    /// of its session through [`super::Core::exec_for_tool`] and
    /// [`super::Core::call_for_tool`].
    #[wasm_bindgen(method, catch, js_name = callTool)]
    pub(super) fn call_tool(
        this: &Host,
        owner: &str,
        call: &Object,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;

    /// Resolves to `undefined` for yes, to the reason for no, or to `null` when
    /// nobody is there to decide.
    #[wasm_bindgen(method, catch, js_name = askApproval)]
    pub(super) fn ask_approval(
        this: &Host,
        owner: &str,
        call: &Object,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;

    /// Answers an environment call; resolves to a reply object, or to the bytes
    /// of a file.
    #[wasm_bindgen(method, catch, js_name = callEnvironment)]
    pub(super) fn call_environment(
        this: &Host,
        environment: u32,
        call: &Object,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;

    /// Runs a command; resolves to `{exit_code, timed_out, duration_ms}`.
    /// Output goes to [`super::Core::exec_output`].
    #[wasm_bindgen(method, catch)]
    pub(super) fn exec(
        this: &Host,
        environment: u32,
        request: &Object,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;

    /// Runs a lent program; resolves to `{exitCode, stdout, stderr, changes}`.
    #[wasm_bindgen(method, catch, js_name = runProgram)]
    pub(super) fn run_program(
        this: &Host,
        environment: u32,
        request: &Object,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;
}

/// Awaits what a method of the host returned, thrown errors included.
pub(super) async fn settle(promise: Result<Promise, JsValue>) -> Result<JsValue, JsValue> {
    JsFuture::from(promise?).await
}
