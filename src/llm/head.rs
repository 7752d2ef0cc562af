//! Everything of a provider's request but its history, written once and used
//! again while everything that it is made from stays equal: between two rounds
//! of a session only the history changes.

use std::rc::Rc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::conversation::{Wire, WireFormat};
use super::error::LlmError;
use super::http::HttpRequest;
use super::request::{Endpoint, Request, Warning};
use super::tool::ToolDefinition;

/// What an adapter writes of a request that has no history.
#[derive(Debug)]
pub(super) struct Head {
    /// The exchange, still without its body.
    pub(super) http: HttpRequest,
    /// Text of the body up to the field of the history.
    fields: String,
    /// Text that begins this field: `"messages":[`, then elements that are not
    /// messages of the conversation, with a comma after each.
    pub(super) list: String,
    /// Text that goes to the last marks of the history, and to how many.
    pub(super) marker: (String, usize),
    /// How the history is written.
    pub(super) format: Box<dyn WireFormat>,
    /// What was left out or changed.
    pub(super) warnings: Vec<Warning>,
}

impl Head {
    /// A head with these `fields` in its body; the history becomes the last
    /// one, `list`.
    pub(super) fn new(
        http: HttpRequest,
        fields: &Map<String, Value>,
        list: &str,
        format: impl WireFormat + 'static,
        warnings: Vec<Warning>,
    ) -> Self {
        let mut text = serde_json::to_string(fields).unwrap_or_default();
        text.pop();
        if !fields.is_empty() {
            text.push(',');
        }
        Self {
            http,
            fields: text,
            list: format!("\"{list}\":["),
            marker: (String::new(), 0),
            format: Box::new(format),
            warnings,
        }
    }

    /// The whole body: one copy of the bytes, whatever the length of the
    /// history. `None` when nothing of the history is sent.
    pub(super) fn body(&self, wire: &Wire) -> Option<Bytes> {
        let (resume, sent) = match &wire.resume {
            Some(resume) => (resume.field.as_str(), &wire.bytes[..resume.sent]),
            None => ("", &wire.bytes[..]),
        };
        if sent.is_empty() {
            return None;
        }
        let comma = if resume.is_empty() { "" } else { "," };
        let mut pieces = Vec::from([&self.fields, resume, comma, &self.list].map(str::as_bytes));
        let (marker, most) = &self.marker;
        let marks = wire.marks.partition_point(|mark| *mark <= sent.len());
        let mut from = 0;
        for mark in &wire.marks[marks.saturating_sub(*most)..marks] {
            pieces.extend([&sent[from..*mark], marker.as_bytes()]);
            from = *mark;
        }
        pieces.extend([&sent[from..], b"]}"]);
        Some(Bytes::from(pieces.concat()))
    }
}

/// A head with what it is made from.
#[derive(Debug)]
pub(super) struct KeptHead {
    pub(super) head: Head,
    adapter: &'static str,
    /// Its conversation holds the leading system messages alone.
    request: Request,
    target: Endpoint,
}

impl KeptHead {
    /// The head that `adapter` writes of `request` for `target`: the one that
    /// the conversation keeps, or a new one. `write` gets the request without
    /// its history, so that nothing in the head can depend on that.
    ///
    /// # Errors
    ///
    /// Those of `write`; nothing is kept then.
    pub(super) fn of(
        adapter: &'static str,
        request: &Request,
        target: &Endpoint,
        write: impl FnOnce(&Request) -> Result<Head, LlmError>,
    ) -> Result<Rc<Self>, LlmError> {
        let conversation = &request.conversation;
        let kept = conversation.kept_head();
        if let Some(kept) = kept.filter(|kept| kept.is_of(adapter, request, target)) {
            return Ok(kept);
        }
        let request = Request {
            conversation: conversation.leading_system().iter().cloned().collect(),
            ..request.clone()
        };
        let kept = Rc::new(Self {
            head: write(&request)?,
            adapter,
            request,
            target: target.clone(),
        });
        conversation.keep_head(kept.clone());
        Ok(kept)
    }

    fn is_of(&self, adapter: &str, request: &Request, target: &Endpoint) -> bool {
        // Taken apart, so that a field that comes later cannot be forgotten.
        let Request {
            provider,
            model,
            system,
            tools,
            tool_choice,
            conversation,
            max_tokens,
            temperature,
            top_p,
            stop_sequences,
            reasoning_effort,
            parallel_tool_calls,
            response_format,
            metadata,
            provider_options,
            cache_key,
            auto_cache,
        } = &self.request;
        let Endpoint {
            base_url,
            credential,
            browser,
            connect_timeout_ms,
            options,
        } = &self.target;
        let bits = |number: Option<f64>| number.map(f64::to_bits);
        self.adapter == adapter
            && *provider == request.provider
            && *model == request.model
            && are_same(tools, &request.tools)
            && *tool_choice == request.tool_choice
            && conversation.messages() == request.conversation.leading_system()
            && *max_tokens == request.max_tokens
            && bits(*temperature) == bits(request.temperature)
            && bits(*top_p) == bits(request.top_p)
            && *stop_sequences == request.stop_sequences
            && *reasoning_effort == request.reasoning_effort
            && *parallel_tool_calls == request.parallel_tool_calls
            && is_same_text(response_format, &request.response_format)
            && *metadata == request.metadata
            && is_same_text(provider_options, &request.provider_options)
            && *cache_key == request.cache_key
            && *auto_cache == request.auto_cache
            && *base_url == target.base_url
            && *credential == target.credential
            && *browser == target.browser
            && *connect_timeout_ms == target.connect_timeout_ms
            && is_same_text(options, &target.options)
            && *system == request.system
    }
}

/// Whether the two lists are written alike; a session shares one list.
fn are_same(left: &Rc<[Rc<ToolDefinition>]>, right: &Rc<[Rc<ToolDefinition>]>) -> bool {
    Rc::ptr_eq(left, right)
        || left.len() == right.len()
            && left
                .iter()
                .zip(right.iter())
                .all(|(left, right)| Rc::ptr_eq(left, right) || is_same_text(left, right))
}

/// Whether the two are the same JSON text. `==` would not do: to it the order
/// of fields and the sign of a zero are nothing.
fn is_same_text<T: Serialize + ?Sized>(left: &T, right: &T) -> bool {
    let (left, right) = (serde_json::to_string(left), serde_json::to_string(right));
    matches!((left, right), (Ok(left), Ok(right)) if left == right)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::KeptHead;
    use crate::llm::{
        Conversation, Endpoint, Message, Request, Role, ToolDefinition, adapter, adapter_names,
    };

    fn kept(name: &str, request: &Request) -> Rc<KeptHead> {
        let adapter = adapter(name).expect("the adapter");
        let encoded = adapter.encode(request, &Endpoint::new("", name));
        encoded.expect("a request");
        let kept = request.conversation.kept_head();
        kept.expect("a head")
    }

    /// Equal requests have one head; it is not written again for a list of
    /// tools that is only equal, nor for a longer conversation.
    #[test]
    fn one_head_serves_equal_requests() {
        for name in adapter_names() {
            let tool = ToolDefinition {
                name: "list".to_owned(),
                description: "Lists".to_owned(),
                parameters: json!({"type": "object"}),
                custom: None,
                strict: None,
                unchecked: false,
            };
            let mut request = Request::new("m", Conversation::new());
            request.tools = Rc::new([Rc::new(tool.clone())]);
            request.conversation.push(Message::text(Role::User, "Go"));
            let first = kept(name, &request);
            assert!(Rc::ptr_eq(&kept(name, &request), &first), "{name}");
            request.tools = Rc::new([Rc::new(tool)]);
            request.conversation.push(Message::text(Role::User, "On"));
            assert!(Rc::ptr_eq(&kept(name, &request), &first), "{name}");
            request.max_tokens = Some(5_000);
            assert!(!Rc::ptr_eq(&kept(name, &request), &first), "{name}");
        }
    }
}
