//! A request as an HTTP exchange, without the contents.

use serde_json::{Map, Value, json};

use super::NAME;
use super::contents::ContentFormat;
use super::thinking;
use crate::llm::adapter::freeform::{Freeform, parameters};
use crate::llm::adapter::schema::without_const;
use crate::llm::adapter::{body, media};
use crate::llm::endpoint::Endpoint;
use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::head::Head;
use crate::llm::model::ModelInfo;
use crate::llm::request::{Request, ResponseFormat};
use crate::llm::tool::{ToolChoice, ToolDefinition};
use crate::llm::warning::Warning;

/// Tools of the provider itself that an option adds: it and the name on the
/// wire.
const OWN_TOOLS: [(&str, &str); 3] = [
    ("grounding", "googleSearch"),
    ("url_context", "urlContext"),
    ("code_execution", "codeExecution"),
];

pub(super) fn head(
    request: &Request,
    target: &Endpoint,
    default_base_url: &str,
) -> Result<Head, LlmError> {
    let mut warnings = Vec::new();
    let mut options = body::options(
        request,
        NAME,
        &["contents", "continuationToken"],
        &mut warnings,
    );
    let info = body::known_model(NAME, request);
    let mut writer = Writer {
        request,
        info,
        fields: Map::new(),
        warnings,
    };
    writer.write(&mut options)?;
    let Writer {
        mut fields,
        warnings,
        ..
    } = writer;
    body::merge(&mut fields, options);
    let url = url(request, target, info, default_base_url);
    let auth = body::auth(target, "x-goog-api-key", "");
    let http = body::post(target, url, [], auth);
    let is_old = super::is_old(request);
    let format = ContentFormat {
        vision: media::sees_images(request, target),
        is_old,
        result_media: info.map_or(!is_old, |info| info.tool_result_media),
        freeform: Freeform::of(&request.tools),
    };
    Ok(Head::new(http, &fields, "contents", format, warnings))
}

/// The model's name is part of the path; what cannot stand there is escaped.
fn url(
    request: &Request,
    target: &Endpoint,
    info: Option<&'static ModelInfo>,
    default_base_url: &str,
) -> String {
    let base_url = body::base_url(target, default_base_url, "");
    let versioned = ["/v1beta", "/v1alpha", "/v1"]
        .iter()
        .any(|version| base_url.ends_with(version));
    let version = if versioned { "" } else { "/v1beta" };
    let id = body::wire_model(info, request);
    let id = id.strip_prefix("models/").unwrap_or(id);
    let folder = if id.contains('/') { "" } else { "models/" };
    let mut path = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{base_url}{version}/{folder}{path}:streamGenerateContent?alt=sse")
}

/// Everything of the body but the contents.
struct Writer<'a> {
    request: &'a Request,
    info: Option<&'static ModelInfo>,
    fields: Map<String, Value>,
    warnings: Vec<Warning>,
}

impl Writer<'_> {
    fn write(&mut self, options: &mut Map<String, Value>) -> Result<(), LlmError> {
        let texts = body::system_texts(self.request).into_iter();
        let system: Vec<Value> = texts.map(|text| json!({"text": text})).collect();
        if !system.is_empty() {
            self.set("systemInstruction", json!({"parts": system}));
        }
        self.tools(options)?;
        if let Some(settings) = options.shift_remove("safety_settings") {
            // Wins over what else the options hold, such as a profile's own.
            options.insert("safetySettings".to_owned(), settings);
        }
        let generation = self.generation();
        if !generation.is_empty() {
            self.set("generationConfig", generation);
        }
        if !self.request.metadata.is_empty() {
            self.warn(
                "metadata_dropped",
                "gemini takes no metadata; it is left out",
            );
        }
        Ok(())
    }

    fn tools(&mut self, options: &mut Map<String, Value>) -> Result<(), LlmError> {
        let request = self.request;
        let tools = &request.tools;
        let mut functions = Vec::new();
        if !tools.is_empty() {
            let declarations: Vec<Value> = tools.iter().map(|tool| declaration(tool)).collect();
            functions.push(json!({"functionDeclarations": declarations}));
        }
        let (more, mut own) = own_tools(options);
        functions.extend(more);
        let mut settings = Map::new();
        if !functions.is_empty() && !own.is_empty() {
            if super::is_old(request) {
                let left_out = own.iter().filter_map(Value::as_object);
                let names: Vec<&str> = left_out.flat_map(Map::keys).map(String::as_str).collect();
                let message = format!(
                    "the model `{}` takes no tools of its provider beside functions; left out: {}",
                    request.model,
                    names.join(", ")
                );
                self.warn("provider_tool_dropped", &message);
                own.clear();
            } else {
                // Without it the API refuses the two together.
                settings.insert("includeServerSideToolInvocations".to_owned(), true.into());
            }
        }
        let list: Vec<Value> = functions.into_iter().chain(own).collect();
        if !list.is_empty() {
            self.set("tools", list);
        }
        let config = match &request.tool_choice {
            ToolChoice::Auto => Value::Null,
            ToolChoice::None if tools.is_empty() => Value::Null,
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        let forced = matches!(
            request.tool_choice,
            ToolChoice::Required | ToolChoice::Named(_)
        );
        if forced && tools.is_empty() {
            return Err(unsupported(
                "forces a call, but there are no tools; use the choice `auto`",
            ));
        }
        if let ToolChoice::Named(name) = &request.tool_choice
            && !tools.iter().any(|tool| tool.name == *name)
        {
            return Err(unsupported(&format!(
                "names `{name}`, which is not among the tools; add it or choose another"
            )));
        }
        if !config.is_null() {
            settings.insert("functionCallingConfig".to_owned(), config);
        }
        if !settings.is_empty() {
            self.set("toolConfig", settings);
        }
        if request.parallel_tool_calls == Some(false) && !tools.is_empty() {
            self.warn(
                "parallel_calls_kept",
                "gemini cannot be limited to one tool call per answer",
            );
        }
        Ok(())
    }

    fn generation(&mut self) -> Map<String, Value> {
        let request = self.request;
        let mut config = Map::new();
        let mut set = |name: &str, value: Value| config.insert(name.to_owned(), value);
        if let Some(temperature) = request.temperature {
            set("temperature", Value::from(temperature));
        }
        if let Some(top_p) = request.top_p {
            set("topP", Value::from(top_p));
        }
        if let Some(most) = request.max_tokens {
            set("maxOutputTokens", Value::from(most));
        }
        if !request.stop_sequences.is_empty() {
            set("stopSequences", json!(request.stop_sequences));
        }
        match &request.response_format {
            ResponseFormat::Text => {}
            ResponseFormat::Json => {
                set("responseMimeType", Value::from("application/json"));
            }
            ResponseFormat::JsonSchema { schema, .. } => {
                set("responseMimeType", Value::from("application/json"));
                set("responseJsonSchema", schema.clone());
            }
        }
        let thinking = thinking::config(
            request.reasoning_effort.as_deref(),
            &request.model,
            self.info,
            super::is_old(request),
            &mut self.warnings,
        );
        if let Some(thinking) = thinking {
            set("thinkingConfig", thinking);
        }
        config
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    fn warn(&mut self, code: &str, message: &str) {
        self.warnings.push(Warning::new(code, message));
    }
}

/// Takes the tools out of the options: lists of functions, then the tools of
/// the provider itself, each once. They come on top of the request's own.
fn own_tools(options: &mut Map<String, Value>) -> (Vec<Value>, Vec<Value>) {
    let wanted = OWN_TOOLS.map(|(option, name)| {
        let is_wanted = options.shift_remove(option) == Some(Value::Bool(true));
        is_wanted.then_some(name)
    });
    let given = match options.shift_remove("tools") {
        None => Vec::new(),
        Some(Value::Array(list)) => list,
        Some(other) => {
            // The merge puts it in the place of the whole list.
            options.insert("tools".to_owned(), other);
            return (Vec::new(), Vec::new());
        }
    };
    let is_list = |tool: &Value| {
        let spellings = ["functionDeclarations", "function_declarations"];
        spellings.iter().any(|name| tool.get(name).is_some())
    };
    let (functions, mut own): (Vec<Value>, Vec<Value>) = given.into_iter().partition(is_list);
    for name in wanted.into_iter().flatten() {
        if !own.iter().any(|tool| tool.get(name).is_some()) {
            own.push(json!({name: {}}));
        }
    }
    (functions, own)
}

fn unsupported(why: &str) -> LlmError {
    let message = format!("the tool choice {why}");
    LlmError::new(LlmErrorKind::UnsupportedToolChoice, NAME, message)
}

fn declaration(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": without_const(parameters(tool)),
    })
}
