//! A request as an HTTP exchange, without the messages.

use serde_json::{Map, Value, json};

use super::NAME;
use super::messages::ChatFormat;
use crate::llm::adapter::freeform::{Freeform, parameters};
use crate::llm::adapter::{body, media};
use crate::llm::endpoint::Endpoint;
use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::head::Head;
use crate::llm::request::{Request, ResponseFormat};
use crate::llm::tool::{ToolChoice, ToolDefinition};
use crate::llm::warning::Warning;

pub(super) fn head(
    request: &Request,
    target: &Endpoint,
    default_base_url: &str,
) -> Result<Head, LlmError> {
    let mut warnings = Vec::new();
    let options = body::options(request, NAME, &["messages", "stream"], &mut warnings);
    let mut fields = fields(request, target, &mut warnings)?;
    body::merge(&mut fields, options);
    let base_url = body::base_url(target, default_base_url, "/v1");
    let url = format!("{base_url}/chat/completions");
    let auth = body::auth(target, "authorization", "Bearer ");
    let http = body::post(target, url, [], auth);
    let format = ChatFormat {
        vision: media::sees_images(request, target),
        system_in_messages: target.options["system_in_messages"] == true,
        freeform: Freeform::of(&request.tools),
    };
    let mut head = Head::new(http, &fields, "messages", format, warnings);
    let system = body::system_texts(request).join("\n\n");
    if !system.is_empty() {
        let message = json!({"role": "system", "content": system});
        head.list.push_str(&format!("{message},"));
    }
    Ok(head)
}

/// Everything of the body but the messages. A field that nothing was asked for
/// is left out: servers differ in what they know.
fn fields(
    request: &Request,
    target: &Endpoint,
    warnings: &mut Vec<Warning>,
) -> Result<Map<String, Value>, LlmError> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("model", Value::from(request.model.as_str()));
    set("stream", Value::Bool(true));
    if target.options["include_usage"] != false {
        set("stream_options", json!({"include_usage": true}));
    }
    let choice = choice(request)?;
    if !request.tools.is_empty() {
        let definitions: Vec<Value> = request.tools.iter().map(|tool| definition(tool)).collect();
        set("tools", Value::from(definitions));
        if !choice.is_null() {
            set("tool_choice", choice);
        }
        if let Some(parallel) = request.parallel_tool_calls {
            set("parallel_tool_calls", Value::Bool(parallel));
        }
    }
    if let Some(effort) = &request.reasoning_effort {
        let field = target.options["reasoning_field"].as_str();
        set(
            field.unwrap_or("reasoning_effort"),
            Value::from(effort.as_str()),
        );
    }
    if let Some(most) = request.max_tokens {
        let field = target.options["max_tokens_field"].as_str();
        set(field.unwrap_or("max_tokens"), Value::from(most));
    }
    if let Some(temperature) = request.temperature {
        set("temperature", Value::from(temperature));
    }
    if let Some(top_p) = request.top_p {
        set("top_p", Value::from(top_p));
    }
    if !request.stop_sequences.is_empty() {
        set("stop", json!(request.stop_sequences));
    }
    match &request.response_format {
        ResponseFormat::Text => {}
        ResponseFormat::Json => set("response_format", json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { schema, strict } => {
            let schema = json!({"name": "answer", "schema": schema, "strict": strict});
            set(
                "response_format",
                json!({"type": "json_schema", "json_schema": schema}),
            );
        }
    }
    for (name, value) in &request.metadata {
        if name == "user_id" {
            set("user", Value::from(value.as_str()));
        } else {
            let message = format!("chat takes only the metadata user_id; {name} is left out");
            warnings.push(Warning::new("metadata_dropped", message));
        }
    }
    Ok(fields)
}

fn choice(request: &Request) -> Result<Value, LlmError> {
    let tools = &request.tools;
    let unsupported = |why: String| {
        let message = format!("the tool choice {why}");
        LlmError::new(LlmErrorKind::UnsupportedToolChoice, NAME, message)
    };
    match &request.tool_choice {
        ToolChoice::Auto => Ok(Value::Null),
        ToolChoice::None => Ok(Value::from("none")),
        ToolChoice::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
            Err(unsupported(format!(
                "names `{name}`, which is not among the tools; add it or choose another"
            )))
        }
        ToolChoice::Named(name) => Ok(json!({"type": "function", "function": {"name": name}})),
        ToolChoice::Required if tools.is_empty() => Err(unsupported(
            "forces a call, but there are no tools; use the choice `auto`".to_owned(),
        )),
        ToolChoice::Required => Ok(Value::from("required")),
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    let mut function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters(tool),
    });
    if let Some(true) = tool.strict {
        function["strict"] = Value::Bool(true);
    }
    json!({"type": "function", "function": function})
}
