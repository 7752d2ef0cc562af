//! A request from the head that a provider writes and the history that its
//! conversation keeps encoded, the same for every adapter.

use std::rc::Rc;

use super::Encoded;
use crate::llm::endpoint::Endpoint;
use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::head::{Head, HeadSource, KeptHead};
use crate::llm::http::HttpRequest;
use crate::llm::request::Request;

/// What the adapter `name` sends for `request`. `write_head` gets the request
/// without its history, only the leading system messages are there: nothing in
/// the head can depend on the rest.
///
/// # Errors
///
/// Those of `write_head`, and when the history cannot be sent.
pub(super) fn encode(
    name: &'static str,
    request: &Request,
    target: &Endpoint,
    write_head: impl FnOnce(&Request) -> Result<Head, LlmError>,
) -> Result<Encoded, LlmError> {
    let kept = kept_head(name, request, target, write_head)?;
    let head = &kept.head;
    let mut warnings = head.warnings.clone();
    let wire = request.conversation.encode(&*head.format, &mut warnings)?;
    let body = head.body(&wire).ok_or_else(|| {
        let message =
            format!("the conversation has no message for {name}; add a user message with text");
        LlmError::new(LlmErrorKind::InvalidRequest, name, message)
    })?;
    let http = HttpRequest {
        body,
        ..head.http.clone()
    };
    Ok(Encoded { http, warnings })
}

/// The head that the conversation keeps, or a new one where it was written from
/// something else.
fn kept_head(
    name: &'static str,
    request: &Request,
    target: &Endpoint,
    write_head: impl FnOnce(&Request) -> Result<Head, LlmError>,
) -> Result<Rc<KeptHead>, LlmError> {
    let conversation = &request.conversation;
    let source = source(name, request, target);
    if let Some(kept) = conversation.kept_head()
        && kept.source == source
    {
        return Ok(kept);
    }
    let without_history = Request {
        conversation: source.leading.iter().cloned().collect(),
        ..request.clone()
    };
    let head = write_head(&without_history)?;
    let kept = Rc::new(KeptHead { head, source });
    conversation.keep_head(kept.clone());
    Ok(kept)
}

fn source(adapter: &'static str, request: &Request, target: &Endpoint) -> HeadSource {
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
    } = request;
    HeadSource {
        adapter,
        system: system.clone(),
        leading: conversation.leading_system().to_vec(),
        tools: tools.clone(),
        settings: format!(
            "{provider:?} {model:?} {tool_choice:?} {max_tokens:?} {temperature:?} {top_p:?} \
             {stop_sequences:?} {reasoning_effort:?} {parallel_tool_calls:?} {response_format:?} \
             {metadata:?} {provider_options:?} {cache_key:?} {auto_cache:?} {target:?}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use crate::llm::head::KeptHead;
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
