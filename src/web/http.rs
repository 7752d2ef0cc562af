//! One HTTP exchange over the host's `fetch`: head, chunks, end.
//!
//! `fetch` cannot tell connecting from waiting for the answer, so the time
//! limit for connecting does not apply here; the session's limit on a silent
//! stream covers both.

use bytes::Bytes;
use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStreamDefaultReader, Response};

use super::convert::{self, Record};
use super::driver::Call;
use super::host::settle;
use crate::effect::OutcomeKind;
use crate::llm::{HttpRequest, TransportError, TransportErrorKind};

/// Performs one exchange. A cancelled one ends at once: the signal closes the
/// connection, and there is nothing to wait for.
pub(super) async fn exchange(call: &Call, request: HttpRequest) -> OutcomeKind {
    match call.unless_cancelled(stream(call, request)).await {
        None => OutcomeKind::Cancelled,
        Some(Ok(())) => OutcomeKind::HttpEnd,
        Some(Err(error)) => OutcomeKind::HttpFailed(error),
    }
}

async fn stream(call: &Call, request: HttpRequest) -> Result<(), TransportError> {
    let promise = call.host().fetch(
        &call.owner,
        request_record(&request).object(),
        &call.signal(),
    );
    let response = response(promise).await?;
    let (status, headers) = head(&response).map_err(|error| broken(&error))?;
    call.stream(OutcomeKind::HttpHead { status, headers });
    let Some(body) = response.body() else {
        return Ok(());
    };
    let reader = Reader::of(body.get_reader());
    while let Some(chunk) = reader.next(call).await.map_err(|error| broken(&error))? {
        if !chunk.is_empty() {
            call.stream(OutcomeKind::HttpChunk(chunk));
        }
    }
    Ok(())
}

/// The response that the host's `fetch` promised.
pub(super) async fn response(
    promise: Result<Promise, JsValue>,
) -> Result<Response, TransportError> {
    let response = settle(promise).await;
    let response =
        response.map_err(|error| convert::transport_error(&error, TransportErrorKind::Connect))?;
    Ok(response.unchecked_into())
}

/// Gives the body up when it is dropped early, even if a `fetch` of the
/// user's ignores the signal.
pub(super) struct Reader(ReadableStreamDefaultReader);

impl Reader {
    pub(super) fn of(reader: js_sys::Object) -> Self {
        Self(reader.unchecked_into())
    }

    /// The next piece, once the consumer has room for it; `None` at the end.
    async fn next(&self, call: &Call) -> Result<Option<Bytes>, JsValue> {
        while let Some(room) = call.host().room(&call.owner)? {
            if !JsFuture::from(room).await?.is_falsy() {
                break;
            }
            // The silence is the consumer's, not the provider's.
            call.stream(OutcomeKind::HttpChunk(Bytes::new()));
        }
        self.read().await
    }

    /// The next piece; `None` at the end.
    pub(super) async fn read(&self) -> Result<Option<Bytes>, JsValue> {
        let result = JsFuture::from(self.0.read()).await?;
        if convert::flag(&result, "done") {
            return Ok(None);
        }
        let value = convert::get(&result, "value");
        let chunk = value
            .dyn_into::<Uint8Array>()
            .map_err(|_| JsValue::from_str("the response body holds something other than bytes"))?;
        let chunk = convert::copied(&chunk).map_err(|error| JsValue::from(error.message))?;
        Ok(Some(Bytes::from(chunk)))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Cancelling a finished body does nothing; a rejection must not
        // surface as an unhandled one.
        let cancelled = JsFuture::from(self.0.cancel());
        wasm_bindgen_futures::spawn_local(async move {
            let _ = cancelled.await;
        });
    }
}

pub(super) fn request_record(request: &HttpRequest) -> Record {
    let headers = Array::new();
    for (name, value) in &request.headers {
        headers.push(&Array::of2(&name.as_str().into(), &value.as_str().into()));
    }
    let auth = request.auth.as_ref().map_or(JsValue::UNDEFINED, |auth| {
        Record::new()
            .text("credential", &auth.credential)
            .text("header", &auth.header)
            .text("prefix", &auth.prefix)
            .object()
            .into()
    });
    Record::new()
        .text("method", &request.method)
        .text("url", &request.url)
        .value("headers", &headers)
        .value("body", &Uint8Array::from(&*request.body))
        .value("auth", &auth)
}

/// Status and headers.
pub(super) fn head(response: &Response) -> Result<(u16, Vec<(String, String)>), JsValue> {
    let mut headers = Vec::new();
    // `entries()` gives names in lower case, sorted.
    for entry in js_sys::try_iter(&response.headers().entries())?
        .into_iter()
        .flatten()
    {
        let entry: Array = entry?.unchecked_into();
        if let (Some(name), Some(value)) = (entry.get(0).as_string(), entry.get(1).as_string()) {
            headers.push((name, value));
        }
    }
    Ok((response.status(), headers))
}

/// The body broke off. What runtimes throw says little; its cause says more.
pub(super) fn broken(error: &JsValue) -> TransportError {
    let cause = convert::get(error, "cause");
    let told = if cause.is_object() { &cause } else { error };
    let mut error = convert::transport_error(told, TransportErrorKind::Broken);
    error.message = format!(
        "the connection broke before the response was complete: {}",
        error.message
    );
    error
}
