//! Freeform tools where the API has only JSON functions: one string field
//! stands for the text (LLM-client brief §7.2).

use std::rc::Rc;

use serde_json::{Value, json};

use super::schema;
use crate::llm::tool::ToolDefinition;

/// Name of the field where the definition does not give one.
const FIELD: &str = "input";

/// The freeform tools of a request, each with the field that holds its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Freeform(Vec<(String, String)>);

impl Freeform {
    /// Those among `tools`.
    pub(super) fn of(tools: &[Rc<ToolDefinition>]) -> Self {
        let freeform = tools.iter().filter(|tool| tool.custom.is_some());
        Self(
            freeform
                .map(|tool| (tool.name.clone(), field(tool).to_owned()))
                .collect(),
        )
    }

    /// Whether the tool `name` is one.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Wraps the text of a call of `name` as arguments.
    pub(super) fn wrap(&self, name: &str, text: &str) -> Value {
        json!({self.field(name): text})
    }

    /// The text in the arguments of a call of `name`; `None` when the model
    /// did not follow the schema, or the tool is not freeform.
    pub(super) fn unwrap(&self, name: &str, arguments: &Value) -> Option<String> {
        if !self.contains(name) {
            return None;
        }
        arguments[self.field(name)].as_str().map(str::to_owned)
    }

    /// What of this changes the bytes of a history.
    pub(super) fn key(&self) -> String {
        self.0
            .iter()
            .filter(|(_, field)| field != FIELD)
            .map(|(name, field)| format!(" {name}={field}"))
            .collect()
    }

    fn field(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or(FIELD, |(_, field)| field)
    }
}

/// JSON Schema of a tool's arguments, freeform or not.
pub(super) fn parameters(tool: &ToolDefinition) -> Value {
    if tool.custom.is_none() || own_field(tool).is_some() {
        return schema::current(&tool.parameters);
    }
    json!({
        "type": "object",
        "properties": {FIELD: {"type": "string"}},
        "required": [FIELD],
        "additionalProperties": false,
    })
}

fn field(tool: &ToolDefinition) -> &str {
    own_field(tool).unwrap_or(FIELD)
}

/// The one property of the tool's own schema, if it is a string.
fn own_field(tool: &ToolDefinition) -> Option<&str> {
    let properties = tool.parameters.get("properties")?.as_object()?;
    match properties.iter().next() {
        Some((name, schema)) if properties.len() == 1 && schema["type"] == "string" => Some(name),
        _ => None,
    }
}
