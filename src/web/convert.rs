//! JavaScript values in and out. Small structures travel as JSON text, bytes
//! as `Uint8Array`; what JavaScript answers is checked, never trusted.

use std::collections::BTreeMap;

use bytes::Bytes;
use js_sys::{Array, JSON, Object, Reflect, Uint8Array};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

use crate::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentReply, ExecStatus,
    FileChange, FileNode, OutputStream, ProgramFiles, ProgramRequest, ProgramResult,
};
use crate::llm::{Content, Media, MediaSource, Part, TransportError, TransportErrorKind};
use crate::session::{JobReport, JobReportKind, SessionError};
use crate::text::from_json;

/// A plain object under construction.
pub(super) struct Record(Object);

impl Record {
    pub(super) fn new() -> Self {
        Self(Object::new())
    }

    pub(super) fn value(self, name: &str, value: &JsValue) -> Self {
        // Setting a property of a fresh plain object cannot fail.
        let _ = Reflect::set(&self.0, &name.into(), value);
        self
    }

    pub(super) fn text(self, name: &str, value: &str) -> Self {
        self.value(name, &value.into())
    }

    pub(super) fn maybe_text(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    pub(super) fn number(self, name: &str, value: f64) -> Self {
        self.value(name, &value.into())
    }

    pub(super) fn bytes(self, name: &str, value: &[u8]) -> Self {
        self.value(name, &Uint8Array::from(value))
    }

    pub(super) fn object(&self) -> &Object {
        &self.0
    }
}

/// Property `name`, or `undefined`.
pub(super) fn get(value: &JsValue, name: &str) -> JsValue {
    Reflect::get(value, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

/// Property `name`, if it is a string.
pub(super) fn text(value: &JsValue, name: &str) -> Option<String> {
    get(value, name).as_string()
}

/// Whether property `name` is truthy.
pub(super) fn flag(value: &JsValue, name: &str) -> bool {
    get(value, name).is_truthy()
}

/// How many bytes JavaScript holds: more than 4 GiB where an engine allows that.
pub(super) fn length(array: &Uint8Array) -> u64 {
    get(array, "length").as_f64().unwrap_or_default() as u64
}

/// A copy in the core's memory of bytes that JavaScript holds.
///
/// # Errors
/// There is no room for them. An allocation that is not asked first ends the core.
pub(super) fn copied(array: &Uint8Array) -> Result<Vec<u8>, EnvironmentError> {
    let length = length(array);
    let room = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(room).map_err(|_| {
        EnvironmentError::new(
            EnvironmentErrorKind::TooLarge,
            format!("{length} bytes do not fit the memory of the core"),
        )
    })?;
    bytes.resize(room, 0);
    array.copy_to(&mut bytes);
    Ok(bytes)
}

/// Property `name` as bytes: a `Uint8Array`, or the UTF-8 of a string.
fn bytes(value: &JsValue, name: &str) -> Result<Option<Bytes>, String> {
    let value = get(value, name);
    if let Some(text) = value.as_string() {
        return Ok(Some(Bytes::from(text)));
    }
    let copy = value.dyn_ref::<Uint8Array>().map(copied).transpose();
    match copy {
        Ok(bytes) => Ok(bytes.map(Bytes::from)),
        Err(error) => Err(format!("{name}: {}", error.message)),
    }
}

/// What an error says: its `message`, or itself when a string was thrown.
pub(super) fn message(error: &JsValue) -> String {
    text(error, "message")
        .or_else(|| error.as_string())
        .unwrap_or_else(|| "an error without a message".to_owned())
}

fn kind<T: DeserializeOwned>(error: &JsValue) -> Option<T> {
    let name = text(error, "kind")?;
    serde_json::from_value(serde_json::Value::String(name)).ok()
}

/// A rejection as a transport error; `otherwise` when it names no kind.
pub(super) fn transport_error(error: &JsValue, otherwise: TransportErrorKind) -> TransportError {
    TransportError {
        kind: kind(error).unwrap_or(otherwise),
        message: message(error),
    }
}

/// A rejection as an environment error.
pub(super) fn environment_error(error: &JsValue) -> EnvironmentError {
    let kind = kind(error).unwrap_or(EnvironmentErrorKind::Io);
    EnvironmentError::new(kind, message(error))
}

/// `{kind, message}`, what exports throw.
pub(super) fn session_error(error: &SessionError) -> JsValue {
    to_object(error)
}

/// A serialisable value as a JavaScript one.
pub(super) fn to_object(value: &impl Serialize) -> JsValue {
    serde_json::to_vec(value).map_or(JsValue::UNDEFINED, |json| parsed(&json))
}

/// JSON as a JavaScript value.
pub(super) fn parsed(json: &[u8]) -> JsValue {
    std::str::from_utf8(json)
        .ok()
        .and_then(|json| JSON::parse(json).ok())
        .unwrap_or(JsValue::UNDEFINED)
}

/// A JavaScript value as a deserialisable one.
pub(super) fn from_object<T: DeserializeOwned>(value: &JsValue) -> Result<T, String> {
    let json = JSON::stringify(value)
        .ok()
        .and_then(|json| json.as_string())
        .ok_or("not a value that JSON can hold")?;
    from_json(&json).map_err(|error| error.to_string())
}

/// A string, or parts: `{type: "text", text}`, and `{type: "image" | "document" |
/// "file", data, name, detail}` with bytes.
pub(super) fn content(value: &JsValue) -> Result<Content, String> {
    if let Some(text) = value.as_string() {
        return Ok(text.into());
    }
    let parts = value.dyn_ref::<Array>().ok_or("neither a text nor parts")?;
    let parts: Result<Vec<Part>, String> = parts.iter().map(|value| part(&value)).collect();
    parts.map(Into::into)
}

fn part(value: &JsValue) -> Result<Part, String> {
    let kind = text(value, "type").unwrap_or_default();
    if kind == "text" {
        return Ok(Part::text(text(value, "text").unwrap_or_default()));
    }
    let data = bytes(value, "data")?.unwrap_or_default();
    if kind == "file" {
        return Ok(Part::file(text(value, "name").unwrap_or_default(), data));
    }
    let media = Media {
        source: MediaSource::Data(data),
        media_type: String::new(),
        detail: text(value, "detail"),
        file_name: text(value, "name"),
    };
    match kind.as_str() {
        "image" => Ok(Part::Image(media)),
        "document" => Ok(Part::Document(media)),
        _ => Err(format!("a part has the unknown type {kind}")),
    }
}

/// A map of strings as a plain object.
pub(super) fn strings(map: &BTreeMap<String, String>) -> JsValue {
    to_object(map)
}

/// A call as `{call, …}`; the content of a write as bytes.
pub(super) fn environment_call(call: &EnvironmentCall) -> Result<Object, EnvironmentError> {
    let object = match call {
        EnvironmentCall::Write { path, content } => Record::new()
            .text("call", "write")
            .text("path", path)
            .bytes("content", content)
            .object()
            .clone()
            .into(),
        call => to_object(call),
    };
    object.dyn_into().map_err(|_| {
        EnvironmentError::new(
            EnvironmentErrorKind::Io,
            "the call cannot be handed to JavaScript",
        )
    })
}

/// A reply: bytes, or `{reply, value}` in the form of [`EnvironmentReply`].
pub(super) fn environment_reply(reply: &JsValue) -> Result<EnvironmentReply, EnvironmentError> {
    match reply.dyn_ref::<Uint8Array>() {
        Some(array) => Ok(EnvironmentReply::Bytes(Bytes::from(copied(array)?))),
        None => from_object(reply).map_err(|error| malformed("call", &error)),
    }
}

/// `{exit_code, timed_out, cancelled, duration_ms}`.
pub(super) fn exec_status(status: &JsValue) -> Result<ExecStatus, EnvironmentError> {
    from_object(status).map_err(|error| malformed("exec", &error))
}

fn malformed(what: &str, error: &str) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::Io,
        format!("the environment answered {what} with something unexpected: {error}"),
    )
}

/// `stdout` or `stderr`.
pub(super) fn output_stream(name: &str) -> OutputStream {
    match name {
        "stderr" => OutputStream::Stderr,
        _ => OutputStream::Stdout,
    }
}

/// The changes as `[{path, type, content, mode}]`. All contents lie in one buffer, in
/// this order, which a worker can be given without a copy.
fn file_changes(changes: &[FileChange]) -> Array {
    let total: usize = changes
        .iter()
        .map(|change| match &change.node {
            FileNode::File(content) => content.len(),
            FileNode::Directory | FileNode::Link(_) | FileNode::Removed => 0,
        })
        .sum();
    // The memory of a wasm32 core, which holds them all, is no larger than u32.
    let contents = Uint8Array::new_with_length(total as u32);
    let mut end = 0;
    let records = changes.iter().map(|change| {
        let record = Record::new().text("path", &change.path);
        let record = match &change.node {
            FileNode::File(content) => {
                let start = end;
                end += content.len() as u32;
                let place = contents.subarray(start, end);
                place.copy_from(content);
                record.text("type", "file").value("content", &place)
            }
            FileNode::Directory => record.text("type", "directory"),
            FileNode::Link(target) => record.text("type", "link").text("target", target),
            FileNode::Removed => record.text("type", "removed"),
        };
        let record = match change.mode {
            Some(mode) => record.number("mode", f64::from(mode)),
            None => record,
        };
        JsValue::from(record.object())
    });
    records.collect()
}

/// `{name, args, env, cwd, stdin, since, state, changes: [{path, type, content, target, mode}]}`;
/// without `since` the changes are all files.
pub(super) fn program_request(request: ProgramRequest) -> Object {
    let changes = file_changes(&request.changes);
    let since = request.since.map(|state| state.to_string());
    Record::new()
        .text("name", &request.name)
        .value("args", &to_object(&request.args))
        .value("env", &strings(&request.env))
        .text("cwd", &request.working_dir)
        .bytes("stdin", &request.stdin)
        .maybe_text("since", since.as_deref())
        .text("state", &request.state.to_string())
        .value("changes", &changes)
        .object()
        .clone()
}

/// The result of the lent program `name`; what makes no sense fails it.
pub(super) fn program_result(name: &str, result: &JsValue) -> ProgramResult {
    checked_result(result)
        .unwrap_or_else(|problem| ProgramResult::failed(126, format!("{name}: {problem}\n")))
}

fn checked_result(result: &JsValue) -> Result<ProgramResult, String> {
    let changes = get(result, "changes");
    let changes = match changes.dyn_ref::<Array>() {
        None => Vec::new(),
        Some(changes) => changes
            .iter()
            .map(|change| file_change(&change))
            .collect::<Result<_, _>>()?,
    };
    let code = get(result, "exitCode").as_f64();
    let files = match text(result, "files").as_deref() {
        Some("lost") => ProgramFiles::Lost,
        Some("missing") => ProgramFiles::Missing,
        _ => ProgramFiles::Kept,
    };
    let code = match files {
        // It has not run, so it has none.
        ProgramFiles::Missing => code.or(Some(126.0)),
        ProgramFiles::Kept | ProgramFiles::Lost => code,
    };
    Ok(ProgramResult {
        exit_code: code.ok_or("returned no exitCode")? as i32,
        stdout: bytes(result, "stdout")?.unwrap_or_default(),
        stderr: bytes(result, "stderr")?.unwrap_or_default(),
        changes,
        files,
    })
}

fn file_change(change: &JsValue) -> Result<FileChange, String> {
    let path = text(change, "path").ok_or("a change without a path")?;
    let node = match text(change, "type").as_deref() {
        Some("directory") => FileNode::Directory,
        Some("link") => FileNode::Link(
            text(change, "target").ok_or_else(|| format!("the change of {path} has no target"))?,
        ),
        Some("removed") => FileNode::Removed,
        _ => FileNode::File(
            bytes(change, "content")?
                .ok_or_else(|| format!("the change of {path} has no content"))?,
        ),
    };
    let mode = get(change, "mode").as_f64().map(|mode| mode as u32);
    Ok(FileChange { path, node, mode })
}

/// `{job, kind: "output", stream, data}`, or, as the last one,
/// `{job, kind: "exec", status}`, `{job, kind: "call", reply}` or
/// `{job, kind: "failed", error: {kind, message}}`.
pub(super) fn report(report: JobReport) -> Result<JsValue, JsValue> {
    let record = Record::new().text("job", &report.job);
    let record = match report.kind {
        JobReportKind::Output { stream, data } => record
            .text("kind", "output")
            .value("stream", &to_object(&stream))
            .bytes("data", &data),
        JobReportKind::Exec(Ok(status)) => record
            .text("kind", "exec")
            .value("status", &to_object(&status)),
        JobReportKind::Call(Ok(EnvironmentReply::Bytes(bytes))) => {
            record.text("kind", "call").bytes("reply", &bytes)
        }
        JobReportKind::Call(Ok(reply)) => record
            .text("kind", "call")
            .value("reply", &to_object(&reply)),
        JobReportKind::Exec(Err(error)) | JobReportKind::Call(Err(error)) => record
            .text("kind", "failed")
            .value("error", &to_object(&error)),
    };
    Ok(record.object().into())
}
