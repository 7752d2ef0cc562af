//! A request as an HTTP exchange, without the messages.

use serde_json::{Map, Value, json};

use super::NAME;
use super::messages::MessageFormat;
use super::thinking::{Plan, Wish, plan};
use crate::llm::adapter::freeform::{Freeform, parameters};
use crate::llm::adapter::{body, media};
use crate::llm::endpoint::Endpoint;
use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::head::Head;
use crate::llm::http::Auth;
use crate::llm::model::ModelInfo;
use crate::llm::request::{Request, ResponseFormat};
use crate::llm::tool::{ToolChoice, ToolDefinition};
use crate::llm::warning::Warning;

/// Version of the API that this adapter writes.
const VERSION: &str = "2026-10-21";
/// From this version on sampling parameters do not exist.
const WITHOUT_SAMPLING: &str = "2026-10-21";
/// Breakpoints on messages, beside those on the tools and the system text.
const MESSAGE_BREAKPOINTS: usize = 2;
/// Beta that the unified-client spec asks for; the API no longer needs it.
const CACHING_BETA: &str = "prompt-caching-2024-07-31";

pub(super) fn head(
    request: &Request,
    target: &Endpoint,
    default_base_url: &str,
) -> Result<Head, LlmError> {
    let mut encoder = Encoder::new(request, target);
    let fields = encoder.fields()?;
    let base_url = body::base_url(target, default_base_url, "");
    let base_url = base_url.strip_suffix("/v1").unwrap_or(&base_url);
    let url = format!("{base_url}/v1/messages");
    let http = body::post(target, url, encoder.headers(), encoder.auth());
    let format = MessageFormat {
        vision: media::sees_images(request, target),
        system_in_messages: encoder.info.is_some_and(|info| info.system_in_messages),
        freeform: Freeform::of(&request.tools),
    };
    let mut head = Head::new(http, &fields, "messages", format, encoder.warnings);
    if let Some(marker) = encoder.marker {
        // A `cache_control` of the caller at the top level is a breakpoint too.
        let most = MESSAGE_BREAKPOINTS - usize::from(fields.contains_key("cache_control"));
        head.marker = (format!(",\"cache_control\":{marker}"), most);
    }
    Ok(head)
}

struct Encoder<'a> {
    request: &'a Request,
    target: &'a Endpoint,
    options: Map<String, Value>,
    info: Option<&'static ModelInfo>,
    /// The marker, where breakpoints are wanted.
    marker: Option<Value>,
    betas: Vec<String>,
    warnings: Vec<Warning>,
}

impl<'a> Encoder<'a> {
    fn new(request: &'a Request, target: &'a Endpoint) -> Self {
        let mut warnings = Vec::new();
        let mut options = body::options(request, NAME, &["messages", "stream"], &mut warnings);
        let auto_cache = options
            .shift_remove("auto_cache")
            .and_then(|value| value.as_bool());
        let ttl = options.shift_remove("cache_ttl");
        let marker = auto_cache.unwrap_or(request.auto_cache).then(|| match ttl {
            Some(ttl) => json!({"type": "ephemeral", "ttl": ttl}),
            None => json!({"type": "ephemeral"}),
        });
        let mut betas = Vec::new();
        if marker.is_some() && target.options["prompt_caching_beta"] != Value::Bool(false) {
            betas.push(CACHING_BETA.to_owned());
        }
        for beta in beta_headers(options.shift_remove("beta_headers")) {
            if !betas.contains(&beta) {
                betas.push(beta);
            }
        }
        Self {
            request,
            target,
            options,
            info: body::known_model(NAME, request),
            marker,
            betas,
            warnings,
        }
    }

    /// Everything of the body but the messages.
    fn fields(&mut self) -> Result<Map<String, Value>, LlmError> {
        let request = self.request;
        let plan = self.plan();
        let mut fields = Map::new();
        fields.insert(
            "model".to_owned(),
            Value::from(body::wire_model(self.info, request)),
        );
        fields.insert("max_tokens".to_owned(), Value::from(plan.max_tokens));
        fields.insert("stream".to_owned(), Value::Bool(true));
        if let Some(system) = self.system() {
            fields.insert("system".to_owned(), system);
        }
        self.tools(&mut fields)?;
        if let Some(thinking) = plan.thinking.clone() {
            fields.insert("thinking".to_owned(), thinking);
        }
        let mut output = Map::new();
        if let Some(effort) = plan.effort.clone() {
            output.insert("effort".to_owned(), Value::from(effort));
        }
        match &request.response_format {
            ResponseFormat::Text => {}
            ResponseFormat::Json => self.warn(
                "format_dropped",
                "anthropic has no JSON format without a schema; give a schema",
            ),
            ResponseFormat::JsonSchema { schema, .. } => {
                output.insert(
                    "format".to_owned(),
                    json!({"type": "json_schema", "schema": schema}),
                );
            }
        }
        if !output.is_empty() {
            fields.insert("output_config".to_owned(), Value::Object(output));
        }
        if !request.stop_sequences.is_empty() {
            fields.insert("stop_sequences".to_owned(), json!(request.stop_sequences));
        }
        self.sampling(&plan, &mut fields);
        self.metadata(&mut fields);
        body::merge(&mut fields, std::mem::take(&mut self.options));
        Ok(fields)
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", self.version().to_owned())];
        if !self.betas.is_empty() {
            headers.push(("anthropic-beta", self.betas.join(",")));
        }
        if self.target.browser {
            let header = "anthropic-dangerous-direct-browser-access";
            headers.push((header, "true".to_owned()));
        }
        headers
    }

    fn auth(&self) -> Option<Auth> {
        let bearer = self.target.options["auth"] == "bearer";
        let (header, prefix) = if bearer {
            ("authorization", "Bearer ")
        } else {
            ("x-api-key", "")
        };
        body::auth(self.target, header, prefix)
    }

    fn version(&self) -> &str {
        self.target.options["version"].as_str().unwrap_or(VERSION)
    }

    fn plan(&mut self) -> Plan {
        let wish = Wish {
            effort: self.request.reasoning_effort.as_deref(),
            max_tokens: self.request.max_tokens,
            forced_call: self.forces_call(),
            model: &self.request.model,
            info: self.info,
        };
        plan(&wish, &mut self.warnings)
    }

    fn forces_call(&self) -> bool {
        matches!(
            self.request.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        )
    }

    fn system(&self) -> Option<Value> {
        let leading = self.request.conversation.leading_system();
        let texts = leading.iter().map(|message| message.joined_text());
        let mut blocks: Vec<Value> = self
            .request
            .system
            .iter()
            .cloned()
            .chain(texts)
            .filter(|text| !text.trim().is_empty())
            .map(|text| json!({"type": "text", "text": text}))
            .collect();
        self.mark(blocks.last_mut()?);
        Some(Value::from(blocks))
    }

    fn tools(&self, fields: &mut Map<String, Value>) -> Result<(), LlmError> {
        let tools = &self.request.tools;
        let choice = &self.request.tool_choice;
        if let ToolChoice::Named(name) = choice
            && !tools.iter().any(|tool| tool.name == *name)
        {
            return Err(self.error(
                LlmErrorKind::UnsupportedToolChoice,
                format!("the tool choice names `{name}`, which is not among the tools; add it or choose another"),
            ));
        }
        if self.forces_call()
            && (tools.is_empty() || self.info.is_some_and(|info| !info.forced_tool_choice))
        {
            return Err(self.error(
                LlmErrorKind::UnsupportedToolChoice,
                format!(
                    "a tool call cannot be forced with the model `{}` and {} tools; use the choice `auto`",
                    self.request.model,
                    tools.len()
                ),
            ));
        }
        let omit = *choice == ToolChoice::None && self.target.options["omit_tools_on_none"] == true;
        if tools.is_empty() || omit {
            return Ok(());
        }
        let mut definitions: Vec<Value> = tools.iter().map(|tool| definition(tool)).collect();
        if let Some(last) = definitions.last_mut() {
            self.mark(last);
        }
        fields.insert("tools".to_owned(), Value::from(definitions));
        let one_call = self.request.parallel_tool_calls == Some(false);
        let mut value = match choice {
            ToolChoice::Auto if !one_call => return Ok(()),
            ToolChoice::Auto => json!({"type": "auto"}),
            ToolChoice::None => json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
        };
        if one_call && *choice != ToolChoice::None {
            value["disable_parallel_tool_use"] = Value::Bool(true);
        }
        fields.insert("tool_choice".to_owned(), value);
        Ok(())
    }

    fn sampling(&mut self, plan: &Plan, fields: &mut Map<String, Value>) {
        let request = self.request;
        let reason = if self.version() >= WITHOUT_SAMPLING {
            format!("the API version {} does not have", self.version())
        } else if self.info.is_some_and(|info| !info.sampling_params) {
            format!("the model `{}` does not take", request.model)
        } else if plan
            .thinking
            .as_ref()
            .is_some_and(|thinking| thinking["type"] != "disabled")
        {
            "reasoning excludes".to_owned()
        } else {
            String::new()
        };
        for (name, value) in [
            ("temperature", request.temperature),
            ("top_p", request.top_p),
        ] {
            match value {
                None => {}
                Some(value) if reason.is_empty() => {
                    fields.insert(name.to_owned(), Value::from(value));
                }
                Some(_) => self.warn(
                    "sampling_dropped",
                    format!("{reason} {name}; it is left out"),
                ),
            }
        }
    }

    fn metadata(&mut self, fields: &mut Map<String, Value>) {
        for (name, value) in &self.request.metadata {
            if name == "user_id" {
                fields.insert("metadata".to_owned(), json!({"user_id": value}));
            } else {
                self.warn(
                    "metadata_dropped",
                    format!("anthropic takes only the metadata user_id; {name} is left out"),
                );
            }
        }
    }

    fn mark(&self, block: &mut Value) {
        if let Some(marker) = &self.marker {
            block["cache_control"] = marker.clone();
        }
    }

    fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.warnings.push(Warning::new(code, message));
    }

    fn error(&self, kind: LlmErrorKind, message: String) -> LlmError {
        LlmError::new(kind, NAME, message)
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    // By hand: `json!` would copy the schema once more, for every request.
    let mut value = Map::new();
    value.insert("name".to_owned(), Value::from(tool.name.as_str()));
    value.insert(
        "description".to_owned(),
        Value::from(tool.description.as_str()),
    );
    value.insert("input_schema".to_owned(), parameters(tool));
    if let Some(true) = tool.strict {
        value.insert("strict".to_owned(), Value::Bool(true));
    }
    Value::Object(value)
}

/// A list of names, or names separated by commas.
fn beta_headers(value: Option<Value>) -> Vec<String> {
    let names: Vec<String> = match value {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        Some(Value::String(names)) => names.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    names
        .iter()
        .map(|name| body::header_value(name))
        .filter(|name| !name.is_empty())
        .collect()
}
