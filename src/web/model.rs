//! Models without a session for JavaScript hosts: `js/model/model-client.js` is
//! the only user. Requests, answers and events travel as JSON text; what fails rejects
//! with the JSON of an [`LlmError`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt, stream};
use js_sys::{Object, Promise};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use web_sys::AbortSignal;

use super::http::{self, Reader};
use super::{convert, invalid};
use crate::llm::{
    Client, Conversation, Endpoint, EventStream, HttpRequest, HttpResponse, LlmError, LlmErrorKind,
    Message, Request, RetryDecision, RetryPolicy, Role, ToolChoice, ToolDefinition, Transport,
    TransportError, retry_delay_ms,
};
use crate::object::ObjectForm;
use crate::text::from_json;

#[wasm_bindgen]
extern "C" {
    /// What the JavaScript side answers for.
    #[derive(Clone)]
    pub type ModelHost;

    /// As [`super::host::Host::fetch`], without an owner.
    #[wasm_bindgen(method, catch)]
    fn fetch(this: &ModelHost, request: &Object, signal: &AbortSignal) -> Result<Promise, JsValue>;
}

/// Asks the models of one provider.
#[wasm_bindgen]
pub struct ModelClient {
    settings: Settings,
    host: ModelHost,
}

/// What a client is made of.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    provider: String,
    #[serde(default)]
    base_url: String,
    #[serde(default)]
    retry: RetryPolicy,
}

/// A [`Request`] as it comes in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    model: String,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    system: Vec<String>,
    #[serde(default)]
    tools: Vec<ToolDefinition>,
    #[serde(default)]
    tool_choice: Option<ToolChoice>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    #[serde(default)]
    stop_sequences: Vec<String>,
    reasoning_effort: Option<String>,
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    provider_options: Value,
    cache_key: Option<String>,
}

impl From<Asked> for Request {
    fn from(asked: Asked) -> Self {
        let mut conversation = Conversation::new();
        for message in asked.messages {
            conversation.push(message);
        }
        Self {
            system: asked.system,
            tools: asked.tools.into_iter().map(Rc::new).collect(),
            tool_choice: asked.tool_choice.unwrap_or(ToolChoice::Auto),
            max_tokens: asked.max_tokens,
            temperature: asked.temperature,
            top_p: asked.top_p,
            stop_sequences: asked.stop_sequences,
            reasoning_effort: asked.reasoning_effort,
            parallel_tool_calls: asked.parallel_tool_calls,
            metadata: asked.metadata,
            provider_options: asked.provider_options,
            cache_key: asked.cache_key,
            ..Self::new(asked.model, conversation)
        }
    }
}

#[wasm_bindgen]
impl ModelClient {
    /// A client of the settings in `json`: `{provider, base_url, retry}`.
    #[wasm_bindgen(constructor)]
    pub fn new(host: ModelHost, json: &str) -> Result<ModelClient, JsValue> {
        let settings: Settings = from_json(json).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { settings, host })
    }

    /// The answer, whole, as JSON. `prompt` is what the user says last: a text,
    /// parts as [`convert::content`] takes them, or undefined. `signal` goes to
    /// `fetch`; `aborted` resolves when it fires, and when the call is over.
    pub fn generate(
        &self,
        request: &str,
        prompt: JsValue,
        signal: JsValue,
        aborted: Promise,
    ) -> Result<Promise, JsValue> {
        let (client, request) = self.begin(request, &prompt, signal)?;
        Ok(future_to_promise(async move {
            json(until(aborted, client.complete(request)).await)
        }))
    }

    /// A value that follows the JSON Schema `schema`, and its answer: `[value,
    /// response]` as JSON.
    #[wasm_bindgen(js_name = generateObject)]
    pub fn generate_object(
        &self,
        request: &str,
        prompt: JsValue,
        schema: &str,
        signal: JsValue,
        aborted: Promise,
    ) -> Result<Promise, JsValue> {
        let (client, request) = self.begin(request, &prompt, signal)?;
        let schema: Value = from_json(schema).map_err(|error| invalid(error.to_string()))?;
        let form = ObjectForm::new(&schema).map_err(|error| invalid(error.message))?;
        Ok(future_to_promise(async move {
            let response = until(aborted, client.complete(form.asked(request))).await;
            json(response.and_then(|response| Ok((form.value(&response)?, response))))
        }))
    }

    /// How long to wait until a call that failed is made again, in ms; undefined:
    /// not at all. `error` is the JSON that it rejected with, `attempt` counts
    /// the retries already made, `random` is in 0..1, `now` in ms since
    /// 1970-01-01 UTC.
    #[wasm_bindgen(js_name = retryDelay)]
    pub fn retry_delay(
        &self,
        error: &str,
        attempt: u32,
        random: f64,
        now: f64,
    ) -> Result<Option<f64>, JsValue> {
        let error: LlmError = from_json(error).map_err(|error| invalid(error.to_string()))?;
        let policy = &self.settings.retry;
        Ok(
            match retry_delay_ms(policy, attempt, &error, random, now as u64) {
                RetryDecision::Retry { delay_ms } => Some(delay_ms as f64),
                _ => None,
            },
        )
    }

    /// The answer as it arrives: resolves to a [`ModelStream`] once it begins.
    pub fn stream(
        &self,
        request: &str,
        prompt: JsValue,
        signal: JsValue,
        aborted: Promise,
    ) -> Result<Promise, JsValue> {
        let (client, request) = self.begin(request, &prompt, signal)?;
        Ok(future_to_promise(async move {
            let events = until(aborted.clone(), client.stream(request)).await;
            let events = events.map_err(|error| JsValue::from(to_json(&error)))?;
            let events = events.until(JsFuture::from(aborted).map(drop));
            Ok(ModelStream(Rc::new(RefCell::new(Some(events)))).into())
        }))
    }
}

impl ModelClient {
    /// A client for one call, which `signal` ends, and its request.
    fn begin(
        &self,
        request: &str,
        prompt: &JsValue,
        signal: JsValue,
    ) -> Result<(Client, Request), JsValue> {
        let mut asked: Asked = from_json(request).map_err(|error| invalid(error.to_string()))?;
        if !prompt.is_undefined() {
            let content = convert::content(prompt).map_err(invalid)?;
            let content = content.checked().map_err(|bad| invalid(bad.to_string()))?;
            asked.messages.push(Message {
                role: Role::User,
                content: content.to_message_parts(),
                replay: None,
            });
        }
        let Settings {
            provider, base_url, ..
        } = &self.settings;
        let transport = FetchTransport {
            host: self.host.clone(),
            // An AbortSignal; declarations do without that name where there is no DOM.
            signal: signal.unchecked_into(),
        };
        let endpoint = Endpoint::new(base_url.as_str(), provider);
        let client = Client::for_adapter(Rc::new(transport), provider, endpoint)
            .map_err(|error| invalid(error.message))?;
        Ok((client, asked.into()))
    }
}

/// An answer that arrives. Who gives it up calls `free`.
#[wasm_bindgen]
pub struct ModelStream(Rc<RefCell<Option<EventStream>>>);

#[wasm_bindgen]
impl ModelStream {
    /// Resolves to the next event as JSON, or to `undefined` after the last one.
    /// One call at a time.
    #[wasm_bindgen(js_name = nextEvent)]
    pub fn next_event(&self) -> Result<Promise, JsValue> {
        let place = self.0.clone();
        Ok(future_to_promise(async move {
            let Some(mut events) = place.take() else {
                return Ok(JsValue::UNDEFINED);
            };
            let event = events.next_event().await;
            if event.is_some() {
                place.replace(Some(events));
            }
            Ok(event.map_or(JsValue::UNDEFINED, |event| to_json(&event).into()))
        }))
    }
}

/// `work` until `aborted` resolves, even if the host's `fetch` ignores its
/// signal.
async fn until<T>(
    aborted: Promise,
    work: impl Future<Output = Result<T, LlmError>>,
) -> Result<T, LlmError> {
    match select(pin!(work), JsFuture::from(aborted)).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(LlmError::new(
            LlmErrorKind::Abort,
            "",
            "the call was aborted",
        )),
    }
}

/// What a promise settles to.
fn json<T: Serialize>(result: Result<T, LlmError>) -> Result<JsValue, JsValue> {
    match result {
        Ok(value) => Ok(to_json(&value).into()),
        Err(error) => Err(to_json(&error).into()),
    }
}

fn to_json(value: &impl Serialize) -> String {
    // Maps with keys that are no strings would fail; there are none.
    serde_json::to_string(value).unwrap_or_default()
}

/// The host's `fetch`, for one call.
struct FetchTransport {
    host: ModelHost,
    signal: AbortSignal,
}

#[async_trait(?Send)]
impl Transport for FetchTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let promise = self
            .host
            .fetch(http::request_record(&request).object(), &self.signal);
        let response = http::response(promise).await?;
        let (status, headers) = http::head(&response).map_err(|error| http::broken(&error))?;
        let body = response.body().map(|body| Reader::of(body.get_reader()));
        let body = stream::unfold(body, async |reader| {
            let reader = reader?;
            match reader.read().await {
                Ok(Some(chunk)) => Some((Ok(chunk), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(http::broken(&error)), None)),
            }
        });
        Ok(HttpResponse {
            status,
            headers,
            body: body.boxed_local(),
        })
    }
}
