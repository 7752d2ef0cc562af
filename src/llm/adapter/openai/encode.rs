//! A request as an HTTP exchange, without the input.

use serde_json::{Map, Value, json};

use super::NAME;
use super::input::InputFormat;
use crate::llm::adapter::effort::{changed, dropped, nearest};
use crate::llm::adapter::{body, media, schema};
use crate::llm::endpoint::Endpoint;
use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::head::Head;
use crate::llm::model::ModelInfo;
use crate::llm::request::{Request, ResponseFormat};
use crate::llm::tool::{CustomFormat, ToolChoice, ToolDefinition};
use crate::llm::warning::Warning;

/// Fields of the body that are not options: history, and what the decoder and
/// the stateless history rely on.
const RESERVED: [&str; 3] = ["input", "stream", "previous_response_id"];
/// Most metadata pairs, and most characters of a key and of a value.
const MAX_METADATA: (usize, usize, usize) = (16, 64, 512);

pub(super) fn head(
    request: &Request,
    target: &Endpoint,
    default_base_url: &str,
) -> Result<Head, LlmError> {
    let mut warnings = Vec::new();
    let options = body::options(request, NAME, &RESERVED, &mut warnings);
    let mut writer = Writer {
        request,
        target,
        info: body::known_model(NAME, request),
        fields: Map::new(),
        warnings,
    };
    writer.write()?;
    let format = InputFormat {
        vision: media::sees_images(request, target),
        reasoning: writer.reasons(),
    };
    let Writer {
        mut fields,
        warnings,
        ..
    } = writer;
    body::merge(&mut fields, options);
    let base_url = body::base_url(target, default_base_url, "/v1");
    let url = format!("{base_url}/responses");
    let auth = body::auth(target, "authorization", "Bearer ");
    let http = body::post(target, url, headers(target), auth);
    Ok(Head::new(http, &fields, "input", format, warnings))
}

fn headers(target: &Endpoint) -> impl Iterator<Item = (&'static str, String)> {
    let headers = [
        ("openai-organization", "organization"),
        ("openai-project", "project"),
    ];
    headers.into_iter().filter_map(|(name, option)| {
        let value = target.options[option].as_str()?;
        Some((name, body::header_value(value)))
    })
}

/// Everything of the body but the input.
struct Writer<'a> {
    request: &'a Request,
    target: &'a Endpoint,
    info: Option<&'static ModelInfo>,
    fields: Map<String, Value>,
    warnings: Vec<Warning>,
}

impl Writer<'_> {
    fn write(&mut self) -> Result<(), LlmError> {
        let request = self.request;
        self.set("model", body::wire_model(self.info, request));
        self.set("stream", true);
        self.set("stream_options", json!({"include_obfuscation": false}));
        self.set("store", false);
        let system = body::system_texts(request).join("\n\n");
        if !system.is_empty() {
            self.set("instructions", system);
        }
        self.tools()?;
        self.reasoning();
        if let Some(key) = &request.cache_key {
            self.set("prompt_cache_key", key.as_str());
        }
        if let Some(most) = request.max_tokens {
            self.set("max_output_tokens", most);
        }
        match &request.response_format {
            ResponseFormat::Text => {}
            ResponseFormat::Json => self.set("text", json!({"format": {"type": "json_object"}})),
            ResponseFormat::JsonSchema { schema, strict } => {
                let format = json!({
                    "type": "json_schema", "name": "answer", "schema": schema, "strict": strict,
                });
                self.set("text", json!({"format": format}));
            }
        }
        self.sampling();
        if !request.stop_sequences.is_empty() {
            self.warn(
                "stop_dropped",
                "openai has no stop sequences; they are left out",
            );
        }
        self.metadata();
        Ok(())
    }

    fn tools(&mut self) -> Result<(), LlmError> {
        let request = self.request;
        let tools = &request.tools;
        let choice = match &request.tool_choice {
            ToolChoice::Auto => Value::Null,
            ToolChoice::None => Value::from("none"),
            ToolChoice::Required => Value::from("required"),
            ToolChoice::Named(name) => match tools.iter().find(|tool| tool.name == *name) {
                Some(tool) => json!({"type": kind(tool), "name": name}),
                None => {
                    return Err(unsupported(&format!(
                        "names `{name}`, which is not among the tools; add it or choose another"
                    )));
                }
            },
        };
        if tools.is_empty() {
            return match request.tool_choice {
                ToolChoice::Auto | ToolChoice::None => Ok(()),
                _ => Err(unsupported(
                    "forces a call, but there are no tools; use the choice `auto`",
                )),
            };
        }
        let definitions: Vec<Value> = tools.iter().map(|tool| definition(tool)).collect();
        self.set("tools", definitions);
        if !choice.is_null() {
            self.set("tool_choice", choice);
        }
        // Models that make one call at a time refuse the field.
        if let Some(parallel) = request.parallel_tool_calls
            && self.info.is_none_or(|info| info.parallel_tool_calls)
        {
            self.set("parallel_tool_calls", parallel);
        }
        Ok(())
    }

    /// Whether the model reasons, as far as anybody knows. One that the
    /// catalogue lacks goes by its name.
    fn reasons(&self) -> bool {
        match self.info {
            Some(info) => info.supports_reasoning,
            None => !is_without_reasoning(&self.request.model),
        }
    }

    fn reasoning(&mut self) {
        let reasons = self.reasons();
        let mut reasoning = Map::new();
        if let Some(asked) = self.request.reasoning_effort.as_deref() {
            let model = &self.request.model;
            let known = self.info.map(ModelInfo::levels).unwrap_or_default();
            if !reasons && asked != "none" {
                self.warnings.push(dropped(model));
            } else if reasons {
                let given = match known.is_empty() {
                    true => asked,
                    false => nearest(asked, &known).unwrap_or(asked),
                };
                if given != asked {
                    self.warnings.push(changed(model, asked, given));
                }
                reasoning.insert("effort".to_owned(), Value::from(given));
            }
        }
        if let Some(summary) = self.target.options["reasoning_summary"].as_str()
            && reasons
        {
            reasoning.insert("summary".to_owned(), Value::from(summary));
        }
        if !reasoning.is_empty() {
            self.set("reasoning", reasoning);
        }
        // Models that do not reason refuse the field.
        if reasons {
            self.set("include", json!(["reasoning.encrypted_content"]));
        }
    }

    fn sampling(&mut self) {
        let request = self.request;
        let refused = self.info.is_some_and(|info| !info.sampling_params);
        for (name, value) in [
            ("temperature", request.temperature),
            ("top_p", request.top_p),
        ] {
            match value {
                None => {}
                Some(_) if refused => {
                    let message = format!(
                        "the model `{}` does not take {name}; it is left out",
                        request.model
                    );
                    self.warn("sampling_dropped", message);
                }
                Some(value) => self.set(name, value),
            }
        }
    }

    fn metadata(&mut self) {
        let (pairs, key_chars, value_chars) = MAX_METADATA;
        let request = self.request;
        let fits = |name: &str, value: &str| {
            name.chars().count() <= key_chars && value.chars().count() <= value_chars
        };
        let mut kept = Map::new();
        for (name, value) in &request.metadata {
            if kept.len() < pairs && fits(name, value) {
                kept.insert(name.clone(), Value::from(value.as_str()));
            } else {
                let message = format!(
                    "openai takes {pairs} metadata of {key_chars} and {value_chars} characters; one is left out"
                );
                self.warn("metadata_dropped", message);
            }
        }
        if !kept.is_empty() {
            self.set("metadata", kept);
        }
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.warnings.push(Warning::new(code, message));
    }
}

/// Whether the name is that of a model from before reasoning, or of one for
/// chats: they refuse the fields of reasoning.
fn is_without_reasoning(model: &str) -> bool {
    let name = model.strip_prefix("ft:").unwrap_or(model);
    let old = ["gpt-3", "gpt-4", "chatgpt-", "davinci", "babbage"];
    let is_old = old.iter().any(|begin| name.starts_with(begin));
    is_old || (name.starts_with("gpt-5") && name.contains("-chat"))
}

fn unsupported(why: &str) -> LlmError {
    let message = format!("the tool choice {why}");
    LlmError::new(LlmErrorKind::UnsupportedToolChoice, NAME, message)
}

fn kind(tool: &ToolDefinition) -> &'static str {
    match tool.custom {
        None => "function",
        Some(_) => "custom",
    }
}

fn definition(tool: &ToolDefinition) -> Value {
    let mut value = json!({
        "type": kind(tool), "name": tool.name, "description": tool.description,
    });
    match &tool.custom {
        None => {
            value["parameters"] = schema::current(&tool.parameters);
            // The field is required, and `true` needs a closed schema.
            value["strict"] = Value::Bool(tool.strict == Some(true));
        }
        Some(CustomFormat::Text) => value["format"] = json!({"type": "text"}),
        Some(CustomFormat::Grammar { syntax, definition }) => {
            value["format"] =
                json!({"type": "grammar", "syntax": syntax, "definition": definition});
        }
    }
    value
}
